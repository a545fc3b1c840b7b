// Results of a session as its log has them, by the key of their call: what a compaction cleared or cut can be read again byte for byte.
// "^" before a key means the session that this one was forked from, "^^" the one before that. It only reads.
import type { CallKey } from '../kernel/content.ts'
import { callKey, type Event } from '../kernel/event.ts'
import type { Store } from '../ports/store.ts'
import { blobFor } from '../view/blobs.ts'
import { isObject } from '../view/json.ts'
import { shortened } from '../view/text.ts'
import { RETRIEVE, STAGES } from './juice/marker.ts'

const PAGE = 500
const ARGS_CHARS = 120
const NAMED = /^call:\s*(\^{0,100})([1-9]\d{0,15}\.\d{1,9})$/
export const INDEX = 'call:index'

type Result = Extract<Event, { type: 'agent.tool_result' }>
/** A log that the session consists of, up to this event. */
type Log = { readonly id: string; readonly upTo: number }

/** Null: no result is named like this. */
export async function resultNamed(store: Store, session: string, written: string): Promise<Uint8Array | null> {
  if (written === INDEX) return Buffer.from(await indexOf(store, session))
  const [, ago = '', key] = NAMED.exec(written) ?? []
  if (key === undefined) return null
  const log = (await logsOf(store, session, ago.length))[ago.length]
  const result = log && (await resultIn(store, log, key))
  return log && result ? bytesOf(store, log.id, result) : null
}

/** How a result is called in what a model reads: one line, without its content. */
export function resultLine(name: string, tool: string, args: unknown): string {
  return `${name} ${tool} ${shortened(JSON.stringify(args) ?? '', ARGS_CHARS)}`
}

export function nameOf(call: CallKey, ago: number): string {
  return `call:${'^'.repeat(ago)}${call}`
}

/** This session, and those it was forked from, the nearest first. */
export async function logsOf(store: Store, session: string, most = Number.POSITIVE_INFINITY): Promise<readonly Log[]> {
  const logs: Log[] = [{ id: session, upTo: Number.POSITIVE_INFINITY }]
  for (const { id } of logs) {
    const [created] = (await store.read(id, 0, 1)).events
    const fork = created?.type === 'session.created' ? created.fork : undefined
    if (logs.length > most || fork === undefined || logs.some((log) => log.id === fork.session)) break
    logs.push({ id: fork.session, upTo: fork.seq })
  }
  return logs
}

export async function* eventsIn(store: Store, { id, upTo }: Log, after = 0): AsyncGenerator<Event> {
  for (let at = after; ; ) {
    const { events } = await store.read(id, at, PAGE)
    for (const event of events) {
      if (event.seq > upTo) return
      yield event
    }
    const last = events.at(-1)
    if (last === undefined) return
    at = last.seq
  }
}

/** The results of a reply stand between it and the next reply: no more is read. */
async function resultIn(store: Store, log: Log, call: CallKey): Promise<Result | null> {
  const reply = Number.parseInt(call, 10)
  for await (const event of eventsIn(store, log, reply - 1)) {
    if ((event.type === 'agent.message') !== (event.seq === reply)) return null
    if (event.type === 'agent.tool_result' && event.call === call) return event
  }
  return null
}

/** What the tool said, before it was made shorter for the model. A tool may write any hash into its metadata. */
async function bytesOf(store: Store, log: string, { content, metadata, from }: Result): Promise<Uint8Array | null> {
  const told = isObject(metadata) ? STAGES.map((stage) => metadata[stage]).filter(isObject) : []
  const original = told.map(({ blob }) => blob).find((blob) => typeof blob === 'string')
  const whole = original === undefined ? null : await blobFor(store, log, original)
  if (whole !== null) return whole.data
  if (typeof content !== 'string') return (await blobFor(store, log, content.hash))?.data ?? null
  const [answer] = from === undefined ? [] : (await store.read(log, from - 1, 1)).events
  return Buffer.from(answer?.type === 'user.custom_tool_result' ? answer.content : content)
}

async function indexOf(store: Store, session: string): Promise<string> {
  const lines: string[] = []
  const logs = await logsOf(store, session)
  for (const [ago, log] of [...logs.entries()].reverse()) {
    const calls = new Map<CallKey, { readonly tool: string; readonly args: unknown }>()
    for await (const event of eventsIn(store, log)) {
      if (event.type === 'agent.message') {
        calls.clear()
        for (const [i, call] of event.calls.entries()) calls.set(callKey(event.seq, i), call)
      }
      const call = event.type === 'agent.tool_result' ? calls.get(event.call) : undefined
      if (event.type !== 'agent.tool_result' || call === undefined || call.tool === RETRIEVE) continue
      const size = typeof event.content === 'string' ? event.content.length : event.content.bytes
      const line = resultLine(nameOf(event.call, ago), call.tool, call.args)
      lines.push(`${line} ${event.status}, shown as ${size} characters`)
    }
  }
  return lines.length === 0 ? 'No tool has returned a result in this session yet.' : lines.join('\n')
}
