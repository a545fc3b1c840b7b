// The connection that listens: channels, and whoever hears them. It is asked something every second, because a listener on a dead
// server hears nothing and notices nothing. What the texts mean is not known here: hints are news.ts, live deltas post.ts.
import type { Clock } from '../../ports/system.ts'
import type { Link } from './connect.ts'
import { Patience } from './trouble.ts'

const ASK_EVERY_MS = 1_000
/** Channels are named by this program alone, and never quoted otherwise. */
const CHANNEL = /^[a-z][a-z0-9_]{0,62}$/

export class Ear {
  readonly #link: Link
  readonly #clock: Clock
  readonly #channels = new Map<string, (text: string) => void>()
  readonly #onBack = new Set<() => void>()
  #asking = false
  #cancel: (() => void) | null = null

  constructor(link: Link, clock: Clock) {
    this.#link = link
    this.#clock = clock
    link.onNotification = (channel, text) => this.#channels.get(channel)?.(text)
    link.onConnect = async (run) => {
      for (const channel of this.#channels.keys()) await run(`listen ${channel}`)
      // What was said since the last connection was lost is not known.
      for (const back of this.#onBack) back()
    }
    link.onLost = () => void this.#ask()
  }

  /** Resolves when all that is sent to the channel from now on is heard, or could not be for now. Returns its end. */
  async listen(channel: string, listener: (text: string) => void): Promise<() => void> {
    if (!isChannel(channel)) throw new Error(`"${channel}" cannot be a channel`)
    this.#channels.set(channel, listener)
    // Somebody waits for it, so the process must too.
    await this.#run(`listen ${channel}`, false)
    this.#again()
    return () => {
      if (this.#channels.get(channel) !== listener) return
      this.#channels.delete(channel)
      if (this.#channels.size === 0) this.#stop()
      else void this.#run(`unlisten ${channel}`)
    }
  }

  /** Called after each connection that was made: something may have been missed. Returns its end. */
  whenBack(listener: () => void): () => void {
    this.#onBack.add(listener)
    return () => void this.#onBack.delete(listener)
  }

  #again(): void {
    if (this.#channels.size > 0) this.#cancel ??= this.#clock.timer(ASK_EVERY_MS, () => void this.#ask())
  }

  /** A connection that does not answer this within a second is dropped, and the next one listens to all channels again. */
  async #ask(): Promise<void> {
    this.#cancel?.()
    this.#cancel = null
    if (this.#asking || this.#channels.size === 0) return
    this.#asking = true
    // A lost connection is made anew at once, and after that once a second.
    if (!(await this.#run('select 1'))) await this.#run('select 1')
    this.#asking = false
    this.#again()
  }

  /** Whether it was answered. Silence is not the caller's trouble: it is asked again in a second. */
  #run(text: string, idle = true): Promise<boolean> {
    const once = { idle, timeoutMs: 0, patience: new Patience(this.#clock, 0) }
    return this.#link.ask('', text, [], once).then(
      () => true,
      () => false,
    )
  }

  /** Nobody listens: the connection is given back. */
  #stop(): void {
    this.#cancel?.()
    this.#cancel = null
    this.#link.drop()
  }
}

export function isChannel(name: string): boolean {
  return CHANNEL.test(name)
}
