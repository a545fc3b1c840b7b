// The part of a log that a page has in memory: one window without gaps, which moves over logs of any length. It starts
// at the end, grows with the log, and extends in both directions as the reader scrolls. The session at any of its
// events is folded here, with the server's own fold. It depends on neither React nor the network.
import { EMPTY, type Event, open, type OpenSession, type Session, take } from '../../kernel/index.ts'
import type { Damaged, EventsAnswer, StateAnswer } from '../../server/wire.ts'
import { charsOf } from '../../view/session-history.ts'

/** Events after a position, or before one. */
type LogRange = { readonly after?: number; readonly before?: number; readonly limit: number }

export type LogSource = {
  events(wanted: LogRange): Promise<Pick<EventsAnswer, 'events' | 'head' | 'damaged'>>
  state(at: number): Promise<Pick<StateAnswer, 'session'>>
}

/** The state for rendering: a new object after each change. */
export type LogView = {
  readonly events: readonly Event[]
  /** The session before the first event. */
  readonly base: Session
  /** The last known event of the log. */
  readonly head: number
  /** The window includes the end of the log, and grows with it. */
  readonly atEnd: boolean
  /** The log has events before the window. */
  readonly cut: boolean
  /** Increases each time the window opens elsewhere. */
  readonly opened: number
  readonly damaged: Damaged | null
  readonly error: unknown
  /** Nothing has been read yet. */
  readonly isNew: boolean
}

/** `kept`: browsers limit heights to 33,554,432 pixels, and a tab should stay small. */
export type LogWindowSizes = { readonly page: number; readonly kept: number }
export const KEPT_MAX = 20_000
const SIZES: LogWindowSizes = { page: 400, kept: KEPT_MAX }
/** The page size when reading a whole log. */
const BACK = 1_000
const CHARS_MAX = 32_000_000
/** The approximate size of an event besides its texts. */
const CHARS_EACH = 300
/** At most 20 times a second. */
const TOLD_MS = 50

const eventSize = (event: Event): number => charsOf(event) + CHARS_EACH

export class LogWindow {
  readonly #source: LogSource
  readonly #sizes: LogWindowSizes
  readonly #listeners = new Set<() => void>()
  #events: readonly Event[] = []
  #chars = 0
  #base: Session = EMPTY
  /** The last folded session: the next one asked for is usually a little further on. */
  #near: OpenSession | null = null
  #head: number
  #follows = true
  #opened = 0
  #damaged: Damaged | null
  #error: unknown = null
  #isNew = true
  /** Increases when the window opens elsewhere, so that earlier reads are dropped. */
  #turn = 0
  #isOpening = false
  #reads: Promise<void> | null = null
  #telling: ReturnType<typeof setTimeout> | null = null
  view: LogView

  /** A damaged log is read up to the damage, as if it ended there. */
  constructor(
    source: LogSource,
    { head, damaged }: { readonly head: number; readonly damaged?: Damaged | undefined },
    sizes = SIZES,
  ) {
    this.#source = source
    this.#sizes = sizes
    this.#damaged = damaged ?? null
    this.#head = damaged ? Math.min(head, damaged.seq - 1) : head
    this.view = this.#view()
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  get first(): number {
    return this.#base.seq + 1
  }

  get last(): number {
    return this.#events.at(-1)?.seq ?? this.#base.seq
  }

  has(seq: number): boolean {
    return !this.#isNew && seq >= this.first && seq <= this.last
  }

  /** Opens the window around an event, or at the end. */
  async openAt(at: number | null): Promise<void> {
    const turn = ++this.#turn
    this.#isOpening = true
    this.#error = null
    try {
      const near = at === null ? this.#head : Math.min(Math.max(1, at), this.#head)
      const half = at === null ? this.#sizes.page : Math.ceil(this.#sizes.page / 2)
      // The start of the window is predictable unless events are very long, so all three requests are sent at once.
      const [before, after, likely] = await Promise.all([
        near === 0 ? null : this.#source.events({ before: near + 1, limit: half }),
        at === null || near === this.#head ? null : this.#source.events({ after: near, limit: half }),
        this.#stateAfter(Math.max(0, near - half)),
      ])
      const events = [...(before?.events ?? []), ...(after?.events ?? [])]
      const first = events[0]?.seq ?? 1
      const base = likely.seq === first - 1 ? likely : await this.#stateAfter(first - 1)
      if (turn !== this.#turn) return
      this.#heard(before)
      this.#heard(after)
      this.#opened += 1
      this.#isNew = false
      this.#isOpening = false
      this.#set(this.#good(events), base)
      this.#follows = at === null || this.last === this.#head
      this.#tell()
      if (this.#follows) await this.#catchUp()
    } catch (error) {
      if (turn !== this.#turn) return
      this.#isOpening = false
      this.#failed(error)
    }
  }

  /** Reads the page before the window. */
  older(): Promise<void> {
    return this.#once(async (turn) => {
      if (this.first <= 1) return
      const page = await this.#source.events({ before: this.first, limit: this.#sizes.page })
      const base = await this.#stateAfter((page.events[0]?.seq ?? 1) - 1)
      if (turn !== this.#turn) return
      this.#set([...this.#good(page.events), ...this.#events], base)
      this.#trimEnd()
      this.#tell()
    })
  }

  /** Reads everything before the window, if the whole log fits in memory. */
  async readBack(): Promise<void> {
    await this.#reads
    return this.#once(async (turn) => {
      const end = this.first - 1
      if (end === 0 || this.#head > this.#sizes.kept) return
      const before: Event[] = []
      for (let after = 0; after < end; after = before.at(-1)?.seq ?? end) {
        const page = await this.#source.events({ after, limit: Math.min(BACK, end - after) })
        if (turn !== this.#turn || page.events.length === 0) return
        before.push(...page.events)
      }
      const chars = before.reduce((sum, event) => sum + eventSize(event), this.#chars)
      if (this.first !== end + 1 || chars > CHARS_MAX) return
      this.#set([...this.#good(before), ...this.#events], EMPTY)
      this.#tell()
    })
  }

  /** Reads everything after the window, if the whole log fits in memory. */
  async readOn(): Promise<void> {
    await this.#reads
    for (let before = -1; before < this.last && this.last < this.#head && this.#head <= this.#sizes.kept; ) {
      before = this.last
      await this.newer()
    }
  }

  /** Reads the page after the window. */
  newer(): Promise<void> {
    return this.#once(async (turn) => {
      if (this.last >= this.#head) return
      const page = await this.#source.events({ after: this.last, limit: this.#sizes.page })
      if (turn !== this.#turn) return
      this.#heard(page)
      this.#append(page.events)
      this.#follows ||= this.last === this.#head
      this.#tell()
    })
  }

  /** Takes live events. If the window does not include the end, only the head moves. */
  take(events: readonly Event[]): void {
    this.#head = Math.max(this.#head, events.at(-1)?.seq ?? 0)
    if (this.#follows && !this.#isNew) this.#append(events)
    this.#tellSoon()
    if (this.#follows && !this.#isNew && this.last < this.#head) void this.#catchUp()
  }

  /** The session after event `seq`. Null if that is not in the window. */
  stateAt(seq: number): Session | null {
    if (this.#isNew || seq < this.#base.seq || seq > this.last) return null
    if (this.#near === null || this.#near.seq > seq) this.#near = open(this.#base)
    const near = this.#near
    try {
      for (let i = near.seq - this.#base.seq; near.seq < seq; i++) take(near, this.#events[i] as Event)
    } catch {
      // An inconsistent log has no state here.
      this.#near = null
      return null
    }
    return open(near)
  }

  async #catchUp(): Promise<void> {
    await this.#reads
    for (let before = -1; this.#follows && before < this.last && this.last < this.#head; ) {
      before = this.last
      await this.newer()
    }
  }

  /** One read at a time: a second call returns the read in progress. */
  #once(work: (turn: number) => Promise<void>): Promise<void> {
    // The result would belong to the previous window.
    if (this.#isNew || this.#isOpening) return Promise.resolve()
    this.#reads ??= work(this.#turn)
      .catch((error: unknown) => this.#failed(error))
      .finally(() => {
        this.#reads = null
      })
    return this.#reads
  }

  async #stateAfter(seq: number): Promise<Session> {
    return seq === 0 ? EMPTY : (await this.#source.state(seq)).session
  }

  #heard(answer: Pick<EventsAnswer, 'head' | 'damaged'> | null): void {
    if (answer?.damaged && answer.damaged.seq < (this.#damaged?.seq ?? Number.POSITIVE_INFINITY))
      this.#damaged = answer.damaged
    this.#head = Math.max(this.#head, answer?.head ?? 0)
    if (this.#damaged) this.#head = Math.min(this.#head, this.#damaged.seq - 1)
  }

  /** Drops the damaged event and everything after it. */
  #good(events: readonly Event[]): readonly Event[] {
    const { seq: end } = this.#damaged ?? { seq: Number.POSITIVE_INFINITY }
    return events.filter(({ seq }) => seq < end)
  }

  #set(events: readonly Event[], base: Session): void {
    this.#events = events
    this.#base = base
    this.#near = null
    this.#chars = events.reduce((sum, event) => sum + eventSize(event), 0)
  }

  #append(events: readonly Event[]): void {
    const fresh = this.#good(events).filter(({ seq }) => seq > this.last)
    if (fresh[0]?.seq !== this.last + 1) return
    this.#events = [...this.#events, ...fresh]
    this.#head = Math.max(this.#head, this.last)
    this.#chars += fresh.reduce((sum, event) => sum + eventSize(event), 0)
    this.#trimStart()
  }

  get #isFull(): boolean {
    return this.#events.length > this.#sizes.kept || this.#chars > CHARS_MAX
  }

  /** Drops whole pages, so that rows do not shift with each event. */
  #trimStart(): void {
    const { page } = this.#sizes
    while (this.#isFull && this.#events.length > page) {
      const next = this.stateAt(this.#base.seq + page)
      if (next === null) return
      this.#set(this.#events.slice(page), next)
    }
  }

  #trimEnd(): void {
    const { page } = this.#sizes
    while (this.#isFull && this.#events.length > page) {
      this.#set(this.#events.slice(0, -page), this.#base)
      this.#follows = false
    }
  }

  #failed(error: unknown): void {
    this.#error = error
    this.#tell()
  }

  #view(): LogView {
    return {
      events: this.#events,
      base: this.#base,
      head: this.#head,
      atEnd: this.#follows && this.last === this.#head,
      cut: this.first > 1,
      opened: this.#opened,
      damaged: this.#damaged,
      error: this.#error,
      isNew: this.#isNew,
    }
  }

  #tell(): void {
    if (this.#telling !== null) clearTimeout(this.#telling)
    this.#telling = null
    this.view = this.#view()
    for (const listener of this.#listeners) listener()
  }

  #tellSoon(): void {
    this.#telling ??= setTimeout(() => this.#tell(), TOLD_MS)
  }
}
