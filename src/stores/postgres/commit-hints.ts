// Hints between the processes of a store, sent after a commit: the sender, the new seqs of its sessions, and whether a
// session may be due. Mere growth is sent only while some process follows it, because every hint wakes every listening
// process. A hint only asks to look: it may be lost, late, doubled or forged, and a look each second finds what no hint
// reported. The store decides what is new, and which listeners to call.
import type { Clock } from '../../ports/system.ts'
import { steadyClock } from '../plan/system-clock.ts'
import type { PostgresConnections } from './connections.ts'
import type { NotificationListener } from './notification-listener.ts'
import type { HintLag } from './hint-lag.ts'
import { Patience } from './database-trouble.ts'

const LOOK_EVERY_MS = 1_000
/** How long commits are gathered after a hint before the next hint. A session that may be due is reported at once. */
const GATHER_MS = 10
/** How long it keeps listening after the last watcher, so that consecutive runs need not start listening again. */
const LINGER_MS = 1_000
const LOOKS_PER_HOSTS = 5
/**
 * A process that follows announces this at every second look. Others send growth hints until `FOLLOWED_MS` after the
 * last announcement.
 */
const LOOKS_PER_FOLLOW = 2
const FOLLOWED_MS = 5_000
/**
 * This long after its first announcement it compares everything, because commits made before the announcement arrived
 * sent no hint.
 */
const FOLLOWED_AFTER_MS = 50
/** Postgres refuses a notification of 8,000 bytes. */
export const HINT_BYTES_MAX = 7_500
/** The rest is for the fields beside the sessions. */
const ENTRIES_BYTES_MAX = HINT_BYTES_MAX - 200
/** With more hints than this, one that says "compare everything" is sent instead. */
const HINTS_MAX = 8
/** Longer than any session id. */
const ID_LENGTH_MAX = 2_048
/** How many of its own commits a process remembers, to ignore hints that are older. */
const TOLD_MAX = 4_096

export type CommitHintsOptions = {
  readonly connections: PostgresConnections
  readonly ear: NotificationListener | null
  readonly clock: Clock
  /** The same for all processes of a store, and different for other stores in the database. */
  readonly channel: string
  /**
   * Asks the store to look at these sessions, or at everything watched (null), and at due sessions if `due`. Seq 0:
   * removed.
   */
  readonly heard: (sessions: ReadonlyMap<string, number> | null, due: boolean) => void | Promise<void>
  /** Measures how late commits are heard of, by the store's clock. Absent: not measured. */
  readonly lag?: HintLag
}

/** `on`: when the first commit in it was made, by the store's clock. `follows`: the sender wants growth hints. */
type CommitHint = {
  readonly by: string
  readonly follows: boolean
  readonly on: number | null
  readonly due: boolean
  readonly at: readonly (readonly [string, number])[] | null
}

export class CommitHints {
  readonly #options: CommitHintsOptions
  readonly #told = new Map<string, number>()
  #grown = new Map<string, number>()
  #due = false
  #since: number | null = null
  #sending: Promise<void> | null = null
  #sendNow: () => void = () => {}
  #cancelEnd: () => void = () => {}
  #closed = false
  /** The sessions to look at; null for all. */
  #heard: Map<string, number> | null = new Map()
  #heardDue = false
  #started = false
  #unlisten: Promise<() => void> | null = null
  #notBack: () => void = () => {}
  #cancel: (() => void) | null = null
  #looks = 0
  #delivering = false
  /**
   * The number of followers in this process, the time of its last announcement, and until when other followers are
   * assumed.
   */
  #followers = 0
  #announcedAt = Number.NEGATIVE_INFINITY
  #followedUntil = Number.POSITIVE_INFINITY

  constructor(options: CommitHintsOptions) {
    this.#options = options
  }

  /** Listens until `stop`, as long as there are watchers. Resolves when it listens, or cannot for now. */
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

  /** The last watcher is gone. It keeps listening for `LINGER_MS`, unless it is started again. */
  stop(): void {
    this.#cancelEnd()
    this.#cancelEnd = steadyClock.timer(LINGER_MS, () => this.#end())
  }

  /** From now on other processes report growth. Returns a function that ends it. */
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
    // Before the store is open it has no id, and would take its own announcement for another's. The next look
    // announces.
    if (!hints || this.#closed || by === '') return
    this.#announcedAt = steadyClock.now()
    await this.#notify([hintText({ by, on: null, due: false, follows: true, at: [] })])
  }

  /** Also when other processes are unknown: after a start, or a lost connection. */
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

  /**
   * Called after a commit of this process. Changes reported while a hint is being sent go into the next hint. Seq 0:
   * removed.
   */
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

  /** Resolves when the reported changes are sent, or lost. */
  async close(): Promise<void> {
    this.#closed = true
    this.#cancelEnd()
    this.#end()
    this.#sendNow()
    await this.#sending
  }

  async #send(): Promise<void> {
    // Waits for further changes that the caller reports in the same round.
    await Promise.resolve()
    while (this.#grown.size > 0 || this.#due) {
      await this.#notify(this.#hints())
      if (!this.#due && !this.#closed) await this.#pause()
    }
    this.#sending = null
  }

  /** Looking each second finds what a lost hint would have reported. */
  async #notify(hints: readonly string[]): Promise<void> {
    const { connections, clock, channel } = this.#options
    const patience = new Patience(clock, 0)
    await connections.reader
      .ask('terret_hint', 'select pg_notify($1, hint) from unnest($2::text[]) hint', [channel, hints], { patience })
      .catch(() => {})
  }

  /** Waits `GATHER_MS`, or until `#sendNow`. */
  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = steadyClock.timer(GATHER_MS, resolve)
      this.#sendNow = () => {
        cancel()
        resolve()
      }
    })
  }

  /** Turns the gathered changes into texts that are short enough. */
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
    return all ? [hintText({ ...about, at: null })] : rooms.map((at) => hintText({ ...about, at }))
  }

  #hear(text: string): void {
    const hint = parseHint(text)
    if (hint === null || hint.by === this.#options.connections.id) return
    if (hint.follows) return this.#assumeFollowed()
    if (hint.on !== null && this.#started) this.#options.lag?.hear(hint.on)
    // This process's own commits are newer, unless the session is gone.
    const newer = hint.at?.filter(([session, seq]) => seq === 0 || seq > (this.#told.get(session) ?? 0))
    this.#gather(newer ?? null, hint.due)
  }

  #gather(sessions: CommitHint['at'], due: boolean): void {
    if (!this.#started) return
    this.#heardDue ||= due
    if (sessions === null) this.#heard = null
    for (const [session, seq] of sessions ?? []) this.#heard?.set(session, seq)
    if (!this.#delivering) void this.#deliver()
  }

  /**
   * Delivers all hints of one packet together, and all that arrive while the store looks, so that a flood of hints
   * builds no queue.
   */
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
        // The store's own request met trouble, and the next caller's request will report it.
      }
    }
    this.#delivering = false
  }

  #schedule(): void {
    if (this.#started) this.#cancel = this.#options.clock.timer(LOOK_EVERY_MS, () => this.#look())
  }

  #look(): void {
    this.#looks += 1
    // With several hosts another one may have become the primary while the old one still answers.
    if (this.#looks % LOOKS_PER_HOSTS === 0) void this.#options.connections.lane.look()
    if (this.#looks % LOOKS_PER_FOLLOW === 0 && this.#followers > 0) void this.#announce()
    this.#gather(null, false)
    this.#schedule()
  }
}

function hintText({ by, on, due, follows, at }: CommitHint): string {
  return JSON.stringify({
    by,
    ...(follows ? { follows } : {}),
    ...(on === null ? {} : { on }),
    ...(due ? { due } : {}),
    ...(at === null ? { all: true } : { at }),
  })
}

/** Anybody with access to the database can send anything to a channel. Invalid texts are ignored. */
function parseHint(text: string): CommitHint | null {
  try {
    const read = JSON.parse(text) as Readonly<Record<string, unknown>> | null
    if (typeof read?.['by'] !== 'string') return null
    const on = typeof read['on'] === 'number' ? read['on'] : null
    const about = { by: read['by'], on, due: read['due'] === true, follows: read['follows'] === true }
    if (read['all'] === true) return { ...about, at: null }
    if (!Array.isArray(read['at'])) return null
    return { ...about, at: read['at'].filter((entry) => isHintEntry(entry)) }
  } catch {
    return null
  }
}

function isHintEntry(entry: unknown): entry is readonly [string, number] {
  if (!Array.isArray(entry) || entry.length !== 2) return false
  const [session, seq] = entry as readonly unknown[]
  if (typeof session !== 'string' || session === '' || session.length > ID_LENGTH_MAX) return false
  return typeof seq === 'number' && Number.isSafeInteger(seq) && seq >= 0
}
