// Reads a graph's run from its log: the nodes in the order they ran, and the final state. A graph's replies are
// checkpoints for programs; this makes them readable for people. Pure.
import { callKey, type Event } from '../kernel/event.ts'
import { oneLine } from './clean.ts'
import { isObject, type JsonObject, parseJson } from './untrusted-json.ts'
import { textOf } from './shown-text.ts'

/** One run of a node: its status and result. */
export type NodeStop = {
  /** The name of the node. */
  readonly node: string
  /** The key of its last call: another one is made when it is tried again. */
  readonly call: string
  /** `open`, `waits`, `runs`, or how its last call ended. */
  readonly status: string
  /** How often a call of it was begun. */
  readonly attempts: number
  /** When it was begun for the first time, in ms since 1970. Null if it was not. */
  readonly beganAt: number | null
  /** From its beginning to its last result, in ms. Null if it has none. */
  readonly durationMs: number | null
  /** Its result in a few words, or why it failed. Empty if nothing is known. */
  readonly found: string
}
type OpenStop = { -readonly [K in keyof NodeStop]: NodeStop[K] }
/** Describes the result of a finished node in a few words, from the state after it. */
type DescribeResult<S> = (node: string, state: Partial<S>) => string

/** The nodes in the order they ran, from the log alone. */
export function stopsOf<S = JsonObject>(
  events: readonly Event[],
  found: DescribeResult<S> = () => '',
): readonly NodeStop[] {
  const stops: OpenStop[] = []
  const byCall = new Map<string, OpenStop>()
  let done: OpenStop[] = []
  for (const event of events) {
    if (event.type === 'agent.message') {
      const state = stateOfReply<S>(event) ?? {}
      for (const stop of done) stop.found = found(stop.node, state)
      done = []
      for (const [index, { tool, gate }] of event.calls.entries()) {
        const call = callKey(event.seq, index)
        const before = stops.at(-1)
        const again = before?.node === tool && before.status !== 'ok'
        const stop: OpenStop = again && before ? before : { node: tool, call, ...FRESH }
        if (!again) stops.push(stop)
        Object.assign(stop, { call, status: gate?.type === 'ask' ? 'waits' : 'open' })
        byCall.set(call, stop)
      }
    } else if (event.type === 'agent.tool_use' || event.type === 'agent.custom_tool_use') {
      const stop = byCall.get(event.call)
      if (stop) Object.assign(stop, { attempts: stop.attempts + 1, beganAt: stop.beganAt ?? event.at, status: 'runs' })
    } else if (event.type === 'agent.tool_result') {
      const stop = byCall.get(event.call)
      if (!stop) continue
      const durationMs = stop.beganAt === null ? null : event.at - stop.beganAt
      // A refused call ends as an error with the reason.
      const status = event.failure?.kind === 'Denied' ? 'denied' : event.status
      Object.assign(stop, { status, durationMs, found: nodeFailureText(event) })
      if (event.status === 'ok') done.push(stop)
    }
  }
  return stops
}

const FRESH = { status: 'open', attempts: 0, beganAt: null, durationMs: null, found: '' } as const

/** The state of a workflow, from its last reply. */
export function stateIn<S = JsonObject>(events: readonly Event[]): Partial<S> | null {
  const last = events.findLast((event) => event.type === 'agent.message')
  return last?.type === 'agent.message' ? stateOfReply<S>(last) : null
}

/** Null if the reply is not a checkpoint. */
export function stateOfReply<S = JsonObject>({ parts }: ReplyParts): Partial<S> | null {
  const { state } = objectFields(textOf(parts)) as { readonly state?: Partial<S> }
  return state ?? null
}

type ReplyParts = Pick<Extract<Event, { type: 'agent.message' }>, 'parts'>

/** The replies of a workflow are checkpoints for programs. */
export function isCheckpoint(reply: ReplyParts): boolean {
  const [part] = reply.parts
  return (
    part?.type === 'text' &&
    /^\{"(?:arrived|calls|failed|reached|state)":/.test(part.text) &&
    stateOfReply(reply) !== null
  )
}

/** Why a node failed or was stopped. */
export function nodeFailureText({ status, content, failure }: Extract<Event, { type: 'agent.tool_result' }>): string {
  if (status === 'ok') return ''
  const said = typeof content === 'string' ? content : (failure?.message ?? '')
  const { error } = objectFields(said)
  return oneLine(typeof error === 'string' ? error : said, 400)
}

/** The fields of a JSON object; none if the text is not one. */
function objectFields(text: string): JsonObject {
  const value = parseJson(text)
  return isObject(value) ? value : {}
}
