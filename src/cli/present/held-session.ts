// Shows the pending work of a held, imported session to the person who may release it. It only reads.
import type { Event, Json, Session, Store } from '../../kernel/index.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import type { ShowOptions } from './result-output.ts'
import { readAllEvents, foldAll } from '../state/read-log.ts'
import { drawPreview, paintRows } from './call-preview.ts'
import { shortId, terretCommand } from './print.ts'
import { previewOf } from '../../tools/files/preview-call.ts'

/** `calls` are those that the local rules will ask about. */
export type HeldSession = {
  readonly session: string
  readonly held: true
  readonly agent: string
  readonly calls: readonly {
    readonly callId: string
    readonly tool: string
    readonly args: Json
    readonly ran: boolean
  }[]
  readonly inputs: readonly { readonly seq: number; readonly by: string | null; readonly text: string }[]
  readonly wakes: readonly { readonly due: number; readonly reason: string }[]
}

/** Null if the session is not held. */
export async function readHeldSession(store: Store, session: string): Promise<HeldSession | null> {
  const card = await store.card(session)
  if (!card?.held) return null
  const events = await readAllEvents(store, session)
  const state = foldAll(events)
  // It may have been released since the card was written.
  return state.held ? describeHeld(session, events, state) : null
}

function describeHeld(session: string, events: readonly Event[], { agent, run, inputs, wakes }: Session): HeldSession {
  const at = (seq: number): Event | undefined => events[seq - 1]
  return {
    session,
    held: true,
    agent,
    calls: (run?.turn?.open ?? []).map(({ key, proposal: { tool, args }, state }) => {
      return { callId: key, tool, args, ran: state.type === 'running' }
    }),
    inputs: inputs.map(({ seq }) => {
      const event = at(seq)
      const { parts = [], by = null } = event?.type === 'user.message' ? event : {}
      return { seq, by, text: parts.map((part) => (part.type === 'text' ? part.text : `(${part.type})`)).join(' ') }
    }),
    wakes: wakes.map(({ seq, due }) => {
      const event = at(seq)
      return { due, reason: event && 'due' in event ? event.reason : '' }
    }),
  }
}

export async function heldLines(held: HeldSession, showing: ShowOptions): Promise<readonly string[]> {
  const { session, agent, calls, inputs, wakes } = held
  const id = shortId(session)
  const shown = await Promise.all(calls.map((call) => callLines(call, showing)))
  return [
    `Session ${id} was imported and is held: nothing of it runs before you let it go on. If it does (agent ${oneLine(agent)}):`,
    ...shown.flat(),
    ...inputs.map(
      ({ by, text }) => `- a message${by === null ? '' : ` of ${oneLine(by)}`} is taken up: ${oneLine(text, 300)}`,
    ),
    ...wakes.map(({ due, reason }) => `- it wakes at ${dateText(due)}: ${oneLine(reason, 300)}`),
    ...(calls.length + inputs.length + wakes.length === 0 ? ['- its model is asked again'] : []),
    '  Instructions, tools, limits and policy are those of this folder.',
    `  Go on with: ${terretCommand`resume ${session}`}   or drop what is open: ${terretCommand`interrupt ${session}`}`,
  ]
}

async function callLines(
  call: HeldSession['calls'][number],
  { folder, room, paint }: ShowOptions,
): Promise<readonly string[]> {
  const { callId, tool, ran } = call
  const now = ran
    ? 'ran elsewhere; it is asked about, or its result is unknown'
    : 'is asked about here, whatever was decided elsewhere'
  const { rows } = drawPreview(call, await previewOf(folder, call), room)
  return [`- ${oneLine(tool)} (call ${shownId(callId)}) ${now}:`, ...paintRows(rows, paint)]
}

/** An imported file may contain any number as a time. */
function dateText(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? 'no real time' : date.toISOString()
}
