// The way to a store that does real input and output, one thing at a time: in the order in which it was asked, each to its end before
// the next begins. Virtual time stands still until nothing is under way (scheduler.ts), so a seed meets the same store again.
import type { CompleteStore } from '../src/ports/store.ts'

export class Gate {
  /** What is done now; undefined between two. */
  current: unknown
  #last: Promise<void> = Promise.resolve()
  #waiting = 0

  get isBusy(): boolean {
    return this.#waiting > 0
  }

  /** `what` is found in `current` while it is done. */
  async pass<T>(what: unknown, act: () => Promise<T>): Promise<T> {
    this.#waiting += 1
    const before = this.#last
    let done = (): void => {}
    this.#last = new Promise((resolve) => void (done = resolve))
    await before
    this.current = what
    try {
      return await act()
    } finally {
      this.current = undefined
      this.#waiting -= 1
      done()
    }
  }

  /** Resolves when what was asked before is done. */
  get idle(): Promise<void> {
    return this.#last
  }
}

const AT_ONCE: ReadonlySet<string | symbol> = new Set(['now', 'watch', 'watchDue', 'watchCards'])

/** The same store, through the gate. */
export function gated(inner: CompleteStore, gate: Gate): CompleteStore {
  return new Proxy(inner, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      if (AT_ONCE.has(name)) return member.bind(target) as unknown
      return (...args: readonly unknown[]) =>
        gate.pass(args[0], () => Reflect.apply(member, target, args) as Promise<unknown>)
    },
  })
}
