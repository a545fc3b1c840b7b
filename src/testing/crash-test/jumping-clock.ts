// A clock that jumps to its next timer when nothing happens any more, so that a test waits for no retry, lease or wake.
// While code of the user's runs, time passes as it does: a jump would end it by its deadline. With `jumps` it passes
// over a wait of such code too, if that waits by its own clock. This is not the simulator's clock, which decides what
// happens when; here the user's code does real work.
import type { Clock } from '../../ports/system.ts'
import { uptimeMs } from '../../stores/plan/system-clock.ts'

/**
 * Nothing may have happened for so long before time jumps, and for longer before it jumps far: what takes a moment, such
 * as a module that is loaded late, must not meet its deadline.
 */
const STILL_MS = 5
const STILL_MS_MAX = 250
const STILL_SHARE = 1 / 200
const START = Date.UTC(2030, 0, 1)
const TIMER_MS_MAX = 2 ** 31 - 1

type Timer = { readonly at: number; readonly fire: () => void }

/** Code of the user's that runs. Time jumps while it waits by this clock; null if time does not jump then. */
type RunningCode = { readonly clock: Clock | null; readonly leave: () => void }

export class JumpingClock implements Clock {
  readonly #jumps: boolean
  /** The real time at which something last happened. */
  #stirred = 0
  #offset = START - uptimeMs()
  #timers: Timer[] = []
  /** How many pieces of user code run and do not wait by their own clock, and how many do. */
  #busy = 0
  #waiting = 0
  #handle: NodeJS.Timeout | null = null

  constructor(jumps: boolean) {
    this.#jumps = jumps
  }

  readonly now = (): number => Math.floor(this.#offset + uptimeMs())

  readonly timer = (ms: number, fire: () => void): (() => void) => {
    const timer = { at: this.now() + Math.min(Math.max(0, ms), TIMER_MS_MAX), fire }
    this.#timers.push(timer)
    this.#arm()
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer)
    }
  }

  /** Something happened, such as a read of the store. */
  stir(): void {
    this.#stirred = uptimeMs()
  }

  enter(): RunningCode {
    let waits = 0
    let left = false
    this.#shift(1, 0)
    const wait = (by: 1 | -1): void => {
      waits += by
      if (left) return
      if (waits === 1 && by === 1) this.#shift(-1, 1)
      else if (waits === 0) this.#shift(1, -1)
    }
    const timer: Clock['timer'] = (ms, fire) => {
      let open = true
      const close = (): void => {
        if (open) wait(-1)
        open = false
      }
      wait(1)
      const cancel = this.timer(ms, () => {
        close()
        fire()
      })
      return () => {
        close()
        cancel()
      }
    }
    const leave = (): void => {
      if (waits > 0) this.#shift(0, -1)
      else this.#shift(-1, 0)
      left = true
    }
    return { clock: this.#jumps ? { now: this.now, timer } : null, leave }
  }

  /** Forgets all timers. */
  clear(): void {
    this.#timers = []
    if (this.#handle) clearTimeout(this.#handle)
    this.#handle = null
  }

  #shift(busy: -1 | 0 | 1, waiting: -1 | 0 | 1): void {
    this.#busy += busy
    this.#waiting += waiting
    this.stir()
    if (busy < 0 && this.#timers.length > 0) this.#arm(true)
  }

  #arm(anew = false): void {
    if (this.#handle && !anew && this.#busy === 0) return
    if (this.#handle) clearTimeout(this.#handle)
    this.#handle = null
    const next = this.#next()
    if (next === undefined) return
    const ms = this.#busy > 0 ? next.at - this.now() : Math.min(STILL_MS, next.at - this.now())
    this.#handle = setTimeout(() => this.#look(), Math.max(0, ms))
  }

  #look(): void {
    this.#handle = null
    const next = this.#next()
    if (next === undefined) return
    const ahead = next.at - this.now()
    if (ahead > 0 && this.#isStill(ahead)) this.#offset += ahead
    if (next.at <= this.now()) {
      this.#timers = this.#timers.filter((each) => each !== next)
      this.stir()
      next.fire()
    }
    this.#arm()
  }

  #isStill(ahead: number): boolean {
    if (this.#busy > 0) return false
    if (this.#waiting === 0 && isReading()) this.stir()
    const ms = this.#waiting > 0 ? STILL_MS : Math.min(Math.max(STILL_MS, ahead * STILL_SHARE), STILL_MS_MAX)
    return uptimeMs() - this.#stirred >= ms
  }

  #next(): Timer | undefined {
    return this.#timers.reduce<Timer | undefined>(
      (least, each) => (least && least.at <= each.at ? least : each),
      undefined,
    )
  }
}

/** A file is being read, such as that of a module. */
function isReading(): boolean {
  return process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'))
}
