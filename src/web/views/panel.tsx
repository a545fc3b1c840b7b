// The details of the chosen row: a call with its exact arguments, result and approvals, a request with its tokens, or
// another event as JSON. It stands beside the rows, and on a phone above them.
import { BASE } from '../data/mount.ts'
import { useState } from 'react'
import type { CallKey, Event, Session } from '../../kernel/index.ts'
import type { WirePending } from '../../server/wire.ts'
import type { TimelineRow } from '../../view/timeline.ts'
import { Button } from '../parts/button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { X } from '../parts/icons.ts'
import { JsonTree } from '../parts/json-tree.tsx'
import { StatusLabel } from '../parts/status-label.tsx'
import { Text } from '../parts/exact-text.tsx'
import { toastResult } from '../shell/toasts.tsx'
import { CallFacts } from './panel/call-facts.tsx'
import { StateFacts, TurnFacts } from './panel/turn-facts.tsx'
import { MomentTime, FactRows, PanelSection } from './panel/panel-section.tsx'
import { cliCommand, curlCommand } from './session/terminal-commands.ts'

export type PanelProps = {
  readonly session: string
  readonly row: TimelineRow | null
  readonly event: Event | null
  /** The events of the row, in order. */
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
  const title = panelTitle(row, event)
  const head = (
    <header className="side-head">
      <h2>
        <Text text={title} />
      </h2>
      {row?.type === 'call' ? <StatusLabel of={row.state} /> : null}
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
        <PanelBody {...props} />
      </Dialog>
    )
  return (
    <aside className="side" aria-label="Details">
      {head}
      <div className="side-body" tabIndex={-1}>
        <PanelBody {...props} />
      </div>
    </aside>
  )
}

function panelTitle(row: TimelineRow | null, event: Event | null): string {
  if (row?.type === 'call') return row.tool
  if (row?.type === 'turn') return 'Request and reply'
  return event?.type ?? 'Event'
}

function PanelBody(props: PanelProps) {
  const { session, row, event, events, state, pending, dead, onChoose, onFork } = props
  const seq = event?.seq ?? row?.seq ?? 0
  const isCall = row?.type === 'call'
  return (
    <>
      {isCall ? (
        <CallFacts
          session={session}
          row={row}
          events={events}
          pending={findPendingCall(pending, session, row)}
          dead={dead}
        />
      ) : null}
      {row?.type === 'turn' ? <TurnFacts row={row} onChoose={onChoose} /> : null}
      {isCall || row?.type === 'turn' || event === null ? null : (
        <PanelSection name="Event">
          <FactRows rows={[['Time', <MomentTime key="t" at={event.at} />]]} />
          <JsonTree value={event} open={1} />
        </PanelSection>
      )}
      {state === null ? null : <StateFacts session={session} state={state} />}
      <PanelSection name="Take it along">
        <div className="panel-row">
          <CopyTextButton
            name="Copy link"
            text={`${location.origin}${BASE}/s/${encodeURIComponent(session)}?e=${row?.type === 'call' ? row.call : seq}`}
          />
          <CopyTextButton name="Copy CLI" text={cliCommand(session, seq)} />
          <CopyTextButton name="Copy curl" text={curlCommand(session, seq)} />
          {onFork === null ? null : (
            <Button size="small" onPress={() => onFork(seq)}>
              Fork here
            </Button>
          )}
        </div>
      </PanelSection>
      {isCall || row?.type === 'turn' ? <RawEvents events={events} /> : null}
    </>
  )
}

function findPendingCall(
  pending: readonly WirePending[],
  session: string,
  row: TimelineRow | null,
): WirePending | null {
  if (row?.type !== 'call') return null
  return (
    pending.find(({ callId, sessionId }) => callId === (row.call satisfies CallKey) && sessionId === session) ?? null
  )
}

function CopyTextButton({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <Button size="small" onPress={() => toastResult(navigator.clipboard.writeText(text), 'It is copied.')}>
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
    <PanelSection name="Raw events">
      {events.map((event) => (
        <JsonTree key={event.seq} value={event as never} open={1} />
      ))}
    </PanelSection>
  )
}
