// The redactor: it replaces known secrets by `⟦secret:NAME⟧` where outside content becomes an event, before fold,
// digest, stream and commit. It knows only the secrets it was given; it does not guess others.
import type { Json, Part } from '../../kernel/content.ts'
import type { InboxBody, OwnerBody } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import { scanDumps } from './dump.ts'
import {
  plainReader,
  encodedSpellings,
  plainSpellings,
  TOKEN_MAX,
  unescapingReader,
  unwrappingReader,
} from './spellings.ts'
import { Automaton, type FoundSecret, mergeFound, NO_CHARACTER } from './scan.ts'

/** Values that must not stand in a log, by name. Each is replaced by its name before anything is written. */
export type Secrets = Readonly<Record<string, string>>

/** Shorter values are ordinary words, and would be found everywhere. */
export const SECRET_CHARS_MIN = 8
/** A value with fewer different characters is a line or a placeholder. */
const SECRET_KINDS_MIN = 4
/** A plain value is searched for across spaces only from this length on. */
const WRAPPED_CHARS_MIN = 16
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
/**
 * Names that contain one of these words, or end with one of the longer ones, without names that only lead to a secret.
 */
const SECRET_NAMES =
  /(^|_)(KEYS?|PATS?|PASS|BEARER|CREDENTIALS?)(_|$)|_PWDS?(_|$)|(API|ACCESS|SECRET|PRIVATE)KEY|(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)S?(_|$)/i
const NOT_SECRET_NAMES =
  /_(PATH|FILE|DIR|FOLDER|ID|NAME|USER|URL|URI|HOST|PORT|SOCK|TYPE|TTL|ALGORITHM|LENGTH|MAX|MIN|COUNT|LIMIT)S?$|(^|_)(MAX|MIN|NUM)_(\w+_)?TOKENS$/i
/** The plural says that there are several secrets, so each part is one of its own. */
const PLURAL_NAMES = /(KEY|PAT|CREDENTIAL|PWD|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)S(_|$)/i

/** The secrets of the environment: the values of variables that are named like a secret. */
export function environmentSecrets(env: Readonly<Record<string, string | undefined>> = process.env): Secrets {
  const found: [string, string][] = []
  for (const [name, value = ''] of Object.entries(env)) {
    if (!NAME.test(name) || !isSecretName(name) || whyWeak(value) !== null) continue
    found.push([name, value])
    if (PLURAL_NAMES.test(name))
      for (const [i, part] of listParts(value).entries()) found.push([`${name}_PART_${i + 1}`, part])
  }
  return Object.fromEntries(found)
}

/** The parts of a list, such as `a,b` or `["a", "b"]`. A value with keys is no list. */
function listParts(value: string): readonly string[] {
  if (value.includes('{')) return []
  const parts = value.split(/[\s,;"'[\]]+/).filter((part) => part !== '')
  return parts.length > 1 ? parts.filter((part) => whyWeak(part) === null) : []
}

/** Why a value cannot be told from other text; null if it can. */
function whyWeak(value: string): string | null {
  if (value.length < SECRET_CHARS_MIN) return `is shorter than ${SECRET_CHARS_MIN} characters`
  return new Set(value).size < SECRET_KINDS_MIN ? `has fewer than ${SECRET_KINDS_MIN} different characters` : null
}

function isSecretName(name: string): boolean {
  return SECRET_NAMES.test(name) && !NOT_SECRET_NAMES.test(name)
}

export function secretMark(name: string): string {
  return `⟦secret:${name}⟧`
}

/** Text in pieces. `push` returns what is certain by now, `end` the rest. */
export type RedactedStream = { readonly push: (piece: string) => string; readonly end: () => string }

export class Redactor {
  readonly #secrets = new Map<string, string>()
  /** Each plain spelling, and the name of its secret. */
  readonly #plain = new Map<string, string>()
  #readers: readonly Automaton[] | null = null
  /** The length of the longest spelling; 0 until it is needed. */
  #bytesMax = 0

  constructor(secrets: Secrets) {
    this.learn(secrets)
  }

  /** Also replaces these from now on: what parts beside the harness are given, such as the endpoints of a server. */
  learn(secrets: Secrets): void {
    for (const [name, value] of Object.entries(secrets)) {
      if (!NAME.test(name))
        throw new Fault('invalid_config', `"${name}" is no name for a secret: use letters, digits and "_".`)
      const why = whyWeak(value)
      if (why !== null)
        throw new Fault('invalid_config', `The secret ${name} ${why}, so it cannot be told from other text.`)
      this.#secrets.set(name, value)
      for (const spelling of plainSpellings(value, SECRET_CHARS_MIN)) this.#plain.set(spelling, name)
    }
    this.#readers = null
    this.#bytesMax = 0
  }

  /** No secret is known, so no text has to be searched. */
  get idle(): boolean {
    return this.#secrets.size === 0
  }

  value(name: string): string | null {
    return this.#secrets.get(name) ?? null
  }

  /** Line ends stay, so that line numbers stay the same. */
  text(text: string): string {
    return this.idle ? text : this.#replaced(text, this.#found(text))
  }

  /** The name of a secret anywhere in the value, keys included; null if there is none. */
  find(value: Json): string | null {
    if (this.idle) return null
    if (typeof value === 'string') return this.#found(value)[0]?.name ?? null
    if (value === null || typeof value !== 'object') return null
    for (const [key, item] of Object.entries(value as Readonly<Record<string, Json>>)) {
      const name = this.find(key) ?? this.find(item)
      if (name !== null) return name
    }
    return null
  }

  /**
   * The name of a secret in these bytes; null if there is none. A plain search for its spellings, because pictures are
   * large.
   */
  inBytes(bytes: Uint8Array): string | null {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (const [name, value] of this.#secrets) {
      const spellings = [...plainSpellings(value, SECRET_CHARS_MIN), ...encodedSpellings(value)]
      if (spellings.some((spelling) => buffer.includes(spelling))) return name
    }
    return null
  }

  /**
   * The event as it may be written: the harness's own words, names and hashes stay. Returns the same object if it holds
   * no secret.
   */
  body<Body extends OwnerBody | InboxBody>(body: Body): Body {
    // Sound: only texts are replaced, and the kernel reads none of them.
    return this.idle ? body : (this.#own(body, 'id') as unknown as Body)
  }

  /** All of the value came from outside, its keys too. */
  json(value: Json): Json {
    return this.idle ? value : this.#walked(value, (item) => this.json(item), true)
  }

  /** Only the values: the keys are the harness's own. */
  values(value: Json): Json {
    return this.idle ? value : this.#walked(value, (item) => this.values(item), false)
  }

  /** A value in the log's own shape. */
  #own(value: Json, own: string): Json {
    if (value === null || typeof value !== 'object' || Array.isArray(value) || isReasoning(value) || isProvider(value))
      return this.#walked(value, (item) => this.#own(item, ''), false)
    const fields = value as JsonFields
    let changed: Record<string, Json> | null = null
    for (const key in fields) {
      const item = fields[key] ?? null
      if (key === own || isOwnField(key, item, fields)) continue
      const clean = WORLD_FIELDS.has(key) ? this.json(item) : this.#own(item, '')
      if (clean !== item) (changed ??= { ...fields })[key] = clean
    }
    return changed ?? value
  }

  #walked(value: Json, each: (item: Json) => Json, keys: boolean): Json {
    if (typeof value === 'string') return this.text(value)
    if (value === null || typeof value !== 'object') return value
    if (Array.isArray(value)) {
      const items = value as readonly Json[]
      const clean = items.map(each)
      return clean.some((item, i) => item !== items[i]) ? clean : items
    }
    // Signed content is never edited: with a secret in it, it loses its signature and is plain text from then on.
    if (isReasoning(value)) {
      const { text } = value
      return this.find(value) === null ? value : { type: 'reasoning', text: this.text(text) }
    }
    if (isProvider(value)) return this.find(value) === null ? value : { ...value, opaque: null }
    const entries = Object.entries(value as JsonFields)
    const clean = entries.map(([key, item]) => [keys ? this.text(key) : key, each(item)] as const)
    const same = clean.every(([key, item], i) => key === entries[i]?.[0] && item === entries[i]?.[1])
    return same ? value : Object.fromEntries(clean)
  }

  /** For text that comes in pieces: a part that could still become a secret is held back until more is known. */
  stream(): RedactedStream {
    if (this.idle) return UNCHANGED_STREAM
    let held = ''
    return {
      push: (piece) => {
        const text = held + piece
        const found: FoundSecret[] = []
        let pending = text.length
        for (const one of this.#all()) pending = Math.min(pending, one.scan(text, false, found))
        pending = Math.min(pending, scanDumps(text, this.#dumped, false, found))
        const groups = found.length === 0 ? NOTHING_FOUND : mergeFound(found)
        const certain = certainEnd(text, pending, groups)
        held = text.slice(certain)
        const sure = text.slice(0, certain)
        if (groups.length === 0) return sure
        return this.#replaced(
          sure,
          groups.filter(({ end }) => end <= certain),
        )
      },
      end: () => {
        const rest = this.text(held)
        held = ''
        return rest
      },
    }
  }

  #found(text: string): readonly FoundSecret[] {
    if (this.idle || text.length < SECRET_CHARS_MIN) return NOTHING_FOUND
    const found: FoundSecret[] = []
    for (const one of this.#all()) one.scan(text, true, found)
    scanDumps(text, this.#dumped, true, found)
    return found.length === 0 ? NOTHING_FOUND : mergeFound(found)
  }

  #replaced(text: string, found: readonly FoundSecret[]): string {
    if (found.length === 0) return text
    const pieces: string[] = []
    let at = 0
    for (const { start, end, name } of found) {
      const lines = text.slice(start, end).split('\n')
      pieces.push(text.slice(at, start), lines.map((line) => (line.trim() === '' ? '' : secretMark(name))).join('\n'))
      at = end
    }
    return pieces.join('') + text.slice(at)
  }

  get #dumped(): { readonly secrets: ReadonlyMap<string, string>; readonly bytesMax: number } {
    this.#bytesMax ||= Math.max(...[...this.#plain.keys()].map((spelling) => Buffer.byteLength(spelling)))
    return { secrets: this.#plain, bytesMax: this.#bytesMax }
  }

  /** Built for the first text: a harness without text does not pay for it. */
  #all(): readonly Automaton[] {
    if (this.#readers !== null) return this.#readers
    const plain = this.#plain
    const encoded = [...this.#secrets].flatMap(([name, value]) =>
      encodedSpellings(value).map((spelling) => [spelling, name] as const),
    )
    const long = [...plain].filter(([spelling]) => spelling.length >= WRAPPED_CHARS_MIN)
    this.#readers = [
      new Automaton(plainReader, plain, SECRET_CHARS_MIN),
      new Automaton(unescapingReader, plain, SECRET_CHARS_MIN),
      new Automaton(unwrappingReader, new Map([...long, ...encoded]), SECRET_CHARS_MIN),
    ]
    return this.#readers
  }
}

type JsonFields = Readonly<Record<string, Json>>
const NOTHING_FOUND: readonly FoundSecret[] = []
const UNCHANGED_STREAM: RedactedStream = { push: (piece) => piece, end: () => '' }

/** Fields of events whose content came from outside: nothing in them is the log's own. */
const WORLD_FIELDS: ReadonlySet<string> = new Set(
  'args metadata labels options output missed remember opaque raw'.split(' '),
)
/** Fields whose values are kernel words, names given by code, or hashes. */
const OWN_FIELDS: ReadonlySet<string> = new Set(
  (
    'type when mode status effect limit account finish allow hash digest call session root child planner agent ' +
    'toolset instructions policy code key media model route fallback_from class retryKind'
  ).split(' '),
)
/** Kernel words in fields that may also hold other text. */
const KERNEL_WORDS: ReadonlySet<string> = new Set(
  (
    'provider_error output_validation_failed tool_retries_exceeded unexpected_model_behavior empty_answer ' +
    'crashed_too_often prepare_failed hook_error planner_failed refusal tool_error correction learning context ' +
    'InvalidInput NotFound NonZeroExit Unavailable Interrupted'
  ).split(' '),
)

function isOwnField(key: string, item: Json, fields: JsonFields): boolean {
  if (OWN_FIELDS.has(key)) return typeof item === 'string'
  if (key === 'kind' || key === 'reason') return typeof item === 'string' && KERNEL_WORDS.has(item)
  // The name of an existing tool was given by code. The name of an unknown tool was made up by the model.
  const { gate = null } = fields
  return key === 'tool' && !(gate !== null && typeof gate === 'object' && 'type' in gate && gate.type === 'refuse')
}

/** A sequence longer than one character begins with one of these. */
const ESCAPES = /[\\%&\ud800-\udbff]/

/** The position up to which more text changes nothing: no secret and no escape sequence crosses it. */
function certainEnd(text: string, most: number, groups: readonly FoundSecret[]): number {
  const token = { unit: NO_CHARACTER, end: 0 }
  let certain = most
  for (let before = -1; before !== certain; ) {
    before = certain
    const across = groups.find(({ start, end }) => start < certain && certain < end)
    if (across) certain = across.start
    const from = Math.max(0, certain - TOKEN_MAX)
    if (!ESCAPES.test(text.slice(from, certain))) continue
    for (let at = from; at < certain; at = Math.max(at + 1, token.end)) {
      unescapingReader.read(text, at, false, token)
      if (token.end > certain) certain = at
    }
  }
  return certain
}

function isProvider(value: unknown): value is Extract<Part, { type: 'provider' }> {
  return (
    typeof value === 'object' && value !== null && 'type' in value && value.type === 'provider' && 'opaque' in value
  )
}

function isReasoning(value: unknown): value is Extract<Part, { type: 'reasoning' }> {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'reasoning' && 'text' in value
}
