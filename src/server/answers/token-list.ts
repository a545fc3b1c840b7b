// The handlers that list, make and drop tokens, for admins only. A token itself is shown once.
import { type ApiRequest, type ApiAnswer, OWNER } from '../server-host.ts'
import type { CompleteStore } from '../../kernel/index.ts'
import { type TokenRegistry, nameUsedRefusal } from '../token-registry.ts'
import type { DoneAnswer, TokenBody, TokenMade, TokensAnswer } from '../wire.ts'

export async function handleTokens({ tokens: kept }: ApiRequest): Promise<ApiAnswer> {
  return { json: { tokens: kept.list() } satisfies TokensAnswer }
}

export async function handleMakeToken({ tokens: kept, body, host }: ApiRequest): Promise<ApiAnswer> {
  return { json: (await makeNamedToken(kept, host.store, body as TokenBody)) satisfies TokenMade }
}

/** Refuses a name whose sessions are in the store, unless the new token inherits them. */
export async function makeNamedToken(kept: TokenRegistry, store: CompleteStore, body: TokenBody): Promise<TokenMade> {
  const name = body.name.trim()
  const isKept = kept.list().some((row) => row.name === name)
  // Older versions did not keep the names of dropped tokens, but the sessions still carry them as owners.
  const owned = isKept || body.inherit ? [] : await store.list({ where: { [OWNER]: name }, limit: 1 })
  if (owned.length > 0) throw nameUsedRefusal(name)
  return kept.make(body, store.now())
}

/** Also ends the streams that were opened with the token. */
export async function handleDropToken({ tokens: kept, params, server }: ApiRequest): Promise<ApiAnswer> {
  const { name = '' } = params
  kept.drop(name)
  for (const [stream, principal] of server.streams) if (principal.name === name) stream.bye('token')
  return { json: { ok: true } satisfies DoneAnswer }
}
