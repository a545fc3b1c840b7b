// Thoughts that a server leaves in the text, between <think> and </think> at its begin. The tags may be cut anywhere by the chunks of a
// stream, so what may be a part of one is held back until more has come. Pure.

/** `opened` and `closed`: right behind a tag, where white space is left out. `held` is what may be a part of a tag. */
export type Inline = { readonly mode: 'start' | 'opened' | 'thinking' | 'closed' | 'text'; readonly held: string }
type Read = { readonly inline: Inline; readonly thought: string; readonly text: string }

export const INLINE_START: Inline = { mode: 'start', held: '' }
const INLINE_TEXT: Inline = { mode: 'text', held: '' }

const [OPEN, CLOSE] = ['<think>', '</think>']
/** White space before a tag is held back too. More than this is text. */
const HELD_MAX = 64

/** The next piece of the content: what of it is thought, what is said, and what is held back. */
export function readInline({ mode, held }: Inline, piece: string): Read {
  if (mode === 'text') return { inline: INLINE_TEXT, thought: '', text: piece }
  const rest = held + piece
  if (mode === 'start') return readStart(rest)
  if (mode === 'closed') return readClosed(rest)
  const begun = mode === 'opened' ? rest.trimStart() : rest
  if (begun === '') return { inline: { mode, held: '' }, thought: '', text: '' }
  return readThinking(begun)
}

/** What is held back when the answer ends. */
export function endInline({ mode, held }: Inline): Pick<Read, 'thought' | 'text'> {
  return mode === 'start' || mode === 'text' ? { thought: '', text: held } : { thought: held, text: '' }
}

function readStart(rest: string): Read {
  const begun = rest.trimStart()
  if (begun.startsWith(OPEN)) return readInline({ mode: 'opened', held: '' }, begun.slice(OPEN.length))
  if (OPEN.startsWith(begun) && rest.length < HELD_MAX)
    return { inline: { mode: 'start', held: rest }, thought: '', text: '' }
  return { inline: INLINE_TEXT, thought: '', text: rest }
}

function readThinking(rest: string): Read {
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

function readClosed(rest: string): Read {
  const text = rest.trimStart()
  return { inline: text === '' ? { mode: 'closed', held: '' } : INLINE_TEXT, thought: '', text }
}

/**
 * Some servers leave the opening tag out: all before the closing one is then a thought. A stream has shown the thought as text by then,
 * so only the whole answer is read. The tag must stand alone on its line, with an empty line after it or the end: anywhere else an answer
 * may speak about tags, and a thought that is shown does less harm than an answer that is not. Null for such an answer, and for JSON.
 */
export function splitUnopened(text: string): Pick<Read, 'thought' | 'text'> | null {
  const end = text.indexOf(CLOSE)
  if (end < 0 || /^\s*[[{]/.test(text)) return null
  const [thought, rest] = [text.slice(0, end), text.slice(end + CLOSE.length)]
  const isInFence = thought.split('```').length % 2 === 0
  const isApart = /(^|\n)[ \t]*$/.test(thought) && /^([ \t]*\r?\n){2}|^\s*$/.test(rest)
  return thought.includes(OPEN) || isInFence || !isApart ? null : { thought, text: rest.trimStart() }
}
