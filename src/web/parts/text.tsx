// Text of others, exactly: nothing in it becomes an element, what cannot be seen is shown by its code, and what is very long is shown in
// part until somebody asks for the rest.
import { memo, type ReactNode, useState } from 'react'
import { piecesOf } from '../../view/clean.ts'
import { Button } from './button.tsx'

/** Of a text that is longer than both together. */
const HEAD = 2_000
const TAIL = 600
/** What one press of the button adds. */
const MORE = 50_000

export type TextProps = {
  readonly text: string
  /** `inline`: within a line. `block`: lines and blanks as they are. */
  readonly as?: 'inline' | 'block'
  /** Letters of one width. */
  readonly mono?: boolean
}

export const Text = memo(function Text({ text, as = 'inline', mono = false }: TextProps) {
  const [shown, setShown] = useState(HEAD)
  const name = `text ${as}${mono ? ' mono' : ''}`
  if (text.length <= shown + TAIL || as === 'inline') {
    const whole = as === 'inline' && text.length > HEAD ? `${whole16(text, HEAD)}…` : text
    return as === 'inline' ? <span className={name}>{drawn(whole)}</span> : <div className={name}>{drawn(whole)}</div>
  }
  const head = whole16(text, shown)
  const tail = text.slice(-TAIL).replace(/^[\uDC00-\uDFFF]/, '')
  const hidden = text.length - head.length - tail.length
  return (
    <div className={name}>
      {drawn(head)}
      <div className="text-hidden">
        <span>{hidden.toLocaleString('en')} characters are not shown</span>
        <Button size="small" onPress={() => setShown((before) => before + MORE)}>
          Show {Math.min(MORE, hidden).toLocaleString('en')} more
        </Button>
      </div>
      {drawn(tail)}
    </div>
  )
})

/** Never half of a character. */
function whole16(text: string, chars: number): string {
  return text.slice(0, chars).replace(/[\uD800-\uDBFF]$/, '')
}

/** Only for texts that are short enough to be drawn whole. */
function drawn(text: string): ReactNode {
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
