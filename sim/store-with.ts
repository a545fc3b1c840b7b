// A store with some of its verbs replaced: to watch, to bend or to stop what passes through. All others are the store's own.
import type { Store } from '../src/ports/store.ts'

export function storeWith(inner: Store, own: Partial<Store>): Store {
  return new Proxy(inner, {
    get(target, name) {
      if (name in own) return Reflect.get(own, name) as unknown
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
}

/** A store that cannot `take`: what is due is asked for and claimed in two steps. */
export function withoutTake(inner: Store): Store {
  return new Proxy(inner, {
    get(target, name) {
      const member: unknown = name === 'take' ? undefined : Reflect.get(target, name)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
}
