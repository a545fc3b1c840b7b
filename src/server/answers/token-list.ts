// Who has a token: only admins see and change it. A token itself is shown once.
import type { Asked, Given } from '../host.ts'
import type { DoneAnswer, TokenBody, TokenMade, TokensAnswer } from '../wire.ts'

export async function tokens({ tokens: kept }: Asked): Promise<Given> {
  return { json: { tokens: kept.list() } satisfies TokensAnswer }
}

export async function makeToken({ tokens: kept, body, host }: Asked): Promise<Given> {
  return { json: kept.make(body as TokenBody, host.store.now()) satisfies TokenMade }
}

/** Streams that were opened with it end. */
export async function dropToken({ tokens: kept, params, server }: Asked): Promise<Given> {
  const { name = '' } = params
  kept.drop(name)
  for (const [stream, principal] of server.streams) if (principal.name === name) stream.bye('token')
  return { json: { ok: true } satisfies DoneAnswer }
}
