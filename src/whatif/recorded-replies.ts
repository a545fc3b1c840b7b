// The replies that the recording has for requests. A request is the same if everything the model was told is the same:
// only then is its recorded reply an answer to it. It asks no provider.
import { hash } from 'node:crypto'
import type { Event, EventOf } from '../kernel/event.ts'
import { type Message, Transcript } from '../kernel/transcript.ts'
import type { ModelFailure, Reply } from '../ports/model.ts'
import type { Store } from '../ports/store.ts'
import { type RecordedAnswer, answersIn } from '../archive/replay-run.ts'
import { sortKeys } from '../tools/core/canonical-json.ts'
import type { Json } from '../kernel/content.ts'
import type { TreeCut } from './cut-tree.ts'
import type { RecordedTree } from './recorded-tree.ts'

type RecordedRequest = { readonly agent: string; readonly key: string; readonly answer: RecordedAnswer; used: boolean }

export class RecordedReplies {
  readonly #requests = new Map<string, readonly RecordedRequest[]>()
  /** The sessions of the what-if, as far as they were read. */
  readonly #readers = new Map<string, RequestReader>()

  constructor({ logs }: RecordedTree, cut: TreeCut) {
    for (const { session, events } of logs) this.#requests.set(session, requestsIn(events, cut.get(session) ?? 0))
  }

  /** The answer to the request of the what-if that this event began; null if the recording has none. */
  async take(store: Pick<Store, 'read'>, session: string, seq: number): Promise<RecordedAnswer | null> {
    const reader = this.#readers.get(session) ?? new RequestReader()
    this.#readers.set(session, reader)
    const { events } = await store.read(session, reader.seq)
    for (const event of events) if (event.seq <= seq) reader.take(event)
    const own = this.#requests.get(session)
    const others = [...this.#requests.values()].flat().filter(({ agent }) => agent === reader.agent)
    const found = (own ?? others).find((request) => request.key === reader.key && !request.used)
    if (found) found.used = true
    return found?.answer ?? null
  }
}

/**
 * The requests that were answered after the cut. A try that failed and was made again is left out: the provider's
 * trouble is not lived again.
 */
function requestsIn(events: readonly Event[], after: number): readonly RecordedRequest[] {
  const reader = new RequestReader()
  const answers = new Map(answersIn(events).map((answer) => [answer.seq, answer]))
  const found: RecordedRequest[] = []
  for (const event of events) {
    reader.take(event)
    const answer = answers.get(event.seq)
    if (answer === undefined || event.seq <= after || isTriedAgain(answer.said, events, event.seq)) continue
    found.push({ agent: reader.agent, key: reader.key, answer, used: false })
  }
  return found
}

function isTriedAgain(said: Reply | ModelFailure | 'stopped', events: readonly Event[], seq: number): boolean {
  if (said === 'stopped' || said.type === 'reply') return false
  const next = events.slice(seq).find(({ type }) => type === 'model.started' || type === 'run.settled')
  return next?.type === 'model.started'
}

/**
 * Everything that was told to the model up to a request, as a hash. Compaction only shows less of it, so it is left
 * out: a request that was compacted is the same as one that was not.
 */
class RequestReader {
  agent = ''
  seq = 0
  /** Of the last request. */
  key = ''
  readonly #transcript = new Transcript()
  /** Of all messages so far: without compaction they are only added to. */
  #told = ''
  #count = 0
  #prefix: Json = null
  #options = ''

  take(event: Event): void {
    this.seq = event.seq
    if (event.type === 'context.compacted') return
    if (event.type === 'session.created') this.agent = event.agent
    if (event.type === 'run.started' || event.type === 'run.reviewed') {
      this.#prefix = [event.toolset, event.instructions]
      this.#options = event.options ?? ''
    }
    this.#transcript.take(event)
    if (event.type === 'model.started') this.key = this.#keyOf(event)
  }

  #keyOf({ allow = 'all', boost, tools = [] }: EventOf<'model.started'>): string {
    const { messages } = this.#transcript
    for (; this.#count < messages.length; this.#count++)
      this.#told = hash('sha256', `${this.#told}${messageText(messages[this.#count] as Message)}`)
    return hash('sha256', JSON.stringify([this.#prefix, this.#options, allow, boost ?? false, tools, this.#told]))
  }
}

/** Without its place in the log, which may be another one there. */
function messageText(message: Message): string {
  const { seq: _seq, ...said } = message
  const calls = message.role === 'assistant' ? message.calls.map(({ key: _key, ...call }) => call) : []
  const { call: _call, ...rest } = said as { readonly call?: string }
  return JSON.stringify(sortKeys({ ...rest, calls } as unknown as Json))
}
