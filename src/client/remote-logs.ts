// The logs of a server's sessions, in the form in which the library reads those of a store: pages, news and live
// deltas. The readers of the library work on them unchanged.
import { Fault, FOLD_VERSION, type Page } from '../kernel/index.ts'
import type { FoldedState, LiveDelta } from '../index.ts'
import type { StreamLog } from '../sessions/follow/begin-stream.ts'
import type { FeedSources } from '../sessions/follow/stream.ts'
import type { EventsAnswer, StateAnswer } from '../server/wire.ts'
import { followRemote } from './follow-session.ts'
import { badAnswerRefusal, type ServerConnection } from './server-connection.ts'

const PAGE = 1_000

type NewsListener = Parameters<FeedSources['store']['watch']>[1]
/** The listeners of one session. They share a connection: a browser opens only a few to one server. */
type SessionListeners = {
  readonly news: Set<NewsListener>
  readonly deltas: Set<(delta: LiveDelta) => void>
  readonly over: AbortController
}

export class RemoteLogs implements StreamLog {
  readonly #wires: ServerConnection
  readonly #heard = new Map<string, SessionListeners>()
  readonly live: FeedSources['live'] = { subscribe: (session, listener) => this.#join(session, 'deltas', listener) }

  constructor(wires: ServerConnection) {
    this.#wires = wires
  }

  /** Empty for a position behind the end of the log, as in a store. */
  async read(session: string, after: number, limit = PAGE): Promise<Page> {
    const page: { events: Page['events'][number][]; damaged?: NonNullable<Page['damaged']> } = { events: [] }
    for (let from: number | null = after; from !== null && page.events.length < limit && !page.damaged; ) {
      const answer: EventsAnswer | null = await this.#page(session, from, Math.min(PAGE, limit - page.events.length))
      if (answer === null) break
      page.events.push(...answer.events)
      if (answer.damaged) page.damaged = answer.damaged
      if (answer.after !== null && answer.after <= from) throw badAnswerRefusal(200, 'its pages of events do not go on')
      from = answer.after
    }
    return page
  }

  async #page(session: string, after: number, limit: number): Promise<EventsAnswer | null> {
    try {
      return await this.#wires.json<EventsAnswer>('events', { params: { id: session }, query: { after, limit } })
    } catch (error) {
      if (error instanceof Fault && error.code === 'cursor_stale') return null
      throw error
    }
  }

  /** The state after this event, or after the last one. */
  async stateAt(session: string, at?: number): Promise<FoldedState> {
    const answer = await this.#wires.json<StateAnswer>('state', { params: { id: session }, query: { at } })
    return { seq: answer.seq, version: FOLD_VERSION, session: answer.session }
  }

  async headOf(session: string): Promise<FoldedState['session']> {
    return (await this.stateAt(session)).session
  }

  watch(session: string, listener: NewsListener): () => void {
    return this.#join(session, 'news', listener)
  }

  #join<Kind extends 'news' | 'deltas'>(
    session: string,
    kind: Kind,
    listener: Kind extends 'news' ? NewsListener : (delta: LiveDelta) => void,
  ): () => void {
    const heard = this.#heard.get(session) ?? this.#open(session)
    const listeners = heard[kind] as Set<unknown>
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
      if (heard.news.size + heard.deltas.size > 0) return
      heard.over.abort()
      if (this.#heard.get(session) === heard) this.#heard.delete(session)
    }
  }

  #open(session: string): SessionListeners {
    const heard: SessionListeners = { news: new Set(), deltas: new Set(), over: new AbortController() }
    this.#heard.set(session, heard)
    // The failure is not reported here: the listeners read the log, and that read reports it.
    this.#follow(session, heard).catch(() => tellNews(heard))
    return heard
  }

  async #follow(session: string, heard: SessionListeners): Promise<void> {
    const { head } = await this.#wires.json<EventsAnswer>('events', { params: { id: session }, query: { limit: 1 } })
    // Events up to here are not followed: the listeners read them as a page.
    tellNews(heard)
    const { signal } = heard.over
    for await (const item of followRemote(this.#wires, session, { after: head, deltas: true, signal }))
      if (item.type === 'event') for (const listener of heard.news) listener([item.event])
      else for (const listener of heard.deltas) listener(item)
  }
}

function tellNews({ news }: SessionListeners): void {
  for (const listener of news) listener(null)
}
