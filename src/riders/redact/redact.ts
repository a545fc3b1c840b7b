// The redactor: known secrets leave as `⟦secret:NAME⟧` where an answer of the world becomes an event, before fold, digest,
// stream and commit. It knows only what it was told; it does not guess what else might be a secret.
import type { Json, Part } from '../../kernel/content.ts'
import type { InboxBody, OwnerBody } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import { scanDumps } from './dump.ts'
import { asIs, encodedSpellings, plainSpellings, TOKEN_MAX, unescaped, unwrapped } from './forms.ts'
import { Automaton, type Found, merged, NOTHING } from './scan.ts'

export type Secrets = Readonly<Record<string, string>>

/** Shorter values are words of the language, and would be found everywhere. */
export const SECRET_CHARS_MIN = 8
/** Fewer different characters are a line or a placeholder. */
const SECRET_KINDS_MIN = 4
/** A value that is not encoded is found in spite of spaces only if it is as long as this. */
const WRAPPED_CHARS_MIN = 16
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
/** One of these words, or one that ends with a longer of them; and not what only leads to a secret. */
const SECRET_NAMES =
  /(^|_)(KEYS?|PATS?|PASS|BEARER|CREDENTIALS?)(_|$)|_PWDS?(_|$)|(API|ACCESS|SECRET|PRIVATE)KEY|(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)S?(_|$)/i
const LEADS_TO_ONE =
  /_(PATH|FILE|DIR|FOLDER|ID|NAME|USER|URL|URI|HOST|PORT|SOCK|TYPE|TTL|ALGORITHM|LENGTH|MAX|MIN|COUNT|LIMIT)S?$|(^|_)(MAX|MIN|NUM)_(\w+_)?TOKENS$/i
/** The name says that there are several, so each is a secret of its own. */
const SEVERAL = /(KEY|PAT|CREDENTIAL|PWD|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)S(_|$)/i

/** What the environment calls a secret: the values of variables that are named like one. */
export function environmentSecrets(env: Readonly<Record<string, string | undefined>> = process.env): Secrets {
  const found: [string, string][] = []
  for (const [name, value = ''] of Object.entries(env)) {
    if (!NAME.test(name) || !isSecretName(name) || weakness(value) !== null) continue
    found.push([name, value])
    if (SEVERAL.test(name))
      for (const [i, part] of partsOf(value).entries()) found.push([`${name}_PART_${i + 1}`, part])
  }
  return Object.fromEntries(found)
}

/** Those of a list, such as `a,b` or `["a", "b"]`. What has names in it is no list. */
function partsOf(value: string): readonly string[] {
  if (value.includes('{')) return []
  const parts = value.split(/[\s,;"'[\]]+/).filter((part) => part !== '')
  return parts.length > 1 ? parts.filter((part) => weakness(part) === null) : []
}

/** Why a value cannot be told from other text; null if it can. */
function weakness(value: string): string | null {
  if (value.length < SECRET_CHARS_MIN) return `is shorter than ${SECRET_CHARS_MIN} characters`
  return new Set(value).size < SECRET_KINDS_MIN ? `has fewer than ${SECRET_KINDS_MIN} different characters` : null
}

function isSecretName(name: string): boolean {
  return SECRET_NAMES.test(name) && !LEADS_TO_ONE.test(name)
}

export function markOf(name: string): string {
  return `⟦secret:${name}⟧`
}

/** Text in pieces. `push` gives what is certain by now, `end` the rest. */
export type Stream = { readonly push: (piece: string) => string; readonly end: () => string }

export class Redactor {
  readonly #secrets: ReadonlyMap<string, string>
  /** Each spelling that is not encoded, and its name. */
  readonly #plain = new Map<string, string>()
  #readers: readonly Automaton[] | null = null
  /** Of the longest spelling; 0 until it is asked for. */
  #bytesMax = 0

  constructor(secrets: Secrets) {
    this.#secrets = new Map(Object.entries(secrets))
    for (const [name, value] of this.#secrets) {
      if (!NAME.test(name))
        throw new Fault('invalid_config', `"${name}" is no name for a secret: use letters, digits and "_".`)
      const why = weakness(value)
      if (why !== null)
        throw new Fault('invalid_config', `The secret ${name} ${why}, so it cannot be told from other text.`)
      for (const spelling of plainSpellings(value, SECRET_CHARS_MIN)) this.#plain.set(spelling, name)
    }
  }

  /** Nothing is known, so nothing has to be looked at. */
  get idle(): boolean {
    return this.#secrets.size === 0
  }

  value(name: string): string | null {
    return this.#secrets.get(name) ?? null
  }

  /** Line ends stay, so that numbers of lines mean the same. */
  text(text: string): string {
    return this.idle ? text : this.#replaced(text, this.#found(text))
  }

  /** The name of a secret that is somewhere in the value, keys included; null if there is none. */
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

  /** The name of a secret that stands in these bytes; null if there is none. A search for its spellings: pictures are large. */
  inBytes(bytes: Uint8Array): string | null {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (const [name, value] of this.#secrets) {
      const spellings = [...plainSpellings(value, SECRET_CHARS_MIN), ...encodedSpellings(value)]
      if (spellings.some((spelling) => buffer.includes(spelling))) return name
    }
    return null
  }

  /** The event as it may be written: its own words, names and hashes as they are. The very same object if it holds no secret. */
  body<Body extends OwnerBody | InboxBody>(body: Body): Body {
    // Sound: only texts are replaced, and none of them is one that the kernel reads.
    return this.idle ? body : (this.#own(body, 'id') as unknown as Body)
  }

  /** All of it is the world's, keys too. */
  json(value: Json): Json {
    return this.idle ? value : this.#walked(value, (item) => this.json(item), true)
  }

  /** Only the values: the keys are ours. */
  values(value: Json): Json {
    return this.idle ? value : this.#walked(value, (item) => this.values(item), false)
  }

  /** A value of the log's own shape. */
  #own(value: Json, own: string): Json {
    if (value === null || typeof value !== 'object' || Array.isArray(value) || isReasoning(value) || isProvider(value))
      return this.#walked(value, (item) => this.#own(item, ''), false)
    const fields = value as Fields
    let changed: Record<string, Json> | null = null
    for (const key in fields) {
      const item = fields[key] ?? null
      if (key === own || isOwn(key, item, fields)) continue
      const clean = WORLDS.has(key) ? this.json(item) : this.#own(item, '')
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
    // What is signed is never edited: with a secret in it, it loses its signature and is plain text from then on.
    if (isReasoning(value)) {
      const { text } = value
      return this.find(value) === null ? value : { type: 'reasoning', text: this.text(text) }
    }
    if (isProvider(value)) return this.find(value) === null ? value : { ...value, opaque: null }
    const entries = Object.entries(value as Fields)
    const clean = entries.map(([key, item]) => [keys ? this.text(key) : key, each(item)] as const)
    const same = clean.every(([key, item], i) => key === entries[i]?.[0] && item === entries[i]?.[1])
    return same ? value : Object.fromEntries(clean)
  }

  /** For text that comes in pieces: what could still become a secret is held back until more is known. */
  stream(): Stream {
    if (this.idle) return UNCHANGED
    let held = ''
    return {
      push: (piece) => {
        const text = held + piece
        const found: Found[] = []
        let pending = text.length
        for (const one of this.#all()) pending = Math.min(pending, one.scan(text, false, found))
        pending = Math.min(pending, scanDumps(text, this.#dumped, false, found))
        const groups = found.length === 0 ? NONE : merged(found)
        const certain = certainUpTo(text, pending, groups)
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

  #found(text: string): readonly Found[] {
    if (this.idle || text.length < SECRET_CHARS_MIN) return NONE
    const found: Found[] = []
    for (const one of this.#all()) one.scan(text, true, found)
    scanDumps(text, this.#dumped, true, found)
    return found.length === 0 ? NONE : merged(found)
  }

  #replaced(text: string, found: readonly Found[]): string {
    if (found.length === 0) return text
    const pieces: string[] = []
    let at = 0
    for (const { start, end, name } of found) {
      const lines = text.slice(start, end).split('\n')
      pieces.push(text.slice(at, start), lines.map((line) => (line.trim() === '' ? '' : markOf(name))).join('\n'))
      at = end
    }
    return pieces.join('') + text.slice(at)
  }

  get #dumped(): { readonly secrets: ReadonlyMap<string, string>; readonly bytesMax: number } {
    this.#bytesMax ||= Math.max(...[...this.#plain.keys()].map((spelling) => Buffer.byteLength(spelling)))
    return { secrets: this.#plain, bytesMax: this.#bytesMax }
  }

  /** Made for the first text: a harness that says nothing pays nothing. */
  #all(): readonly Automaton[] {
    if (this.#readers !== null) return this.#readers
    const plain = this.#plain
    const encoded = [...this.#secrets].flatMap(([name, value]) =>
      encodedSpellings(value).map((spelling) => [spelling, name] as const),
    )
    const long = [...plain].filter(([spelling]) => spelling.length >= WRAPPED_CHARS_MIN)
    this.#readers = [
      new Automaton(asIs, plain, SECRET_CHARS_MIN),
      new Automaton(unescaped, plain, SECRET_CHARS_MIN),
      new Automaton(unwrapped, new Map([...long, ...encoded]), SECRET_CHARS_MIN),
    ]
    return this.#readers
  }
}

type Fields = Readonly<Record<string, Json>>
const NONE: readonly Found[] = []
const UNCHANGED: Stream = { push: (piece) => piece, end: () => '' }

/** Fields of events that hold what the world made: there nothing is the log's own. */
const WORLDS: ReadonlySet<string> = new Set('args metadata labels options output missed remember opaque raw'.split(' '))
/** Fields whose values are words of the kernel, names that code gave, or hashes. */
const OWN: ReadonlySet<string> = new Set(
  (
    'type when mode status effect limit account finish allow hash digest call session root child planner agent ' +
    'toolset instructions policy code key media model route fallback_from class retryKind'
  ).split(' '),
)
/** Words of the kernel in fields that may also hold others. */
const WORDS: ReadonlySet<string> = new Set(
  (
    'provider_error output_validation_failed tool_retries_exceeded unexpected_model_behavior empty_answer ' +
    'crashed_too_often prepare_failed hook_error planner_failed refusal tool_error correction learning context ' +
    'InvalidInput NotFound NonZeroExit Unavailable Interrupted'
  ).split(' '),
)

function isOwn(key: string, item: Json, fields: Fields): boolean {
  if (OWN.has(key)) return typeof item === 'string'
  if (key === 'kind' || key === 'reason') return typeof item === 'string' && WORDS.has(item)
  // A tool that is there has the name that code gave it. One that is not has a name of the model's own.
  const { gate = null } = fields
  return key === 'tool' && !(gate !== null && typeof gate === 'object' && 'type' in gate && gate.type === 'refuse')
}

/** With one of these begins what is more than one character long. */
const ESCAPES = /[\\%&\ud800-\udbff]/

/** Up to where more text changes nothing: no secret and no escaped character goes across. */
function certainUpTo(text: string, most: number, groups: readonly Found[]): number {
  const token = { unit: NOTHING, end: 0 }
  let certain = most
  for (let before = -1; before !== certain; ) {
    before = certain
    const across = groups.find(({ start, end }) => start < certain && certain < end)
    if (across) certain = across.start
    const from = Math.max(0, certain - TOKEN_MAX)
    if (!ESCAPES.test(text.slice(from, certain))) continue
    for (let at = from; at < certain; at = Math.max(at + 1, token.end)) {
      unescaped.read(text, at, false, token)
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
