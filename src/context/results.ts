// Results of a session as its log has them, by the key of their call: what a compaction cleared or cut can be read again byte for byte.
// It only reads.
import type { BlobRef, CallKey, Json } from '../kernel/content.ts'
import { callKey, type Event } from '../kernel/event.ts'
import type { Store } from '../ports/store.ts'
import { blobFor } from '../view/blobs.ts'
import { isObject } from '../view/json.ts'
import { shortened } from '../view/text.ts'
import { RETRIEVE, STAGES } from './juice/marker.ts'
import { eventsIn, logsOf, type SourceLog } from './logs.ts'

const ARGS_CHARS = 120
const NAMED = /^call:\s*(\^{0,100})([1-9]\d{0,15}\.\d{1,9})$/
export const INDEX = 'call:index'

export type Result = Extract<Event, { type: 'agent.tool_result' }>

/** `files` are its pictures and files. */
type FoundResult = { readonly bytes: Uint8Array; readonly files: readonly BlobRef[] }

/** Null: no result is named like this. */
export async function resultNamed(store: Store, session: string, written: string): Promise<FoundResult | null> {
  if (written === INDEX) return { bytes: Buffer.from(await indexOf(store, session)), files: [] }
  const [, ago = '', key] = NAMED.exec(written) ?? []
  if (key === undefined) return null
  const log = (await logsOf(store, session, ago.length))[ago.length]
  const result = log && (await resultIn(store, log, key))
  const bytes = log && result ? await bytesOf(store, log.id, result) : null
  return bytes && { bytes, files: result?.parts ?? [] }
}

/** How a result is called in what a model reads: one line, without its content. */
export function resultLine(name: string, tool: string, args: unknown): string {
  return `${name} ${tool} ${shortened(JSON.stringify(args) ?? '', ARGS_CHARS)}`
}

export function nameOf(call: CallKey, ago: number): string {
  return `call:${'^'.repeat(ago)}${call}`
}

/** The results of a reply stand between it and the next reply: no more is read. */
async function resultIn(store: Store, log: SourceLog, call: CallKey): Promise<Result | null> {
  const reply = Number.parseInt(call, 10)
  for await (const event of eventsIn(store, log, reply - 1)) {
    if ((event.type === 'agent.message') !== (event.seq === reply)) return null
    if (event.type === 'agent.tool_result' && event.call === call) return event
  }
  return null
}

/** What the tool said, before it was made shorter for the model. */
export async function bytesOf(store: Store, log: string, result: Result): Promise<Uint8Array | null> {
  for (const hash of wholeHashes(result.metadata)) {
    const whole = await blobFor(store, log, hash)
    if (whole !== null) return whole.data
  }
  const { content, from } = result
  if (typeof content !== 'string') return (await blobFor(store, log, content.hash))?.data ?? null
  const [answer] = from === undefined ? [] : (await store.read(log, from - 1, 1)).events
  return Buffer.from(answer?.type === 'user.custom_tool_result' ? answer.content : content)
}

/**
 * Where the whole of a result may be, the most complete first. A tool may write any hash into its metadata: only what the session may
 * read is read. A tool that cut its own result kept more than the stages after it saw; the last clip saw less than they did.
 */
function wholeHashes(metadata: Json | undefined): readonly string[] {
  if (!isObject(metadata)) return []
  const { truncated, blob, tool_output_clipped: clipped } = metadata
  const stages = STAGES.map((stage) => metadata[stage]).flatMap((said) => (isObject(said) ? [said['blob']] : []))
  const cut = truncated === true ? [blob] : []
  const all = clipped === true ? [...stages, ...cut] : [...cut, ...stages]
  return all.filter((hash) => typeof hash === 'string')
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
