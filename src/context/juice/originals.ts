// What a session has said and heard, read again: originals that the content router kept, results and messages by their token, in part, and
// a search over all of them. A token of another session is not found. One answer takes a part of the window at most.
import { hash as sha256 } from 'node:crypto'
import type { BlobRef } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import type { Store } from '../../ports/store.ts'
import { blobHash } from '../../tools/core/bound.ts'
import { type Output, output, ToolFailure } from '../../tools/core/output.ts'
import type { ToolContext } from '../../tools/core/tool.ts'
import { blobFor } from '../../view/blobs.ts'
import { isObject } from '../../view/json.ts'
import { ANSWER_CHARS_MAX, CHARS_A_TOKEN, sizeOf } from '../../view/history.ts'
import { shortened } from '../../view/text.ts'
import { seqOf, tokenIn, tokenOf } from './marker.ts'
import { resultNamed } from '../results.ts'

const PAGE = 100
/** What one call shows at most, and of the window of the model. */
const BYTES_MAX = 100_000
const WINDOW_SHARE = 0.2
/** Of the window: a picture or file that takes more is not shown. */
const FILE_SHARE = 0.5
/** However small the window is, a call shows this much: reading on must get somewhere. */
const TOKENS_MIN = 100
/** Around a part that is read, so much is looked at for secrets that begin before it or end after it. */
const REDACTED_BYTES = 65_536
const NEWLINE = 10

export type Wanted = {
  readonly token?: string
  readonly search?: string
  readonly line_from?: number
  readonly line_to?: number
  readonly byte_from?: number
  readonly byte_to?: number
}

export async function retrieve(store: Store, wanted: Wanted, context: ToolContext): Promise<Output> {
  const { bytes, files, token } = await originalOf(store, wanted, context)
  const windowTokens = (await context.windowTokens?.()) ?? Number.POSITIVE_INFINITY
  const { from, to } = rangeOf(bytes, wanted)
  const start = wholeAt(bytes, from)
  // Pictures and files belong to the beginning: who reads on has seen them.
  const { parts, tokens, left } = fittingFiles(start === 0 ? files : [], windowTokens, token)
  const most = endWithin(bytes, start, windowTokens * WINDOW_SHARE - tokens)
  const last = wholeAt(bytes, Math.min(to, start + BYTES_MAX, most))
  // A range within one character gives that character: the next call must begin after it.
  const end = last > start || to <= from ? Math.max(last, start) : wholeAfter(bytes, start)
  const goesOn = end < to && to > from
  const more = goesOn ? `\n[bytes ${start} to ${end} of ${bytes.length}; go on with byte_from ${end}]` : ''
  const metadata = { bytes: bytes.length, byte_from: start, byte_to: end, ...(goesOn ? { next_byte: end } : {}) }
  return output({ content: redactedPart(bytes, { from: start, to: end }, context) + left + more, metadata, parts })
}

type Fitting = { readonly parts: readonly BlobRef[]; readonly tokens: number; readonly left: string }

/** The pictures and files that one answer has room for. The first may take half of the window; of the others it says how to get them. */
function fittingFiles(files: readonly BlobRef[], windowTokens: number, token: string): Fitting {
  const parts: BlobRef[] = []
  const left: string[] = []
  let tokens = 0
  for (const [i, file] of files.entries()) {
    const takes = sizeOf([file]) / CHARS_A_TOKEN
    const room = i === 0 ? windowTokens * FILE_SHARE : windowTokens * WINDOW_SHARE - tokens
    const alone = `${token}#${i + 1}`
    if (takes > windowTokens * FILE_SHARE) left.push(`${file.media}, ${file.bytes} bytes: too large for the context`)
    else if (takes > room) left.push(`${file.media}: give the token ${alone}`)
    else {
      parts.push(file)
      tokens += takes
    }
  }
  return { parts, tokens, left: left.map((each) => `\n[not shown here: ${each}]`).join('') }
}

/** Where the part ends that begins at `start` and has at most so many tokens. Signs and other scripts have more tokens. */
function endWithin(bytes: Buffer, start: number, tokens: number): number {
  if (!Number.isFinite(tokens)) return bytes.length
  let left = Math.max(TOKENS_MIN, tokens)
  const most = Math.min(bytes.length, start + BYTES_MAX)
  for (let at = start; at < most; at++) {
    left -= tokensAt(bytes[at] ?? 0)
    if (left < 0) return at
  }
  return most
}

function tokensAt(byte: number): number {
  if (byte >= 0x80) return byte >= 0xc0 ? 1 : 0
  const isLetter = (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a
  return isLetter || byte === 0x20 ? 1 / CHARS_A_TOKEN : 1 / SIGNS_A_TOKEN
}
const SIGNS_A_TOKEN = 2.2

/** Redacted before it is cut: half of a secret is not recognized. What came from elsewhere may hold what is a secret here. */
function redactedPart(bytes: Buffer, { from, to }: Range, { redact }: ToolContext): string {
  const start = wholeAt(bytes, Math.max(0, from - REDACTED_BYTES))
  const around = bytes.toString('utf8', start, wholeAt(bytes, to + REDACTED_BYTES))
  const clean = redact(around)
  if (clean === around) return bytes.toString('utf8', from, to)
  const charsUpTo = (at: number): number => redact(bytes.toString('utf8', start, at)).length
  return clean.slice(charsUpTo(from), charsUpTo(to))
}

/** `token`: what it was asked for by. */
type Original = FoundOriginal & { readonly token: string }
type FoundOriginal = { readonly bytes: Buffer; readonly files: readonly BlobRef[] }

async function originalOf(store: Store, wanted: Wanted, context: ToolContext): Promise<Original> {
  const { token: given = '', search = '' } = wanted
  if ((given.trim() === '') === (search.trim() === '')) throw wrong('Give either a token or words to search for.')
  if (given.trim() === '') {
    const { searchLog } = await import('../search-log.ts')
    const { session, redact, signal } = context
    return { ...textual(await searchLog(search, { store, session, redact, signal })), token: '' }
  }
  const [, token = '', place] = /^([^#]*)(?:#([1-9]\d{0,3}))?$/.exec(given.trim()) ?? []
  const found = await named(store, token, context)
  if (found !== null && place === undefined) return { ...found, token }
  const file = found?.files[Number(place) - 1]
  if (file) return { bytes: Buffer.alloc(0), files: [file], token }
  const before = found === null && NAME.test(token) ? token.replace(':', ':^') : null
  const hint =
    before !== null && (await named(store, before, context)) !== null ? ` Before the fork it is "${before}".` : ''
  throw new ToolFailure(
    'NotFound',
    `This session has no original with the token "${shortened(given, 80)}".${hint} "call:index" lists its results, "msg:index" its messages.`,
  )
}
const NAME = /^(?:call|msg):\^*\d/

async function named(store: Store, written: string, { session, recall }: ToolContext): Promise<FoundOriginal | null> {
  const token = tokenIn(written)
  const found = token === null ? null : await findOriginal(store, session, token)
  if (found !== null) return { bytes: found, files: [] }
  // Results that were cut name what was left out like this, where no other tool can read it.
  const hash = blobHash(written)
  const kept = hash !== null && /^[0-9a-f]{64}$/.test(hash) ? await recall(hash) : null
  if (kept !== null) return textual(kept)
  if (written.startsWith('msg:')) {
    const { messageNamed } = await import('../messages.ts')
    const message = await messageNamed(store, session, written)
    return message && { bytes: Buffer.from(message.text), files: message.files }
  }
  const result = await resultNamed(store, session, written)
  return result && { bytes: Buffer.from(result.bytes), files: result.files }
}

function textual(text: string): FoundOriginal {
  return { bytes: Buffer.from(text), files: [] }
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
