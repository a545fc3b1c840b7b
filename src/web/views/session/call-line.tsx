// The row of a call: its tool, its arguments on one line, its status, its effect. Opened, it shows the arguments and
// the result in full.
import { memo } from 'react'
import { Link } from 'wouter'
import type { Event } from '../../../kernel/index.ts'
import { oneLine } from '../../../view/clean.ts'
import { editTexts } from '../../../view/argument-changes.ts'
import { jsonLine } from '../../../view/untrusted-json.ts'
import { childIdOf } from '../../../view/spans/span.ts'
import type { CallRow } from '../../../view/timeline.ts'
import { Diff } from '../../parts/diff-view.tsx'
import { ChevronRight } from '../../parts/icons.ts'
import { JsonTree } from '../../parts/json-tree.tsx'
import { StatusLabel } from '../../parts/status-label.tsx'
import { Text } from '../../parts/exact-text.tsx'
import { callStatusOf } from '../../parts/status-words.ts'
import { ResultContent } from './result-files.tsx'
import { type RowContext, RowLayout } from './row-layout.tsx'

const ARGS = 200
const NO_EVENTS: readonly Event[] = []

type ToolResultEvent = Extract<Event, { type: 'agent.tool_result' }>

export type CallLineProps = {
  readonly row: CallRow
  readonly around: RowContext
  readonly result?: ToolResultEvent | null
  /** The events of the page, which include answers of children and people. */
  readonly events?: readonly Event[]
  /** The call's output while it runs. */
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
    <RowLayout
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
        <StatusLabel {...callStatusOf(state, child === null ? null : childIdOf(session, call), around.waiting)} />
        {around.isFiltered && around.isNumbered ? <span className="dim small">Turn {row.turn}</span> : null}
        {starts > 1 ? <StatusLabel of="lost" words={`started ${starts} times`} /> : null}
        {row.edited ? <Text text={`edited by ${row.edited.by}`} /> : null}
        {effect === 'once' ? <span className="tag">once</span> : null}
        {child === null ? null : (
          <Link href={`/s/${encodeURIComponent(childIdOf(session, call))}`}>
            <Text text={child} /> →
          </Link>
        )}
        {state === 'asked' && around.mayReview ? (
          <Link href={reviewAddress(session, call)} className="button small">
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
        <p className={failureClass(state)}>
          <Text text={failure} />
        </p>
      )}
      {isOpen ? <OpenedCall row={row} session={session} result={result} events={events} /> : null}
      {output === undefined || output === '' ? null : (
        <pre className="line-output" aria-label={`What ${tool} prints`} tabIndex={0}>
          <Text as="block" mono text={output.slice(-2_000)} />
        </pre>
      )}
    </RowLayout>
  )
})

type OpenedCallProps = Required<Pick<CallLineProps, 'row' | 'result' | 'events'>> & { readonly session: string }

function OpenedCall({ row: { args, edited }, session, result, events }: OpenedCallProps) {
  return (
    <div className="line-open">
      <JsonTree value={args} open={2} />
      {edited ? <Diff {...editTexts(args, edited.args)} /> : null}
      {result === null ? null : <ResultContent session={session} result={result} events={events} />}
    </div>
  )
}

/** A call that a person stopped did not fail. */
export function failureClass(state: CallRow['state']): string {
  return state === 'aborted' ? 'line-failure dim' : 'line-failure'
}

/** The inbox address where a person decides the call. */
export function reviewAddress(session: string, call: string): string {
  return `/inbox?session=${encodeURIComponent(session)}&call=${encodeURIComponent(call)}`
}
