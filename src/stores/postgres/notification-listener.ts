// The connection that listens to channels, and the listeners of each. It asks the server something every second,
// because a listener on a dead server would notice nothing. The meaning of the texts is not known here: see
// commit-hints.ts for hints, postgres-channel.ts for live deltas.
import type { Clock } from '../../ports/system.ts'
import type { DatabaseConnection } from './connections.ts'
import { Patience } from './database-trouble.ts'

const ASK_EVERY_MS = 1_000
/** Only this program names channels, and it never quotes them. */
const CHANNEL = /^[a-z][a-z0-9_]{0,62}$/

export class NotificationListener {
  readonly #link: DatabaseConnection
  readonly #clock: Clock
  readonly #channels = new Map<string, (text: string) => void>()
  readonly #onBack = new Set<() => void>()
  #asking = false
  #cancel: (() => void) | null = null

  constructor(link: DatabaseConnection, clock: Clock) {
    this.#link = link
    this.#clock = clock
    link.onNotification = (channel, text) => this.#channels.get(channel)?.(text)
    link.onConnect = async (run) => {
      for (const channel of this.#channels.keys()) await run(`listen ${channel}`)
      // Texts sent since the last connection was lost are not known.
      for (const back of this.#onBack) back()
    }
    link.onLost = () => void this.#ask()
  }

  /**
   * Resolves when later texts to the channel will be received, or when that is impossible for now. Returns a function
   * that ends it.
   */
  async listen(channel: string, listener: (text: string) => void): Promise<() => void> {
    if (!isChannelName(channel)) throw new Error(`"${channel}" cannot be a channel`)
    this.#channels.set(channel, listener)
    // A caller waits for this, so the process must stay alive.
    await this.#run(`listen ${channel}`, false)
    this.#again()
    return () => {
      if (this.#channels.get(channel) !== listener) return
      this.#channels.delete(channel)
      if (this.#channels.size === 0) this.#stop()
      else void this.#run(`unlisten ${channel}`)
    }
  }

  /** Calls back after each new connection, because something may have been missed. Returns a function that ends it. */
  whenBack(listener: () => void): () => void {
    this.#onBack.add(listener)
    return () => void this.#onBack.delete(listener)
  }

  #again(): void {
    if (this.#channels.size > 0) this.#cancel ??= this.#clock.timer(ASK_EVERY_MS, () => void this.#ask())
  }

  /** A connection that does not answer within a second is dropped, and the next one listens to all channels again. */
  async #ask(): Promise<void> {
    this.#cancel?.()
    this.#cancel = null
    if (this.#asking || this.#channels.size === 0) return
    this.#asking = true
    // Reconnects at once after a loss, and then once a second.
    if (!(await this.#run('select 1'))) await this.#run('select 1')
    this.#asking = false
    this.#again()
  }

  /** True if it was answered. Silence is not reported to the caller: the next try is in a second. */
  #run(text: string, idle = true): Promise<boolean> {
    const once = { idle, timeoutMs: 0, patience: new Patience(this.#clock, 0) }
    return this.#link.ask('', text, [], once).then(
      () => true,
      () => false,
    )
  }

  /** No listener is left: the connection is closed. */
  #stop(): void {
    this.#cancel?.()
    this.#cancel = null
    this.#link.drop()
  }
}

export function isChannelName(name: string): boolean {
  return CHANNEL.test(name)
}
