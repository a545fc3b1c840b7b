// The store of a server, as commands read it: cards, lists and logs over HTTP. It writes nothing: what commands say goes through the
// verbs of the client (`aside`).
import { type Client, connect, type ListQuery, type WireCard } from '../../client/index.ts'
import type { Card, CardFilter, CardPage, CardQuery, Event, Store } from '../../kernel/index.ts'
import { EXIT, Refusal } from '../exit.ts'
import type { Far } from '../present/print.ts'
import { keepClient, tokenOf } from '../state/far.ts'

const PAGE = 200

export async function farStore(far: Far): Promise<Store> {
  const client = connect({ url: far.url, token: tokenOf(far) })
  // What is wrong with the address or the token is said before anything else.
  const { now } = await client.me()
  const aheadMs = now - Date.now()
  const reads = {
    reach: 'network',
    open: async () => {},
    now: () => Date.now() + aheadMs,
    card: (session: string) => cardOf(client, session),
    list: (filter: CardFilter) => listed(client, filter),
    listBelow: undefined,
    page: (query: CardQuery) => paged(client, query),
    read: (session: string, after: number, limit?: number) => readLog(client, session, after, limit),
    snapshot: async () => null,
    blob: async (hash: string, of?: string) => {
      const found = of === undefined ? null : await client.session(of).blob(hash)
      return found && { hash, ...found }
    },
    watch: (session: string, listener: (news: readonly Event[] | null) => void) => watched(client, session, listener),
    watchDue: () => () => {},
    close: async () => {},
  }
  const store = new Proxy(reads, {
    get: (target, name): unknown => (name in target || isAsked(name) ? Reflect.get(target, name) : notHere),
  }) as unknown as Store
  keepClient(store, client)
  return store
}

/** What a promise looks for. */
function isAsked(name: string | symbol): boolean {
  return typeof name === 'symbol' || name === 'then'
}

function notHere(): never {
  throw new Refusal(EXIT.usage, 'This needs the data folder itself. Run it where the server runs, without --server.')
}

/** As the store has it, without what the server adds. */
function bare({ costUsd: _cost, treeCostUsd: _tree, ...card }: WireCard): Card {
  return card
}

async function cardOf(client: Client, session: string): Promise<Card | null> {
  try {
    return bare(await client.session(session).card())
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'session_missing'
}

async function listed(
  client: Client,
  { newest, after, limit, where: _, waiting: _waiting, ...filter }: CardFilter,
): Promise<readonly Card[]> {
  const cards: Card[] = []
  const order: ListQuery['order'] = newest === undefined ? 'id' : newest === 'made' ? 'made' : 'newest'
  for (let cursor = after; cards.length < limit; ) {
    const size = Math.min(PAGE, limit - cards.length)
    const page = await client.list({ ...filter, order, limit: size, ...(cursor ? { cursor } : {}) })
    cards.push(...page.sessions.map(bare))
    if (page.next === null) break
    cursor = page.next
  }
  return cards
}

/** The place where a page ends is the server's own: it is handed back as it came. */
async function paged(client: Client, { behind, where: _, owner: _owner, ...query }: CardQuery): Promise<CardPage> {
  const cursor = behind as unknown as string | undefined
  const limit = Math.min(query.limit, PAGE)
  const { sessions, next } = await client.list({ ...query, limit, ...(cursor === undefined ? {} : { cursor }) })
  return { cards: sessions.map(bare), next: next as unknown as CardPage['next'] }
}

/** Empty for one that is behind the end, as a store has it. */
async function readLog(client: Client, session: string, after: number, limit?: number) {
  try {
    const page = await client.session(session).read(after, limit ?? Number.MAX_SAFE_INTEGER)
    const odd = page.events.find(({ seq }, i) => seq !== after + 1 + i)
    if (odd) throw new Refusal(EXIT.config, `The server gives event ${odd.seq} of ${session} out of order.`)
    return page
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'cursor_stale') return { events: [] }
    throw error
  }
}

/** Only that there is news: who is told reads the log. */
function watched(client: Client, session: string, listener: (news: readonly Event[] | null) => void): () => void {
  const over = new AbortController()
  const follow = async (): Promise<void> => {
    const { seq } = await client.session(session).card()
    for await (const item of client.session(session).follow({ after: seq, signal: over.signal }))
      if (item.type === 'event') listener(null)
  }
  follow().catch(() => listener(null))
  return () => over.abort()
}
