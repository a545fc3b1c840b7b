// Searches the messages and results of a session and of those it was forked from, by words and without patterns. Lines
// with rare words come first, then the newest. It only reads, and the amount is bounded.
import type { Store } from '../ports/store.ts'
import type { CallKey } from '../kernel/content.ts'
import { callKey, type Event } from '../kernel/event.ts'
import { blobFor } from '../view/readable-blobs.ts'
import { isObject } from '../view/untrusted-json.ts'
import { RETRIEVE } from './compress/marker.ts'
import { readSourceEvents, findSourceLogs, type SourceLog } from './source-logs.ts'
import { readLoggedMessages, messageToken, readMessageText } from './logged-messages.ts'
import { readResultBytes, resultToken, type LoggedResult } from './logged-results.ts'

const HITS_MAX = 20
const WORDS_MAX = 12
const EXCERPT_CHARS = 240
/** In a longer line, a hit also names its byte. */
const LONG_LINE_CHARS = 2_000
/** Texts that are stored beside the log are read up to this many bytes in one search, the newest first. */
const READ_BYTES_MAX = 64 * 1024 * 1024
/** A secret longer than this is cut before the redactor can recognize it. */
const REDACTED_CHARS = 16_384

export type LogSearch = {
  readonly store: Store
  readonly session: string
  readonly redact: (text: string) => string
  readonly signal: AbortSignal
}

/** A text that can be read by its token. A later one has a larger `place`. */
type SearchableText = {
  readonly token: string
  readonly place: number
  readonly bytes: number
  read(): Promise<string>
}
/** Where a searched word first stands in a line. `line` counts from 1, `at` counts characters from the start of the text. */
type SearchHit = {
  readonly token: string
  readonly place: number
  readonly line: number
  readonly at: number
  readonly isLong: boolean
  readonly text: string
}

/** The words to search for, without signs around them. */
function wordsOf(query: string): readonly string[] {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .map((word) => word.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '') || word)
  return [...new Set(words)].filter((word) => word !== '').slice(0, WORDS_MAX)
}

/** One line for each hit: its token, its line, and the words around it. */
export async function searchLog(query: string, searching: LogSearch): Promise<string> {
  const words = wordsOf(query)
  const found = new MatchingLines(words)
  const { store, session, signal } = searching
  const later: SearchableText[] = []
  for (const [ago, log] of [...(await findSourceLogs(store, session)).entries()].reverse())
    for await (const text of searchableTexts(store, log, ago)) {
      signal.throwIfAborted()
      if (text.bytes === 0) found.take(text, await text.read())
      else later.push(text)
    }
  const left = await readLater(later, found, signal)
  const lines: string[] = []
  for (const hit of found.best()) {
    const line = lines.length < HITS_MAX ? hitLine(hit, { words, redact: searching.redact }) : null
    if (line !== null) lines.push(line)
  }
  if (lines.length === 0) lines.push(`Nothing in this session holds ${words.map((word) => `"${word}"`).join(' or ')}.`)
  if (left > 0) lines.push(`[${left} older texts were not searched: together they are too long]`)
  return lines.join('\n')
}

/** Returns the number of texts that were not read. */
async function readLater(later: readonly SearchableText[], found: MatchingLines, signal: AbortSignal): Promise<number> {
  let room = READ_BYTES_MAX
  let left = 0
  for (const text of later.toReversed()) {
    signal.throwIfAborted()
    room -= text.bytes
    if (room < 0) left += 1
    else found.take(text, await text.read())
  }
  return left
}

/** `bytes` is 0 for texts in the log itself. */
async function* searchableTexts(store: Store, log: SourceLog, ago: number): AsyncGenerator<SearchableText> {
  const base = -ago * 1e9
  for await (const message of readLoggedMessages(store, log)) {
    const { seq, said, who } = message
    if (who === 'summary') continue
    const bytes = said.reduce((sum, part) => sum + (typeof part === 'string' ? 0 : part.bytes), 0)
    const read = (): Promise<string> => readMessageText(store, log.id, message)
    yield { token: messageToken(seq, ago), place: base + seq, bytes, read }
  }
  const own = new Set<CallKey>()
  for await (const event of readSourceEvents(store, log)) {
    if (event.type === 'agent.message') collectRetrievals(event, own)
    if (event.type !== 'agent.tool_result' || own.has(event.call)) continue
    yield* resultTexts(store, log, event, { token: resultToken(event.call, ago), place: base + event.seq })
  }
}

/** Collects the calls of `retrieve_original`: their results are in the log at another place already. */
function collectRetrievals({ seq, calls }: Extract<Event, { type: 'agent.message' }>, own: Set<CallKey>): void {
  for (const [i, { tool }] of calls.entries()) if (tool === RETRIEVE) own.add(callKey(seq, i))
}

/** A command keeps its two streams as separate texts. */
const STREAMS = ['stdout_blob', 'stderr_blob'] as const

async function* resultTexts(
  store: Store,
  { id }: SourceLog,
  result: LoggedResult,
  { token, place }: Pick<SearchableText, 'token' | 'place'>,
): AsyncGenerator<SearchableText> {
  const { metadata, content } = result
  const decode = (data: Uint8Array | undefined | null): string => (data ? new TextDecoder().decode(data) : '')
  const about = isObject(metadata) ? metadata : {}
  const long = typeof about['bytes'] === 'number' ? about['bytes'] : 0
  const bytes = typeof content === 'string' ? (Object.keys(about).length === 0 ? 0 : Math.max(long, 1)) : content.bytes
  yield { token, place, bytes, read: async () => decode(await readResultBytes(store, id, result)) }
  for (const hash of STREAMS.map((name) => about[name]))
    if (typeof hash === 'string')
      yield { token: `blob:${hash}`, place, bytes: 1, read: async () => decode((await blobFor(store, id, hash))?.data) }
}

/**
 * Collects lines with a searched word. Lines with the same words count the same, so of each set of words only the
 * newest lines are kept.
 */
class MatchingLines {
  readonly #words: readonly string[]
  readonly #byWords = new Map<number, SearchHit[]>()
  /** The number of lines that contain each word. */
  readonly #counts: number[]

  constructor(words: readonly string[]) {
    this.#words = words
    this.#counts = words.map(() => 0)
  }

  take({ token, place }: SearchableText, text: string): void {
    const lower = text.toLowerCase()
    if (!this.#words.some((word) => lower.includes(word))) return
    let start = 0
    for (const [i, line] of text.split('\n').entries()) {
      const { held, first } = this.#heldBy(line)
      const isLong = line.length > LONG_LINE_CHARS
      if (held > 0) this.#keep(held, { token, place, line: i + 1, at: start + first, isLong, text })
      start += line.length + 1
    }
  }

  /** The words that the line contains, as bits, and the place of the first of them. */
  #heldBy(line: string): { readonly held: number; readonly first: number } {
    const lower = line.toLowerCase()
    let held = 0
    let first = line.length
    for (const [i, word] of this.#words.entries()) {
      const found = lower.indexOf(word)
      if (found < 0) continue
      held |= 1 << i
      first = Math.min(first, found)
      this.#counts[i] = (this.#counts[i] ?? 0) + 1
    }
    return { held, first }
  }

  #keep(held: number, hit: SearchHit): void {
    const hits = this.#byWords.get(held) ?? []
    this.#byWords.set(held, hits)
    hits.push(hit)
    if (hits.length > 2 * HITS_MAX) hits.sort(compareByAge).splice(HITS_MAX)
  }

  /** The best hits first. */
  best(): readonly SearchHit[] {
    const all = [...this.#byWords].flatMap(([held, hits]) => {
      const weight = this.#weightOf(held)
      return hits.map((hit) => ({ hit, weight }))
    })
    return all.sort((a, b) => b.weight - a.weight || compareByAge(a.hit, b.hit)).map(({ hit }) => hit)
  }

  /** A word counts more, the fewer lines contain it. */
  #weightOf(held: number): number {
    return this.#counts.reduce((sum, count, i) => (held & (1 << i) ? sum + 1 / Math.max(1, count) : sum), 0)
  }
}

function compareByAge(a: SearchHit, b: SearchHit): number {
  return b.place - a.place || a.line - b.line
}

/**
 * Null if the redacted text does not contain the words, so that a search for parts of a secret finds nothing. The text
 * around the line is redacted with it, since a secret may have several lines. Line ends stay where they are.
 */
function hitLine({ token, line, at, isLong, text }: SearchHit, { words, redact }: HitOptions): string | null {
  const from = Math.max(0, at - REDACTED_CHARS)
  const before = text.slice(from, at).split('\n').length - 1
  const clean = redact(text.slice(from, at + REDACTED_CHARS)).split('\n')[before] ?? ''
  const lower = clean.toLowerCase()
  const found = words.map((word) => lower.indexOf(word)).filter((place) => place >= 0)
  if (found.length === 0) return null
  const start = Math.max(0, Math.min(...found) - EXCERPT_CHARS / 3)
  const excerpt = clean.slice(start, start + EXCERPT_CHARS).replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, '')
  const byte = isLong ? ` (byte ${Buffer.byteLength(text.slice(0, at))})` : ''
  return `${token} line ${line}${byte}: ${excerpt.trim()}`
}

type HitOptions = { readonly words: readonly string[]; readonly redact: (text: string) => string }
