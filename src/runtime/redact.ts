// The redactor: known secrets leave as `⟦secret:NAME⟧` where an answer of the world becomes an event, before fold, digest,
// stream and commit. It knows only what it was told; it does not guess what else might be a secret.
import type { Json, Part } from '../kernel/content.ts'
import type { InboxBody, OwnerBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'

export type Secrets = Readonly<Record<string, string>>

/** Shorter values are words of the language, and would be found everywhere. */
export const SECRET_CHARS_MIN = 8
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
/** One of these words, or one that ends with a longer of them; and not what only leads to a secret. */
const SECRET_NAMES =
  /(^|_)(KEY|PAT|PASS|BEARER|CREDENTIALS?)(_|$)|_PWD(_|$)|(API|ACCESS|SECRET|PRIVATE)KEY|(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)(_|$)/i
const LEADS_TO_ONE =
  /_(PATH|FILE|DIR|FOLDER|ID|NAME|USER|URL|URI|HOST|PORT|SOCK|TYPE|TTL|ALGORITHM|LENGTH|MAX|MIN|COUNT)$/i

/** What the environment calls a secret: the values of variables that are named like one. */
export function environmentSecrets(env: Readonly<Record<string, string | undefined>> = process.env): Secrets {
  const found = Object.entries(env).filter(
    (entry): entry is [string, string] =>
      NAME.test(entry[0]) && isSecretName(entry[0]) && (entry[1] ?? '').length >= SECRET_CHARS_MIN,
  )
  return Object.fromEntries(found)
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
  /** Each spelling a secret may appear in, and its name. */
  readonly #spellings = new Map<string, string>()
  readonly #any: RegExp | null
  /** The same, to be asked whether there is any. */
  readonly #some: RegExp | null
  readonly #longest: number
  /** The spellings by their first character, and whether one may begin in a text: with a few characters, or at its very end. */
  readonly #begun: ReadonlyMap<string, readonly string[]>
  readonly #beginning: RegExp | null

  constructor(secrets: Secrets) {
    this.#secrets = new Map(Object.entries(secrets))
    for (const [name, value] of this.#secrets) {
      if (!NAME.test(name))
        throw new Fault('invalid_config', `"${name}" is no name for a secret: use letters, digits and "_".`)
      if (value.length < SECRET_CHARS_MIN)
        throw new Fault(
          'invalid_config',
          `The secret ${name} is shorter than ${SECRET_CHARS_MIN} characters, so it cannot be told from other text.`,
        )
      for (const spelling of spellings(value)) this.#spellings.set(spelling, name)
    }
    // Longer spellings first: of two that begin alike the whole one is taken.
    const all = [...this.#spellings.keys()].sort((a, b) => b.length - a.length)
    this.#any = all.length > 0 ? new RegExp(all.map(escaped).join('|'), 'g') : null
    this.#some = this.#any && new RegExp(this.#any.source)
    this.#longest = all[0]?.length ?? 0
    this.#begun = groupedByFirst(all)
    this.#beginning = all.length > 0 ? beginningOf(all) : null
  }

  /** Nothing is known, so nothing has to be looked at. */
  get idle(): boolean {
    return this.#any === null
  }

  value(name: string): string | null {
    return this.#secrets.get(name) ?? null
  }

  text(text: string): string {
    if (this.#any === null || !this.#holds(text)) return text
    return text.replace(this.#any, (spelling) => markOf(this.#spellings.get(spelling) ?? ''))
  }

  /** The name of a secret that is somewhere in the value, keys included; null if there is none. */
  find(value: Json): string | null {
    if (this.#any === null) return null
    if (typeof value === 'string') {
      this.#any.lastIndex = 0
      const [spelling] = this.#any.exec(value) ?? []
      return spelling === undefined ? null : (this.#spellings.get(spelling) ?? null)
    }
    if (value === null || typeof value !== 'object') return null
    for (const [key, item] of Object.entries(value as Readonly<Record<string, Json>>)) {
      const name = this.find(key) ?? this.find(item)
      if (name !== null) return name
    }
    return null
  }

  /** The event as it may be written. The very same object if it holds no secret. */
  body<Body extends OwnerBody | InboxBody>(body: Body): Body {
    // Sound: only texts are replaced, and none of them is one that the kernel reads.
    return this.json(body) as unknown as Body
  }

  json(value: Json): Json {
    if (value === null || !this.#holds(value)) return value
    if (typeof value === 'string') return this.text(value)
    if (Array.isArray(value)) return value.map((item: Json) => this.json(item))
    // What is signed is never edited: with a secret in it, it loses its signature and is plain text from then on.
    if (isReasoning(value)) return { type: 'reasoning', text: this.text(value.text) }
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [this.text(key), this.json(item as Json)]))
  }

  /** Is there a secret anywhere in it? All that is written is looked at, so nothing is made for it. */
  #holds(value: Json): boolean {
    if (typeof value === 'string') return value.length >= SECRET_CHARS_MIN && this.#some?.test(value) === true
    if (this.#some === null || value === null || typeof value !== 'object') return false
    if (Array.isArray(value)) return value.some((item: Json) => this.#holds(item))
    const fields = value as Readonly<Record<string, Json>>
    return Object.keys(fields).some((key) => this.#holds(key) || this.#holds(fields[key] ?? null))
  }

  /** For text that comes in pieces: what could still become a secret is held back until more is known. */
  stream(): Stream {
    let held = ''
    return {
      push: (piece) => {
        // Most pieces have nothing that a secret begins with.
        if (held === '' && this.#beginning?.test(piece) !== true) return piece
        const text = held + piece
        const certain = this.#certain(text)
        held = text.slice(certain)
        return this.text(text.slice(0, certain))
      },
      end: () => {
        const rest = this.text(held)
        held = ''
        return rest
      },
    }
  }

  /** Up to where more text changes nothing: no spelling has begun there that is not whole, and none goes across. */
  #certain(text: string): number {
    for (let from = 0; ; ) {
      const pending = this.#pending(text, from)
      if (this.#any === null) return pending
      this.#any.lastIndex = from
      const whole = this.#any.exec(text)
      // What has begun at the same place may become a longer one, and what began before comes first.
      if (whole === null || pending <= whole.index) return pending
      from = this.#any.lastIndex
    }
  }

  /** Where, from there on, a spelling may have begun that is not whole yet. */
  #pending(text: string, start: number): number {
    for (let from = Math.max(start, text.length - this.#longest + 1); from < text.length; from++) {
      const begun = this.#begun.get(text.charAt(from))
      if (begun === undefined) continue
      const tail = text.slice(from)
      if (begun.some((spelling) => spelling.length > tail.length && spelling.startsWith(tail))) return from
    }
    return text.length
  }
}

function isReasoning(value: unknown): value is Extract<Part, { type: 'reasoning' }> {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'reasoning' && 'text' in value
}

/** The value itself, and as it looks inside JSON, an address, base64 (whatever stands before it) and hexadecimal. */
function spellings(value: string): readonly string[] {
  const bytes = Buffer.from(value)
  const shifted = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
    // The characters at both ends also hold bits of the neighbours.
    return text.slice(before === 0 ? 0 : before + 1, Math.floor(((before + bytes.length) * 8) / 6))
  })
  const url = shifted.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'))
  const all = [
    value,
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(bytes.toString()),
    encodeURI(bytes.toString()),
    ...shifted,
    ...url,
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
  ]
  return [...new Set(all)].filter((text) => text.length >= SECRET_CHARS_MIN)
}

/** The first characters of one, or fewer where the text ends and the rest may still come. */
function beginningOf(all: readonly string[]): RegExp {
  const starts = (chars: number): string => [...new Set(all.map((text) => escaped(text.slice(0, chars))))].join('|')
  return new RegExp(`${starts(3)}|(?:${starts(2)}|${starts(1)})$`)
}

function groupedByFirst(all: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>()
  for (const spelling of all) {
    const group = groups.get(spelling.charAt(0))
    if (group) group.push(spelling)
    else groups.set(spelling.charAt(0), [spelling])
  }
  return groups
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}
