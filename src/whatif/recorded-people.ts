// What people said in the recording after the cut: their messages, each at its place among the replies, and their
// decisions. A decision counts for a call with the same digest, whatever call that is now. It sends nothing itself.
import type { Event, EventOf, InboxBody, InboxEvent } from '../kernel/event.ts'
import type { Pending } from '../view/pending-calls.ts'
import type { TreeCut } from './cut-tree.ts'
import type { RecordedTree } from './recorded-tree.ts'

/** `place` counts half turns: twice the replies before it, and one more if it came while a request was open. */
type PlacedMessage = {
  readonly body: InboxBody
  readonly seq: number
  readonly place: number
  /** No run was open. */
  readonly idle: boolean
  /** The first event of the owner after it: messages with the same one were read together. */
  readonly group: number
}

type Decision = EventOf<'user.tool_confirmation'> & { readonly session: string }

export class RecordedPeople {
  #messages: readonly PlacedMessage[]
  readonly #decisions: Set<Decision>
  readonly #stops: readonly EventOf<'user.interrupt'>[]
  #resumes: readonly EventOf<'user.interrupt'>[]

  /** `end` is the last event of the root that is lived again. */
  constructor({ logs, root, events }: RecordedTree, cut: TreeCut, end: number) {
    const from = cut.get(root) ?? 0
    const later = events.filter((event) => event.seq > from && event.seq <= end)
    this.#messages = placedMessages(events).filter(({ seq }) => seq > from && seq <= end)
    const interrupts = later.filter((event) => event.type === 'user.interrupt')
    this.#stops = interrupts.filter(({ mode }) => mode === 'stop')
    this.#resumes = interrupts.filter(({ mode }) => mode === 'resume')
    this.#decisions = new Set(
      logs.flatMap(({ session, events: log }) =>
        log.flatMap((event): readonly Decision[] =>
          event.type === 'user.tool_confirmation' && event.seq > (cut.get(session) ?? 0) ? [{ ...event, session }] : [],
        ),
      ),
    )
  }

  get hasMessages(): boolean {
    return this.#messages.length > 0
  }

  /** The caller says something else instead. */
  forgetMessages(): void {
    this.#messages = []
  }

  /** The messages that had come by this place in the run. */
  takeUpTo(place: number): readonly InboxBody[] {
    const later = this.#messages.findIndex((message) => message.idle || message.place > place)
    const count = later < 0 ? this.#messages.length : later
    const due = this.#messages.slice(0, count)
    this.#messages = this.#messages.slice(count)
    return due.map(({ body }) => body)
  }

  /** The next messages that opened a run. Those for a run that ended earlier this time are dropped. */
  takeNextRun(): readonly InboxBody[] {
    const first = this.#messages.find(({ idle }) => idle)
    const due = this.#messages.filter(({ group }) => group === first?.group)
    this.#messages = first ? this.#messages.filter(({ group }) => group > first.group) : []
    return due.map(({ body }) => body)
  }

  /** Where the recording has a request that a person stopped. */
  get stop(): InboxBody | null {
    const [first] = this.#stops
    return first ? bodyOf(first) : null
  }

  takeResume(): InboxBody | null {
    const [first, ...rest] = this.#resumes
    this.#resumes = rest
    return first ? bodyOf(first) : null
  }

  /** The next decision about exactly this call. */
  takeDecision({ sessionId, callId, digest }: Pending): InboxBody | null {
    const same = [...this.#decisions].filter((each) => each.digest === digest)
    const found = same.find(({ session, call }) => session === sessionId && call === callId) ?? same[0]
    if (!found) return null
    this.#decisions.delete(found)
    const { session, ...event } = found
    const isSame = session === sessionId && event.call === callId
    const body = bodyOf(event)
    return isSame ? body : ({ ...body, id: `${event.id}@${callId}`, call: callId } as InboxBody)
  }

  hasDecisionAbout(tool: string, { logs }: RecordedTree): boolean {
    return logs.some(({ events }) =>
      [...this.#decisions].some((each) => {
        const [seq, index] = each.call.split('.').map(Number) as [number, number]
        const reply = events[seq - 1]
        return reply?.type === 'agent.message' && reply.calls[index]?.tool === tool
      }),
    )
  }
}

function placedMessages(events: readonly Event[]): readonly PlacedMessage[] {
  const groups = new Map<number, number>()
  let next = Number.POSITIVE_INFINITY
  for (const { type, seq } of events.toReversed()) {
    if (type === 'user.message') groups.set(seq, next)
    if (!type.startsWith('user.')) next = seq
  }
  const placed: PlacedMessage[] = []
  let [replies, asking, idle] = [0, 0, true]
  for (const event of events) {
    if (event.type === 'run.started') idle = false
    if (event.type === 'run.settled') idle = true
    if (event.type === 'model.started') asking = 1
    if (event.type === 'model.failed' || event.type === 'agent.message') asking = 0
    if (event.type === 'agent.message') replies += 1
    if (event.type !== 'user.message' || event.by?.startsWith('session:')) continue
    placed.push({
      body: bodyOf(event),
      seq: event.seq,
      place: 2 * replies + asking,
      idle,
      group: groups.get(event.seq) ?? next,
    })
  }
  return placed
}

function bodyOf({ seq: _seq, at: _at, wall: _wall, epoch: _epoch, ...body }: InboxEvent): InboxBody {
  return body
}

/** The end of the run that is open after this event, or else of the next one; without one, the end of the log. */
export function endOfRun(events: readonly Event[], from: number): number {
  let open = false
  for (const event of events) {
    if (event.type === 'run.started') open = true
    if (event.type === 'run.settled' && event.seq > from && open) return event.seq
    if (event.type === 'run.settled') open = false
  }
  return events.length
}
