// A conversation as Anthropic's list of messages: user and assistant take turns, the user begins and ends, and results stand
// first in the message after their calls. What is inside a message is blocks.ts.
import type { Turn } from '../sound.ts'
import { type Reader, textBlock, written } from './blocks.ts'

/**
 * Said by the user where nobody did: before an assistant that begins, between two assistants in a row and after one that
 * ends. A list that ends with the assistant is refused by models since 4.6.
 */
const GOES_ON = textBlock('(the conversation goes on)')
const MARK = ',"cache_control":{"type":"ephemeral"}}'

/** One message. */
export type Line = {
  readonly role: 'user' | 'assistant'
  /** Its blocks, without the brackets. */
  content: string
  /** It begins with the results of calls. */
  readonly answers: boolean
  /** It begins with a thinking block. */
  readonly thinks: boolean
}

/** With `marks`, the ends of the last two user messages are marked for the prompt cache: what this request writes, and what the last one wrote. */
export function messageList(lines: readonly Line[], marks: boolean): string {
  // The second mark is found by its place: a lookup from the end alone sees only 20 blocks, which one turn can have.
  const marked = marks ? new Set([lines.length - 1, lines.length - 3]) : new Set<number>()
  // Strings are only strung together here and copied once, by whoever sends them: that is all a long history costs.
  let list = ''
  for (const [at, { role, content }] of lines.entries()) {
    list += at === 0 ? '[{"role":"' : ',{"role":"'
    list += role
    list += '","content":['
    list += marked.has(at) ? withMark(content) : content
    list += ']}'
  }
  return `${list}]`
}

/** The mark becomes the last field of the last block, whatever that block is. */
export function withMark(blocks: string): string {
  return blocks.slice(0, -1) + MARK
}

/** The calls under way began with a thinking block, or no calls are under way. */
export function loopThinks(lines: readonly Line[]): boolean {
  let at = lines.length - 1
  while (lines[at]?.answers) at -= 2
  return lines[at + 1]?.thinks ?? true
}

export function linesOf(turns: readonly Turn[], reader: Reader): readonly Line[] {
  const lines: Line[] = []
  const add = (role: Line['role'], content: string, begins: 'answers' | 'thinks' | null): void => {
    const last = lines.at(-1)
    if (content === '') return
    if (last?.role === role) last.content += `,${content}`
    else lines.push({ role, content, answers: begins === 'answers', thinks: begins === 'thinks' })
  }
  for (const turn of turns) {
    const { said, results, thinksFirst } = written(turn, reader)
    if (turn.type === 'user') add('user', said, null)
    else if (said !== '') {
      if (lines.at(-1)?.role !== 'user') add('user', GOES_ON, null)
      add('assistant', said, thinksFirst ? 'thinks' : null)
      add('user', results, 'answers')
    }
  }
  if (lines.at(-1)?.role !== 'user') add('user', GOES_ON, null)
  return lines
}
