// Live deltas inside one process: the text of replies in progress, for its listeners. Nothing here is durable, and
// losing it costs only smoothness. Other processes are reached through shared-live.ts.
import type { Delta } from '../ports/model.ts'

/** A delta with its place, so that a reader can detect gaps and duplicates. */
export type LiveDelta = Delta & {
  /** The seq of `model.started`; for the output of a call that of its reply. */
  readonly seq: number
  /** How many characters of that part came before this text. */
  readonly offset: number
}

/** Deltas for listeners, also in other processes. Losing them costs only smoothness. */
export interface Live {
  /** Lets other processes receive the deltas of this worker's sessions. Awaited before each claim; never rejects. */
  serve(worker: string, ttlMs: number): Promise<void>
  /** Delivers a delta to all listeners of the session. It never waits and never throws. */
  publish(session: string, seq: number, delta: Delta): void
  /** The model call `seq` is over, or the call `part` of the reply `seq`: drop its text. */
  finish(session: string, seq: number, part?: number): void
  /** The text of a session's open call so far: one delta for each part, from its first character. */
  said(session: string): readonly LiveDelta[]
  /** Delivers one catch-up of the text so far, then live deltas. */
  subscribe(session: string, listener: DeltaListener): () => void
  /** Ends the delivery to other processes. Listeners of this one unsubscribe by themselves. */
  close(): Promise<void>
}

export type DeltaListener = (delta: LiveDelta) => void

/** The pieces as they arrived: joining them each time would create thousands of strings for the garbage collector. */
type PartBuffer = Pick<Delta, 'kind' | 'proposed'> & { readonly texts: string[]; chars: number }
/** Replaced, never changed, so that a listener may come or go while a delta is delivered. */
type Subscriptions = readonly { readonly listener: DeltaListener; taken: boolean }[]

/** The fields of a delta beside its text and its position. */
export function deltaHeader({ kind, proposed }: Pick<Delta, 'kind' | 'proposed'>): Pick<Delta, 'kind' | 'proposed'> {
  return proposed === undefined ? { kind } : { kind, proposed }
}

export class LocalLive implements Live {
  readonly #seats = new Map<string, Subscriptions>()
  /** The text of each session's open call so far, by part: the catch-up for a late subscriber. */
  readonly #open = new Map<string, { readonly seq: number; readonly parts: Map<number, PartBuffer> }>()

  /** Within one process there is no other to reach. */
  async serve(): Promise<void> {}

  publish(session: string, seq: number, delta: Delta): void {
    let open = this.#open.get(session)
    if (open?.seq !== seq) {
      // An abandoned call that goes on sending must not be mixed into the call that replaced it.
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
    } else open.parts.set(part, { ...deltaHeader(delta), texts: [text], chars: text.length })
    const seats = this.#seats.get(session)
    if (!seats) return
    const { kind, proposed } = delta
    // Most deltas have no call, and there are many deltas.
    const live: LiveDelta =
      proposed === undefined ? { kind, part, text, seq, offset } : { kind, proposed, part, text, seq, offset }
    for (const seat of seats) if (seat.taken) notifyListener(seat.listener, live)
  }

  finish(session: string, seq: number, part?: number): void {
    const open = this.#open.get(session)
    if (open?.seq !== seq) return
    if (part !== undefined) open.parts.delete(part)
    if (part === undefined || open.parts.size === 0) this.#open.delete(session)
  }

  subscribe(session: string, listener: DeltaListener): () => void {
    for (const delta of this.said(session)) notifyListener(listener, delta)
    return this.listen(session, listener)
  }

  said(session: string): readonly LiveDelta[] {
    const open = this.#open.get(session)
    if (!open) return []
    const { seq } = open
    return [...open.parts].map(([part, said]) => ({
      ...deltaHeader(said),
      part,
      text: said.texts.join(''),
      seq,
      offset: 0,
    }))
  }

  /** From now on, without a catch-up. */
  listen(session: string, listener: DeltaListener): () => void {
    const seat = { listener, taken: true }
    this.#seats.set(session, [...(this.#seats.get(session) ?? []), seat])
    return () => {
      seat.taken = false
      const left = (this.#seats.get(session) ?? []).filter((other) => other !== seat)
      if (left.length > 0) this.#seats.set(session, left)
      else this.#seats.delete(session)
    }
  }

  /**
   * Listeners unsubscribe by themselves, and texts are dropped with their calls. Other harnesses may still use this
   * object.
   */
  async close(): Promise<void> {}
}

const lives = new WeakMap<object, LocalLive>()

/** The deltas of a store that only this process has: all harnesses on it share them. */
export function localLive(store: object): LocalLive {
  const live = lives.get(store) ?? new LocalLive()
  lives.set(store, live)
  return live
}

/** A listener that throws is a bug of its owner and must be visible, but the model call it listens to goes on. */
export function notifyListener(listener: DeltaListener, delta: LiveDelta): void {
  try {
    listener(delta)
  } catch (error) {
    void Promise.reject(error instanceof Error ? error : new Error(String(error)))
  }
}
