// The store of a server for commands: cards, lists and logs over HTTP. It only reads: commands write through the
// functions of the client (`withoutDriving`).
import { type Client, connect, type WireCard } from '../../client/index.ts'
import type { Card, CardFilter, CardPage, CardQuery, Event, Page, CompleteStore } from '../../kernel/index.ts'
import type { EventPage, ListedCard } from '../../index.ts'
import { EXIT, CliError } from '../exit.ts'
import type { RemoteServer } from '../present/print.ts'
import { registerClient, readRemoteToken } from '../state/remote-server.ts'
import { PatientFetch } from './patient-fetch.ts'

const PAGE = 200
const LOG_PAGE = 1_000

export async function openRemoteStore(far: RemoteServer): Promise<CompleteStore> {
  const patience = new PatientFetch()
  const client = connect({ url: far.url, token: readRemoteToken(far), fetch: patience.fetch })
  // A wrong address or token is reported before anything else.
  const { now } = await client.server.me()
  const aheadMs = now - Date.now()
  const reads = {
    reach: 'network',
    open: async () => {},
    now: () => Date.now() + aheadMs,
    card: (session: string) => readRemoteCard(client, session),
    list: (filter: CardFilter) => listCards(client, filter),
    listBelow: undefined,
    listWaking: undefined,
    page: (query: CardQuery) => pageCards(client, query),
    read: (session: string, after: number, limit?: number) => readLog(client, session, after, limit),
    snapshot: async () => null,
    blob: async (hash: string, of?: string) => {
      const found = of === undefined ? null : await client.session(of).blob(hash)
      return found
    },
    watch: (session: string, listener: (news: readonly Event[] | null) => void) =>
      watchSession(client, session, listener),
    watchDue: () => () => {},
    close: async () => {},
  }
  const store = new Proxy(reads, {
    get: (target, name): unknown => (name in target || isPromiseProbe(name) ? Reflect.get(target, name) : refuseRemote),
  }) as unknown as CompleteStore
  registerClient(store, client)
  patient.set(store, patience)
  return store
}

const patient = new WeakMap<object, PatientFetch>()

/** The requests of a store of a server, which can be made to wait while the server is away. */
export function patienceOf(store: object): PatientFetch {
  const found = patient.get(store)
  if (!found) throw new Error('This store is of no server.')
  return found
}

/** True for names that JavaScript itself asks for, for example when a value is awaited. */
function isPromiseProbe(name: string | symbol): boolean {
  return typeof name === 'symbol' || name === 'then'
}

function refuseRemote(): never {
  throw new CliError(EXIT.usage, 'This needs the data folder itself. Run it where the server runs, without --server.')
}

/** The card as a store has it, without the fields that the server adds. */
function toCard(listed: ListedCard | WireCard): Card {
  const {
    costUsd: _cost,
    treeCostUsd: _tree,
    treeCost: _micros,
    context: _fill,
    run: _run,
    phase: _phase,
    ...card
  } = listed as ListedCard
  return card
}

async function readRemoteCard(client: Client, session: string): Promise<Card | null> {
  try {
    return toCard((await client.server.session(session)).card)
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'session_missing'
}

async function listCards(
  client: Client,
  { where: _, waiting: _waiting, after, limit, ...filter }: CardFilter,
): Promise<readonly Card[]> {
  const cards: Card[] = []
  for (let cursor = after; cards.length < limit; ) {
    const size = Math.min(PAGE, limit - cards.length)
    const page = await client.list({ ...filter, order: 'id', limit: size, ...(cursor ? { cursor } : {}) })
    cards.push(...page.cards.map(toCard))
    if (page.next === null) break
    cursor = page.next
  }
  return cards
}

/** The cursor of a page belongs to the server, so it is passed back unchanged. */
async function pageCards(client: Client, { behind, where: _, owner: _owner, ...query }: CardQuery): Promise<CardPage> {
  const cursor = behind as unknown as string | undefined
  const { cards, next } = await client.list({ ...query, ...(cursor === undefined ? {} : { cursor }) })
  return { cards: cards.map(toCard), next: next as unknown as CardPage['next'] }
}

async function readLog(client: Client, session: string, after: number, limit = Number.MAX_SAFE_INTEGER): Promise<Page> {
  const events: Event[] = []
  for (let from: number | null = after; from !== null && events.length < limit; ) {
    const page: EventPage = await client
      .session(session)
      .events({ after: from, limit: Math.min(LOG_PAGE, limit - events.length) })
    events.push(...page.events)
    const odd = page.events.find(({ seq }, i) => seq !== (from ?? 0) + 1 + i)
    if (odd) throw new CliError(EXIT.config, `The server gives event ${odd.seq} of ${session} out of order.`)
    if (page.damaged) return { events, damaged: page.damaged }
    from = page.next
  }
  return { events }
}

/** Reports only that there is news. The listener reads the log. */
function watchSession(client: Client, session: string, listener: (news: readonly Event[] | null) => void): () => void {
  const over = new AbortController()
  const follow = async (): Promise<void> => {
    const { card } = await client.server.session(session)
    const { seq } = card
    for await (const item of client.session(session).follow({ after: seq, signal: over.signal }))
      if (item.type === 'event') listener(null)
  }
  follow().catch(() => listener(null))
  return () => over.abort()
}
