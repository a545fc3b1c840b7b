// Bounds very long answers of people and children when a model reads them. Answers come through the inbox and skip the
// stages that shorten results. Only the shown text is bounded; the log keeps all of it.
import { hash } from 'node:crypto'
import type { Message } from '../../kernel/transcript.ts'
import { RETRIEVE, originalToken } from '../../context/compress/marker.ts'
import { clip } from '../../tools/core/bound-content.ts'
import { ANSWER_CHARS_SHOWN, isLongAnswer } from '../../view/session-history.ts'

/** `retrieves`: the model has the tool that reads the rest. */
export function boundLongAnswers(messages: readonly Message[], retrieves: boolean): readonly Message[] {
  return messages.map((message) => {
    if (message.role !== 'tool' || typeof message.content !== 'string' || !isLongAnswer(message)) return message
    return { ...message, content: showBothEnds(message.content, message.call, retrieves) }
  })
}

function showBothEnds(content: string, call: string, retrieves: boolean): string {
  const half = ANSWER_CHARS_SHOWN / 2
  const token = originalToken(Number.parseInt(call, 10), hash('sha256', content))
  const how = retrieves ? `${RETRIEVE} with the token ⟦tj:${token}⟧` : 'no tool here can read them'
  const gap = `[… ${content.length - 2 * half} of ${content.length} characters left out; ${how} …]`
  return `${clip(content, half)}\n${gap}\n${content.slice(-half).replace(/^[\uDC00-\uDFFF]/, '')}`
}
