// What is known of the chosen row: a call with its exact arguments, its result and who allowed it; a request with its tokens; any other
// event as it is. Beside the rows, on a phone above them.
import { BASE } from '../data/mount.ts'
import { useState } from 'react'
import type { CallKey, Event, Session } from '../../kernel/index.ts'
import type { WirePending } from '../../server/wire.ts'
import type { TimelineRow } from '../../view/timeline.ts'
import { Button } from '../parts/button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { X } from '../parts/icons.ts'
import { Json } from '../parts/json.tsx'
import { Status } from '../parts/status.tsx'
import { Text } from '../parts/text.tsx'
import { tell } from '../shell/toasts.tsx'
import { CallFacts } from './panel/call.tsx'
import { StateFacts, TurnFacts } from './panel/facts.tsx'
import { Clock, Facts, Section } from './panel/part.tsx'
import { cliOf, curlOf } from './session/commands.ts'

export type PanelProps = {
  readonly session: string
  readonly row: TimelineRow | null
  readonly event: Event | null
  /** Of the row, in order. */
  readonly events: readonly Event[]
  readonly state: Session | null
  readonly pending: readonly WirePending[]
  /** Why nothing can be decided here. */
  readonly dead: string | null
  readonly onChoose: (to: string) => void
  readonly onFork: ((at: number) => void) | null
  readonly onClose: () => void
  readonly isSheet: boolean
}

export function Panel(props: PanelProps) {
  const { row, event, isSheet, onClose } = props
  const title = titleOf(row, event)
  const head = (
    <header className="side-head">
      <h2>
        <Text text={title} />
      </h2>
      {row?.type === 'call' ? <Status of={row.state} /> : null}
      <span className="spread" />
      {isSheet ? null : (
        <Button kind="quiet" size="small" label="Close the panel" onPress={onClose}>
          <X size={16} aria-hidden />
        </Button>
      )}
    </header>
  )
  if (isSheet)
    return (
      <Dialog title={title} onClose={onClose} wide>
        <Inside {...props} />
      </Dialog>
    )
  return (
    <aside className="side" aria-label="Details">
      {head}
      <div className="side-body" tabIndex={-1}>
        <Inside {...props} />
      </div>
    </aside>
  )
}

function titleOf(row: TimelineRow | null, event: Event | null): string {
  if (row?.type === 'call') return row.tool
  if (row?.type === 'turn') return 'Request and reply'
  return event?.type ?? 'Event'
}

function Inside(props: PanelProps) {
  const { session, row, event, events, state, pending, dead, onChoose, onFork } = props
  const seq = event?.seq ?? row?.seq ?? 0
  const isCall = row?.type === 'call'
  return (
    <>
      {isCall ? (
        <CallFacts session={session} row={row} events={events} pending={waiting(pending, session, row)} dead={dead} />
      ) : null}
      {row?.type === 'turn' ? <TurnFacts row={row} onChoose={onChoose} /> : null}
      {isCall || row?.type === 'turn' || event === null ? null : (
        <Section name="Event">
          <Facts rows={[['Time', <Clock key="t" at={event.at} />]]} />
          <Json value={event} open={1} />
        </Section>
      )}
      {state === null ? null : <StateFacts session={session} state={state} />}
      <Section name="Take it along">
        <div className="panel-row">
          <Copy
            name="Copy link"
            text={`${location.origin}${BASE}/s/${encodeURIComponent(session)}?e=${row?.type === 'call' ? row.call : seq}`}
          />
          <Copy name="Copy CLI" text={cliOf(session, seq)} />
          <Copy name="Copy curl" text={curlOf(session, seq)} />
          {onFork === null ? null : (
            <Button size="small" onPress={() => onFork(seq)}>
              Fork here
            </Button>
          )}
        </div>
      </Section>
      {isCall || row?.type === 'turn' ? <RawEvents events={events} /> : null}
    </>
  )
}

function waiting(pending: readonly WirePending[], session: string, row: TimelineRow | null): WirePending | null {
  if (row?.type !== 'call') return null
  return (
    pending.find(({ callId, sessionId }) => callId === (row.call satisfies CallKey) && sessionId === session) ?? null
  )
}

function Copy({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <Button size="small" onPress={() => tell(navigator.clipboard.writeText(text), 'It is copied.')}>
      {name}
    </Button>
  )
}

function RawEvents({ events }: { readonly events: readonly Event[] }) {
  const [open, setOpen] = useState(false)
  if (!open)
    return (
      <Button size="small" kind="quiet" onPress={() => setOpen(true)}>
        Show raw events
      </Button>
    )
  return (
    <Section name="Raw events">
      {events.map((event) => (
        <Json key={event.seq} value={event as never} open={1} />
      ))}
    </Section>
  )
}
