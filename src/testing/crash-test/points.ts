// The points at which a life can end: before and after each commit, on entering and leaving each handler, when a model is
// asked and when it has answered. A life that has ended waits for ever: no promise of its store, its models and its
// handlers settles any more, because an error would be an outage and no crash.
import type { CompleteStore, Write } from '../../ports/store.ts'

/** A point at which a life can end. */
export type CrashPoint = {
  /** Counts from 1 in the order of the run without a crash; 0 is that run. */
  readonly n: number
  /** What happens at the point, such as which commit or which handler. */
  readonly name: string
}

export const NO_CRASH: CrashPoint = { n: 0, name: 'without a crash' }

export class LifePoints {
  readonly names: string[] = []
  dead = false
  readonly #at: string | null
  readonly #die: () => void
  readonly #counts = new Map<string, number>()

  /** `at` is the name of the point at which this life ends. Null: it goes on to its end. */
  constructor(at: string | null, die: () => void) {
    this.#at = at
    this.#die = die
  }

  /** The next number of a commit, a handler or a request. */
  count(what: string): number {
    const n = (this.#counts.get(what) ?? 0) + 1
    this.#counts.set(what, n)
    return n
  }

  /** True if the life goes on after this point. */
  pass(name: string): boolean {
    if (this.dead) return false
    this.names.push(name)
    if (name !== this.#at) return true
    this.dead = true
    this.#die()
    return false
  }
}

/** A promise that never settles. Each caller gets its own, so that nothing of a dead life is kept. */
export function waitForever(): Promise<never> {
  return new Promise(() => {})
}

/** These return no promise. */
const AT_ONCE: ReadonlySet<string | symbol> = new Set(['now', 'watch', 'watchCards', 'watchDue', 'post'])

type Method = (...args: readonly unknown[]) => unknown

/** Hears of everything that the store does. */
type StoreListener = { readonly stir: () => void; readonly noteWrites: (writes: readonly Write[]) => void }

/** The store as one life sees it. Methods are bound to the store itself, which has private fields. */
export function storeOfLife(store: CompleteStore, points: LifePoints, listener: StoreListener | null): CompleteStore {
  const methods = new Map<string | symbol, Method>()
  return new Proxy(store, {
    get(target, name, outer: unknown) {
      const known = methods.get(name)
      if (known) return known
      const member: unknown = Reflect.get(target, name)
      if (member === target) return outer
      if (typeof member !== 'function') return member
      const bound = member.bind(target) as Method
      const isCommit = name === 'commit'
      const method = AT_ONCE.has(name)
        ? deafWhenDead(bound, points)
        : silentWhenDead(bound, { points, listener, isCommit })
      methods.set(name, method)
      return method
    },
  })
}

type StoreWatch = { readonly points: LifePoints; readonly listener: StoreListener | null; readonly isCommit: boolean }

function silentWhenDead(method: Method, { points, listener, isCommit }: StoreWatch): Method {
  return async (...args) => {
    const n = isCommit ? points.count('commit') : 0
    if (points.dead || (isCommit && !points.pass(`before commit ${n}`))) return waitForever()
    listener?.stir()
    const value = await method(...args)
    listener?.stir()
    if (isCommit) listener?.noteWrites(args[0] as readonly Write[])
    return points.dead || (isCommit && !points.pass(`after commit ${n}`)) ? waitForever() : value
  }
}

/** A dead life hears of no commits of the next one. */
function deafWhenDead(method: Method, points: LifePoints): Method {
  const heard = (listener: Method): Method => {
    return (...news) => (points.dead ? undefined : listener(...news))
  }
  return (...args) => method(...args.map((arg) => (typeof arg === 'function' ? heard(arg as Method) : arg)))
}
