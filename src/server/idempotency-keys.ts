// Turns an Idempotency-Key into the id of the event or session that the request makes. The store keeps that id, so a
// repeated request is one change, even after a restart or through another server. No table is kept.
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { HttpRefusal } from './refusals.ts'
import type { Principal } from './wire.ts'
import type { RouteMatch } from './request-checks.ts'
import type { RequestFields } from './request-body.ts'

export type IdempotencyKey = {
  /** Derived from the principal and the key alone: one key gives one id, whatever the request. */
  readonly id: string
  /** Derived from the request. The same key with another body is another request. */
  readonly digest: string
}

/** Together they have as many characters as a UUID. */
const ID_CHARS = 20
const DIGEST_CHARS = 12
const KEY = /^[\x21-\x7e]{1,255}$/

export function readIdempotencyKey(
  request: IncomingMessage,
  principal: Principal,
  { name, params, route }: RouteMatch,
  body: RequestFields,
): IdempotencyKey | null {
  const given = request.headers['idempotency-key']
  if (given === undefined || !route.keyed) return null
  if (typeof given !== 'string' || !KEY.test(given))
    throw new HttpRefusal(400, 'invalid_input', 'An Idempotency-Key has 1 to 255 plain characters.')
  return {
    id: keyIdOf(principal.name, given),
    digest: hashParts([name, JSON.stringify(params), canonicalText(body)]).slice(0, DIGEST_CHARS),
  }
}

/** The id of a key of this principal. A message that was sent with the key has it in its own id. */
export function keyIdOf(principal: string, key: string): string {
  return hashParts([principal, key]).slice(0, ID_CHARS)
}

function hashParts(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

/** The order of fields does not matter. */
function canonicalText(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (inner === null || typeof inner !== 'object' || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  })
}

/** The id of the event that a request with a key of this id makes. */
export function eventIdOfKey(id: string): string {
  return `http:${id}`
}

/** The common prefix of session ids made with this key, and the id for this request, which includes the digest. */
export function sessionIdsOf({ id, digest }: IdempotencyKey): { readonly start: string; readonly id: string } {
  const [a, b, c, d] = [id.slice(0, 8), id.slice(8, 12), id.slice(12, 16), id.slice(16, 20)]
  const start = `${a}-${b}-${c}-${d}-`
  return { start, id: `${start}${digest}` }
}

/** Requests in progress. A second request with the same key is refused meanwhile and may be sent again. */
export class InFlightRequests {
  readonly #open = new Set<string>()

  async run<T>(key: IdempotencyKey | null, act: () => Promise<T>): Promise<T> {
    if (key === null) return act()
    if (this.#open.has(key.id))
      throw new HttpRefusal(
        409,
        'in_flight',
        'A request with this Idempotency-Key is being answered. Send it again later.',
        1,
      )
    this.#open.add(key.id)
    try {
      return await act()
    } finally {
      this.#open.delete(key.id)
    }
  }
}

export const keyReusedRefusal = (): HttpRefusal => {
  return new HttpRefusal(422, 'id_reused', 'This Idempotency-Key was used for another request. Choose a new one.')
}
