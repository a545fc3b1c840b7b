// A stream that ends at some byte, and one that comes in two chunks: a failure or the whole reply, and the same events. Never
// a call whose arguments were still on their way.
import type { Reply } from '../../src/ports/model.ts'
import type { Framing } from '../../src/models/http/framing.ts'
import { type Answer, eventAt, same, type Taken, told } from './streams-walk.ts'
import { hold } from './target.ts'

/** The stream ends here, and then it goes on after all. */
export function checkCut(stream: Taken, offset: number): void {
  const { subject, recording, events, starts, framings, answers } = stream
  const at = eventAt(stream, offset)
  const [framing, early] = subject.frame(framings[at] as Framing, recording.bytes.subarray(starts[at], offset))
  hold(early.length === 0, () => 'half an event is taken for an event')
  const cut = answers[at] as Answer
  const whole = answers.at(-1) as Answer
  if (cut.type === 'reply') hold(isComplete(cut, whole), () => `cut, it is a reply, and another one: ${told(cut)}`)
  else hold(cut.message !== '' && textOf(whole).startsWith(cut.partial ?? ''), () => `cut, it has words nobody said`)
  const rest = subject.frame(framing, recording.bytes.subarray(offset))[1]
  const equal = rest.length === events.length - at && rest.every((event, i) => same(event, events[at + i]))
  hold(equal, () => 'split here, it has other events than as a whole')
}

/** All but its price may be there before the last event is. */
function isComplete(cut: Reply, whole: Answer): boolean {
  if (whole.type === 'failure') return false
  const { parts, calls, finish, usage } = whole
  const said = same([cut.parts, cut.calls, cut.finish], [parts, calls, finish])
  return said && (cut.usage === null || same(cut.usage, usage))
}

function textOf(answer: Answer): string {
  if (answer.type === 'failure') return answer.partial ?? ''
  return answer.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}
