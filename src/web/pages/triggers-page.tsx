// The triggers page: the sources of events from outside with what was decided about their newest deliveries, the last
// triggers with decision and reason, and buttons to run a dead one again or to drop it. The dead letters of consumers
// are here too: for both a person decides what nobody could be told of.
import { useState } from 'react'
import { Link } from 'wouter'
import type { TriggerRow, TriggerSourceRow } from '../../server/wire.ts'
import { countNoun } from '../../view/shown-text.ts'
import { apiActions } from '../data/api.ts'
import { queries, useLetters, useTriggers } from '../data/queries.ts'
import { useRefusal } from '../data/use-refusal.ts'
import { Text } from '../parts/exact-text.tsx'
import { Ago } from '../parts/figures.tsx'
import { Empty, ErrorPanel, Loading } from '../parts/page-states.tsx'
import { StatusLabel } from '../parts/status-label.tsx'
import { PageHead } from '../shell/page-shell.tsx'
import { toastResult } from '../shell/toasts.tsx'
import { DeadActs, DeadLetters } from './letter-list.tsx'
import '../style/house.css'
import '../style/triggers.css'

export function TriggersPage() {
  const [source, setSource] = useState('')
  const [decision, setDecision] = useState('')
  const { data, isPending, isError, error, refetch } = useTriggers(source, decision)
  const { letters = [], count = 0 } = useLetters().data ?? {}
  const refusal = useRefusal('operator')
  const sources = data?.sources ?? []
  const triggers = data?.triggers ?? []
  const hasDead = triggers.some(({ state }) => state === 'dead')
  return (
    <div className="page">
      <PageHead title="Triggers" about={data ? countNoun(sources.length, 'source') : undefined}>
        {sources.length === 0 ? null : (
          <>
            <Choice label="Source" all="Any source" value={source} onChange={setSource} options={namesOf(sources)} />
            <Choice label="Decision" all="Any decision" value={decision} onChange={setDecision} options={DECISIONS} />
          </>
        )}
      </PageHead>
      {isPending ? <Loading what="Loading triggers" /> : null}
      {isError && !data ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : null}
      {data && sources.length === 0 && letters.length === 0 ? (
        <Empty title="No triggers are configured" command="terret serve">
          Events from outside come here. Name a model, sources and signed endpoints under "triggers" in your
          configuration file and start the server, or give your own harness createTriggers(…) of terret/triggers.
        </Empty>
      ) : null}
      {refusal !== null && (hasDead || letters.length > 0) ? <p className="page-note dim">{refusal}</p> : null}
      {sources.length === 0 && letters.length === 0 ? null : (
        <div className="triggers">
          <DeadLetters letters={letters} count={count} isRefused={refusal !== null} />
          <ul className="trigger-sources" aria-label="Sources">
            {sources.map((each) => (
              <SourceLine key={each.source} row={each} />
            ))}
          </ul>
          {sources.length > 0 && triggers.length === 0 ? (
            <p className="page-note dim">
              {source === '' && decision === '' ? 'Nothing has come in yet.' : 'No trigger is like this.'}
            </p>
          ) : null}
          <ul className="dues" aria-label="Last triggers">
            {triggers.map((each) => (
              <TriggerLine key={each.session} row={each} isRefused={refusal !== null} />
            ))}
          </ul>
        </div>
      )}
    </div>
  )
}

/** The counts of a source, in the words of the triage. */
const COUNTS = ['dropped', 'notified', 'reacted', 'escalated', 'deferred', 'dead'] as const
const DECISIONS = {
  drop: 'Dropped',
  notify: 'Notified',
  react: 'Reacted',
  escalate: 'Escalated',
  waiting: 'Waiting',
  deferred: 'Deferred',
  dead: 'Dead',
} as const

function namesOf(sources: readonly TriggerSourceRow[]): Readonly<Record<string, string>> {
  return Object.fromEntries(sources.map(({ source }) => [source, source]))
}

type ChoiceProps = {
  readonly label: string
  readonly all: string
  readonly value: string
  readonly options: Readonly<Record<string, string>>
  readonly onChange: (value: string) => void
}

function Choice({ label, all, value, options, onChange }: ChoiceProps) {
  return (
    <select className="field" aria-label={label} value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">{all}</option>
      {Object.entries(options).map(([each, name]) => (
        <option key={each} value={each}>
          {name}
        </option>
      ))}
    </select>
  )
}

function SourceLine({ row }: { readonly row: TriggerSourceRow }) {
  const { source, accepted, more } = row
  return (
    <li className="trigger-source">
      <span className="trigger-name">
        <Text text={source} />
        <span className="dim">{more ? `the last ${accepted}` : `${accepted} accepted`}</span>
      </span>
      <dl>
        {COUNTS.map((name) => (
          <div key={name} className={row[name] === 0 ? 'dim' : name === 'dead' ? 'trigger-dead' : ''}>
            <dd>{row[name]}</dd>
            <dt>{name}</dt>
          </div>
        ))}
      </dl>
    </li>
  )
}

function TriggerLine({ row, isRefused }: { readonly row: TriggerRow; readonly isRefused: boolean }) {
  const { session, source, label, state, reason, path, target, at } = row
  const [of, words] = lookOf(row)
  const way = path === null ? null : PATHS[path]
  return (
    <li className="due trigger">
      <Ago at={at} />
      <span className="due-title">
        <Link href={`/s/${encodeURIComponent(session)}`}>
          <Text text={label} />
        </Link>
        <span className="dim">
          <Text text={reason === null ? source : `${source}: ${reason}`} />
        </span>
      </span>
      <span className="trigger-decision">
        <StatusLabel of={of} words={words} />
        <span className="dim">
          <Text text={[target, way].filter((each) => each !== null).join(' · ')} />
        </span>
      </span>
      {state === 'dead' ? (
        <DeadActs
          isRefused={isRefused}
          retry={() => toastResult(decide(apiActions.retryTrigger(session)), 'Runs again where it failed')}
          drop={() => toastResult(decide(apiActions.dropTrigger(session)), 'Dropped')}
        />
      ) : null}
    </li>
  )
}

/** Reads the list again, also after a refusal: somebody else has decided then. */
async function decide(act: Promise<unknown>): Promise<void> {
  try {
    await act
  } finally {
    await queries.invalidateQueries({ queryKey: ['triggers'] })
  }
}

const PATHS: Readonly<Record<NonNullable<TriggerRow['path']>, string>> = {
  first: 'first model',
  first_again: 'first model, asked again',
  second: 'second model',
  cached: 'decided before',
}

/** A status that has its look, and the word for this. */
function lookOf({ state, action }: TriggerRow): readonly [of: string, words: string] {
  if (state === 'dead') return ['failed', state]
  if (state === 'deferred') return ['rescheduling', state]
  if (state === 'stopped') return ['interrupted', state]
  if (action === null) return ['open', 'waiting']
  return [action === 'drop' ? 'idle' : 'completed', DECISIONS[action].toLowerCase()]
}
