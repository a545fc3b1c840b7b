// The book of one session as this process has read it: the folded session, and the transcript once a model must read it.
// A cache of the log and nothing more: dropping it loses nothing.
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { type OpenSession, open, take } from '../kernel/fold.ts'
import type { Store } from '../kernel/ports.ts'
import { EMPTY, FOLD_VERSION, type Session } from '../kernel/session.ts'
import { Transcript } from '../kernel/transcript.ts'
import type { Frame } from './world.ts'

/** Small enough that a page's events die young: parsed events that survive cost more than reading them. */
const PAGE = 1_000
/** A log up to this long is read once for both folds; a longer one is read again when a model must read it. */
const KEPT_MAX = 5_000

export class Book {
  readonly id: string
  /** Owned by this book and changed in place. */
  session: OpenSession = open(EMPTY)
  /** seq of the newest stored snapshot. */
  snapshotSeq = 0
  /** What the open run froze, kept with the run's seq. */
  frame: { readonly run: number; readonly frame: Frame } | null = null
  /** The request being asked now. */
  started: Extract<Event, { type: 'model.started' }> | null = null
  readonly #store: Store
  #transcript: Transcript | null = null
  /** The whole log so far, until a model must read it. */
  #kept: Event[] | null = null

  constructor(id: string, store: Store) {
    this.id = id
    this.#store = store
  }

  /** Reads to the end of the log, from the newest usable snapshot on. */
  async open(): Promise<void> {
    const snapshot = await this.#store.snapshot(this.id)
    if (snapshot?.version === FOLD_VERSION) {
      this.session = open(JSON.parse(snapshot.body) as Session)
      this.snapshotSeq = snapshot.seq
      this.#kept = null
    } else {
      this.session = open(EMPTY)
      this.#kept = this.#transcript ? null : []
    }
    await this.catchUp()
  }

  async catchUp(): Promise<void> {
    for (;;) {
      const page = await this.#store.read(this.id, this.session.seq, PAGE)
      for (const event of page.events) {
        take(this.session, event)
        this.keep(event)
      }
      if (page.damaged) throw damaged(this.id, page.damaged)
      if (page.events.length < PAGE) return
    }
  }

  /** The transcript, if it was read already. */
  get shown(): Transcript | null {
    return this.#transcript
  }

  /** The transcript up to now. Its first use reads the whole log; after that it grows with each commit. */
  async transcript(): Promise<Transcript> {
    if (this.#transcript) return this.#transcript
    const transcript = new Transcript()
    for (const event of this.#kept ?? []) transcript.take(event)
    this.#kept = null
    while (transcript.seq < this.session.seq) {
      const page = await this.#store.read(this.id, transcript.seq, Math.min(PAGE, this.session.seq - transcript.seq))
      for (const event of page.events) transcript.take(event)
      if (page.damaged) throw damaged(this.id, page.damaged)
      if (page.events.length === 0) break
    }
    this.#transcript = transcript
    return transcript
  }

  /** This event is on disk and in the session. */
  keep(event: Event): void {
    if (event.type === 'model.started') this.started = event
    this.#transcript?.take(event)
    if (!this.#kept) return
    this.#kept.push(event)
    if (this.#kept.length > KEPT_MAX) this.#kept = null
  }
}

function damaged(id: string, at: { readonly seq: number; readonly reason: string }): Fault {
  const text = `Session ${id} is damaged at event ${at.seq}. It can be read up to event ${at.seq - 1}; restore a backup to go on.`
  return new Fault('session_damaged', text, at.reason)
}
