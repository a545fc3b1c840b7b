// What an Idempotency-Key becomes: the id of the event or the session that the request makes. The store knows that id for good, so the
// same request twice is one change, also after a restart and through another server; no table is kept.
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Refused } from './refusals.ts'
import type { Principal } from './wire.ts'
import type { Found } from './checks.ts'
import type { Body } from './body.ts'

export type Key = {
  /** Of the principal and the key alone: one key is one id, whatever is sent with it. */
  readonly id: string
  /** Of what was asked. Another body under the same key is another request. */
  readonly digest: string
}

/** Together as many as a UUID has. */
const ID_CHARS = 20
const DIGEST_CHARS = 12
const KEY = /^[\x21-\x7e]{1,255}$/

export function keyOf(
  request: IncomingMessage,
  principal: Principal,
  { name, params, route }: Found,
  body: Body,
): Key | null {
  const given = request.headers['idempotency-key']
  if (given === undefined || !route.keyed) return null
  if (typeof given !== 'string' || !KEY.test(given))
    throw new Refused(400, 'invalid_input', 'An Idempotency-Key has 1 to 255 plain characters.')
  return {
    id: hashOf([principal.name, given]).slice(0, ID_CHARS),
    digest: hashOf([name, JSON.stringify(params), canonical(body)]).slice(0, DIGEST_CHARS),
  }
}

function hashOf(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

/** The order of fields says nothing. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (inner === null || typeof inner !== 'object' || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  })
}

/** How the ids of sessions begin that this key has made, and the one that this request makes: what was asked is a part of it. */
export function sessionIdsOf({ id, digest }: Key): { readonly start: string; readonly id: string } {
  const [a, b, c, d] = [id.slice(0, 8), id.slice(8, 12), id.slice(12, 16), id.slice(16, 20)]
  const start = `${a}-${b}-${c}-${d}-`
  return { start, id: `${start}${digest}` }
}

/** Requests that are being answered: the same key meanwhile is refused, and may be sent again. */
export class InFlight {
  readonly #open = new Set<string>()

  async run<T>(key: Key | null, act: () => Promise<T>): Promise<T> {
    if (key === null) return act()
    if (this.#open.has(key.id))
      throw new Refused(
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

export const reused = (): Refused => {
  return new Refused(422, 'id_reused', 'This Idempotency-Key was used for another request. Choose a new one.')
}
