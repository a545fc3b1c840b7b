// A store with some of its verbs replaced: to watch, to bend or to stop what passes through. All others are the store's own.
import type { CompleteStore } from '../src/ports/store.ts'

export function storeWith(inner: CompleteStore, own: Partial<CompleteStore>): CompleteStore {
  return new Proxy(inner, {
    get(target, name, outer) {
      return name in own ? (Reflect.get(own, name) as unknown) : memberOf(target, name, outer)
    },
  })
}

/** A store that cannot `take`: what is due is asked for and claimed in two steps. */
export function withoutTake(inner: CompleteStore): CompleteStore {
  return new Proxy(inner, {
    get: (target, name, outer) => (name === 'take' ? undefined : memberOf(target, name, outer)),
  })
}

/** A capability that is the store itself is the outer store, with what it replaces. */
function memberOf(target: CompleteStore, name: string | symbol, outer: unknown): unknown {
  const member: unknown = Reflect.get(target, name)
  if (member === target) return outer
  return typeof member === 'function' ? (member.bind(target) as unknown) : member
}
