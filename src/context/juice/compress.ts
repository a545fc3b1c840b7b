// The content router: finds out which kind a text is, has that kind shorten it, and hands the result out only if it is smaller with
// its footer and, where something is left out, the original is kept. It keeps nothing itself.
import { optionsOf, callable, count, filled, oneOf, type Check, having, text as textCheck } from '../../options.ts'
import { Fault } from '../../kernel/failure.ts'
import { isObject, parsed } from '../../view/json.ts'
import { detect } from './detect.ts'
import { footer, type Original, RETRIEVE, ROUTED_BYTES_MIN } from './marker.ts'
import type { Hint, How, Kind, Profile, Shorten, Shorter } from './kind.ts'

/** Smaller texts are left as they are; of logs and what commands print, those below ROUTED_BYTES_MIN. */
const BYTES_MIN = 2_048
/** Longer ones too: the clip is for these. */
const CHARS_MAX = 32 * 1024 * 1024
/** Something may be left out of an original with this many tokens, or with a quarter of them if half of it goes. */
const LOSSY_TOKENS_MIN = 500
const CHARS_PER_TOKEN = 4

export type CompressOptions = {
  /** Default `full`. */
  readonly profile?: Profile
  /** Keeps an original and gives it a token of 32 hex digits. Without it nothing is left out. */
  readonly keep?: (original: string) => string | Promise<string>
  /** The tool with which a model gets at an original. Default `retrieve_original`. */
  readonly tool?: string
  /** From this many bytes on. Default 2,048; 512 for logs and commands. */
  readonly minBytes?: number
  readonly signal?: AbortSignal
}

/** `content` is the text itself where nothing was gained. */
export type Compressed = {
  readonly content: string
  readonly kind: Kind
  readonly bytesBefore: number
  readonly bytesAfter: number
  readonly changed: boolean
  /** Something is left out. */
  readonly lossy: boolean
  readonly token?: string
}

const profileCheck = oneOf<Profile>({ full: true, light: true, off: true })
const kindCheck = oneOf<Kind>({ json: true, code: true, log: true, search: true, diff: true, html: true, plain: true })
const signalCheck: Check = having('give the signal of an AbortController', 'throwIfAborted')
const checkOptions = optionsOf<CompressOptions>('compressContent', {
  profile: profileCheck,
  keep: callable,
  tool: filled,
  minBytes: count(),
  signal: signalCheck,
})
const checkHint = optionsOf<Hint>('the hint of compressContent', {
  kind: kindCheck,
  mime: textCheck,
  path: textCheck,
  tool: textCheck,
  command: textCheck,
  query: textCheck,
})

export async function compressContent(
  content: string,
  hint: Hint = {},
  options: CompressOptions = {},
): Promise<Compressed> {
  if (typeof content !== 'string') throw new Fault('invalid_input', 'compressContent takes a text as its content.')
  checkHint(hint)
  checkOptions(options)
  const { profile = 'full', keep, tool = RETRIEVE, signal = NEVER, minBytes } = options
  const bytesBefore = Buffer.byteLength(content)
  const unchanged = (kind: Kind): Compressed => {
    return { content, kind, bytesBefore, bytesAfter: bytesBefore, changed: false, lossy: false }
  }
  if (profile === 'off' || !isReadable(content)) return unchanged('plain')
  const kind = detect(content, hint)
  const least = minBytes ?? (kind === 'log' || hint.command !== undefined ? ROUTED_BYTES_MIN : BYTES_MIN)
  if (bytesBefore < least) return unchanged(kind)
  const how = { hint, signal }
  const lossless = profile === 'light' || keep === undefined
  let made = await shortened(content, kind, { ...how, lossless })
  if (made?.lossy === true && !mayLose(content, made.text))
    made = await shortened(content, kind, { ...how, lossless: true })
  if (made === null) return unchanged(kind)
  const room = bytesBefore - Buffer.byteLength(made.text)
  // Before it is kept: what is not handed out leaves nothing behind.
  if (room <= Buffer.byteLength(footer(made.lossy, keep ? { ...NO_TOKEN, bytes: bytesBefore, tool } : null)))
    return unchanged(kind)
  const original = keep === undefined ? null : { token: tokenFrom(await keep(content)), bytes: bytesBefore, tool }
  const text = made.text + footer(made.lossy, original)
  const bytesAfter = Buffer.byteLength(text)
  const token = original === null ? {} : { token: original.token }
  return { content: text, kind, bytesBefore, bytesAfter, changed: true, lossy: made.lossy, ...token }
}

/** Another one could not be found again by what the last line says. */
function tokenFrom(given: unknown): string {
  if (typeof given === 'string' && /^[0-9a-f]{32}$/.test(given)) return given
  throw new Fault('invalid_input', '`keep` of compressContent must return a token of 32 hex digits (0-9, a-f).')
}

const NEVER = new AbortController().signal
/** As long as a token is. */
const NO_TOKEN: Pick<Original, 'token'> = { token: '0'.repeat(32) }

/** Binary data that is called text, and texts with half a character, would not come back as they were. */
function isReadable(content: string): boolean {
  const text: string & { isWellFormed?: () => boolean } = content
  // Every Node that runs this has it; the compiler's list of ES2023 does not.
  return content.length <= CHARS_MAX && !content.includes('\0') && text.isWellFormed?.() === true
}

function mayLose({ length: before }: string, { length: after }: string): boolean {
  const tokens = before / CHARS_PER_TOKEN
  return tokens >= LOSSY_TOKENS_MIN || (tokens >= LOSSY_TOKENS_MIN / 4 && after <= before / 2)
}

async function shortened(content: string, kind: Kind, how: How): Promise<Shorter | null> {
  const streams = kind === 'json' && how.hint.command !== undefined ? streamsOf(content) : null
  if (streams !== null) return shortenStreams(streams, how)
  if (kind === 'plain') return null
  const shorten = await KINDS[kind]()
  return shorten(content, how)
}

/** Each is loaded by the first text of its kind. */
const KINDS: Readonly<Record<Exclude<Kind, 'plain'>, () => Promise<Shorten>>> = {
  json: async () => (await import('./json.ts')).shortenJson,
  code: async () => (await import('./code.ts')).shortenCode,
  log: async () => (await import('./log.ts')).shortenLog,
  search: async () => (await import('./search.ts')).shortenSearch,
  diff: async () => (await import('./diff.ts')).shortenDiff,
  html: async () => (await import('./html.ts')).shortenHtml,
}

type Streams = Readonly<Record<string, unknown>>

/** What `bash` returns: the output of a command inside of JSON. */
function streamsOf(content: string): Streams | null {
  const value = parsed(content)
  if (!isObject(value) || typeof value['stdout'] !== 'string') return null
  // Written again, it must say the same.
  return Object.values(value).every(isExact) ? value : null
}

function isExact(value: unknown): boolean {
  return typeof value === 'number' ? Number.isSafeInteger(value) : typeof value !== 'object' || value === null
}

/** Each stream by its own kind, inside of the same JSON. */
async function shortenStreams(streams: Streams, how: How): Promise<Shorter | null> {
  const made: Record<string, unknown> = { ...streams }
  let lossy = false
  for (const name of ['stdout', 'stderr']) {
    const text = streams[name]
    if (typeof text !== 'string' || Buffer.byteLength(text) < ROUTED_BYTES_MIN) continue
    const shorter = await shortened(text, detect(text, how.hint), how)
    if (shorter === null || shorter.text.length >= text.length) continue
    made[name] = shorter.text
    lossy ||= shorter.lossy
  }
  return { text: JSON.stringify(made), lossy }
}
