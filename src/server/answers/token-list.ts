// Who has a token: only admins see and change it. A token itself is shown once.
import { type Asked, type Given, OWNER } from '../host.ts'
import type { Store } from '../../kernel/index.ts'
import { type Tokens, wasUsed } from '../tokens.ts'
import type { DoneAnswer, TokenBody, TokenMade, TokensAnswer } from '../wire.ts'

export async function tokens({ tokens: kept }: Asked): Promise<Given> {
  return { json: { tokens: kept.list() } satisfies TokensAnswer }
}

export async function makeToken({ tokens: kept, body, host }: Asked): Promise<Given> {
  return { json: (await newToken(kept, host.store, body as TokenBody)) satisfies TokenMade }
}

/** Refused for a name whose sessions are here, unless the new token is to have them. */
export async function newToken(kept: Tokens, store: Store, body: TokenBody): Promise<TokenMade> {
  const name = body.name.trim()
  const isKept = kept.list().some((row) => row.name === name)
  // Dropped by an older version, which kept no names: its sessions still have it.
  const owned = isKept || body.inherit ? [] : await store.list({ where: { [OWNER]: name }, limit: 1 })
  if (owned.length > 0) throw wasUsed(name)
  return kept.make(body, store.now())
}

/** Streams that were opened with it end. */
export async function dropToken({ tokens: kept, params, server }: Asked): Promise<Given> {
  const { name = '' } = params
  kept.drop(name)
  for (const [stream, principal] of server.streams) if (principal.name === name) stream.bye('token')
  return { json: { ok: true } satisfies DoneAnswer }
}
