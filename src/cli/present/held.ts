// Shows what a held, imported session would do, for the person who may release it. It only reads.
import type { Event, Json, Session, Store } from '../../kernel/index.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import type { Showing } from './ending.ts'
import { allEvents, foldAll } from '../state/log.ts'
import { drawnPreview, painted } from './preview.ts'
import { shortId, typed } from './print.ts'
import { previewOf } from '../../tools/files/preview.ts'

/** Each of `calls` will be asked about by the local rules. */
export type Held = {
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
export async function heldIn(store: Store, session: string): Promise<Held | null> {
  const card = await store.card(session)
  if (!card?.held) return null
  const events = await allEvents(store, session)
  const state = foldAll(events)
  // It may have been released since the card was written.
  return state.held ? heldOf(session, events, state) : null
}

function heldOf(session: string, events: readonly Event[], { agent, run, inputs, wakes }: Session): Held {
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
      return { due, reason: event?.type === 'wake.scheduled' ? event.reason : '' }
    }),
  }
}

export async function heldLines(held: Held, showing: Showing): Promise<readonly string[]> {
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
    `  Go on with: ${typed`resume ${session}`}   or drop what is open: ${typed`interrupt ${session}`}`,
  ]
}

async function callLines(call: Held['calls'][number], { folder, room, paint }: Showing): Promise<readonly string[]> {
  const { callId, tool, ran } = call
  const now = ran
    ? 'ran elsewhere; it is asked about, or its result is unknown'
    : 'is asked about here, whatever was decided elsewhere'
  const { rows } = drawnPreview(call, await previewOf(folder, call), room)
  return [`- ${oneLine(tool)} (call ${shownId(callId)}) ${now}:`, ...painted(rows, paint)]
}

/** An imported file may hold any number. */
function dateText(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? 'no real time' : date.toISOString()
}
