// Finds secrets in a text, in one pass for each way of reading it (Aho-Corasick automaton). It knows no secret itself:
// spellings.ts has their spellings, and redactor.ts replaces the finds.

export type FoundSecret = { readonly start: number; readonly end: number; readonly name: string }

/** The text has no character here: it is a quote, a space, or the like. */
export const NO_CHARACTER = 0x10000
/** More text could make this another character. */
export const INCOMPLETE = -1

/** One character as a reader sees it, and where it ends. */
export type CharacterUnit = { unit: number; end: number }

/** Reads the character at a position into `token`. `whole`: no more text comes. */
export type CharacterReader = {
  readonly read: (text: string, at: number, whole: boolean, token: CharacterUnit) => void
  /** The ASCII characters that may begin the escaped spelling of another character. */
  readonly escapes: string
}

/** At most this much skipped text may stand between two characters of a secret. */
const GAP_MAX = 64
const ASCII = 128

type TrieNode = {
  readonly next: Map<number, number>
  readonly depth: number
  fail: number
  length: number
  name: string
}

export class Automaton {
  readonly #reader: CharacterReader
  readonly #nodes: TrieNode[] = [{ next: new Map(), depth: 0, fail: 0, length: 0, name: '' }]
  /** ASCII characters with which a secret may begin. */
  readonly #begins = new Uint8Array(ASCII)
  /** Pairs of ASCII characters with which a secret may begin. */
  readonly #pairs = new Uint8Array(ASCII * ASCII)

  constructor(reader: CharacterReader, spellings: ReadonlyMap<string, string>, charsMin: number) {
    this.#reader = reader
    for (const [spelling, name] of spellings) this.#add(this.#unitsOf(spelling), name, charsMin)
    this.#foresee()
    this.#link()
  }

  /** Most of a text is skipped by looking at two characters: no secret begins with them. */
  #foresee(): void {
    const token = { unit: 0, end: 0 }
    const unitAt = (code: number): number => {
      this.#reader.read(String.fromCharCode(code), 0, true, token)
      return token.unit
    }
    const units = Array.from({ length: ASCII }, (_, code) => unitAt(code))
    const escapes = new Set(Array.from(this.#reader.escapes, (char) => char.charCodeAt(0)))
    for (let code = 0; code < ASCII; code++) {
      const state = this.#at(0).next.get(units[code] ?? NO_CHARACTER)
      // An escape may become any character. A skipped character begins nothing.
      const isEscape = escapes.has(code)
      if (state === undefined && !isEscape) continue
      this.#begins[code] = 1
      for (let after = 0; after < ASCII; after++) {
        const unit = units[after] ?? NO_CHARACTER
        const open = isEscape || escapes.has(after) || unit === NO_CHARACTER
        if (open || (state !== undefined && this.#at(state).next.has(unit))) this.#pairs[code * ASCII + after] = 1
      }
    }
  }

  #at(state: number): TrieNode {
    // Sound: states are indices of nodes.
    return this.#nodes[state] as TrieNode
  }

  /** Reads a spelling in the same way as the texts. */
  #unitsOf(spelling: string): readonly number[] {
    const units: number[] = []
    const token = { unit: 0, end: 0 }
    while (token.end < spelling.length) {
      this.#reader.read(spelling, token.end, true, token)
      if (token.unit !== NO_CHARACTER) units.push(token.unit)
    }
    return units
  }

  #add(units: readonly number[], name: string, charsMin: number): void {
    if (units.length < charsMin) return
    let state = 0
    for (const unit of units) {
      const { next, depth } = this.#at(state)
      const known = next.get(unit)
      state = known ?? this.#nodes.push({ next: new Map(), depth: depth + 1, fail: 0, length: 0, name: '' }) - 1
      if (known === undefined) next.set(unit, state)
    }
    Object.assign(this.#at(state), { length: units.length, name })
  }

  /**
   * The node to continue from when a character does not fit: that of the longest beginning of another spelling that
   * ends here.
   */
  #link(): void {
    const open = [...this.#at(0).next.values()]
    for (const state of open) {
      const node = this.#at(state)
      const { length, name } = this.#at(node.fail)
      if (node.length === 0) Object.assign(node, { length, name })
      for (const [unit, child] of node.next) {
        this.#at(child).fail = this.#step(node.fail, unit)
        open.push(child)
      }
    }
  }

  #step(from: number, unit: number): number {
    let state = from
    for (;;) {
      const node = this.#at(state)
      const next = node.next.get(unit)
      if (next !== undefined) return next
      if (state === 0) return 0
      state = node.fail
    }
  }

  /**
   * Adds every secret to `found`. Returns the position from which on the text may be the beginning of an incomplete
   * secret.
   */
  scan(text: string, whole: boolean, found: FoundSecret[]): number {
    const token: CharacterUnit = { unit: 0, end: 0 }
    // The positions of the characters that led to the state.
    const starts: number[] = []
    let state = 0
    let gap = 0
    for (let at = this.#skip(text, 0); at < text.length; at = state === 0 ? this.#skip(text, token.end) : token.end) {
      this.#reader.read(text, at, whole, token)
      if (token.unit === INCOMPLETE) return this.#begun(state, starts, at)
      if (token.unit === NO_CHARACTER) {
        gap += token.end - at
        if (gap > GAP_MAX) state = 0
        continue
      }
      gap = 0
      if (state === 0) starts.length = 0
      state = this.#step(state, token.unit)
      starts.push(at)
      const { length, name } = this.#at(state)
      if (length > 0) found.push({ start: starts[starts.length - length] ?? at, end: token.end, name })
    }
    return this.#begun(state, starts, text.length)
  }

  /** The next position at which a secret may begin. */
  #skip(text: string, from: number): number {
    const begins = this.#begins
    const pairs = this.#pairs
    const { length } = text
    let at = from
    for (; at < length; at++) {
      const code = text.charCodeAt(at)
      if (code >= ASCII) return at
      if (begins[code] === 0) continue
      const after = at + 1 < length ? text.charCodeAt(at + 1) : ASCII
      if (after >= ASCII || pairs[code * ASCII + after] === 1) return at
    }
    return at
  }

  #begun(state: number, starts: readonly number[], at: number): number {
    return state === 0 ? at : (starts[starts.length - this.#at(state).depth] ?? at)
  }
}

/** Sorted, with overlapping finds merged into one, named after the longest. */
export function mergeFound(found: readonly FoundSecret[]): readonly FoundSecret[] {
  const groups: { start: number; end: number; name: string; longest: number }[] = []
  for (const { start, end, name } of found.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    const last = groups.at(-1)
    if (last === undefined || start >= last.end) groups.push({ start, end, name, longest: end - start })
    else {
      last.end = Math.max(last.end, end)
      if (end - start > last.longest) Object.assign(last, { name, longest: end - start })
    }
  }
  return groups
}
