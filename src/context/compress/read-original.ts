// Reads the content of a session again: originals that the content router kept, results and messages by their token, in
// whole or in part, and a search over all of them. A token of another session is not found. One answer takes at most a
// part of the window.
import { hash as sha256 } from 'node:crypto'
import type { BlobRef } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import type { Store } from '../../ports/store.ts'
import { blobHash } from '../../tools/core/bound-content.ts'
import { type Output, output, ToolFailure } from '../../tools/core/tool-output.ts'
import type { ToolContext } from '../../tools/core/tool.ts'
import { blobFor } from '../../view/readable-blobs.ts'
import { isObject } from '../../view/untrusted-json.ts'
import { ANSWER_CHARS_MAX, CHARS_A_TOKEN, sizeOfParts } from '../../view/session-history.ts'
import { shortenText } from '../../view/shown-text.ts'
import { seqOfToken, originalTokenIn, originalToken } from './marker.ts'
import { findResultByToken } from '../logged-results.ts'

const PAGE = 100
/** The most that one call shows, in bytes and as a share of the model's window. */
const BYTES_MAX = 100_000
const WINDOW_SHARE = 0.2
/** A picture or file that takes more than this share of the window is not shown. */
const FILE_SHARE = 0.5
/** A call shows at least this much, however small the window is: reading on must make progress. */
const TOKENS_MIN = 100
/** This many bytes around a part are searched for secrets that begin before it or end after it. */
const REDACTED_BYTES = 65_536
const NEWLINE = 10

export type OriginalQuery = {
  readonly token?: string
  readonly search?: string
  readonly line_from?: number
  readonly line_to?: number
  readonly byte_from?: number
  readonly byte_to?: number
}

export async function retrieveOriginal(store: Store, wanted: OriginalQuery, context: ToolContext): Promise<Output> {
  const { bytes, files, token } = await findRequested(store, wanted, context)
  const windowTokens = (await context.windowTokens?.()) ?? Number.POSITIVE_INFINITY
  const { from, to } = requestedRange(bytes, wanted)
  const start = characterStart(bytes, from)
  // Pictures and files belong to the first part: a later call has shown them already.
  const { parts, tokens, left } = chooseFiles(start === 0 ? files : [], windowTokens, token)
  const most = endWithinTokens(bytes, start, windowTokens * WINDOW_SHARE - tokens)
  const last = characterStart(bytes, Math.min(to, start + BYTES_MAX, most))
  // A range within one character returns that character: the next call must begin after it.
  const end = last > start || to <= from ? Math.max(last, start) : characterEnd(bytes, start)
  const goesOn = end < to && to > from
  const more = goesOn ? `\n[bytes ${start} to ${end} of ${bytes.length}; go on with byte_from ${end}]` : ''
  const metadata = { bytes: bytes.length, byte_from: start, byte_to: end, ...(goesOn ? { next_byte: end } : {}) }
  return output({ content: redactRange(bytes, { from: start, to: end }, context) + left + more, metadata, parts })
}

type FittingFiles = { readonly parts: readonly BlobRef[]; readonly tokens: number; readonly left: string }

/**
 * The pictures and files for which one answer has room. The first may take half of the window; for the others the
 * answer says how to get them.
 */
function chooseFiles(files: readonly BlobRef[], windowTokens: number, token: string): FittingFiles {
  const parts: BlobRef[] = []
  const left: string[] = []
  let tokens = 0
  for (const [i, file] of files.entries()) {
    const takes = sizeOfParts([file]) / CHARS_A_TOKEN
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

/**
 * The end of the part that begins at `start` and has at most this many tokens. Signs and other scripts take more
 * tokens.
 */
function endWithinTokens(bytes: Buffer, start: number, tokens: number): number {
  if (!Number.isFinite(tokens)) return bytes.length
  let left = Math.max(TOKENS_MIN, tokens)
  const most = Math.min(bytes.length, start + BYTES_MAX)
  for (let at = start; at < most; at++) {
    left -= tokensOfByte(bytes[at] ?? 0)
    if (left < 0) return at
  }
  return most
}

function tokensOfByte(byte: number): number {
  if (byte >= 0x80) return byte >= 0xc0 ? 1 : 0
  const isLetter = (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a
  return isLetter || byte === 0x20 ? 1 / CHARS_A_TOKEN : 1 / SIGNS_A_TOKEN
}
const SIGNS_A_TOKEN = 2.2

/**
 * Redacts before it cuts: half a secret is not recognized. Content from elsewhere may contain a secret of this session.
 */
function redactRange(bytes: Buffer, { from, to }: ByteRange, { redact }: ToolContext): string {
  const start = characterStart(bytes, Math.max(0, from - REDACTED_BYTES))
  const around = bytes.toString('utf8', start, characterStart(bytes, to + REDACTED_BYTES))
  const clean = redact(around)
  if (clean === around) return bytes.toString('utf8', from, to)
  const charsUpTo = (at: number): number => redact(bytes.toString('utf8', start, at)).length
  return clean.slice(charsUpTo(from), charsUpTo(to))
}

/** `token` is the token in the request. */
type NamedOriginal = FoundOriginal & { readonly token: string }
type FoundOriginal = { readonly bytes: Buffer; readonly files: readonly BlobRef[] }

async function findRequested(store: Store, wanted: OriginalQuery, context: ToolContext): Promise<NamedOriginal> {
  const { token: given = '', search = '' } = wanted
  if ((given.trim() === '') === (search.trim() === ''))
    throw invalidInput('Give either a token or words to search for.')
  if (given.trim() === '') {
    const { searchLog } = await import('../search-log.ts')
    const { session, redact, signal } = context
    return { ...originalFromText(await searchLog(search, { store, session, redact, signal })), token: '' }
  }
  const [, token = '', place] = /^([^#]*)(?:#([1-9]\d{0,3}))?$/.exec(given.trim()) ?? []
  const found = await findByToken(store, token, context)
  if (found !== null && place === undefined) return { ...found, token }
  const file = found?.files[Number(place) - 1]
  if (file) return { bytes: Buffer.alloc(0), files: [file], token }
  const before = found === null && NAME.test(token) ? token.replace(':', ':^') : null
  const hint =
    before !== null && (await findByToken(store, before, context)) !== null ? ` Before the fork it is "${before}".` : ''
  throw new ToolFailure(
    'NotFound',
    `This session has no original with the token "${shortenText(given, 80)}".${hint} "call:index" lists its results, "msg:index" its messages.`,
  )
}
const NAME = /^(?:call|msg):\^*\d/

async function findByToken(
  store: Store,
  written: string,
  { session, recall }: ToolContext,
): Promise<FoundOriginal | null> {
  const token = originalTokenIn(written)
  const found = token === null ? null : await findOriginal(store, session, token)
  if (found !== null) return { bytes: found, files: [] }
  // Results that were cut name the rest like this, if no other tool can read it.
  const hash = blobHash(written)
  const kept = hash !== null && /^[0-9a-f]{64}$/.test(hash) ? await recall(hash) : null
  if (kept !== null) return originalFromText(kept)
  if (written.startsWith('msg:')) {
    const { findMessageByToken } = await import('../logged-messages.ts')
    const message = await findMessageByToken(store, session, written)
    return message && { bytes: Buffer.from(message.text), files: message.files }
  }
  const result = await findResultByToken(store, session, written)
  return result && { bytes: Buffer.from(result.bytes), files: result.files }
}

function originalFromText(text: string): FoundOriginal {
  return { bytes: Buffer.from(text), files: [] }
}

async function findOriginal(store: Store, session: string, token: string): Promise<Buffer | null> {
  const seen = new Set<string>()
  let [log, upTo] = [session, Number.POSITIVE_INFINITY]
  while (!seen.has(log)) {
    seen.add(log)
    const kept = await findKept(store, log, token, upTo)
    const found = kept && ('text' in kept ? kept.text : (await blobFor(store, session, kept.hash))?.data)
    if (found) return Buffer.from(found)
    const [created] = (await store.read(log, 0, 1)).events
    if (created?.type !== 'session.created' || created.fork === undefined) return null
    ;[log, upTo] = [created.fork.session, Math.min(created.fork.seq, upTo)]
  }
  return null
}

/** The results of a reply stand between it and the next reply: no more is read. */
async function findKept(store: Store, log: string, token: string, upTo: number): Promise<OriginalSource | null> {
  const reply = seqOfToken(token)
  for (let after = Math.max(0, reply - 1); ; ) {
    const { events } = await store.read(log, after, PAGE)
    if (events.length === 0) return null
    for (const event of events) {
      if (event.seq > upTo || (event.type === 'agent.message') !== (event.seq === reply)) return null
      const kept = keptByEvent(event, token)
      if (kept !== null) return kept
      after = event.seq
    }
  }
}

/** A blob beside the log, or an answer from outside whose text the event itself has. */
type OriginalSource = { readonly hash: string } | { readonly text: string }

function keptByEvent(event: Event, token: string): OriginalSource | null {
  if (event.type === 'user.custom_tool_result' && event.content.length > ANSWER_CHARS_MAX) {
    const { call, content: text } = event
    return originalToken(Number.parseInt(call, 10), sha256('sha256', text)) === token ? { text } : null
  }
  if (event.type !== 'agent.tool_result') return null
  const { compressed, summarized, budgeted } = isObject(event.metadata) ? event.metadata : {}
  for (const stage of [compressed, summarized, budgeted]) {
    if (isObject(stage) && stage['token'] === token && typeof stage['blob'] === 'string') return { hash: stage['blob'] }
  }
  return null
}

type ByteRange = { readonly from: number; readonly to: number }

function requestedRange(bytes: Buffer, { line_from, line_to, byte_from, byte_to }: OriginalQuery): ByteRange {
  const byLine = line_from !== undefined || line_to !== undefined
  if (byLine && (byte_from !== undefined || byte_to !== undefined)) throw invalidInput('Give lines or bytes, not both.')
  if (byLine) return rangeOfLines(bytes, line_from ?? 1, line_to ?? Number.POSITIVE_INFINITY)
  const [from, to] = [byte_from ?? 0, byte_to ?? bytes.length]
  if (byte_to !== undefined && to < from) throw invalidInput(`byte_to (${to}) is before byte_from (${from}).`)
  if (from > 0 && from >= bytes.length)
    throw invalidInput(`The original has ${bytes.length} bytes; there is no byte ${from}. Bytes count from 0.`)
  return { from, to: Math.min(to, bytes.length) }
}

/** The bytes from the first line to the last, without the line end of the last. */
function rangeOfLines(bytes: Buffer, first: number, last: number): ByteRange {
  if (last < first) throw invalidInput(`line_to (${last}) is before line_from (${first}).`)
  let [line, from] = [1, 0]
  for (; line < first; line++) {
    const newline = bytes.indexOf(NEWLINE, from)
    if (newline < 0 || newline + 1 === bytes.length)
      throw invalidInput(`The original has ${line} lines; there is no line ${first}. Lines count from 1.`)
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

/** This place, or the nearest before it that cuts no character. Bytes that are not text are cut anywhere. */
function characterStart(bytes: Buffer, at: number): number {
  const place = Math.min(at, bytes.length)
  for (let i = 0; i < CHARACTER_BYTES_MAX && i <= place; i++)
    if (!isContinuationByte(bytes, place - i)) return place - i
  return place
}

/** The end of the character that begins here. */
function characterEnd(bytes: Buffer, at: number): number {
  let place = at + 1
  while (place < at + CHARACTER_BYTES_MAX && isContinuationByte(bytes, place)) place += 1
  return Math.min(place, bytes.length)
}

function isContinuationByte(bytes: Buffer, place: number): boolean {
  return place < bytes.length && ((bytes[place] ?? 0) & 0xc0) === 0x80
}

function invalidInput(message: string): ToolFailure {
  return new ToolFailure('InvalidInput', message)
}
