// The content router: detects the kind of a text, shortens it by that kind, and returns the result only if it is
// smaller with its footer and, where something is left out, the original is kept. It keeps nothing itself.
import {
  optionsChecker,
  functionCheck,
  countCheck,
  nonEmptyCheck,
  oneOf,
  type Check,
  methodsCheck,
  textCheck,
} from '../../options.ts'
import { Fault } from '../../kernel/failure.ts'
import { isObject, parseJson } from '../../view/untrusted-json.ts'
import { detectKind } from './detect-kind.ts'
import { buildFooter, type OriginalRef, RETRIEVE, ROUTED_BYTES_MIN } from './marker.ts'
import type { TextHint, ShortenOptions, TextKind, CompressProfile, Shortener, ShortenedText } from './text-kind.ts'

/** Smaller texts are left as they are; for logs and the output of commands, those below ROUTED_BYTES_MIN. */
const BYTES_MIN = 2_048
/** Longer texts are left as they are too: the clip cuts them. */
const CHARS_MAX = 32 * 1024 * 1024
/**
 * Something may be left out of a text of at least this many tokens, or of a quarter of them if half of the text goes.
 */
const LOSSY_TOKENS_MIN = 500
const CHARS_PER_TOKEN = 4

/** Options of `compressContent`: how much is left out, and where the original is kept. */
export type CompressOptions = {
  /** Default `full`. */
  readonly profile?: CompressProfile
  /** Keeps an original and returns a token of 32 hex digits for it. Without it nothing is left out. */
  readonly keep?: (original: string) => string | Promise<string>
  /** The tool with which a model reads an original. Default `retrieve_original`. */
  readonly tool?: string
  /** Texts from this many bytes on are shortened. Default 2,048; 512 for logs and commands. */
  readonly minBytes?: number
  /** Ends the work early when it is aborted. */
  readonly signal?: AbortSignal
}

/** `content` is the text itself if it did not get smaller. */
export type Compressed = {
  /** The shorter text with its footer, or the text itself if it did not get smaller. */
  readonly content: string
  /** What the text looked like, which decides how it is shortened. `plain` texts are never shortened. */
  readonly kind: TextKind
  /** The size of the given text, in bytes. */
  readonly bytesBefore: number
  /** The size of `content`, in bytes. */
  readonly bytesAfter: number
  /** True if `content` is not the given text. */
  readonly changed: boolean
  /** Something is left out. */
  readonly lossy: boolean
  /** The token of the original, as `keep` returned it. Absent if nothing was kept. */
  readonly token?: string
}

const profileCheck = oneOf<CompressProfile>({ full: true, light: true, off: true })
const kindCheck = oneOf<TextKind>({
  json: true,
  code: true,
  log: true,
  search: true,
  diff: true,
  html: true,
  plain: true,
})
const signalCheck: Check = methodsCheck('give the signal of an AbortController', 'throwIfAborted')
const checkOptions = optionsChecker<CompressOptions>('compressContent', {
  profile: profileCheck,
  keep: functionCheck,
  tool: nonEmptyCheck,
  minBytes: countCheck(),
  signal: signalCheck,
})
const checkHint = optionsChecker<TextHint>('the hint of compressContent', {
  kind: kindCheck,
  mime: textCheck,
  path: textCheck,
  tool: textCheck,
  command: textCheck,
  query: textCheck,
})

export async function shortenContent(
  content: string,
  hint: TextHint = {},
  options: CompressOptions = {},
): Promise<Compressed> {
  if (typeof content !== 'string') throw new Fault('invalid_input', 'compressContent takes a text as its content.')
  checkHint(hint)
  checkOptions(options)
  const { profile = 'full', keep, tool = RETRIEVE, signal = NEVER, minBytes } = options
  const bytesBefore = Buffer.byteLength(content)
  const unchanged = (kind: TextKind): Compressed => {
    return { content, kind, bytesBefore, bytesAfter: bytesBefore, changed: false, lossy: false }
  }
  if (profile === 'off' || !isReadable(content)) return unchanged('plain')
  const kind = detectKind(content, hint)
  const least = minBytes ?? (kind === 'log' || hint.command !== undefined ? ROUTED_BYTES_MIN : BYTES_MIN)
  if (bytesBefore < least) return unchanged(kind)
  const how = { hint, signal }
  const lossless = profile === 'light' || keep === undefined
  let made = await shortenByKind(content, kind, { ...how, lossless })
  if (made?.lossy === true && !mayBeLossy(content, made.text))
    made = await shortenByKind(content, kind, { ...how, lossless: true })
  if (made === null) return unchanged(kind)
  const room = bytesBefore - Buffer.byteLength(made.text)
  // Check before keeping: if the text is not shortened, nothing is kept.
  if (room <= Buffer.byteLength(buildFooter(made.lossy, keep ? { ...NO_TOKEN, bytes: bytesBefore, tool } : null)))
    return unchanged(kind)
  const original = keep === undefined ? null : { token: checkToken(await keep(content)), bytes: bytesBefore, tool }
  const text = made.text + buildFooter(made.lossy, original)
  const bytesAfter = Buffer.byteLength(text)
  const token = original === null ? {} : { token: original.token }
  return { content: text, kind, bytesBefore, bytesAfter, changed: true, lossy: made.lossy, ...token }
}

/** The model could not find the original by another kind of token in the footer. */
function checkToken(given: unknown): string {
  if (typeof given === 'string' && /^[0-9a-f]{32}$/.test(given)) return given
  throw new Fault('invalid_input', '`keep` of compressContent must return a token of 32 hex digits (0-9, a-f).')
}

const NEVER = new AbortController().signal
/** As long as a real token. */
const NO_TOKEN: Pick<OriginalRef, 'token'> = { token: '0'.repeat(32) }

/** Binary data in a string, and half surrogate pairs, would not come back unchanged. */
function isReadable(content: string): boolean {
  const text: string & { isWellFormed?: () => boolean } = content
  // Every supported Node has it; the compiler's ES2023 types do not.
  return content.length <= CHARS_MAX && !content.includes('\0') && text.isWellFormed?.() === true
}

function mayBeLossy({ length: before }: string, { length: after }: string): boolean {
  const tokens = before / CHARS_PER_TOKEN
  return tokens >= LOSSY_TOKENS_MIN || (tokens >= LOSSY_TOKENS_MIN / 4 && after <= before / 2)
}

async function shortenByKind(content: string, kind: TextKind, how: ShortenOptions): Promise<ShortenedText | null> {
  const streams = kind === 'json' && how.hint.command !== undefined ? streamsOf(content) : null
  if (streams !== null) return shortenStreams(streams, how)
  if (kind === 'plain') return null
  const shorten = await KINDS[kind]()
  return shorten(content, how)
}

/** Each module is loaded by the first text of its kind. */
const KINDS: Readonly<Record<Exclude<TextKind, 'plain'>, () => Promise<Shortener>>> = {
  json: async () => (await import('./shorten-json.ts')).shortenJson,
  code: async () => (await import('./shorten-code.ts')).shortenCode,
  log: async () => (await import('./shorten-log.ts')).shortenLog,
  search: async () => (await import('./shorten-search.ts')).shortenSearch,
  diff: async () => (await import('./shorten-diff.ts')).shortenDiff,
  html: async () => (await import('./shorten-html.ts')).shortenHtml,
}

type CommandStreams = Readonly<Record<string, unknown>>

/** The JSON that `bash` returns, with the output of a command in it. */
function streamsOf(content: string): CommandStreams | null {
  const value = parseJson(content)
  if (!isObject(value) || typeof value['stdout'] !== 'string') return null
  // Writing the values again must give the same values.
  return Object.values(value).every(isExact) ? value : null
}

function isExact(value: unknown): boolean {
  return typeof value === 'number' ? Number.isSafeInteger(value) : typeof value !== 'object' || value === null
}

/** Shortens each stream by its own kind, inside the same JSON. */
async function shortenStreams(streams: CommandStreams, how: ShortenOptions): Promise<ShortenedText | null> {
  const made: Record<string, unknown> = { ...streams }
  let lossy = false
  for (const name of ['stdout', 'stderr']) {
    const text = streams[name]
    if (typeof text !== 'string' || Buffer.byteLength(text) < ROUTED_BYTES_MIN) continue
    const shorter = await shortenByKind(text, detectKind(text, how.hint), how)
    if (shorter === null || shorter.text.length >= text.length) continue
    made[name] = shorter.text
    lossy ||= shorter.lossy
  }
  return { text: JSON.stringify(made), lossy }
}
