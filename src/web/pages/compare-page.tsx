// Compares two sessions side by side: their turns aligned, the cost and time of each, and the first difference. The
// address names both.
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import {
  compareLogs,
  type Comparison,
  type Difference,
  type Pair,
  type ComparedStep,
  type Totals,
} from '../../view/compare-logs.ts'
import { oneLine } from '../../view/clean.ts'
import { countNoun } from '../../view/shown-text.ts'
import { stateOf } from '../../view/tree-rows.ts'
import { usdOf } from '../../view/usd.ts'
import type { WhatIfAnswer } from '../../server/wire.ts'
import { readWholeSession, type WholeSession } from '../data/other-logs.ts'
import { findWhatIf, sidesOf } from '../data/what-ifs.ts'
import { Button } from '../parts/button.tsx'
import { Money, moneyText, TokenCount, TimeTaken, timeTakenText } from '../parts/figures.tsx'
import { List } from '../parts/virtual-list.tsx'
import { Empty, Loading, Notice, ErrorPanel } from '../parts/page-states.tsx'
import { StatusLabel } from '../parts/status-label.tsx'
import { Text } from '../parts/exact-text.tsx'
import { PageHead } from '../shell/page-shell.tsx'
import '../style/compare.css'

export function ComparePage() {
  const [params] = useSearchParams()
  const [a, b] = [params.get('a') ?? '', params.get('b') ?? '']
  const whatIf = params.get('whatif')
  return (
    <div className="page">
      {a !== '' && whatIf !== null ? (
        <ComparedWhatIf session={a} name={whatIf} key={`${a}\n${whatIf}`} />
      ) : a === '' || b === '' ? (
        <>
          <PageHead title="Compare" />
          <Empty title="Two sessions are needed">
            Mark two rows of the sessions with the key x, or fork a session and compare the fork with it.
          </Empty>
        </>
      ) : (
        <ComparedSessions a={a} b={b} key={`${a}\n${b}`} />
      )}
    </div>
  )
}

function useWholeSession(session: string) {
  return useQuery({ queryKey: ['compared', session], queryFn: ({ signal }) => readWholeSession(session, signal) })
}

/** A session beside the one of a what-if, which only this tab has. */
function ComparedWhatIf({ session, name }: { readonly session: string; readonly name: string }) {
  const whole = useWholeSession(session)
  const answer = findWhatIf(name)
  const sides = useMemo(() => (whole.data && answer ? sidesOf(whole.data, answer) : null), [whole.data, answer])
  const compared = useMemo(() => (sides ? compareLogs(sides[0].logs, sides[1].logs) : null), [sides])
  if (answer === null)
    return (
      <>
        <PageHead title="What if" />
        <Empty title="This what-if is gone">
          Only the tab that asked had it. Ask again{' '}
          <Link href={`/s/${encodeURIComponent(session)}`}>at the session</Link>.
        </Empty>
      </>
    )
  return (
    <>
      <PageHead title="What if" about={compared ? aboutText(compared) : undefined} />
      {whole.isError ? <ErrorPanel error={whole.error} onRetry={() => void whole.refetch()} /> : null}
      {whole.isPending ? <Loading what="Reading the session" /> : null}
      <WhatIfFacts answer={answer} />
      {sides && compared ? (
        <Sides left={sides[0]} right={sides[1]} compared={compared} livedFrom={answer.from} />
      ) : null}
    </>
  )
}

function WhatIfFacts({
  answer: { settled, drift, missing, parked, costUsd, changed },
}: {
  readonly answer: WhatIfAnswer
}) {
  return (
    <div className="what-if-facts">
      <p>
        <StatusLabel of={settled === null ? 'requires_action' : settled.type} />
        {changed.length === 0 ? null : <span>changed: {changed.join(', ')}</span>}
        <span>
          this cost <Money usd={costUsd} />
        </span>
        <span>{countNoun(drift, 'answer')} not in the recording</span>
      </p>
      {missing.length + parked.length === 0 ? null : (
        <ul>
          {missing.map(({ tool, args }, i) => (
            <li key={`missing ${i}`}>
              <Text
                mono={tool !== undefined}
                text={
                  tool === undefined
                    ? 'A request was different, and no model was chosen to answer it.'
                    : `${tool} ${oneLine(JSON.stringify(args ?? null), 200)}`
                }
              />
            </li>
          ))}
          {parked.map(({ call, tool, why }) => (
            <li key={`parked ${call}`}>
              <Text text={`${tool} waits. ${why}`} />
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

function ComparedSessions({ a, b }: { readonly a: string; readonly b: string }) {
  const [left, right] = [useWholeSession(a), useWholeSession(b)]
  const compared = useMemo(
    () => (left.data && right.data ? compareLogs(left.data.logs, right.data.logs) : null),
    [left.data, right.data],
  )
  const again = (): void => {
    void left.refetch()
    void right.refetch()
  }
  const failed = left.isError ? left : right.isError ? right : null
  return (
    <>
      <PageHead title="Compare" about={compared ? aboutText(compared) : undefined}>
        <Button onPress={again}>Read again</Button>
      </PageHead>
      {failed ? <ErrorPanel error={failed.error} onRetry={again} /> : null}
      {!failed && !compared ? <Loading what="Reading both sessions" /> : null}
      {left.data?.cut || right.data?.cut ? <Notice>A log is too long: only its beginning is compared.</Notice> : null}
      {a === b ? <Notice>Both are the same session.</Notice> : null}
      {compared && left.data && right.data ? <Sides left={left.data} right={right.data} compared={compared} /> : null}
    </>
  )
}

function aboutText({ first, pairs }: Comparison): string {
  if (first === null) return pairs.length === 0 ? 'Both are empty' : 'They said and did the same'
  const { left, right } = pairs[first] ?? { left: null, right: null }
  const step = left ?? right
  const differ = pairs.filter(({ differs }) => differs.length > 0).length
  return `First difference at ${step?.type === 'turn' ? `turn ${step.n}` : 'a message'}; ${differ} of ${countNoun(pairs.length, 'step')} differ`
}

type SidesProps = {
  readonly left: WholeSession
  readonly right: WholeSession
  readonly compared: Comparison
  /** The right side is a what-if: after this event its steps are in no log. */
  readonly livedFrom?: number
}

/** A pair of steps, or a fold of several equal pairs. */
type ComparedRow = { readonly key: string; readonly pair: Pair | null; readonly first: boolean; readonly same: number }

function Sides({ left, right, compared, livedFrom }: SidesProps) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set())
  const rows = useMemo(() => foldSameSteps(compared, open), [compared, open])
  const first = rows.find((row) => row.first)?.key ?? null
  const [at, setAt] = useState<string | null>(first)
  return (
    <>
      <div className="cmp-head">
        <Side mark="A" whole={left} />
        {livedFrom === undefined ? <Side mark="B" whole={right} /> : <LivedSide from={livedFrom} />}
      </div>
      <div className="cmp-tools">
        <Figures left={compared.left} right={compared.right} />
        {first === null ? null : (
          <Button onPress={() => setAt(at === first ? null : first)}>Go to the first difference</Button>
        )}
      </div>
      <List
        label="Steps of both"
        items={rows}
        keyOf={({ key }) => key}
        chosen={at}
        row={(row) =>
          row.pair === null ? (
            <button type="button" className="cmp-same" onClick={() => setOpen(new Set([...open, row.key]))}>
              {countNoun(row.same, 'step')} the same, show
            </button>
          ) : (
            <PairRow pair={row.pair} first={row.first} lastOfB={livedFrom ?? null} />
          )
        }
      />
    </>
  )
}

/** The equal pairs that stay visible at each end of a fold. */
const KEPT = 1
const FOLDED_LEAST = 3

function foldSameSteps({ pairs, first }: Comparison, open: ReadonlySet<string>): readonly ComparedRow[] {
  const rows: ComparedRow[] = []
  for (let i = 0; i < pairs.length; ) {
    let end = i
    while (pairs[end]?.differs.length === 0) end += 1
    const [from, to] = [i === 0 ? i : i + KEPT, end === pairs.length ? end : end - KEPT]
    const key = `same ${from}`
    const isFolded = to - from >= FOLDED_LEAST && !open.has(key)
    for (let k = i; k < Math.max(end, i + 1); k++) {
      if (isFolded && k === from) rows.push({ key, pair: null, first: false, same: to - from })
      if (!isFolded || k < from || k >= to)
        rows.push({ key: `pair ${k}`, pair: pairs[k] ?? null, first: k === first, same: 0 })
    }
    i = Math.max(end, i + 1)
  }
  return rows
}

function Side({ mark, whole: { card } }: { readonly mark: string; readonly whole: WholeSession }) {
  return (
    <div className="cmp-side">
      <span className="cmp-mark" aria-hidden>
        {mark}
      </span>
      <div>
        <h2>
          <Link href={`/s/${encodeURIComponent(card.session)}`}>
            <Text text={card.title ?? card.session} />
          </Link>
        </h2>
        <p className="dim">
          <StatusLabel of={stateOf(card)} /> <Text text={`${card.agent} · ${card.session}`} />
        </p>
      </div>
    </div>
  )
}

function LivedSide({ from }: { readonly from: number }) {
  return (
    <div className="cmp-side">
      <span className="cmp-mark" aria-hidden>
        B
      </span>
      <div>
        <h2>What if, from event {from}</h2>
        <p className="dim">Only this tab has it. The session is not changed.</p>
      </div>
    </div>
  )
}

const FIGURES = [
  ['Turns', ({ turns }: Totals) => turns, String],
  ['Calls', ({ calls }: Totals) => calls, String],
  ['Tokens', ({ tokens }: Totals) => tokens, (value: number) => value.toLocaleString('en')],
  ['Cost', ({ cost }: Totals) => usdOf(cost), moneyText],
  ['Time worked', ({ ms }: Totals) => ms, timeTakenText],
] as const

function Figures({ left, right }: { readonly left: Totals; readonly right: Totals }) {
  return (
    <div className="cmp-figures-scroll" tabIndex={0} role="region" aria-label="Figures of both">
      <table className="cmp-figures">
        <thead>
          <tr>
            <th>
              <span className="out-of-sight">Session</span>
            </th>
            {FIGURES.map(([name]) => (
              <th key={name}>{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {[['A', left] as const, ['B', right] as const].map(([mark, totals]) => (
            <tr key={mark}>
              <th scope="row">{mark}</th>
              {FIGURES.map(([name, pick, text]) => (
                <td key={name}>{text(pick(totals))}</td>
              ))}
            </tr>
          ))}
          <tr>
            <th scope="row">Δ</th>
            {FIGURES.map(([name, pick, text]) => (
              <td key={name} className={toneOf(pick(right) - pick(left))}>
                {deltaText(pick(right) - pick(left), text)}
              </td>
            ))}
          </tr>
        </tbody>
      </table>
    </div>
  )
}

/** For all figures here, more is worse. */
function toneOf(change: number): string {
  return change > 0 ? 'more' : change < 0 ? 'less' : 'dim'
}

function deltaText(change: number, text: (value: number) => string): string {
  if (change === 0) return '0'
  return `${change > 0 ? '+' : '−'}${text(Math.abs(change))}`
}

const WORDS: Readonly<Record<Difference, string>> = {
  alone: 'only here',
  said: 'said otherwise',
  calls: 'other calls',
  arguments: 'other arguments',
  results: 'other results',
  model: 'other model',
  end: 'ended otherwise',
}

/** `lastOfB`: the last event of the right side that a page can show; null for all. */
type PairRowProps = { readonly pair: Pair; readonly first: boolean; readonly lastOfB: number | null }

function PairRow({ pair, first, lastOfB }: PairRowProps) {
  const { left, right, differs } = pair
  const isTurn = left?.type === 'turn' && right?.type === 'turn'
  return (
    <div className={differs.length === 0 ? 'cmp-pair same' : 'cmp-pair differs'}>
      {first ? (
        <p className="cmp-first">
          <strong>First difference</strong>
        </p>
      ) : null}
      {differs.length === 0 ? null : (
        <p className="cmp-differs">
          {differs.map((each) => (
            <span className="chip asks" key={each}>
              {WORDS[each]}
            </span>
          ))}
          {isTurn ? (
            <span className="dim">
              Δ {deltaText(usdOf(right.cost - left.cost), moneyText)}, {deltaText(right.ms - left.ms, timeTakenText)}
            </span>
          ) : null}
        </p>
      )}
      <StepCell mark="A" step={left} other={right} isShown />
      <StepCell mark="B" step={right} other={left} isShown={lastOfB === null || (right?.seq ?? 0) <= lastOfB} />
    </div>
  )
}

type StepNameProps = Pick<ComparedStep, 'session' | 'seq'> & { readonly name: string; readonly isShown: boolean }

function StepName({ session, seq, name, isShown }: StepNameProps) {
  return isShown ? <Link href={`/s/${encodeURIComponent(session)}?e=${seq}`}>{name}</Link> : <strong>{name}</strong>
}

type CellProps = {
  readonly mark: string
  readonly step: ComparedStep | null
  readonly other: ComparedStep | null
  /** Its event has a page. */
  readonly isShown: boolean
}

function StepCell({ mark, step, other, isShown }: CellProps) {
  if (step === null)
    return (
      <div className="cmp-cell none">
        <span className="cmp-mark" aria-hidden>
          {mark}
        </span>
        nothing here
      </div>
    )
  const { type, session, seq, n, says, state, route, calls, cost, tokens, ms } = step
  return (
    <div className={`cmp-cell ${type}`}>
      <p className="cmp-line">
        <span className="cmp-mark" aria-hidden>
          {mark}
        </span>
        <StepName {...{ session, seq, isShown }} name={type === 'turn' ? `Turn ${n}` : 'Message'} />
        {type === 'turn' && state !== 'replied' ? <StatusLabel of={state === 'asked' ? 'running' : state} /> : null}
        {type === 'turn' ? (
          <span className="dim">
            <TimeTaken ms={ms} /> · <TokenCount count={tokens} /> · <Money usd={usdOf(cost)} />
          </span>
        ) : null}
        {route !== null && route !== other?.route ? (
          <span className="chip">
            <Text text={route} />
          </span>
        ) : null}
      </p>
      {says === '' ? null : <Text as="block" text={says} />}
      {calls.map((call, i) => {
        const beside = other?.calls[i]
        const isSame = JSON.stringify(call) === JSON.stringify(beside)
        return (
          <div className={isSame ? 'cmp-call' : 'cmp-call other'} key={i}>
            <Text mono text={`${call.tool} ${oneLine(JSON.stringify(call.args), 300)}`} />
            <StatusLabel of={call.state} />
            {isSame || call.result === '' ? null : (
              <span className="dim">
                <Text text={oneLine(call.result, 300)} />
              </span>
            )}
          </div>
        )
      })}
    </div>
  )
}
