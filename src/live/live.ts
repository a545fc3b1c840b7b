// Live deltas inside one process: what is being said right now, for its listeners. Nothing here is durable, and
// losing it costs smoothness only. Across processes: socket.ts.
import type { Delta } from '../ports/model.ts'

/**
 * Addressed by (seq of model.started, part, character offset), so a reader can tell a gap and a duplicate. For the output of a call:
 * seq of its reply, and its index.
 */
export type LiveDelta = Delta & { readonly seq: number; readonly offset: number }

/** Deltas for listeners, across processes too. Losing it costs smoothness only. */
export interface Live {
  /** Lets other processes reach what this worker's sessions say. Awaited before each claim; never rejects. */
  serve(worker: string, ttlMs: number): Promise<void>
  publish(session: string, seq: number, delta: Delta): void
  /** The model call `seq` is over, or the call `part` of the reply `seq`: forget its text. */
  finish(session: string, seq: number, part?: number): void
  /** What the open call of a session that is driven here said so far: one delta a part, from its first character. */
  said(session: string): readonly LiveDelta[]
  /** One catch-up of what was said so far, then live. */
  subscribe(session: string, listener: Listener): () => void
  close(): Promise<void>
}

export type Listener = (delta: LiveDelta) => void

/** The pieces as they came: a text that grows by thousands of them would be thousands of texts to the collector. */
type Said = Pick<Delta, 'kind' | 'proposed'> & { readonly texts: string[]; chars: number }
/** Replaced, never changed, so that a listener may come or go while a delta is delivered. */
type Seats = readonly { readonly listener: Listener; taken: boolean }[]

/** What a delta says beside its text and its place. */
export function aboutOf({ kind, proposed }: Pick<Delta, 'kind' | 'proposed'>): Pick<Delta, 'kind' | 'proposed'> {
  return proposed === undefined ? { kind } : { kind, proposed }
}

export class LocalLive implements Live {
  readonly #seats = new Map<string, Seats>()
  /** What the open call of each session said so far, by part: the catch-up of a late subscriber. */
  readonly #open = new Map<string, { readonly seq: number; readonly parts: Map<number, Said> }>()

  /** In one process there is no other to reach. */
  async serve(): Promise<void> {}

  publish(session: string, seq: number, delta: Delta): void {
    let open = this.#open.get(session)
    if (open?.seq !== seq) {
      // An abandoned call that goes on talking must not be mixed into the call that took its place.
      if (open && open.seq > seq) return
      open = { seq, parts: new Map() }
      this.#open.set(session, open)
    }
    const { part, text } = delta
    const said = open.parts.get(part)
    const offset = said?.chars ?? 0
    if (said) {
      said.texts.push(text)
      said.chars += text.length
    } else open.parts.set(part, { ...aboutOf(delta), texts: [text], chars: text.length })
    const seats = this.#seats.get(session)
    if (!seats) return
    const { kind, proposed } = delta
    // Most deltas have no call that they belong to, and there are many.
    const live: LiveDelta =
      proposed === undefined ? { kind, part, text, seq, offset } : { kind, proposed, part, text, seq, offset }
    for (const seat of seats) if (seat.taken) tell(seat.listener, live)
  }

  finish(session: string, seq: number, part?: number): void {
    const open = this.#open.get(session)
    if (open?.seq !== seq) return
    if (part !== undefined) open.parts.delete(part)
    if (part === undefined || open.parts.size === 0) this.#open.delete(session)
  }

  subscribe(session: string, listener: Listener): () => void {
    for (const delta of this.said(session)) tell(listener, delta)
    return this.listen(session, listener)
  }

  said(session: string): readonly LiveDelta[] {
    const open = this.#open.get(session)
    if (!open) return []
    const { seq } = open
    return [...open.parts].map(([part, said]) => ({
      ...aboutOf(said),
      part,
      text: said.texts.join(''),
      seq,
      offset: 0,
    }))
  }

  /** From now on, with no catch-up. */
  listen(session: string, listener: Listener): () => void {
    const seat = { listener, taken: true }
    this.#seats.set(session, [...(this.#seats.get(session) ?? []), seat])
    return () => {
      seat.taken = false
      const left = (this.#seats.get(session) ?? []).filter((other) => other !== seat)
      if (left.length > 0) this.#seats.set(session, left)
      else this.#seats.delete(session)
    }
  }

  /** Listeners leave by themselves, and what is said is forgotten with its call: others may still use it. */
  async close(): Promise<void> {}
}

const lives = new WeakMap<object, LocalLive>()

/** What is said in the sessions of a store that only this process has: all its harnesses hear each other. */
export function localLive(store: object): LocalLive {
  const live = lives.get(store) ?? new LocalLive()
  lives.set(store, live)
  return live
}

/** A listener that throws is a bug of its owner and must be seen as one, but the model call it listens to goes on. */
export function tell(listener: Listener, delta: LiveDelta): void {
  try {
    listener(delta)
  } catch (error) {
    void Promise.reject(error instanceof Error ? error : new Error(String(error)))
  }
}
