// Reads results of a session from its log, by the key of their call: a model can read again, byte for byte, what a
// compaction cleared or cut. It only reads.
import type { BlobRef, CallKey, Json } from '../kernel/content.ts'
import { callKey, type Event } from '../kernel/event.ts'
import type { Store } from '../ports/store.ts'
import { blobFor } from '../view/readable-blobs.ts'
import { isObject } from '../view/untrusted-json.ts'
import { shortenText } from '../view/shown-text.ts'
import { RETRIEVE, STAGES } from './compress/marker.ts'
import { readSourceEvents, findSourceLogs, type SourceLog } from './source-logs.ts'

const ARGS_CHARS = 120
const NAMED = /^call:\s*(\^{0,100})([1-9]\d{0,15}\.\d{1,9})$/
export const INDEX = 'call:index'

export type LoggedResult = Extract<Event, { type: 'agent.tool_result' }>

/** `files` are its pictures and files. */
type ResultBytes = { readonly bytes: Uint8Array; readonly files: readonly BlobRef[] }

/** Null if no result has this token. */
export async function findResultByToken(store: Store, session: string, written: string): Promise<ResultBytes | null> {
  if (written === INDEX) return { bytes: Buffer.from(await listResults(store, session)), files: [] }
  const [, ago = '', key] = NAMED.exec(written) ?? []
  if (key === undefined) return null
  const log = (await findSourceLogs(store, session, ago.length))[ago.length]
  const result = log && (await readResult(store, log, key))
  const bytes = log && result ? await readResultBytes(store, log.id, result) : null
  return bytes && { bytes, files: result?.parts ?? [] }
}

/** One line that names a result to a model, without its content. */
export function resultLine(name: string, tool: string, args: unknown): string {
  return `${name} ${tool} ${shortenText(JSON.stringify(args) ?? '', ARGS_CHARS)}`
}

export function resultToken(call: CallKey, ago: number): string {
  return `call:${'^'.repeat(ago)}${call}`
}

/** The results of a reply stand between it and the next reply: no more is read. */
async function readResult(store: Store, log: SourceLog, call: CallKey): Promise<LoggedResult | null> {
  const reply = Number.parseInt(call, 10)
  for await (const event of readSourceEvents(store, log, reply - 1)) {
    if ((event.type === 'agent.message') !== (event.seq === reply)) return null
    if (event.type === 'agent.tool_result' && event.call === call) return event
  }
  return null
}

/** The output of the tool, before it was shortened for the model. */
export async function readResultBytes(store: Store, log: string, result: LoggedResult): Promise<Uint8Array | null> {
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
 * The hashes of blobs that may have the whole result, the most complete first. A tool may write any hash into its
 * metadata: a blob is read only if the session may read it. A tool that cut its own result kept more than the later
 * stages saw; the last clip saw less than they did.
 */
function wholeHashes(metadata: Json | undefined): readonly string[] {
  if (!isObject(metadata)) return []
  const { truncated, blob, tool_output_clipped: clipped } = metadata
  const stages = STAGES.map((stage) => metadata[stage]).flatMap((said) => (isObject(said) ? [said['blob']] : []))
  const cut = truncated === true ? [blob] : []
  const all = clipped === true ? [...stages, ...cut] : [...cut, ...stages]
  return all.filter((hash) => typeof hash === 'string')
}

async function listResults(store: Store, session: string): Promise<string> {
  const lines: string[] = []
  const logs = await findSourceLogs(store, session)
  for (const [ago, log] of [...logs.entries()].reverse()) {
    const calls = new Map<CallKey, { readonly tool: string; readonly args: unknown }>()
    for await (const event of readSourceEvents(store, log)) {
      if (event.type === 'agent.message') {
        calls.clear()
        for (const [i, call] of event.calls.entries()) calls.set(callKey(event.seq, i), call)
      }
      const call = event.type === 'agent.tool_result' ? calls.get(event.call) : undefined
      if (event.type !== 'agent.tool_result' || call === undefined || call.tool === RETRIEVE) continue
      const size = typeof event.content === 'string' ? event.content.length : event.content.bytes
      const line = resultLine(resultToken(event.call, ago), call.tool, call.args)
      lines.push(`${line} ${event.status}, shown as ${size} characters`)
    }
  }
  return lines.length === 0 ? 'No tool has returned a result in this session yet.' : lines.join('\n')
}
