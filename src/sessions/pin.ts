// Pins: what its owner writes to keep a message of a session in every later request, and to let it go again; and which there are.
import { Fault } from '../kernel/failure.ts'
import type { Session } from '../kernel/session.ts'
import type { Message, Transcript } from '../kernel/transcript.ts'
import { isChangeNote, isPinned, ownless, pinsIn, pinText } from '../context/summary.ts'
import { headOf } from '../riders/children/tree.ts'
import type { Owned } from '../engine/owner.ts'
import type { Services } from '../engine/wiring.ts'
import { shown } from '../options.ts'
import { readTranscript } from '../view/history.ts'
import { PIN_CHARS_MAX, textOf } from '../view/text.ts'
import type { Pin, Pinned } from './verbs.ts'

type Act<T> = (session: Session) => Promise<Owned<T>>
type UserMessage = Extract<Message, { role: 'user' }>

/** `own`: a request has shown it. `waiting`: none has so far. `inherited`: it has the number of the log that this one was forked from. */
type Found = {
  readonly message: UserMessage
  readonly of: 'own' | 'waiting' | 'inherited'
  /** How many forks ago. 0 for those of this log. */
  readonly ago: number
}

export async function pinsOf({ store }: Services, id: string): Promise<readonly Pin[]> {
  const { seq } = await headOf(store, id)
  const { found } = await foundIn(store, id, seq)
  return found
    .filter(({ message }) => isPinned(message) && !isChangeNote(message))
    .map(({ message, of, ago }) => {
      const pin = { seq: message.seq, text: pinText(message) }
      return of === 'inherited' ? { ...pin, inherited: true, name: nameOfPin(message.seq, ago) } : pin
    })
}

export function pinning({ store }: Services, id: string, what: string | number): Act<Pinned> {
  return async ({ seq }) => {
    const { transcript, found } = await foundIn(store, id, seq)
    if (typeof what === 'string') return said(what, found, seq)
    const own = found.find(({ message, of }) => message.seq === what && of !== 'inherited')
    if (own) checkPinnable(id, what, own.message.report)
    if (own) checkLength(textOf(own.message.parts))
    if (own && isPinned(own.message)) return { value: { seq: what }, events: [] }
    if (own?.of === 'waiting') return { value: { seq: what }, events: [turning(own, found)] }
    if (own)
      return { value: { seq: what }, events: [{ type: 'context.compacted', pins: [...pinsIn(transcript), what] }] }
    const [event] = Number.isSafeInteger(what) && what > 0 ? (await store.read(id, what - 1, 1)).events : []
    if (event?.type !== 'user.message')
      throw new Fault('invalid_input', `Event ${shown(what)} of session ${id} is no message. Name one that is.`)
    checkPinnable(id, what, event.report)
    if (event.parts.some(({ type }) => type !== 'text'))
      throw new Fault(
        'invalid_input',
        `Message ${what} of session ${id} is summarised by now and has more than text. Send it again with pin: true.`,
      )
    // It was summarised before, or nobody has read it yet: its words are said again.
    return said(textOf(event.parts), found, seq)
  }
}

export function unpinning({ store }: Services, id: string, what: number | string): Act<null> {
  return async ({ seq }) => {
    const { transcript, found } = await foundIn(store, id, seq)
    const pin = findPin(found, id, what)
    if (pin.of !== 'own') return { value: null, events: [turning(pin, found)] }
    const pins = pinsIn(transcript).filter((each) => each !== pin.message.seq)
    return { value: null, events: [{ type: 'context.compacted', pins }] }
  }
}

/** By its number, or by its name in the list of pins. The session's own number counts first. */
function findPin(found: readonly Found[], id: string, what: number | string): Found {
  const [, forks = '', digits] = /^(\^{0,100})([1-9]\d{0,15})$/.exec(String(what)) ?? []
  const all = found.filter(({ message }) => message.seq === Number(digits) && message.pin !== undefined)
  // One that was let go counts too: to let it go twice must not let go an inherited one.
  const own = all.find(({ of }) => of !== 'inherited')
  const meant = forks === '' ? (own ? [own] : all) : all.filter(({ ago }) => ago === forks.length)
  const named = meant.filter(({ message }) => isPinned(message))
  const [pin, another] = named
  if (!pin) throw new Fault('invalid_input', `Message ${shown(what)} of session ${id} is not pinned.`)
  if (!another) return pin
  const names = named.map(({ message, ago }) => nameOfPin(message.seq, ago)).join(' and ')
  throw new Fault(
    'conflict',
    `Session ${id} has pins with the number ${digits} from several forks: ${names}. Name one.`,
  )
}

function nameOfPin(seq: number, ago: number): string {
  return `${'^'.repeat(ago)}${seq}`
}

/** For a message that has no place of its own here. Where another has the same number, the event says which one it is. */
function turning({ message, ago }: Found, found: readonly Found[]): Owned<null>['events'][number] {
  const same = found.filter((each) => each.message.seq === message.seq && each.of !== 'own')
  const turned = { type: 'context.compacted', turned: [message.seq] } as const
  return same.length > 1 ? { ...turned, ago } : turned
}

/** A pin is a rule of the user: what a child says is material, and never becomes one. */
function checkPinnable(id: string, seq: number, report: number | undefined): void {
  if (report === undefined) return
  throw new Fault(
    'invalid_input',
    `Message ${seq} of session ${id} is the report of a child, which cannot be pinned. Pin a text of your own.`,
  )
}

function checkLength(text: string): void {
  if (text.trim() !== '' && text.length <= PIN_CHARS_MAX) return
  throw new Fault('invalid_input', `A pin is a text of 1 to ${PIN_CHARS_MAX} characters. Give one.`)
}

/** The same words are pinned once. */
function said(given: string, found: readonly Found[], seq: number): Owned<Pinned> {
  checkLength(given)
  const text = ownless(given)
  const same = found.find(({ message, of }) => of !== 'inherited' && isPinned(message) && pinText(message) === text)
  if (same) return { value: { seq: same.message.seq }, events: [] }
  return { value: { seq: seq + 1 }, events: [{ type: 'note.added', kind: 'pin', text }] }
}

type Seen = { readonly transcript: Transcript; readonly found: readonly Found[] }

/** What users said, as far as it is shown or will be, in its order. */
async function foundIn(store: Services['store'], id: string, upTo: number): Promise<Seen> {
  const { transcript } = await readTranscript(store, { id, upTo, unshown: true })
  const found = transcript.messages.flatMap((message): readonly Found[] => {
    if (message.role !== 'user') return []
    const place = transcript.placeOf(message)
    if (place > 0) return [{ message, of: place > upTo ? 'waiting' : 'own', ago: 0 }]
    const ago = transcript.inherited.get(message) ?? 0
    return ago > 0 ? [{ message, of: 'inherited', ago }] : []
  })
  // What waits is not among the messages that a list of pins speaks of.
  const waiting = new Set<Message>(found.flatMap(({ message, of }) => (of === 'waiting' ? [message] : [])))
  transcript.messages.splice(0, Number.POSITIVE_INFINITY, ...transcript.messages.filter((each) => !waiting.has(each)))
  return { transcript, found }
}
