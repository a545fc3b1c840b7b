// Notices what other processes write to the same file. Asleep while nobody writes: no query and no timer.
// It only says "something changed": the store finds out what.
import { type FSWatcher, watch } from 'node:fs'
import type { Clock } from '../kernel/ports.ts'

/** A writer touches the WAL before its fsync and becomes visible after it. So look soon, and then a few times more. */
const FIRST_LOOK_MS = 8
const LAST_LOOK_MS = 1000
const LOOK_FOR_MS = 5000

export class Watcher {
  readonly #file: string
  readonly #clock: Clock
  readonly #look: () => void
  #watcher: FSWatcher | null = null
  #cancel: (() => void) | null = null
  #touchedAt = 0
  #delay = FIRST_LOOK_MS
  #touched = false

  constructor(file: string, clock: Clock, look: () => void) {
    this.#file = file
    this.#clock = clock
    this.#look = look
  }

  get running(): boolean {
    return this.#watcher !== null
  }

  start(): void {
    if (this.#watcher) return
    // The WAL exists, and stays the same file, as long as our own connection is open.
    this.#watcher = watch(`${this.#file}-wal`, { persistent: false }, () => this.#touch())
    this.#watcher.on('error', () => this.stop())
  }

  stop(): void {
    this.#watcher?.close()
    this.#watcher = null
    this.#cancel?.()
    this.#cancel = null
  }

  #touch(): void {
    this.#touched = true
    if (this.#delay === FIRST_LOOK_MS && this.#cancel) return
    this.#cancel?.()
    this.#schedule(FIRST_LOOK_MS)
  }

  #schedule(delay: number): void {
    this.#delay = delay
    this.#cancel = this.#clock.timer(delay, () => this.#wake())
  }

  #wake(): void {
    this.#cancel = null
    const now = this.#clock.now()
    if (this.#touched) this.#touchedAt = now
    this.#touched = false
    this.#look()
    if (now - this.#touchedAt < LOOK_FOR_MS) this.#schedule(Math.min(this.#delay * 2, LAST_LOOK_MS))
  }
}
