// Pins: the owner's events that keep a message in every later request or release it, and the list of pins.
import { Fault } from '../kernel/failure.ts'
import type { Session } from '../kernel/session.ts'
import type { Message, Transcript } from '../kernel/transcript.ts'
import { isChangeNote, isPinned, escapeOwnTags, findPins, pinText } from '../context/summary.ts'
import { readSessionHead } from '../runtime/state/session-tree.ts'
import type { OwnerChanges } from '../runtime/loop/act-as-owner.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import { describeValue } from '../options.ts'
import { readTranscript } from '../view/session-history.ts'
import { PIN_CHARS_MAX, textOf } from '../view/shown-text.ts'
import type { PinReceipt } from './verb-options.ts'
import type { PinnedMessage } from './verb-options.ts'

type OwnerAction<T> = (session: Session) => Promise<OwnerChanges<T>>
type UserTranscriptMessage = Extract<Message, { role: 'user' }>

/**
 * `own`: a request has shown the message. `waiting`: no request has shown it yet. `inherited`: its number is that of
 * the log from which this one was forked.
 */
type PinCandidate = {
  readonly message: UserTranscriptMessage
  readonly of: 'own' | 'waiting' | 'inherited'
  /** The number of forks since; 0 for messages of this log. */
  readonly ago: number
}

export async function listPins({ store }: Services, id: string): Promise<readonly PinnedMessage[]> {
  const { seq } = await readSessionHead(store, id)
  const { found } = await findUserMessages(store, id, seq)
  return found
    .filter(({ message }) => isPinned(message) && !isChangeNote(message))
    .map(({ message, of, ago }) => {
      const pin = { seq: message.seq, text: pinText(message) }
      return of === 'inherited' ? { ...pin, inherited: true, name: pinName(message.seq, ago) } : pin
    })
}

export function pinAction({ store }: Services, id: string, what: string | number): OwnerAction<PinReceipt> {
  return async ({ seq }) => {
    const { transcript, found } = await findUserMessages(store, id, seq)
    if (typeof what === 'string') return pinWords(what, found, seq)
    const own = found.find(({ message, of }) => message.seq === what && of !== 'inherited')
    if (own) checkPinnable(id, what, own.message.report)
    if (own) checkPinLength(textOf(own.message.parts))
    if (own && isPinned(own.message)) return { value: { seq: what }, events: [] }
    if (own?.of === 'waiting') return { value: { seq: what }, events: [buildPinTurn(own, found)] }
    if (own)
      return { value: { seq: what }, events: [{ type: 'context.compacted', pins: [...findPins(transcript), what] }] }
    const [event] = Number.isSafeInteger(what) && what > 0 ? (await store.read(id, what - 1, 1)).events : []
    if (event?.type !== 'user.message')
      throw new Fault('invalid_input', `Event ${describeValue(what)} of session ${id} is no message. Name one that is.`)
    checkPinnable(id, what, event.report)
    if (event.parts.some(({ type }) => type !== 'text'))
      throw new Fault(
        'invalid_input',
        `Message ${what} of session ${id} is summarised by now and has more than text. Send it again with pin: true.`,
      )
    // The message was summarised, or was never read, so its text is written again as a note.
    return pinWords(textOf(event.parts), found, seq)
  }
}

export function unpinAction({ store }: Services, id: string, what: number | string): OwnerAction<PinReceipt> {
  return async ({ seq }) => {
    const { transcript, found } = await findUserMessages(store, id, seq)
    const pin = findPin(found, id, what)
    const value = { seq: pin.message.seq }
    if (pin.of !== 'own') return { value, events: [buildPinTurn(pin, found)] }
    const pins = findPins(transcript).filter((each) => each !== pin.message.seq)
    return { value, events: [{ type: 'context.compacted', pins }] }
  }
}

/** Finds a pin by its number, or by its name in the list of pins. The session's own number counts first. */
function findPin(found: readonly PinCandidate[], id: string, what: number | string): PinCandidate {
  const [, forks = '', digits] = /^(\^{0,100})([1-9]\d{0,15})$/.exec(String(what)) ?? []
  const all = found.filter(({ message }) => message.seq === Number(digits) && message.pin !== undefined)
  // A released pin counts too: releasing it twice must not release an inherited one.
  const own = all.find(({ of }) => of !== 'inherited')
  const meant = forks === '' ? (own ? [own] : all) : all.filter(({ ago }) => ago === forks.length)
  const named = meant.filter(({ message }) => isPinned(message))
  const [pin, another] = named
  if (!pin) throw new Fault('invalid_input', `Message ${describeValue(what)} of session ${id} is not pinned.`)
  if (!another) return pin
  const names = named.map(({ message, ago }) => pinName(message.seq, ago)).join(' and ')
  throw new Fault(
    'conflict',
    `Session ${id} has pins with the number ${digits} from several forks: ${names}. Name one.`,
  )
}

function pinName(seq: number, ago: number): string {
  return `${'^'.repeat(ago)}${seq}`
}

/**
 * Pins or releases a message without a place of its own in this log. If another message has the same number, the event
 * says which one it is.
 */
function buildPinTurn(
  { message, ago }: PinCandidate,
  found: readonly PinCandidate[],
): OwnerChanges<null>['events'][number] {
  const same = found.filter((each) => each.message.seq === message.seq && each.of !== 'own')
  const turned = { type: 'context.compacted', turned: [message.seq] } as const
  return same.length > 1 ? { ...turned, ago } : turned
}

/** A pin is a rule of the user. A child's report is material and never becomes one. */
function checkPinnable(id: string, seq: number, report: number | undefined): void {
  if (report === undefined) return
  throw new Fault(
    'invalid_input',
    `Message ${seq} of session ${id} is the report of a child, which cannot be pinned. Pin a text of your own.`,
  )
}

function checkPinLength(text: string): void {
  if (text.trim() !== '' && text.length <= PIN_CHARS_MAX) return
  throw new Fault('invalid_input', `A pin is a text of 1 to ${PIN_CHARS_MAX} characters. Give one.`)
}

/** The same text is pinned only once. */
function pinWords(given: string, found: readonly PinCandidate[], seq: number): OwnerChanges<PinReceipt> {
  checkPinLength(given)
  const text = escapeOwnTags(given)
  const same = found.find(({ message, of }) => of !== 'inherited' && isPinned(message) && pinText(message) === text)
  if (same) return { value: { seq: same.message.seq }, events: [] }
  return { value: { seq: seq + 1 }, events: [{ type: 'note.added', kind: 'pin', text }] }
}

type PinCandidates = { readonly transcript: Transcript; readonly found: readonly PinCandidate[] }

/** The users' messages that are or will be shown, in their order. */
async function findUserMessages(store: Services['store'], id: string, upTo: number): Promise<PinCandidates> {
  const { transcript } = await readTranscript(store, { id, upTo, unshown: true })
  const found = transcript.messages.flatMap((message): readonly PinCandidate[] => {
    if (message.role !== 'user') return []
    const place = transcript.placeOf(message)
    if (place > 0) return [{ message, of: place > upTo ? 'waiting' : 'own', ago: 0 }]
    const ago = transcript.inherited.get(message) ?? 0
    return ago > 0 ? [{ message, of: 'inherited', ago }] : []
  })
  // A list of pins does not include waiting messages.
  const waiting = new Set<Message>(found.flatMap(({ message, of }) => (of === 'waiting' ? [message] : [])))
  transcript.messages.splice(0, Number.POSITIVE_INFINITY, ...transcript.messages.filter((each) => !waiting.has(each)))
  return { transcript, found }
}
