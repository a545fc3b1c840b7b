// Notices writes of other processes to the same file. It sleeps while no process writes: no query and no timer. It only
// asks to look: the store finds out what is new.
import { type FSWatcher, watch } from 'node:fs'
import type { Clock } from '../../ports/system.ts'

/** A writer touches the WAL before its fsync and becomes visible after it. So look soon, and then a few times more. */
const FIRST_LOOK_MS = 8
const LAST_LOOK_MS = 1000
const LOOK_FOR_MS = 5000

/** This many own commits between two looks are a burst, in which the file system need not report each. */
const BURST = 4

export class WalWatcher {
  readonly #file: string
  readonly #clock: Clock
  readonly #look: () => void
  #running = false
  /** Null when stopped, during a burst, and where the machine can provide no watcher. */
  #watcher: FSWatcher | null = null
  #cancel: (() => void) | null = null
  #delay = FIRST_LOOK_MS
  #touched = false
  #touchedAt = 0
  #writes = 0

  constructor(file: string, clock: Clock, look: () => void) {
    this.#file = file
    this.#clock = clock
    this.#look = look
  }

  get running(): boolean {
    return this.#running
  }

  start(): void {
    if (this.#running) return
    this.#running = true
    this.#arm()
    if (this.#watcher === null) this.#schedule(FIRST_LOOK_MS)
  }

  stop(): void {
    this.#running = false
    this.#disarm()
    this.#cancel?.()
    this.#cancel = null
  }

  /** This process has written. */
  wrote(): void {
    this.#writes += 1
  }

  #arm(): void {
    try {
      // The WAL exists, and stays the same file, as long as our own connection is open.
      this.#watcher = watch(`${this.#file}-wal`, { persistent: false }, () => this.#touch())
      this.#watcher.on('error', () => this.#disarm())
    } catch {
      // The machine watches too many files already. Then it looks by the clock, and tries to watch again each time.
      this.#watcher = null
    }
  }

  #disarm(): void {
    this.#watcher?.close()
    this.#watcher = null
  }

  #touch(): void {
    this.#touched = true
    if (this.#cancel && this.#delay === FIRST_LOOK_MS) return
    this.#cancel?.()
    this.#schedule(FIRST_LOOK_MS)
  }

  #schedule(delay: number): void {
    this.#delay = delay
    this.#cancel = this.#clock.timer(delay, () => this.#wake())
  }

  #wake(): void {
    this.#cancel = null
    this.#look()
    if (!this.#running) return
    const burst = this.#writes >= BURST
    this.#writes = 0
    if (burst) {
      this.#disarm()
      this.#schedule(FIRST_LOOK_MS)
    } else this.#settle()
  }

  /** Looks less and less often, and in the end only when the file system reports a change. */
  #settle(): void {
    const now = this.#clock.now()
    if (this.#watcher === null) {
      // After a burst: writes of other processes until now were not reported.
      this.#arm()
      this.#touched = true
    }
    if (this.#touched) this.#touchedAt = now
    const delay = this.#touched ? FIRST_LOOK_MS : this.#delay
    this.#touched = false
    if (now - this.#touchedAt < LOOK_FOR_MS) this.#schedule(Math.min(delay * 2, LAST_LOOK_MS))
  }
}
