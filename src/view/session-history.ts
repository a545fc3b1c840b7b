// Reads the history of a session for a model: its own log, and before it the log it was forked from, which is read but
// never copied.
import type { Json, Part } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { open, take } from '../kernel/fold.ts'
import type { Store } from '../ports/store.ts'
import { dueBy } from '../kernel/clock.ts'
import { EMPTY, inputsForRun, type Session, inputsForRequest } from '../kernel/session.ts'
import { type Message, Transcript } from '../kernel/transcript.ts'
import { inheritMessages } from './inherited-names.ts'

const PAGE = 1_000

export type SessionHistory = {
  readonly transcript: Transcript
  /** How many characters a model must read. */
  readonly chars: number
  /** The session whose cached prefix it may share: the root of its tree; for a fork, that of its origin. */
  readonly tree: string
}

export type HistoryRequest = {
  readonly id: string
  /** The last event to read. */
  readonly upTo: number
  /** The beginning of the log, if the caller has it. */
  readonly known?: readonly Event[]
  /** The folded session, if the caller has it: a cut of a planner's session then spares reading what is older. */
  readonly session?: Pick<Session, 'cut' | 'planner'>
  /** Also count the characters. */
  readonly count?: boolean
  /** Also include messages that no request has shown: a fork that continues from there must show them. */
  readonly unshown?: boolean
}

/** `above` are the sessions that read through this one: forks may be nested to any depth, but never in a ring. */
export async function readTranscript(
  store: Pick<Store, 'read'>,
  wanted: HistoryRequest,
  above: readonly string[] = [],
): Promise<SessionHistory> {
  const { id, upTo, known = [], count = false, unshown = false } = wanted
  const transcript = new Transcript()
  let chars = 0
  let tree = id
  const session = open(EMPTY)
  const takeAll = async (events: readonly Event[]): Promise<void> => {
    for (const event of events) {
      if (event.seq > upTo) return
      if (event.type === 'session.created' && event.parent) tree = event.parent.root
      if (event.type === 'session.created' && event.fork) {
        const { session, seq } = event.fork
        if (session === id || above.includes(session)) throw damagedFault(id, { seq: event.seq, reason: RING })
        const before = await readTranscript(store, { id: session, upTo: seq, count, unshown: true }, [...above, id])
        for (const [i, message] of inheritMessages(before.transcript.messages).entries()) {
          const source = before.transcript.messages[i] ?? message
          transcript.inherited.set(message, 1 + (before.transcript.inherited.get(source) ?? 0))
          transcript.messages.push(message)
        }
        transcript.hasBlobs ||= before.transcript.hasBlobs
        transcript.isCompacted ||= before.transcript.isCompacted
        chars += before.chars
        if (!event.parent) tree = before.tree
      }
      chars += count ? addedChars(transcript, event) : 0
      transcript.take(event)
      if (unshown) take(session, event)
    }
  }
  await takeAll(known)
  if (transcript.seq === 0) transcript.seq = await firstShown(store, wanted)
  while (transcript.seq < upTo) {
    const page = await store.read(id, transcript.seq, Math.min(PAGE, upTo - transcript.seq))
    await takeAll(page.events)
    if (page.damaged) throw damagedFault(id, page.damaged)
    if (page.events.length === 0) break
  }
  // Inputs that are not promoted yet stay with their session.
  const shows = [...session.unshown, ...(session.run?.turn?.results ?? []), ...session.notes]
  if (unshown) transcript.take({ seq: upTo + 1, at: 0, epoch: 0, type: 'model.started', shows })
  return { transcript, chars, tree }
}

/**
 * The event after which a planner's transcript begins. Its cut leaves nothing of what is older: no pins and no summary.
 * For a language model, and without a cut, this is the start of the log.
 */
async function firstShown(store: Pick<Store, 'read'>, { id, upTo, session }: HistoryRequest): Promise<number> {
  const { cut, planner } = session ?? {}
  if (cut === undefined || cut > upTo || planner === undefined) return 0
  const [event] = (await store.read(id, cut - 1, 1)).events
  return event?.type === 'context.compacted' && event.cut !== undefined ? event.cut - 1 : 0
}

/** The events that the next request would show for the first time now. */
export function upcomingSeqs(session: Session, now: number): readonly number[] {
  const { run, unshown, notes } = session
  const inputs =
    run === null ? inputsForRun(dueBy(session.inputs, now)) : inputsForRequest(session).map(({ seq }) => seq)
  return [...unshown, ...(run?.turn?.results ?? []), ...notes, ...inputs]
}

/** The text of these inputs. */
export async function inputText(store: Store, id: string, seqs: readonly number[]): Promise<string> {
  const texts = seqs.map(async (seq) => {
    const [event] = (await store.read(id, seq - 1, 1)).events
    if (event?.type !== 'user.message') return ''
    return event.parts.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('')
  })
  return (await Promise.all(texts)).join('\n')
}

/**
 * How many characters this event adds for a model to read. After a compaction the rest is counted again, so the number
 * is negative.
 */
export function addedChars(transcript: Transcript, event: Event): number {
  if (event.type !== 'context.compacted') return charsOf(event)
  const before = sizeOfMessages(transcript.messages)
  transcript.take(event)
  return sizeOfMessages(transcript.messages) - before
}

function sizeOfMessages(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + sizeOfMessage(message), 0)
}

/** A rough size of the event in a request, cheap enough for every event. */
export function charsOf(event: Event): number {
  switch (event.type) {
    case 'user.message':
      return sizeOfParts(event.parts)
    case 'agent.message':
      return event.calls.reduce((sum, call) => sum + call.tool.length + sizeOfJson(call.args), sizeOfParts(event.parts))
    case 'agent.tool_result':
      return sizeOfContent(event)
    case 'user.custom_tool_result':
      return shownChars(event.content)
    case 'note.added':
      return event.text.length
    case 'model.failed':
      return event.partial?.length ?? 0
    case 'context.compacted':
      // Only the size that the event itself records, because the messages are not available here.
      return ((event.after ?? 0) - (event.before ?? 0)) * CHARS_A_TOKEN
    default:
      return 0
  }
}

/** The same for a message that was shown. */
export function sizeOfMessage(message: Message): number {
  if (message.role === 'tool') return sizeOfContent(message)
  const calls = message.role === 'assistant' ? message.calls : []
  return calls.reduce((sum, { tool, args }) => sum + tool.length + sizeOfJson(args), sizeOfParts(message.parts))
}

type SizedContent = Pick<Extract<Message, { role: 'tool' }>, 'content' | 'parts' | 'fits'>

function sizeOfContent({ content, parts = [], fits }: SizedContent): number {
  return (
    (typeof content === 'string' ? shownChars(content) : Math.min(content.bytes, fits?.chars ?? content.bytes)) +
    sizeOfParts(parts)
  )
}

/** Longer answers of a person or a child are shown in part: runtime/turn/long-answers.ts. */
export const ANSWER_CHARS_MAX = 256 * 1024
export const ANSWER_CHARS_SHOWN = 50_000

export function isLongAnswer(message: Message): boolean {
  return message.role === 'tool' && typeof message.content === 'string' && message.content.length > ANSWER_CHARS_MAX
}

function shownChars({ length }: string): number {
  return length > ANSWER_CHARS_MAX ? ANSWER_CHARS_SHOWN : length
}

/** The estimate used for events. */
export const CHARS_A_TOKEN = 4

/** A picture is paid by its area, never by its bytes. This is the highest price of any provider. */
const IMAGE_CHARS = 15_000
/** A document that only the provider has: the size of a few pages. */
const REMOTE_CHARS = 60_000

export function sizeOfParts(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => {
    if (part.type === 'text' || part.type === 'reasoning') return sum + part.text.length
    if (part.type === 'source') return sum
    if (part.type === 'provider') return sum + sizeOfJson(part.opaque)
    if (part.media.startsWith('image/')) return sum + IMAGE_CHARS
    if (part.type === 'blob') return sum + part.bytes
    return sum + (part.type === 'data' ? part.data.length : REMOTE_CHARS)
  }, 0)
}

function sizeOfJson(value: Json): number {
  if (typeof value === 'string') return value.length
  if (value === null || typeof value !== 'object') return 4
  return Object.entries(value).reduce((sum, [key, item]) => sum + key.length + sizeOfJson(item), 0)
}

const RING = 'it was forked from itself'

export function damagedFault(id: string, at: { readonly seq: number; readonly reason: string }): Fault {
  const text = `Session ${id} is damaged at event ${at.seq}. It can be read up to event ${at.seq - 1}; restore a backup to go on.`
  return new Fault('session_damaged', text, at.reason)
}
