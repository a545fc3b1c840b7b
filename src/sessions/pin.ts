// Pins: what its owner writes to keep a message of a session in every later request, and to let it go again.
import { Fault } from '../kernel/failure.ts'
import type { Session } from '../kernel/session.ts'
import type { Message, Transcript } from '../kernel/transcript.ts'
import { isPinned, pinsIn } from '../context/summary.ts'
import type { Owned } from '../engine/owner.ts'
import type { Services } from '../engine/wiring.ts'
import { shown } from '../options.ts'
import { inputText, readTranscript } from '../view/history.ts'
import type { Pinned } from './verbs.ts'

type Act<T> = (session: Session) => Promise<Owned<T>>

/** Every request carries all of them. */
const PIN_CHARS_MAX = 10_000

export function pinning({ store }: Services, id: string, what: string | number): Act<Pinned> {
  return async ({ seq }) => {
    if (typeof what === 'string') return pinned(what, seq)
    const transcript = await transcriptOf(store, id, seq)
    if (found(transcript, what)) {
      const pins = [...new Set([...pinsIn(transcript), what])]
      return { value: { seq: what }, events: [{ type: 'context.compacted', pins }] }
    }
    const [event] = Number.isSafeInteger(what) && what > 0 ? (await store.read(id, what - 1, 1)).events : []
    if (event?.type !== 'user.message')
      throw new Fault('invalid_input', `Event ${shown(what)} of session ${id} is no message. Name one that is.`)
    // It was summarised before, or nobody has read it yet: its words are said again.
    return pinned(await inputText(store, id, [what]), seq)
  }
}

export function unpinning({ store }: Services, id: string, what: number): Act<null> {
  return async ({ seq }) => {
    const transcript = await transcriptOf(store, id, seq)
    const message = found(transcript, what)
    if (!message || !isPinned(message))
      throw new Fault('invalid_input', `Message ${shown(what)} of session ${id} is not pinned.`)
    const pins = pinsIn(transcript).filter((pin) => pin !== what)
    return { value: null, events: [{ type: 'context.compacted', pins }] }
  }
}

function pinned(text: string, seq: number): Owned<Pinned> {
  if (text.trim() === '' || text.length > PIN_CHARS_MAX)
    throw new Fault('invalid_input', `A pin is a text of 1 to ${PIN_CHARS_MAX} characters. Give one.`)
  return { value: { seq: seq + 1 }, events: [{ type: 'note.added', kind: 'pin', text }] }
}

async function transcriptOf(store: Services['store'], id: string, upTo: number): Promise<Transcript> {
  return (await readTranscript(store, { id, upTo })).transcript
}

/** One of this session's own messages: what a fork inherited has the numbers of another log. */
function found(transcript: Transcript, seq: number): Message | undefined {
  const own = (message: Message): boolean => message.role === 'user' && transcript.placeOf(message) > 0
  return transcript.messages.find((message) => message.seq === seq && own(message))
}
