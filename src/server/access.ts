// The entries of an access log: one for each sign-in and one for each refusal. No entry holds a token, a path or a
// body.
import type { Principal } from './wire.ts'

/** A sign-in or a refused request, for a log of yours. It holds no token. */
export type AccessEntry = {
  /** When, in ms since 1970. */
  readonly at: number
  /** A first request of a principal from its address for an hour, or a refused request. */
  readonly type: 'signed_in' | 'refused'
  /** The address that the request came from, if it is known. */
  readonly from: string | null
  /** The route's name in the OpenAPI document, `page` or `mcp`. Null if the request was refused before routing. */
  readonly route: string | null
  /** The principal, if the token was valid. */
  readonly name: string | null
  /** The role of the principal. Null if the token was not valid. */
  readonly role: Principal['role'] | null
  /** Only on refusals. */
  readonly status?: number
  /** The code of the refusal. Only on refusals. */
  readonly code?: string
}

/** Further requests of a principal from the same address are no new sign-in for this long. */
const SAME_MS = 60 * 60_000
const KEPT_MAX = 1_000

/** Separates sign-ins from later requests of the same principal. */
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
