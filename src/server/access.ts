// The entries of an access log: one for each sign-in and one for each refusal. No entry holds a token, a path or a body.
import type { Principal } from './wire.ts'

export type AccessEntry = {
  readonly at: number
  readonly type: 'signed_in' | 'refused'
  /** The address that the request came from, where that is known. */
  readonly from: string | null
  /** The route by its name in the OpenAPI document, `page` or `mcp`; null if it was refused before that was looked up. */
  readonly route: string | null
  /** The principal, if the token was good. */
  readonly name: string | null
  readonly role: Principal['role'] | null
  /** Of a refusal. */
  readonly status?: number
  readonly code?: string
}

/** A principal that goes on from the same address signs in once in this time. */
const SAME_MS = 60 * 60_000
const KEPT_MAX = 1_000

/** Tells sign-ins from further requests. */
export class SignIns {
  readonly #seen = new Map<string, number>()

  /** Whether this is the first request of a principal from this address for a while. */
  isNew({ name }: Pick<Principal, 'name'>, from: string | null, now: number): boolean {
    const key = JSON.stringify([name, from])
    const last = this.#seen.get(key)
    if (last !== undefined && now - last < SAME_MS) return false
    this.#seen.delete(key)
    this.#seen.set(key, now)
    const [oldest] = this.#seen.keys()
    if (this.#seen.size > KEPT_MAX && oldest !== undefined) this.#seen.delete(oldest)
    return true
  }
}
