// How the server and its sessions stand: health, cards, what waits for people, agents, what is due. Nothing is driven.
import { type Card, type CardOutcome, Fault, type Store, type StoreHealth } from '../../kernel/index.ts'
import { CARD_OUTCOMES } from '../../view/card.ts'
import { usdOf } from '../../view/usd.ts'
import { type Asked, cardOf, type Given, OWNER, reaches, shownCard } from '../host.ts'
import { METRICS_MEDIA, metricsText } from '../metrics.ts'
import { openApi } from '../open-api.ts'
import { SAFE } from '../pages.ts'
import { Refused } from '../refusals.ts'
import type {
  AgentsAnswer,
  Damaged,
  DueAnswer,
  Health,
  Me,
  PendingAnswer,
  SessionAnswer,
  SessionPage,
  WireCard,
} from '../wire.ts'
import { reasonOf, withWords } from './words.ts'

export async function me({ principal, host }: Asked): Promise<Given> {
  return { json: { ...principal, now: host.store.now(), store: host.storeId } satisfies Me }
}

export async function openapi({ host, server, request }: Asked): Promise<Given> {
  const { host: name = '' } = request.headers
  // On this machine it is plain HTTP. Elsewhere something stands before the server that knows the scheme, so the address is a path.
  const url = LOCAL.test(name) ? `http://${name}${server.base}` : server.base || '/'
  return { json: openApi(host.version, url) }
}

const LOCAL = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?$/

export async function agents({ host }: Asked): Promise<Given> {
  return { json: { agents: await host.agents() } satisfies AgentsAnswer }
}

/** Every answer of it is the answer of a write that was just made. It is 200 also when that failed: whoever asks reads `ok`. */
export async function health({ host, server, principal }: Asked): Promise<Given> {
  const { ok, trouble, writeMs, now, drives, store } = await host.harness.health()
  // Counts are of everybody's sessions.
  const counts = principal.reach === 'all'
  const json: Health = {
    ok,
    version: host.version,
    now,
    startedAt: server.startedAt,
    store: host.storeId,
    durability: {
      kind: store?.durability.startsWith('memory')
        ? 'memory'
        : /^sqlite/i.test(store?.durability ?? '')
          ? 'sqlite'
          : 'other',
      survives: store?.durability ?? 'unknown',
      appendMs: writeMs,
      ...p99Of(host.store, writeMs),
    },
    trouble: trouble === null ? null : trouble.message,
    ...(trouble === null ? {} : { code: trouble.code }),
    hosts: [...server.hosts],
    drives: drives || host.drives,
    driving: counts ? host.driving() : 0,
    streams: counts ? server.streams.size : 0,
    due: counts ? (store?.due ?? 0) : 0,
    ...(store && counts ? figuresOf(store) : {}),
  }
  return { json }
}

function figuresOf({ bytes, sessions, leases, waitedMs, network }: StoreHealth): Partial<Health> {
  return { bytes, sessions, leases, waitedMs, ...(network ? { network } : {}) }
}

/** A text, for programs that look every few seconds. */
export async function metrics({ host, response, principal }: Asked): Promise<Given> {
  if (principal.reach === 'own')
    throw new Refused(403, 'forbidden', 'Metrics are of all sessions. They need a token with the reach `all`.')
  const text = metricsText(await host.harness.health(), host.driving())
  response.writeHead(200, { ...SAFE, 'content-type': METRICS_MEDIA, 'cache-control': 'no-store' }).end(text)
  return null
}

const WRITES_KEPT = 500
const writes = new WeakMap<Store, number[]>()

/** Nothing before the first that was made. */
function p99Of(store: Store, ms: number | null): { readonly appendP99Ms?: number } {
  const made = writes.get(store) ?? []
  writes.set(store, made)
  if (ms !== null) made.push(ms)
  if (made.length > WRITES_KEPT) made.shift()
  const p99 = made.toSorted((a, b) => a - b)[Math.ceil(made.length * 0.99) - 1]
  return p99 === undefined ? {} : { appendP99Ms: p99 }
}

export async function session(asked: Asked): Promise<Given> {
  const { host } = asked
  const found = await cardOf(asked)
  const handle = host.harness.session(found.session, { stored: true })
  const about = { head: found.seq, now: host.store.now(), store: host.storeId }
  const card = await addTreeCost(asked, found)
  try {
    const [waiting, accounts] = await Promise.all([handle.pending(), host.harness.accounts(found.session)])
    return { json: { card, pending: await withWords(host.store, waiting), accounts, ...about } satisfies SessionAnswer }
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'session_damaged') throw error
    // Nothing of it can be decided; what is good of it can be read.
    const damaged = await damageOf(asked, found)
    return { json: { card, pending: [], accounts: [], ...about, damaged } satisfies SessionAnswer }
  }
}

const PAGE = 500

/** The first event that cannot be read. */
async function damageOf({ host }: Asked, { session: id, seq: head }: Card): Promise<Damaged> {
  for (let after = 0; after < head; ) {
    const { events, damaged } = await host.store.read(id, after, PAGE)
    if (damaged) return damaged
    if (events.length === 0) return { seq: after + 1, reason: 'it is not there' }
    after += events.length
  }
  return { seq: head, reason: 'it does not follow from the events before it' }
}

/** With what all below it cost: the id of a child begins with its parent's. */
async function addTreeCost({ host }: Pick<Asked, 'host'>, card: Card): Promise<WireCard> {
  let below = 0
  for (let after = `${card.session}~`; ; ) {
    const page = await host.store.list({ root: card.root, after, limit: PAGE })
    const mine = page.filter((one) => one.session.startsWith(`${card.session}~`))
    for (const { cost } of mine) below += cost
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE || mine.length < page.length) break
    after = last.session
  }
  return { ...shownCard(host, card), costUsd: usdOf(card.cost), treeCostUsd: usdOf(card.cost + below) }
}

const SESSIONS = 50

/** By `id`, children are among them, and the cursor is the last id. Otherwise roots, or the children of one. */
export async function sessions({ host, principal, query }: Asked): Promise<Given> {
  const {
    limit = SESSIONS,
    cursor,
    order = 'newest',
    root,
    q,
    agent,
    outcome,
    since,
    until,
    ...filter
  } = query as Filter
  const own = principal.reach === 'own' ? { where: { [OWNER]: principal.name } } : {}
  const about = { now: host.store.now(), store: host.storeId }
  if (order === 'id' || root !== undefined) {
    if ([q, agent, outcome, since, until].some((each) => each !== undefined))
      throw new Refused(
        400,
        'invalid_input',
        'A search, an agent, an outcome and times go with the order newest or made, and not with a root.',
      )
    const within = { ...filter, ...own, ...(root === undefined ? {} : { root }) }
    const cards = await host.harness.list({ ...within, ...(cursor === undefined ? {} : { after: cursor }), limit })
    const next = cards.length < limit ? null : (cards.at(-1)?.session ?? null)
    return { json: { sessions: cards.map((card) => shownCard(host, card)), next, ...about } satisfies SessionPage }
  }
  const times = { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) }
  const ends = outcome === undefined ? {} : { outcome: outcomesIn(outcome) }
  const wanted = {
    ...filter,
    ...own,
    ...times,
    ...ends,
    ...(q ? { q } : {}),
    ...(agent === undefined ? {} : { agent }),
  }
  const page = await host.harness.page({ ...wanted, order, limit, ...(cursor === undefined ? {} : { cursor }) })
  return {
    json: {
      sessions: page.cards.map((card) => shownCard(host, card)),
      next: page.next,
      ...about,
    } satisfies SessionPage,
  }
}

function outcomesIn(text: string): readonly CardOutcome[] {
  const names = text.split(',')
  if (names.every((name): name is CardOutcome => Object.hasOwn(CARD_OUTCOMES, name))) return names
  const known = Object.keys(CARD_OUTCOMES).join(', ')
  throw new Refused(400, 'invalid_input', `An outcome is one of ${known}. Several are separated by commas.`)
}

export async function pending({ host, principal, query }: Asked): Promise<Given> {
  const { limit = 200 } = query as { readonly limit?: number }
  const own = principal.reach === 'own' ? { where: { [OWNER]: principal.name } } : {}
  const all = await host.harness.pending({ ...own, limit: Math.max(limit, 1) })
  const shown = await withWords(host.store, all.slice(0, limit))
  const roots = new Set(shown.map(({ sessionId, path }) => path[0] ?? sessionId))
  const cards = await Promise.all([...roots].map((id) => host.store.card(id)))
  const found = cards.filter((card) => card !== null)
  const sessions = await Promise.all(found.map((card) => addTreeCost({ host }, card)))
  return { json: { pending: shown, total: all.length, sessions, now: host.store.now() } satisfies PendingAnswer }
}

/** Those that wait for their time, the next first. */
export async function due({ host, principal, query }: Asked): Promise<Given> {
  const { limit = 200 } = query as { readonly limit?: number }
  const own = principal.reach === 'own' ? { where: { [OWNER]: principal.name } } : {}
  const found: Card[] = []
  for (const status of ['rescheduling', 'running'] as const) {
    for (let after = ''; ; ) {
      const page = await host.store.list({ ...own, status, after, limit: PAGE })
      found.push(...page.filter((card) => card.due !== null && reaches(principal, card)))
      const last = page.at(-1)
      if (last === undefined || page.length < PAGE) break
      after = last.session
    }
  }
  const rows = found
    .toSorted((a, b) => (a.due ?? 0) - (b.due ?? 0))
    .slice(0, limit)
    .map(async (card) => {
      const { session: id, agent, due: at, wakes, title, outage } = card
      const named = title === undefined ? {} : { title }
      const tried = outage === undefined ? {} : { tries: outage.tries }
      return { session: id, agent, due: at ?? 0, wakes, ...named, ...(await reasonOf(host, card)), ...tried }
    })
  return { json: { due: await Promise.all(rows), now: host.store.now() } satisfies DueAnswer }
}

type Filter = {
  readonly limit?: number
  readonly cursor?: string
  readonly order?: 'newest' | 'made' | 'id'
  readonly root?: string
  readonly parent?: string
  readonly q?: string
  readonly agent?: string
  readonly status?: Card['status']
  readonly folder?: string
  readonly outcome?: string
  readonly since?: number
  readonly until?: number
}
