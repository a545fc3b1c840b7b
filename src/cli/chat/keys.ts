// Bytes of a terminal → keys. Node's own reader gives a lone Esc after half a second and a paste letter by letter. Pure
// but for its held bytes: however the stream was cut, the keys are the same.

export type KeyPress = {
  /** The name of the key; for text there is none. `paste` is a whole paste. */
  readonly name?: string | undefined
  /** The text: of letters typed or of a paste. */
  readonly sequence: string
  readonly ctrl?: boolean
  readonly meta?: boolean
  readonly shift?: boolean
}

/** A terminal sends a key in one piece, so an Esc with nothing behind it for this long is the key itself. */
export const LONE_ESC_MS = 25

const ESC = '\u001b'
const PASTE_END = `${ESC}[201~`
/** No key of a terminal is longer than this. */
const SEQUENCE_MAX = 64

export class KeyDecoder {
  readonly #utf8 = new TextDecoder('utf-8', { ignoreBOM: true })
  /** The begin of a sequence that is not whole yet. */
  #held = ''
  /** The pieces of an open paste; null outside of one. */
  #paste: string[] | null = null

  /** True if the held bytes are Esc itself, unless more of them come soon. */
  get isWaiting(): boolean {
    return this.#paste === null && (this.#held === ESC || this.#held === ESC + ESC)
  }

  push(bytes: Uint8Array): readonly KeyPress[] {
    return this.#take(this.#held + this.#utf8.decode(bytes, { stream: true }))
  }

  /** Nothing more came, so what is held is Esc, once or twice. */
  flush(): readonly KeyPress[] {
    if (!this.isWaiting) return []
    const keys = Array.from(this.#held, () => makeKey('escape'))
    this.#held = ''
    return keys
  }

  #take(text: string): readonly KeyPress[] {
    const keys: KeyPress[] = []
    let rest = text
    this.#held = ''
    while (rest !== '') {
      if (this.#paste) {
        const found = rest.indexOf(PASTE_END)
        // The end mark may be cut, so its length less one stays behind.
        const sure = found < 0 ? Math.max(0, rest.length - PASTE_END.length + 1) : found
        this.#paste.push(rest.slice(0, sure))
        if (found < 0) {
          this.#held = rest.slice(sure)
          break
        }
        keys.push({ name: 'paste', sequence: this.#paste.join('') })
        this.#paste = null
        rest = rest.slice(found + PASTE_END.length)
        continue
      }
      const { key, used } = readKey(rest)
      if (used === 0) {
        this.#held = rest
        break
      }
      rest = rest.slice(used)
      if (key?.name === 'paste-start') this.#paste = []
      else if (key) keys.push(key)
    }
    return keys
  }
}

type Read = { readonly key: KeyPress | null; readonly used: number }
type Modifiers = Pick<KeyPress, 'ctrl' | 'meta' | 'shift'>

/** More has to come before the key is known. */
const UNSURE: Read = { key: null, used: 0 }

const TEXT = /^\P{Cc}+/u

function readKey(text: string): Read {
  const [typed] = TEXT.exec(text) ?? []
  if (typed !== undefined) return { key: { sequence: typed }, used: typed.length }
  if (text.startsWith(ESC)) return readEscape(text)
  return { key: controlKey(text[0] ?? ''), used: 1 }
}

function readEscape(text: string): Read {
  const second = text[1]
  if (second === undefined) return UNSURE
  if (second === '[') return readSequence(text, 0)
  if (second === 'O') return readShort(text, 0)
  if (second === ESC) {
    // Some terminals send Alt with an arrow as Esc and the arrow. Anything else after two Esc begins anew at the second.
    const third = text[2]
    if (third === undefined) return UNSURE
    if (third === '[' || third === 'O') return third === '[' ? readSequence(text, 1) : readShort(text, 1)
    return { key: makeKey('escape'), used: 1 }
  }
  const letter = String.fromCodePoint(text.codePointAt(1) ?? 0)
  return { key: letterKey(letter, { meta: true }), used: 1 + letter.length }
}

/** A letter, or a control character, with modifiers. */
function letterKey(letter: string, held: Modifiers): KeyPress | null {
  const control = controlKey(letter)
  if (control) return { ...control, ...held }
  if (/^\p{Cc}/u.test(letter)) return null
  return { name: letter === ' ' ? 'space' : letter.toLowerCase(), sequence: letter, ...held }
}

const CONTROLS: Readonly<Record<string, string>> = {
  '\r': 'return',
  '\n': 'enter',
  '\t': 'tab',
  '\b': 'backspace',
  '\u007f': 'backspace',
  [ESC]: 'escape',
}

function controlKey(letter: string): KeyPress | null {
  const name = CONTROLS[letter]
  if (name !== undefined) return makeKey(name)
  const code = letter.charCodeAt(0)
  if (code > 0x1f || letter === '') return null
  const base = code === 0 ? 'space' : String.fromCharCode(code + 0x40).toLowerCase()
  return { name: base, sequence: letter, ctrl: true }
}

function makeKey(name: string, held: Modifiers = {}): KeyPress {
  return { name, sequence: '', ...held }
}

const FINALS: Readonly<Record<string, string>> = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  E: 'clear',
  F: 'end',
  H: 'home',
  P: 'f1',
  Q: 'f2',
  R: 'f3',
  S: 'f4',
}
const NUMBERED: Readonly<Record<string, string>> = {
  1: 'home',
  2: 'insert',
  3: 'delete',
  4: 'end',
  5: 'pageup',
  6: 'pagedown',
  7: 'home',
  8: 'end',
  200: 'paste-start',
}

/** `ESC [`, numbers and a letter. `before`: how many Esc of an Alt stand before it. */
function readSequence(text: string, before: number): Read {
  const from = before + 2
  // The Linux console sends F1 as `ESC [ [ A`.
  if (text[from] === '[') return text.length < from + 2 ? UNSURE : { key: null, used: from + 2 }
  let at = from
  while (at < text.length && isInside(text.charCodeAt(at))) at += 1
  if (at - from > SEQUENCE_MAX) return { key: null, used: at }
  const final = text[at]
  if (final === undefined) return UNSURE
  // A control character ends a broken sequence and is a key by itself.
  if (final < '@' || final > '~') return { key: null, used: at }
  const [first = '', second = ''] = text.slice(from, at).split(';')
  return { key: sequenceKey(final, text.slice(from, at), { first, second, alt: before > 0 }), used: at + 1 }
}

const isInside = (code: number): boolean => code >= 0x20 && code <= 0x3f

type Numbers = { readonly first: string; readonly second: string; readonly alt: boolean }

function sequenceKey(final: string, inside: string, { first, second, alt }: Numbers): KeyPress | null {
  // Marks of answers of the terminal and of the mouse, which nobody asked for.
  if (/^[<=>?]/.test(inside)) return null
  const held = modifiersOf(second, alt)
  if (held === null) return null
  if (final === 'Z') return makeKey('tab', { ...held, shift: true })
  if (final === 'u') return codeKey(Number(first.split(':')[0]), held)
  if (final === '~' && first === '27') return codeKey(Number(inside.split(';')[2]), held)
  const name = final === '~' ? NUMBERED[first] : FINALS[final]
  return name === undefined ? null : makeKey(name, held)
}

/** The number of the modifiers is one more than their sum. Null: the key was released. */
function modifiersOf(text: string, alt: boolean): Modifiers | null {
  const [number = '', kind] = text.split(':')
  if (kind === '3') return null
  const sum = Math.max(0, (Number(number) || 1) - 1)
  const meta = alt || (sum & 2) > 0
  return { ...(sum & 4 ? { ctrl: true } : {}), ...(meta ? { meta } : {}), ...(sum & 1 ? { shift: true } : {}) }
}

/** A key by the number of its character, as kitty and xterm's modifyOtherKeys send it. */
function codeKey(code: number, held: Modifiers): KeyPress | null {
  if (!Number.isInteger(code) || code <= 0 || code > 0x10ffff) return null
  const letter = String.fromCodePoint(code)
  if (CONTROLS[letter] !== undefined) return { ...makeKey(CONTROLS[letter] ?? ''), ...held }
  if (held.ctrl || held.meta) return letterKey(letter, held)
  return /^\p{Cc}/u.test(letter) ? null : { sequence: letter }
}

/** `ESC O` and a letter, perhaps with the number of modifiers between. */
function readShort(text: string, before: number): Read {
  const from = before + 2
  let at = from
  while (at < text.length && at - from < 4 && /[\d;]/.test(text[at] ?? '')) at += 1
  const final = text[at]
  if (final === undefined) return UNSURE
  if (!/[\x20-\x7e]/.test(final)) return { key: null, used: at }
  const name = final === 'M' ? 'return' : FINALS[final]
  const held = modifiersOf(text.slice(from, at).split(';').at(-1) ?? '', before > 0)
  return { key: name === undefined || held === null ? null : makeKey(name, held), used: at + 1 }
}
