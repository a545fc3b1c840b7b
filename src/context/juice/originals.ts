// Originals that the content router kept: found by the token that the log of the session has, or that of the session it was forked
// from, and read in part. A token of another session is not found.
import { hash as sha256 } from 'node:crypto'
import type { Event } from '../../kernel/event.ts'
import type { Store } from '../../ports/store.ts'
import { blobHash } from '../../tools/core/bound.ts'
import { type Output, output, ToolFailure } from '../../tools/core/output.ts'
import type { ToolContext } from '../../tools/core/tool.ts'
import { blobFor } from '../../view/blobs.ts'
import { isObject } from '../../view/json.ts'
import { ANSWER_CHARS_MAX } from '../../view/history.ts'
import { seqOf, tokenIn, tokenOf } from './marker.ts'
import { resultNamed } from '../results.ts'

const PAGE = 100
/** What one call shows at most. */
const BYTES_MAX = 100_000
const NEWLINE = 10

export type Wanted = {
  readonly token: string
  readonly line_from?: number
  readonly line_to?: number
  readonly byte_from?: number
  readonly byte_to?: number
}

export async function retrieve(store: Store, wanted: Wanted, context: ToolContext): Promise<Output> {
  const bytes = await originalOf(store, wanted.token, context)
  const { from, to } = rangeOf(bytes, wanted)
  const start = wholeAt(bytes, from)
  const last = wholeAt(bytes, Math.min(to, start + BYTES_MAX))
  // A range within one character gives that character: the next call must begin after it.
  const end = last > start || to <= from ? Math.max(last, start) : wholeAfter(bytes, start)
  const goesOn = end < to && to > from
  const more = goesOn ? `\n[bytes ${start} to ${end} of ${bytes.length}; go on with byte_from ${end}]` : ''
  const metadata = { bytes: bytes.length, byte_from: start, byte_to: end, ...(goesOn ? { next_byte: end } : {}) }
  return output({ content: bytes.toString('utf8', start, end) + more, metadata })
}

async function originalOf(store: Store, written: string, { session, recall }: ToolContext): Promise<Buffer> {
  const token = tokenIn(written)
  const found = token === null ? null : await findOriginal(store, session, token)
  if (found !== null) return found
  // Results that were cut name what was left out like this, where no other tool can read it.
  const hash = blobHash(written.trim())
  const kept = hash !== null && /^[0-9a-f]{64}$/.test(hash) ? await recall(hash) : null
  if (kept !== null) return Buffer.from(kept)
  const named = await resultNamed(store, session, written.trim())
  if (named !== null) return Buffer.from(named)
  const what = written.length > 80 ? `${written.slice(0, 80)}…` : written
  throw new ToolFailure(
    'NotFound',
    `This session has no original with the token "${what}". Give the token of a result of this session.`,
  )
}

async function findOriginal(store: Store, session: string, token: string): Promise<Buffer | null> {
  const seen = new Set<string>()
  let [log, upTo] = [session, Number.POSITIVE_INFINITY]
  while (!seen.has(log)) {
    seen.add(log)
    const kept = await keptIn(store, log, token, upTo)
    const found = kept && ('text' in kept ? kept.text : (await blobFor(store, session, kept.hash))?.data)
    if (found) return Buffer.from(found)
    const [created] = (await store.read(log, 0, 1)).events
    if (created?.type !== 'session.created' || created.fork === undefined) return null
    ;[log, upTo] = [created.fork.session, Math.min(created.fork.seq, upTo)]
  }
  return null
}

/** The results of a reply stand between it and the next reply: no more is read. */
async function keptIn(store: Store, log: string, token: string, upTo: number): Promise<Kept | null> {
  const reply = seqOf(token)
  for (let after = Math.max(0, reply - 1); ; ) {
    const { events } = await store.read(log, after, PAGE)
    if (events.length === 0) return null
    for (const event of events) {
      if (event.seq > upTo || (event.type === 'agent.message') !== (event.seq === reply)) return null
      const kept = keptBy(event, token)
      if (kept !== null) return kept
      after = event.seq
    }
  }
}

/** Beside the log, or an answer from outside that the event itself has. */
type Kept = { readonly hash: string } | { readonly text: string }

function keptBy(event: Event, token: string): Kept | null {
  if (event.type === 'user.custom_tool_result' && event.content.length > ANSWER_CHARS_MAX) {
    const { call, content: text } = event
    return tokenOf(Number.parseInt(call, 10), sha256('sha256', text)) === token ? { text } : null
  }
  if (event.type !== 'agent.tool_result') return null
  const { compressed, summarized, budgeted } = isObject(event.metadata) ? event.metadata : {}
  for (const stage of [compressed, summarized, budgeted]) {
    if (isObject(stage) && stage['token'] === token && typeof stage['blob'] === 'string') return { hash: stage['blob'] }
  }
  return null
}

type Range = { readonly from: number; readonly to: number }

function rangeOf(bytes: Buffer, { line_from, line_to, byte_from, byte_to }: Wanted): Range {
  const byLine = line_from !== undefined || line_to !== undefined
  if (byLine && (byte_from !== undefined || byte_to !== undefined)) throw wrong('Give lines or bytes, not both.')
  if (byLine) return linesIn(bytes, line_from ?? 1, line_to ?? Number.POSITIVE_INFINITY)
  const [from, to] = [byte_from ?? 0, byte_to ?? bytes.length]
  if (byte_to !== undefined && to < from) throw wrong(`byte_to (${to}) is before byte_from (${from}).`)
  if (from > 0 && from >= bytes.length)
    throw wrong(`The original has ${bytes.length} bytes; there is no byte ${from}. Bytes count from 0.`)
  return { from, to: Math.min(to, bytes.length) }
}

/** From the first line to the last, without the line end of the last. */
function linesIn(bytes: Buffer, first: number, last: number): Range {
  if (last < first) throw wrong(`line_to (${last}) is before line_from (${first}).`)
  let [line, from] = [1, 0]
  for (; line < first; line++) {
    const newline = bytes.indexOf(NEWLINE, from)
    if (newline < 0 || newline + 1 === bytes.length)
      throw wrong(`The original has ${line} lines; there is no line ${first}. Lines count from 1.`)
    from = newline + 1
  }
  for (let at = from; ; line++) {
    const newline = bytes.indexOf(NEWLINE, at)
    if (newline < 0) return { from, to: bytes.length }
    if (line >= last) return { from, to: newline }
    at = newline + 1
  }
}

const CHARACTER_BYTES_MAX = 4

/** This place, or the next before it where no character is cut. Bytes that are no text are cut anywhere. */
function wholeAt(bytes: Buffer, at: number): number {
  const place = Math.min(at, bytes.length)
  for (let i = 0; i < CHARACTER_BYTES_MAX && i <= place; i++) if (!isInside(bytes, place - i)) return place - i
  return place
}

/** Where the character that begins here ends. */
function wholeAfter(bytes: Buffer, at: number): number {
  let place = at + 1
  while (place < at + CHARACTER_BYTES_MAX && isInside(bytes, place)) place += 1
  return Math.min(place, bytes.length)
}

function isInside(bytes: Buffer, place: number): boolean {
  return place < bytes.length && ((bytes[place] ?? 0) & 0xc0) === 0x80
}

function wrong(message: string): ToolFailure {
  return new ToolFailure('InvalidInput', message)
}
