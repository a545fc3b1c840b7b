// Shows untrusted text exactly: nothing in it becomes an element, invisible characters are shown by code, and a very
// long text is shown in part until a person asks for more.
import { memo, type ReactNode, useState } from 'react'
import { piecesOf } from '../../view/clean.ts'
import { Button } from './button.tsx'

/** The shown lengths at both ends of a longer text. */
const HEAD = 2_000
const TAIL = 600
/** The characters that one press of the button adds. */
const MORE = 50_000

export type TextProps = {
  readonly text: string
  /** `inline`: within a line. `block`: keeps line breaks and blanks. */
  readonly as?: 'inline' | 'block'
  /** In a monospaced font. */
  readonly mono?: boolean
  /** How much of a longer text is shown at first. */
  readonly head?: number
}

export const Text = memo(function Text({ text, as = 'inline', mono = false, head: first = HEAD }: TextProps) {
  const [shown, setShown] = useState(first)
  const name = `text ${as}${mono ? ' mono' : ''}`
  if (text.length <= shown + TAIL || as === 'inline') {
    const whole = as === 'inline' && text.length > HEAD ? `${cutWholeChars(text, HEAD)}…` : text
    return as === 'inline' ? (
      <span className={name}>{drawPieces(whole)}</span>
    ) : (
      <div className={name}>{drawPieces(whole)}</div>
    )
  }
  const head = cutWholeChars(text, shown)
  const tail = text.slice(-TAIL).replace(/^[\uDC00-\uDFFF]/, '')
  const hidden = text.length - head.length - tail.length
  return (
    <div className={name}>
      {drawPieces(head)}
      <div className="text-hidden">
        <span>{hidden.toLocaleString('en')} characters are not shown</span>
        <Button size="small" onPress={() => setShown((before) => before + MORE)}>
          Show {Math.min(MORE, hidden).toLocaleString('en')} more
        </Button>
      </div>
      {drawPieces(tail)}
    </div>
  )
})

/** Never cuts a surrogate pair in half. */
function cutWholeChars(text: string, chars: number): string {
  return text.slice(0, chars).replace(/[\uD800-\uDBFF]$/, '')
}

/** Only for texts short enough to be drawn whole. */
function drawPieces(text: string): ReactNode {
  const pieces = piecesOf(text)
  if (pieces.length <= 1 && pieces[0]?.hidden !== true) return text
  return pieces.map((piece, i) =>
    piece.hidden ? (
      <span className="text-code" title="a character that is not drawn" key={i}>
        {piece.text}
      </span>
    ) : (
      piece.text
    ),
  )
}
