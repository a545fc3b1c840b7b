// The row of a call: which tool, its arguments on one line, how it stands, how often it may run. Opened, it shows both whole.
import { memo } from 'react'
import { Link } from 'wouter'
import type { Event } from '../../../kernel/index.ts'
import { oneLine } from '../../../view/clean.ts'
import { editTexts } from '../../../view/edited.ts'
import { jsonLine } from '../../../view/json.ts'
import { childIdOf } from '../../../view/spans/span.ts'
import type { CallRow } from '../../../view/timeline.ts'
import { Diff } from '../../parts/diff.tsx'
import { ChevronRight } from '../../parts/icons.ts'
import { Json } from '../../parts/json.tsx'
import { Status } from '../../parts/status.tsx'
import { Text } from '../../parts/text.tsx'
import { callLook } from '../../parts/why.ts'
import { ResultContent } from './files.tsx'
import { type Around, Line } from './line.tsx'

const ARGS = 200
const NO_EVENTS: readonly Event[] = []

type Result = Extract<Event, { type: 'agent.tool_result' }>

export type CallLineProps = {
  readonly row: CallRow
  readonly around: Around
  readonly result?: Result | null
  /** The events of the page, among which is the answer of a child or a person. */
  readonly events?: readonly Event[]
  /** What it prints while it runs. */
  readonly output?: string | undefined
}

export const CallLine = memo(function CallLine(props: CallLineProps) {
  const { row, around, result = null, events = NO_EVENTS, output } = props
  const { seq, call, tool, args, state, effect, startedAt, endedAt, starts, cost, child, failure } = row
  const key = `call ${call}`
  const isOpen = around.isOpen(key)
  const name = `${isOpen ? 'Close' : 'Open'} ${oneLine(tool)} ${call}`
  const { session } = around
  return (
    <Line
      kind="call"
      seq={seq}
      at={row.at}
      around={around}
      to={call}
      depth={1}
      took={startedAt !== null && endedAt !== null ? endedAt - startedAt : null}
      cost={cost}
    >
      <div className="line-head">
        <button
          type="button"
          className="line-toggle"
          aria-expanded={isOpen}
          aria-label={name}
          onClick={() => around.onToggle(key)}
        >
          <ChevronRight size={14} aria-hidden className={isOpen ? 'turned' : ''} />
          <strong>
            <Text text={tool} />
          </strong>
        </button>
        <Status {...callLook(state, child === null ? null : childIdOf(session, call), around.waiting)} />
        {around.isFiltered && around.isNumbered ? <span className="dim small">Turn {row.turn}</span> : null}
        {starts > 1 ? <Status of="lost" words={`started ${starts} times`} /> : null}
        {row.edited ? <Text text={`edited by ${row.edited.by}`} /> : null}
        {effect === 'once' ? <span className="tag">once</span> : null}
        {child === null ? null : (
          <Link href={`/s/${encodeURIComponent(childIdOf(session, call))}`}>
            <Text text={child} /> →
          </Link>
        )}
        {state === 'asked' && around.mayReview ? (
          <Link href={reviewOf(session, call)} className="button small">
            Review
          </Link>
        ) : null}
        {isOpen ? null : (
          <span className="line-args mono dim">
            <Text text={jsonLine(row.edited?.args ?? args, ARGS)} />
          </span>
        )}
      </div>
      {failure === null || isOpen ? null : (
        <p className={failureName(state)}>
          <Text text={failure} />
        </p>
      )}
      {isOpen ? <Open row={row} session={session} result={result} events={events} /> : null}
      {output === undefined || output === '' ? null : (
        <pre className="line-output" aria-label={`What ${tool} prints`} tabIndex={0}>
          <Text as="block" mono text={output.slice(-2_000)} />
        </pre>
      )}
    </Line>
  )
})

type OpenProps = Required<Pick<CallLineProps, 'row' | 'result' | 'events'>> & { readonly session: string }

function Open({ row: { args, edited }, session, result, events }: OpenProps) {
  return (
    <div className="line-open">
      <Json value={args} open={2} />
      {edited ? <Diff {...editTexts(args, edited.args)} /> : null}
      {result === null ? null : <ResultContent session={session} result={result} events={events} />}
    </div>
  )
}

/** What somebody stopped did not go wrong. */
export function failureName(state: CallRow['state']): string {
  return state === 'aborted' ? 'line-failure dim' : 'line-failure'
}

/** Where a person decides it. */
export function reviewOf(session: string, call: string): string {
  return `/inbox?session=${encodeURIComponent(session)}&call=${encodeURIComponent(call)}`
}
