// A clock that jumps to its next timer when nothing happens any more, so that a test waits for no retry, lease or wake.
// While code of the user's runs, time passes as it does: a jump would end it by its deadline. With `jumps` it passes
// over a wait of such code too, if that waits by its own clock. This is not the simulator's clock, which decides what
// happens when; here the user's code does real work.
import type { Write } from '../../ports/store.ts'
import type { Clock } from '../../ports/system.ts'
import { uptimeMs } from '../../stores/plan/system-clock.ts'

/** Nothing may have happened for so long before time jumps. */
const STILL_MS = 5
/**
 * And for longer before it jumps far while a session has open work: what takes a moment must not meet its deadline. The
 * first run loads modules late, which may take a while.
 */
const STILL = { usual: { share: 1 / 200, msMax: 250 }, first: { share: 1 / 20, msMax: 3_000 } } as const
const START = Date.UTC(2030, 0, 1)
const TIMER_MS_MAX = 2 ** 31 - 1

type Step = -1 | 0 | 1
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
  #life = 0
  readonly #dues = new Map<string, number>()
  #handle: NodeJS.Timeout | null = null

  readonly #still: (typeof STILL)[keyof typeof STILL]

  /** `jumps`: also over the waits of user code. `isFirst`: nothing has run in this process yet. */
  constructor({ jumps, isFirst }: { readonly jumps: boolean; readonly isFirst: boolean }) {
    this.#jumps = jumps
    this.#still = isFirst ? STILL.first : STILL.usual
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

  /** When each session is due, as these writes say: now while it has open work. */
  noteWrites(writes: readonly Write[]): void {
    for (const write of writes) {
      const due = write.lane === 'owner' ? write.card.due : 0
      this.#dues.set(write.session, due ?? Number.POSITIVE_INFINITY)
      for (const { session } of (write.lane === 'owner' && write.sends) || []) this.#dues.set(session, 0)
    }
  }

  enter(): RunningCode {
    const life = this.#life
    let waits = 0
    let left = false
    const shift = (busy: Step, waiting: Step): void => {
      if (life === this.#life) this.#shift(busy, waiting)
    }
    shift(1, 0)
    const wait = (by: 1 | -1): void => {
      waits += by
      if (left) return
      if (waits === 1 && by === 1) shift(-1, 1)
      else if (waits === 0) shift(1, -1)
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
      if (waits > 0) shift(0, -1)
      else shift(-1, 0)
      left = true
    }
    return { clock: this.#jumps ? { now: this.now, timer } : null, leave }
  }

  /** Forgets all timers and all code that runs: a life has ended. */
  clear(): void {
    this.#life += 1
    this.#busy = 0
    this.#waiting = 0
    this.#timers = []
    if (this.#handle) clearTimeout(this.#handle)
    this.#handle = null
  }

  #shift(busy: Step, waiting: Step): void {
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
    const { share, msMax } = this.#still
    const now = this.now()
    const isWaited = this.#waiting > 0 || [...this.#dues.values()].every((due) => due > now)
    if (!isWaited && isReading()) this.stir()
    const ms = isWaited ? STILL_MS : Math.min(Math.max(STILL_MS, ahead * share), msMax)
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
