// The health page: whether the server can write, the reason if not, where it stores data, its load, and all costs.
import { useMemo } from 'react'
import type { UsageRow, WireHealth } from '../../server/wire.ts'
import { ownOf } from '../../view/untrusted-json.ts'
import { useHealth, useUsage } from '../data/queries.ts'
import { Chart } from '../parts/chart.tsx'
import { Ago, Figure, Money, bytesText, TokenCount } from '../parts/figures.tsx'
import { Loading, ErrorPanel } from '../parts/page-states.tsx'
import { StatusLabel } from '../parts/status-label.tsx'
import { Text } from '../parts/exact-text.tsx'
import { PageHead } from '../shell/page-shell.tsx'
import '../style/house.css'

const DAYS = 30
const DAY_MS = 86_400_000

export function HealthPage() {
  const { data, isPending, isError, error, refetch } = useHealth()
  return (
    <div className="page">
      <PageHead
        title="Health"
        about={
          data ? (
            <>
              Terret <Text text={data.version} />, up for <Ago at={data.startedAt} />
              {data.hosts.length === 0 ? (
                ', mounted in another server'
              ) : (
                <Text text={`, answers to ${data.hosts.join(', ')}`} />
              )}
            </>
          ) : undefined
        }
      />
      {isPending ? <Loading what="Loading health" /> : null}
      {isError && !data ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : null}
      {data ? (
        <div className="scrolls stack wide">
          <HealthStatus health={data} />
          <Figures health={data} />
          <SpendingReport />
        </div>
      ) : null}
    </div>
  )
}

/** Advice for each code of trouble. */
const ADVICE: Readonly<Record<string, string>> = {
  disk_full:
    'Runs are paused where they are, and nothing that was acknowledged is lost. Reading works. Make room on the disk: the runs go on by themselves.',
  store: 'The store refuses to write. Reading may still work. See what the process of the server says.',
}

function HealthStatus({ health: { ok, trouble, code, due, drives } }: { readonly health: WireHealth }) {
  if (!ok)
    return (
      <section className="standing bad" role="alert">
        <StatusLabel of="failed" words="The server cannot write" />
        <p>
          <Text text={trouble ?? 'It does not say why.'} />
        </p>
        <p className="dim">{ownOf(ADVICE, code ?? '') ?? ADVICE['store']}</p>
      </section>
    )
  const idle = !drives && due > 0
  return (
    <section className={idle ? 'standing warn' : 'standing ok'}>
      {idle ? (
        <StatusLabel of="limit" words="Nobody drives what is due" />
      ) : (
        <StatusLabel of="ok" words="All is well: a write was just made, and is on disk" />
      )}
      {idle ? (
        <p className="dim">
          This server only reads and takes messages. {due} sessions are due. Start a worker: <code>terret worker</code>
        </p>
      ) : null}
    </section>
  )
}

function Figures({ health }: { readonly health: WireHealth }) {
  const { durability, streams, leases, due, bytes, sessions, drives, driving } = health
  const { appendMs, appendP99Ms, kind, survives } = durability
  return (
    <dl className="figures panel">
      <Figure name="Append" note={appendP99Ms === undefined ? undefined : `p99 ${appendP99Ms} ms`}>
        {appendMs === null ? '–' : `${appendMs} ms`}
      </Figure>
      <Figure name="Streams" note="open now">
        {streams}
      </Figure>
      <Figure name="Leases" note={drives ? `${driving} driven by this server` : 'this server drives none'}>
        {leases ?? '–'}
      </Figure>
      <Figure name="Due backlog" note="due, and no worker drives them yet">
        {due}
      </Figure>
      <Figure name="Store" note={sessions === undefined ? undefined : `${sessions.toLocaleString('en')} sessions`}>
        {bytes === undefined ? '–' : bytesText(bytes)}
      </Figure>
      <Figure name="Durability" note={<Text text={survives} />}>
        {kind === 'sqlite' ? 'SQLite' : kind === 'memory' ? 'In memory' : 'Other'}
      </Figure>
    </dl>
  )
}

/** Dollars per day, and the agents and models that spent them. */
function SpendingReport() {
  const { data, isError, error, refetch } = useUsage(DAYS)
  const { times, values } = useMemo(() => sumByDay(data?.rows ?? [], data?.now ?? 0), [data])
  const spenders = useMemo(() => sumBySpender(data?.rows ?? []), [data])
  if (isError && !data) return <ErrorPanel error={error} onRetry={() => void refetch()} />
  if (!data) return <Loading what="Loading what was spent" rows={3} />
  const all = values.reduce((sum, usd) => sum + usd, 0)
  return (
    <section className="panel">
      <header className="panel-head">
        <h2>Spent</h2>
        <span className="dim">
          {dollarsText(all)} in {DAYS} days{data.complete ? '' : ', still counting'}
        </span>
      </header>
      {all > 0 ? (
        <Chart label="Dollars a day" times={times} values={values} unit={dollarsText} />
      ) : (
        <p className="dim">Nothing was spent yet. What models cost comes here, by day, agent and model.</p>
      )}
      {spenders.length === 0 ? null : (
        <div className="table-scroll" tabIndex={0} role="region" aria-label="Spent by agent and model">
          <table className="table">
            <thead>
              <tr>
                <th>Agent</th>
                <th>Model</th>
                <th className="number replies">Replies</th>
                <th className="number">Tokens</th>
                <th className="number">Spent</th>
              </tr>
            </thead>
            <tbody>
              {spenders.map(({ agent, model, replies, tokens, usd }) => (
                <tr key={`${agent} ${model}`}>
                  <td>
                    <Text text={agent} />
                  </td>
                  <td className="dim">
                    <Text text={model === 'unknown' ? 'not recorded' : model} />
                  </td>
                  <td className="number replies">{replies.toLocaleString('en')}</td>
                  <td className="number">
                    <TokenCount count={tokens} />
                  </td>
                  <td className="number">
                    <Money usd={usd} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

/** Rounded to cents, since sums are read. */
function dollarsText(usd: number): string {
  const digits = usd > 0 && usd < 0.01 ? 4 : 2
  return usd.toLocaleString('en', { style: 'currency', currency: 'USD', minimumFractionDigits: digits })
}

/** Days without a row count as zero. */
function sumByDay(rows: readonly UsageRow[], now: number) {
  const days = new Map<string, number>()
  for (const { day, usd } of rows) days.set(day, (days.get(day) ?? 0) + usd)
  const today = Math.floor(now / DAY_MS) * DAY_MS
  const times = Array.from({ length: DAYS }, (_, i) => today - (DAYS - 1 - i) * DAY_MS)
  return { times, values: times.map((time) => days.get(new Date(time).toISOString().slice(0, 10)) ?? 0) }
}

function sumBySpender(rows: readonly UsageRow[]) {
  const found = new Map<string, { agent: string; model: string; usd: number; tokens: number; replies: number }>()
  for (const { agent, model, usd, inputTokens, outputTokens, replies } of rows) {
    const name = JSON.stringify([agent, model])
    const one = found.get(name) ?? { agent, model, usd: 0, tokens: 0, replies: 0 }
    found.set(name, one)
    one.usd += usd
    one.tokens += inputTokens + outputTokens
    one.replies += replies
  }
  return [...found.values()].toSorted((a, b) => b.usd - a.usd || b.tokens - a.tokens)
}
