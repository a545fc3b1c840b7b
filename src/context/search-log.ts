// Searches what was said and returned in a session and in those it was forked from, by words and without patterns. Lines with rare words
// come first, then the newest. It only reads, and it reads no more than a bound.
import type { Store } from '../ports/store.ts'
import type { CallKey } from '../kernel/content.ts'
import { callKey, type Event } from '../kernel/event.ts'
import { blobFor } from '../view/blobs.ts'
import { isObject } from '../view/json.ts'
import { RETRIEVE } from './juice/marker.ts'
import { eventsIn, logsOf, type SourceLog } from './logs.ts'
import { messagesIn, messageToken, textOfMessage } from './messages.ts'
import { bytesOf, nameOf, type Result } from './results.ts'

const HITS_MAX = 20
const WORDS_MAX = 12
const EXCERPT_CHARS = 240
/** In a longer line a hit also says at which byte it is. */
const LONG_LINE_CHARS = 2_000
/** Texts that live beside the log are read up to this many bytes in one search, the newest first. */
const READ_BYTES_MAX = 64 * 1024 * 1024
/** A secret that is spread over more characters than this is cut before it is recognized. */
const REDACTED_CHARS = 16_384

export type Searching = {
  readonly store: Store
  readonly session: string
  readonly redact: (text: string) => string
  readonly signal: AbortSignal
}

/** A text that can be read by its token. `place`: a later one is newer. */
type Readable = { readonly token: string; readonly place: number; readonly bytes: number; read(): Promise<string> }
/** Where a word stands first in a line. `line` counts from 1, and `at` are characters from the beginning of the text. */
type Hit = {
  readonly token: string
  readonly place: number
  readonly line: number
  readonly at: number
  readonly isLong: boolean
  readonly text: string
}

/** The words that are searched for: as they are written, without signs around them. */
function wordsOf(query: string): readonly string[] {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .map((word) => word.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '') || word)
  return [...new Set(words)].filter((word) => word !== '').slice(0, WORDS_MAX)
}

/** One line for each hit: its token, its line, and the words around it. */
export async function searchLog(query: string, searching: Searching): Promise<string> {
  const words = wordsOf(query)
  const found = new Matches(words)
  const { store, session, signal } = searching
  const later: Readable[] = []
  for (const [ago, log] of [...(await logsOf(store, session)).entries()].reverse())
    for await (const text of textsIn(store, log, ago)) {
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

/** Returns how many were not read. */
async function readLater(later: readonly Readable[], found: Matches, signal: AbortSignal): Promise<number> {
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

/** `bytes` is 0 for what the log itself has. */
async function* textsIn(store: Store, log: SourceLog, ago: number): AsyncGenerator<Readable> {
  const base = -ago * 1e9
  for await (const message of messagesIn(store, log)) {
    const { seq, said, who } = message
    if (who === 'summary') continue
    const bytes = said.reduce((sum, part) => sum + (typeof part === 'string' ? 0 : part.bytes), 0)
    const read = (): Promise<string> => textOfMessage(store, log.id, message)
    yield { token: messageToken(seq, ago), place: base + seq, bytes, read }
  }
  const own = new Set<CallKey>()
  for await (const event of eventsIn(store, log)) {
    if (event.type === 'agent.message') keepRetrievals(event, own)
    if (event.type !== 'agent.tool_result' || own.has(event.call)) continue
    yield* textsOfResult(store, log, event, { token: nameOf(event.call, ago), place: base + event.seq })
  }
}

/** What `retrieve_original` returned is in the log at another place already. */
function keepRetrievals({ seq, calls }: Extract<Event, { type: 'agent.message' }>, own: Set<CallKey>): void {
  for (const [i, { tool }] of calls.entries()) if (tool === RETRIEVE) own.add(callKey(seq, i))
}

/** A command keeps its two streams as texts of their own. */
const STREAMS = ['stdout_blob', 'stderr_blob'] as const

async function* textsOfResult(
  store: Store,
  { id }: SourceLog,
  result: Result,
  { token, place }: Pick<Readable, 'token' | 'place'>,
): AsyncGenerator<Readable> {
  const { metadata, content } = result
  const decode = (data: Uint8Array | undefined | null): string => (data ? new TextDecoder().decode(data) : '')
  const about = isObject(metadata) ? metadata : {}
  const long = typeof about['bytes'] === 'number' ? about['bytes'] : 0
  const bytes = typeof content === 'string' ? (Object.keys(about).length === 0 ? 0 : Math.max(long, 1)) : content.bytes
  yield { token, place, bytes, read: async () => decode(await bytesOf(store, id, result)) }
  for (const hash of STREAMS.map((name) => about[name]))
    if (typeof hash === 'string')
      yield { token: `blob:${hash}`, place, bytes: 1, read: async () => decode((await blobFor(store, id, hash))?.data) }
}

/** Lines that hold a word. Lines with the same words count the same, so of each set of words only the newest lines are kept. */
class Matches {
  readonly #words: readonly string[]
  readonly #byWords = new Map<number, Hit[]>()
  /** How many lines hold each word. */
  readonly #counts: number[]

  constructor(words: readonly string[]) {
    this.#words = words
    this.#counts = words.map(() => 0)
  }

  take({ token, place }: Readable, text: string): void {
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

  /** Which words the line holds, as bits, and where the first of them stands. */
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

  #keep(held: number, hit: Hit): void {
    const hits = this.#byWords.get(held) ?? []
    this.#byWords.set(held, hits)
    hits.push(hit)
    if (hits.length > 2 * HITS_MAX) hits.sort(byAge).splice(HITS_MAX)
  }

  /** The best first. */
  best(): readonly Hit[] {
    const all = [...this.#byWords].flatMap(([held, hits]) => {
      const weight = this.#weightOf(held)
      return hits.map((hit) => ({ hit, weight }))
    })
    return all.sort((a, b) => b.weight - a.weight || byAge(a.hit, b.hit)).map(({ hit }) => hit)
  }

  /** A word counts the more the fewer lines hold it. */
  #weightOf(held: number): number {
    return this.#counts.reduce((sum, count, i) => (held & (1 << i) ? sum + 1 / Math.max(1, count) : sum), 0)
  }
}

function byAge(a: Hit, b: Hit): number {
  return b.place - a.place || a.line - b.line
}

/**
 * Null: the words do not stand in what may be shown, so that a search for parts of a secret finds nothing. The text around the line is
 * redacted with it, since a secret may have several lines. Line ends stay where they are.
 */
function hitLine({ token, line, at, isLong, text }: Hit, { words, redact }: Showing): string | null {
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

type Showing = { readonly words: readonly string[]; readonly redact: (text: string) => string }
