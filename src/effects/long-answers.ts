// Answers of people and children as a model reads them: they come through the inbox and pass no stage that makes results shorter, so a
// very long one is bounded here. Only what is shown: the log keeps all of it. Loaded by the first answer that is so long.
import { hash } from 'node:crypto'
import type { Message } from '../kernel/transcript.ts'
import { RETRIEVE, tokenOf } from '../context/juice/marker.ts'
import { clip } from '../tools/core/bound.ts'
import { ANSWER_CHARS_SHOWN, isLongAnswer } from '../view/history.ts'

/** `retrieves`: the model has the tool that reads on. */
export function boundedAnswers(messages: readonly Message[], retrieves: boolean): readonly Message[] {
  return messages.map((message) => {
    if (message.role !== 'tool' || typeof message.content !== 'string' || !isLongAnswer(message)) return message
    return { ...message, content: bothEnds(message.content, message.call, retrieves) }
  })
}

function bothEnds(content: string, call: string, retrieves: boolean): string {
  const half = ANSWER_CHARS_SHOWN / 2
  const token = tokenOf(Number.parseInt(call, 10), hash('sha256', content))
  const how = retrieves ? `${RETRIEVE} with the token ⟦tj:${token}⟧` : 'no tool here can read them'
  const gap = `[… ${content.length - 2 * half} of ${content.length} characters left out; ${how} …]`
  return `${clip(content, half)}\n${gap}\n${content.slice(-half).replace(/^[\uDC00-\uDFFF]/, '')}`
}
