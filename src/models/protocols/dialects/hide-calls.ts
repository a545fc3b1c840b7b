// Keeps the calls of a text out of its stream. From the first marker of the dialect on nothing is shown until the reply
// is whole, since the chunks may cut a marker anywhere. Pure, and linear in the text.
import { fenceAfter } from './fence.ts'
import { FENCE_MARKER, findAny } from './markers.ts'
import type { DialectRules } from './readers.ts'

/** Only the beginning of a line says whether it is a fence. */
const LINE_CHARS_MAX = 256

export class CallHider {
  readonly #markers: readonly string[]
  readonly #marker: RegExp
  readonly #longest: number
  /** What may be the beginning of a marker. */
  #held = ''
  /** White space that is shown only if more text follows. */
  #space = ''
  /** The beginning of the current line, and the last character before `#held`. */
  #line = ''
  #last = ''
  #fence: string | null = null
  #isHidden = false
  #shown = ''

  constructor({ readers }: DialectRules) {
    this.#markers = [...readers.keys()]
    this.#marker = findAny(this.#markers, 'g')
    this.#longest = Math.max(...this.#markers.map(({ length }) => length))
  }

  /** Takes the next piece of the text, and returns what may be shown now. */
  push(piece: string): string {
    const text = this.#held + piece
    let said = this.#space
    this.#held = ''
    for (let at = 0; at < text.length && !this.#isHidden; ) {
      const line = text.indexOf('\n', at)
      const end = line < 0 ? text.length : line + 1
      said += this.#readLine(text.slice(at, end), line >= 0)
      at = end
    }
    const kept = said.trimEnd()
    this.#space = said.slice(kept.length)
    this.#shown += kept
    return kept
  }

  /** What is still to be shown of the whole text, which is given without its calls. */
  end(whole: string): string {
    return whole.startsWith(this.#shown) ? whole.slice(this.#shown.length) : ''
  }

  /** Returns what may be shown of a line or a part of one. The rest is held back, or hidden. */
  #readLine(text: string, isWhole: boolean): string {
    const line = `${this.#line}${text.slice(0, LINE_CHARS_MAX)}`.slice(0, LINE_CHARS_MAX)
    const mayBeCall = line.startsWith(FENCE_MARKER) || (!isWhole && FENCE_MARKER.startsWith(line))
    const isCall = mayBeCall && this.#fence === null && this.#markers.includes(FENCE_MARKER)
    const after = isCall ? null : fenceAfter(line.replace(/\r?\n$/, ''), this.#fence)
    // A backtick on the rest of the line would show that it is no fence.
    const isOpen = !isWhole && this.#fence === null && after !== null && line.length < LINE_CHARS_MAX
    const isProse = (this.#fence !== null || after !== null) && !isOpen
    const found = isProse ? -1 : this.#indexOfMarker(text)
    this.#isHidden = found >= 0 && !isOpen
    const end = found >= 0 ? found : isWhole || isProse ? text.length : this.#mayBegin(text)
    this.#held = text.slice(end)
    this.#last = text[end - 1] ?? this.#last
    this.#line = isWhole ? '' : line.slice(0, this.#line.length + end)
    if (isWhole) this.#fence = after
    return text.slice(0, end)
  }

  /** A marker behind a backtick is quoted. */
  #indexOfMarker(text: string): number {
    this.#marker.lastIndex = 0
    for (let found = this.#marker.exec(text); found !== null; found = this.#marker.exec(text)) {
      const before = found.index > 0 ? text[found.index - 1] : this.#last
      if (before !== '`') return found.index
    }
    return -1
  }

  /** Where the end of the text may be the beginning of a marker. */
  #mayBegin(text: string): number {
    for (let from = Math.max(0, text.length - this.#longest + 1); from < text.length; from++)
      if (this.#markers.some((marker) => marker.startsWith(text.slice(from)))) return from
    return text.length
  }
}
