// Reads thoughts that a server leaves in the text, between <think> and </think> at its beginning. The chunks of a
// stream may cut the tags anywhere, so a possible part of a tag is held back until more text comes. Pure.

/** `opened` and `closed`: right behind a tag, where white space is dropped. `held` may be a part of a tag. */
export type InlineState = { readonly mode: 'start' | 'opened' | 'thinking' | 'closed' | 'text'; readonly held: string }
type InlineRead = { readonly inline: InlineState; readonly thought: string; readonly text: string }

export const INLINE_START: InlineState = { mode: 'start', held: '' }
const INLINE_TEXT: InlineState = { mode: 'text', held: '' }

const [OPEN, CLOSE] = ['<think>', '</think>']
/** White space before a tag is held back too. Longer white space is text. */
const HELD_MAX = 64

/** Reads the next piece of the content: its thought, its text, and the part that is held back. */
export function readInline({ mode, held }: InlineState, piece: string): InlineRead {
  if (mode === 'text') return { inline: INLINE_TEXT, thought: '', text: piece }
  const rest = held + piece
  if (mode === 'start') return readStart(rest)
  if (mode === 'closed') return readClosed(rest)
  const begun = mode === 'opened' ? rest.trimStart() : rest
  if (begun === '') return { inline: { mode, held: '' }, thought: '', text: '' }
  return readThinking(begun)
}

/** The text that is held back when the answer ends. */
export function endInline({ mode, held }: InlineState): Pick<InlineRead, 'thought' | 'text'> {
  return mode === 'start' || mode === 'text' ? { thought: '', text: held } : { thought: held, text: '' }
}

function readStart(rest: string): InlineRead {
  const begun = rest.trimStart()
  if (begun.startsWith(OPEN)) return readInline({ mode: 'opened', held: '' }, begun.slice(OPEN.length))
  if (OPEN.startsWith(begun) && rest.length < HELD_MAX)
    return { inline: { mode: 'start', held: rest }, thought: '', text: '' }
  return { inline: INLINE_TEXT, thought: '', text: rest }
}

function readThinking(rest: string): InlineRead {
  const end = rest.indexOf(CLOSE)
  if (end >= 0) {
    const { inline, text } = readClosed(rest.slice(end + CLOSE.length))
    return { inline, thought: rest.slice(0, end), text }
  }
  let kept = Math.min(CLOSE.length - 1, rest.length)
  while (!CLOSE.startsWith(rest.slice(rest.length - kept))) kept -= 1
  const at = rest.length - kept
  return { inline: { mode: 'thinking', held: rest.slice(at) }, thought: rest.slice(0, at), text: '' }
}

function readClosed(rest: string): InlineRead {
  const text = rest.trimStart()
  return { inline: text === '' ? { mode: 'closed', held: '' } : INLINE_TEXT, thought: '', text }
}

/**
 * Some servers leave out the opening tag: all text before the closing one is then a thought. A stream has shown the
 * thought as text by then, so only the whole answer is read. The tag must stand alone on its line, with an empty line
 * or the end after it: elsewhere an answer may be about tags, and a thought that is shown does less harm than an answer
 * that is hidden. Null for such an answer, and for JSON.
 */
export function splitUnopened(text: string): Pick<InlineRead, 'thought' | 'text'> | null {
  const end = text.indexOf(CLOSE)
  if (end < 0 || /^\s*[[{]/.test(text)) return null
  const [thought, rest] = [text.slice(0, end), text.slice(end + CLOSE.length)]
  const isInFence = thought.split('```').length % 2 === 0
  const isApart = /(^|\n)[ \t]*$/.test(thought) && /^([ \t]*\r?\n){2}|^\s*$/.test(rest)
  return thought.includes(OPEN) || isInFence || !isApart ? null : { thought, text: rest.trimStart() }
}
