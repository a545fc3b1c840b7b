// Hints between the processes of a store: after a commit, who made it, which sessions stand at which seq now, and whether somebody is
// due. That sessions only grew is said while some process follows what others write: every hint wakes every process that listens. A
// hint only says "look": it may be lost, late, doubled or forged, and a look each second finds what no hint said. What is new, and
// who is told of it, is the store's.
import type { Clock } from '../../ports/system.ts'
import { steadyClock } from '../plan/clock.ts'
import type { Connections } from './connect.ts'
import type { Ear } from './ear.ts'
import type { Lag } from './lag.ts'
import { Patience } from './trouble.ts'

const LOOK_EVERY_MS = 1_000
/** How long commits are gathered after a hint before the next one is sent. That a session may be due is sent at once. */
const GATHER_MS = 10
/** How long it listens on after the last watcher, so runs that follow each other do not start listening each time. */
const LINGER_MS = 1_000
const LOOKS_PER_HOSTS = 5
/** A process that follows announces it at every second look. Others send hints of growth until `FOLLOWED_MS` after the last announcement. */
const LOOKS_PER_FOLLOW = 2
const FOLLOWED_MS = 5_000
/** So long after the first announcement it compares everything: commits made before others heard of it sent no hint. */
const FOLLOWED_AFTER_MS = 50
/** A notification of 8,000 bytes is refused. */
export const HINT_BYTES_MAX = 7_500
/** Without what is said beside the sessions. */
const ENTRIES_BYTES_MAX = HINT_BYTES_MAX - 200
/** More than these say "compare everything" instead. */
const HINTS_MAX = 8
/** Longer than any session's. */
const ID_LENGTH_MAX = 2_048
/** How many of its own commits a process remembers, to pass over hints that they have overtaken. */
const TOLD_MAX = 4_096

export type NewsOptions = {
  readonly connections: Connections
  readonly ear: Ear | null
  readonly clock: Clock
  /** One for all processes of a store, and no other store of the database. */
  readonly channel: string
  /** Look: at these sessions, or at all that is watched (null), and, if `due`, whether somebody is. Seq 0: it was removed. */
  readonly heard: (sessions: ReadonlyMap<string, number> | null, due: boolean) => void | Promise<void>
  /** The store's clock, and who is told when something was committed that is heard of now. Absent: nobody measures. */
  readonly lag?: Lag
}

/** `on`: when the first of it was committed, by the store's clock. `follows`: it wants to hear how far sessions go. */
type Hint = {
  readonly by: string
  readonly follows: boolean
  readonly on: number | null
  readonly due: boolean
  readonly at: readonly (readonly [string, number])[] | null
}

export class News {
  readonly #options: NewsOptions
  readonly #told = new Map<string, number>()
  #grown = new Map<string, number>()
  #due = false
  #since: number | null = null
  #sending: Promise<void> | null = null
  #sendNow: () => void = () => {}
  #cancelEnd: () => void = () => {}
  #closed = false
  /** What is to be looked at: null for all. */
  #heard: Map<string, number> | null = new Map()
  #heardDue = false
  #started = false
  #unlisten: Promise<() => void> | null = null
  #notBack: () => void = () => {}
  #cancel: (() => void) | null = null
  #looks = 0
  #delivering = false
  /** How many follow in this process, when it last announced that, and until when others are assumed to follow. */
  #followers = 0
  #announcedAt = Number.NEGATIVE_INFINITY
  #followedUntil = Number.POSITIVE_INFINITY

  constructor(options: NewsOptions) {
    this.#options = options
  }

  /** From now on, until `stop`: for as long as somebody watches. Resolves when it listens, or cannot for now. */
  async start(): Promise<void> {
    this.#cancelEnd()
    if (this.#started) return
    this.#started = true
    this.#schedule()
    const { ear, channel } = this.#options
    if (!ear) return
    this.#notBack = ear.whenBack(() => {
      this.#assumeFollowed()
      this.#gather(null, true)
    })
    this.#assumeFollowed()
    this.#unlisten = ear.listen(channel, (text) => this.#hear(text))
    await this.#unlisten
  }

  /** The last watcher has gone. It listens on for `LINGER_MS`, unless somebody starts it again. */
  stop(): void {
    this.#cancelEnd()
    this.#cancelEnd = steadyClock.timer(LINGER_MS, () => this.#end())
  }

  /** From now on other processes say how far sessions go. Returns its end. */
  follow(): () => void {
    this.#followers += 1
    if (steadyClock.now() - this.#announcedAt >= LOOK_EVERY_MS * LOOKS_PER_FOLLOW)
      void this.#announce().then(() => steadyClock.timer(FOLLOWED_AFTER_MS, () => this.#gather(null, false)))
    let left = false
    return () => {
      if (!left) this.#followers -= 1
      left = true
    }
  }

  async #announce(): Promise<void> {
    const { hints, id: by } = this.#options.connections
    // Before the store is open it has no id, and would take its own announcement for another's: the next look announces.
    if (!hints || this.#closed || by === '') return
    this.#announcedAt = steadyClock.now()
    await this.#notify([textOf({ by, on: null, due: false, follows: true, at: [] })])
  }

  /** Also when nothing is known of the others: after a start, or a lost connection. */
  #assumeFollowed(): void {
    this.#followedUntil = steadyClock.now() + FOLLOWED_MS
  }

  /** A process that does not listen cannot know, and sends everything. */
  get #isFollowed(): boolean {
    return !this.#started || !this.#options.ear || steadyClock.now() < this.#followedUntil
  }

  #end(): void {
    this.#started = false
    this.#cancel?.()
    this.#cancel = null
    this.#notBack()
    void this.#unlisten?.then((unlisten) => unlisten())
    this.#unlisten = null
  }

  /** After a commit of this process. What is told while a hint is under way is the next hint. Seq 0: it was removed. */
  tell(grown: ReadonlyMap<string, number>, due: boolean): void {
    const { hints } = this.#options.connections
    const isSent = hints && (due || this.#isFollowed || [...grown.values()].includes(0))
    for (const [session, seq] of grown) {
      if (isSent) this.#grown.set(session, seq)
      this.#told.delete(session)
      if (seq > 0) this.#told.set(session, seq)
    }
    for (const session of this.#told.keys()) {
      if (this.#told.size <= TOLD_MAX) break
      this.#told.delete(session)
    }
    if (!isSent) return
    this.#due ||= due
    this.#since ??= this.#options.lag?.now() ?? null
    this.#sending ??= this.#send()
    if (due) this.#sendNow()
  }

  /** Resolves when what was told is sent, or lost. */
  async close(): Promise<void> {
    this.#closed = true
    this.#cancelEnd()
    this.#end()
    this.#sendNow()
    await this.#sending
  }

  async #send(): Promise<void> {
    // After what the caller tells in the same round.
    await Promise.resolve()
    while (this.#grown.size > 0 || this.#due) {
      await this.#notify(this.#hints())
      if (!this.#due && !this.#closed) await this.#pause()
    }
    this.#sending = null
  }

  /** The look of each second finds what a lost one would have said. */
  async #notify(hints: readonly string[]): Promise<void> {
    const { connections, clock, channel } = this.#options
    const patience = new Patience(clock, 0)
    await connections.reader
      .ask('terret_hint', 'select pg_notify($1, hint) from unnest($2::text[]) hint', [channel, hints], { patience })
      .catch(() => {})
  }

  /** `GATHER_MS`, or until `#sendNow`. */
  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = steadyClock.timer(GATHER_MS, resolve)
      this.#sendNow = () => {
        cancel()
        resolve()
      }
    })
  }

  /** Takes what is gathered, in texts that are short enough. */
  #hints(): readonly string[] {
    const by = this.#options.connections.id
    const [due, on] = [this.#due, this.#since]
    const rooms: [string, number][][] = [[]]
    let bytes = 0
    let all = false
    for (const entry of this.#grown) {
      const size = Buffer.byteLength(JSON.stringify(entry)) + 1
      if (bytes + size > ENTRIES_BYTES_MAX) {
        rooms.push([])
        bytes = 0
      }
      bytes += size
      rooms.at(-1)?.push(entry)
      all ||= size > ENTRIES_BYTES_MAX || rooms.length > HINTS_MAX
    }
    this.#grown = new Map()
    this.#due = false
    this.#since = null
    const about = { by, on, due, follows: false }
    return all ? [textOf({ ...about, at: null })] : rooms.map((at) => textOf({ ...about, at }))
  }

  #hear(text: string): void {
    const hint = hintOf(text)
    if (hint === null || hint.by === this.#options.connections.id) return
    if (hint.follows) return this.#assumeFollowed()
    if (hint.on !== null && this.#started) this.#options.lag?.hear(hint.on)
    // What this process committed is newer, unless the session is gone.
    const newer = hint.at?.filter(([session, seq]) => seq === 0 || seq > (this.#told.get(session) ?? 0))
    this.#gather(newer ?? null, hint.due)
  }

  #gather(sessions: Hint['at'], due: boolean): void {
    if (!this.#started) return
    this.#heardDue ||= due
    if (sessions === null) this.#heard = null
    for (const [session, seq] of sessions ?? []) this.#heard?.set(session, seq)
    if (!this.#delivering) void this.#deliver()
  }

  /** All hints of one packet at once, and while the store looks, all that come meanwhile: a flood of them makes no queue. */
  async #deliver(): Promise<void> {
    this.#delivering = true
    await Promise.resolve()
    while (this.#started && (this.#heard === null || this.#heard.size > 0 || this.#heardDue)) {
      const [sessions, due] = [this.#heard, this.#heardDue]
      this.#heard = new Map()
      this.#heardDue = false
      try {
        await this.#options.heard(sessions, due)
      } catch {
        // The store's own asking has met trouble, and so will whoever asks next: they are told.
      }
    }
    this.#delivering = false
  }

  #schedule(): void {
    if (this.#started) this.#cancel = this.#options.clock.timer(LOOK_EVERY_MS, () => this.#look())
  }

  #look(): void {
    this.#looks += 1
    // With several hosts another one may be the primary by now, while the old one still answers.
    if (this.#looks % LOOKS_PER_HOSTS === 0) void this.#options.connections.lane.look()
    if (this.#looks % LOOKS_PER_FOLLOW === 0 && this.#followers > 0) void this.#announce()
    this.#gather(null, false)
    this.#schedule()
  }
}

function textOf({ by, on, due, follows, at }: Hint): string {
  return JSON.stringify({
    by,
    ...(follows ? { follows } : {}),
    ...(on === null ? {} : { on }),
    ...(due ? { due } : {}),
    ...(at === null ? { all: true } : { at }),
  })
}

/** Anybody who may use the database can send anything to a channel. What is no hint is none. */
function hintOf(text: string): Hint | null {
  try {
    const read = JSON.parse(text) as Readonly<Record<string, unknown>> | null
    if (typeof read?.['by'] !== 'string') return null
    const on = typeof read['on'] === 'number' ? read['on'] : null
    const about = { by: read['by'], on, due: read['due'] === true, follows: read['follows'] === true }
    if (read['all'] === true) return { ...about, at: null }
    if (!Array.isArray(read['at'])) return null
    return { ...about, at: read['at'].filter((entry) => isEntry(entry)) }
  } catch {
    return null
  }
}

function isEntry(entry: unknown): entry is readonly [string, number] {
  if (!Array.isArray(entry) || entry.length !== 2) return false
  const [session, seq] = entry as readonly unknown[]
  if (typeof session !== 'string' || session === '' || session.length > ID_LENGTH_MAX) return false
  return typeof seq === 'number' && Number.isSafeInteger(seq) && seq >= 0
}
