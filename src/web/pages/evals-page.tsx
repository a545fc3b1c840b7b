// The evals page: the runs of suites that are kept in this store. One of them with its cases and trials, why each trial
// has its verdict, the session one click away, and an earlier run beside it.
import { useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import type { EvalComparison, EvalRow, EvalScore, EvalTrial, WireReport } from '../../server/wire-evals.ts'
import { countNoun } from '../../view/shown-text.ts'
import { useEvalRun, useEvals } from '../data/queries.ts'
import { Button } from '../parts/button.tsx'
import { Text } from '../parts/exact-text.tsx'
import { Ago, moneyText, momentText, timeTakenText } from '../parts/figures.tsx'
import { Empty, ErrorPanel, Loading } from '../parts/page-states.tsx'
import { StatusLabel } from '../parts/status-label.tsx'
import { PageHead } from '../shell/page-shell.tsx'
import '../style/house.css'
import '../style/evals.css'

/** The address names the run, and the one that it is compared with. */
export function EvalsPage() {
  const [params, setParams] = useSearchParams()
  const { data, isPending, isError, error, refetch } = useEvals()
  const runs = data?.runs ?? []
  const [chosen, before] = [params.get('run') ?? runs[0]?.session ?? '', params.get('before') ?? '']
  const compareWith = (other: string): void =>
    setParams(other === '' ? { run: chosen } : { run: chosen, before: other }, { replace: true })
  return (
    <div className="page">
      <PageHead title="Evals" about={data ? countNoun(runs.length, 'run') : undefined} />
      {isPending ? <Loading what="Loading runs of suites" /> : null}
      {isError && !data ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : null}
      {data && runs.length === 0 ? (
        <Empty title="No suite was run in this store" command="terret eval run FILE">
          A suite tries an agent on cases and grades what it did. What the command line ran is in a store of its own:
          serve the folder "evals" of the data folder to see it here.
        </Empty>
      ) : null}
      {runs.length === 0 ? null : (
        <div className="evals">
          <ul className="dues eval-runs" aria-label="Runs">
            {runs.map((row) => (
              <RunLine key={row.session} row={row} isChosen={row.session === chosen} />
            ))}
          </ul>
          <OneRun
            session={chosen}
            before={before}
            others={runs.filter(({ session, suite }) => session !== chosen && suite === suiteOf(runs, chosen))}
            onBefore={compareWith}
          />
        </div>
      )}
    </div>
  )
}

function suiteOf(runs: readonly EvalRow[], session: string): string | undefined {
  return runs.find((row) => row.session === session)?.suite
}

/** A status that has its look, for a verdict or the end of a run. */
const LOOKS: Readonly<Record<EvalRow['status'] | EvalTrial['verdict'], string>> = {
  passed: 'completed',
  failed: 'failed',
  inconclusive: 'unknown',
  errored: 'interrupted',
  ungraded: 'unknown',
}

function RunLine({ row, isChosen }: { readonly row: EvalRow; readonly isChosen: boolean }) {
  const { session, suite, at, status, counts } = row
  const all = counts.passed + counts.failed + counts.errored + counts.ungraded
  return (
    <li className={isChosen ? 'due eval-run here' : 'due eval-run'}>
      <Ago at={at} />
      <span className="due-title">
        <Link
          href={`/evals?${new URLSearchParams({ run: session }).toString()}`}
          aria-current={isChosen ? 'true' : undefined}
        >
          <Text text={suite} />
        </Link>
        <span className="dim">
          {counts.passed} of {countNoun(all, 'trial')} passed
        </span>
      </span>
      <StatusLabel of={LOOKS[status]} words={status} />
    </li>
  )
}

function shareText(rate: number | null): string {
  return rate === null ? '–' : `${Math.round(rate * 100)} %`
}

type OneRunProps = {
  readonly session: string
  readonly before: string
  readonly others: readonly EvalRow[]
  readonly onBefore: (session: string) => void
}

function OneRun({ session, before, others, onBefore }: OneRunProps) {
  const { data, isError, error, refetch } = useEvalRun(session, before)
  if (isError && !data) return <ErrorPanel error={error} onRetry={() => void refetch()} />
  if (!data) return <Loading what="Reading the report" />
  const { report, comparison } = data
  return (
    <section className="eval-report" aria-label="Report">
      <header className="eval-head">
        <h2>
          <Text text={report.suite} />
        </h2>
        <StatusLabel of={LOOKS[report.status]} words={report.status} />
        <span className="spread" />
        {others.length === 0 ? null : (
          <select
            className="field"
            aria-label="Compared with"
            value={before}
            onChange={(event) => onBefore(event.target.value)}
          >
            <option value="">Compared with none</option>
            {others.map((row) => (
              <option key={row.session} value={row.session}>
                {`${momentText(row.at)}, ${shareText(row.rate)}`}
              </option>
            ))}
          </select>
        )}
      </header>
      <p className="dim">{figuresText(report)}</p>
      {report.reasons.map((reason) => (
        <p key={reason} className="eval-reason">
          <Text text={reason} />
        </p>
      ))}
      {comparison === null ? null : <Compared comparison={comparison} />}
      <ul className="eval-cases" aria-label="Cases">
        {report.cases.map(({ id, trials }) => (
          <li key={id}>
            <h3>
              <Text text={id} />
              <CaseChange id={id} comparison={comparison} />
            </h3>
            <ul>
              {trials.map((trial) => (
                <TrialLine key={trial.n} trial={trial} />
              ))}
            </ul>
          </li>
        ))}
      </ul>
    </section>
  )
}

function figuresText({ counts, rate, interval, cost, passAt, passAll }: WireReport): string {
  const { passed, failed, errored, ungraded } = counts
  const sure = interval === null ? '' : ` (${shareText(interval.low)} … ${shareText(interval.high)})`
  const k = Object.keys(passAt).at(-1) ?? '1'
  const chances = k === '1' ? [] : [`pass@${k} ${chanceText(passAt[k])}, pass^${k} ${chanceText(passAll[k])}`]
  return [
    `${passed} passed, ${failed} failed, ${errored} errored, ${ungraded} ungraded`,
    `rate ${shareText(rate)}${sure}`,
    ...chances,
    `${moneyText(cost.usd)} for trials, ${moneyText(cost.judgeUsd)} for judges`,
  ].join(' · ')
}

function chanceText(chance: number | undefined): string {
  return (chance ?? 0).toFixed(2)
}

function Compared({ comparison }: { readonly comparison: EvalComparison }) {
  const { word, text } = comparison
  return (
    <p className={word === 'worse' ? 'standing bad' : 'standing'}>
      <span>
        <b>{word}</b>: <Text text={text} />
      </span>
    </p>
  )
}

function CaseChange({ id, comparison }: { readonly id: string; readonly comparison: EvalComparison | null }) {
  const found = comparison?.cases.find((each) => each.id === id)
  if (!found || found.before === found.after) return null
  return (
    <span className="dim">
      {shareText(found.before)} → {shareText(found.after)}
    </span>
  )
}

/** Why it did not pass is shown at once, and the rest of its scores when it is opened. */
function TrialLine({ trial }: { readonly trial: EvalTrial }) {
  const { n, session, verdict, why, scores, usd, ms, calls } = trial
  const [isOpen, setOpen] = useState(false)
  const shown = scores.filter(({ score }) => isOpen || (verdict !== 'passed' && score !== 1))
  return (
    <li className="eval-trial">
      <span className="eval-verdict">
        <StatusLabel of={LOOKS[verdict]} words={verdict} />
        <Link href={`/s/${encodeURIComponent(session)}`}>Trial {n}</Link>
        <span className="dim">
          {countNoun(calls, 'call')} · {timeTakenText(ms)} · {moneyText(usd)}
        </span>
        {scores.length === 0 ? null : (
          <Button kind="quiet" size="small" onPress={() => setOpen(!isOpen)}>
            {isOpen ? 'Fewer scores' : countNoun(scores.length, 'score')}
          </Button>
        )}
      </span>
      {why === undefined ? null : (
        <p>
          <Text text={why} />
        </p>
      )}
      {shown.map((score) => (
        <ScoreLine key={score.name} score={score} />
      ))}
    </li>
  )
}

function ScoreLine({ score: { name, score, why, session, parts = [] } }: { readonly score: EvalScore }) {
  return (
    <div className="eval-score">
      <span className="mono">{score === null ? '–' : score.toFixed(2)}</span>
      <div>
        {session === undefined ? <Text text={name} /> : <Link href={`/s/${encodeURIComponent(session)}`}>{name}</Link>}
        {why === undefined || parts.length > 0 ? null : (
          <p className="dim">
            <Text text={why} />
          </p>
        )}
        {parts.map((part) => (
          <p key={part.name} className={part.score === 1 ? 'dim' : ''}>
            <Text text={`${part.score === 1 ? 'met' : 'not met'}: ${part.name}. ${part.why ?? ''}`} />
          </p>
        ))}
      </div>
    </div>
  )
}
