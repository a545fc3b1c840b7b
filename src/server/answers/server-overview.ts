// The handlers that show the state of the server and its sessions: health, cards, pending calls, agents, due sessions.
// They drive nothing.
import {
  type Card,
  type CardOutcome,
  Fault,
  type CompleteStore,
  type Labels,
  type StoreHealth,
} from '../../kernel/index.ts'
import { CARD_OUTCOMES } from '../../view/card.ts'
import { isLaneAgent } from '../../view/lanes.ts'
import { usdOf } from '../../view/usd.ts'
import {
  type ApiRequest,
  requireCard,
  type ApiAnswer,
  OWNER,
  mayReach,
  addElsewhere,
  type ServerHost,
} from '../server-host.ts'
import { METRICS_MEDIA, metricsText } from '../metrics.ts'
import { openApi } from '../open-api.ts'
import { SAFE } from '../inspector-files.ts'
import { HttpRefusal } from '../refusals.ts'
import type {
  AgentsAnswer,
  Damaged,
  DueAnswer,
  WireHealth,
  Me,
  PendingAnswer,
  SessionAnswer,
  SessionPage,
  WireAgent,
  WireCard,
} from '../wire.ts'
import { readDueReason, addPendingContext } from './pending-context.ts'

export async function handleMe({ principal, host }: ApiRequest): Promise<ApiAnswer> {
  return { json: { ...principal, now: host.store.now(), store: host.storeId } satisfies Me }
}

export async function handleOpenApi({ host, server, request }: ApiRequest): Promise<ApiAnswer> {
  const { host: name = '' } = request.headers
  // On this machine the server speaks plain HTTP. Elsewhere only the proxy in front of it knows the scheme, so the
  // address is a path.
  const url = LOCAL.test(name) ? `http://${name}${server.base}` : server.base || '/'
  return { json: openApi(host.version, url) }
}

const LOCAL = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?$/

export async function handleAgents({ host }: ApiRequest): Promise<ApiAnswer> {
  const rows = await host.agents()
  return { json: { agents: rows.map(wireAgent) } satisfies AgentsAnswer }
}

/** Without the setup, which has the instructions of the agent. */
function wireAgent({ name, model, planner, tools, sources, limits, budget, children, graph }: WireAgent): WireAgent {
  return { name, model, planner, tools, sources, limits, budget, children, graph }
}

/**
 * Each answer reports a test write that was just made. The status is 200 even if the write failed: the caller reads
 * `ok`.
 */
export async function handleHealth({ host, server, principal }: ApiRequest): Promise<ApiAnswer> {
  const { ok, trouble, writeMs, now, drives, store } = await host.harness.health()
  // Counts include the sessions of all owners.
  const counts = principal.reach === 'all'
  const json: WireHealth = {
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

function figuresOf({ bytes, sessions, leases, waitedMs, network }: StoreHealth): Partial<WireHealth> {
  const counted = { ...(bytes === undefined ? {} : { bytes }), ...(leases === undefined ? {} : { leases }) }
  return { ...counted, sessions, waitedMs, ...(network ? { network } : {}) }
}

/** A text for monitoring programs that poll every few seconds. */
export async function handleMetrics({ host, response, principal }: ApiRequest): Promise<ApiAnswer> {
  if (principal.reach === 'own')
    throw new HttpRefusal(403, 'forbidden', 'Metrics are of all sessions. They need a token with the reach `all`.')
  const health = metricsText(await host.harness.health(), host.driving(), host.webhooks?.counts)
  const text = `${health}${(await host.metrics?.text()) ?? ''}`
  response.writeHead(200, { ...SAFE, 'content-type': METRICS_MEDIA, 'cache-control': 'no-store' }).end(text)
  return null
}

const WRITES_KEPT = 500
const recentWrites = new WeakMap<CompleteStore, number[]>()

/** No value before the first write. */
function p99Of(store: CompleteStore, ms: number | null): { readonly appendP99Ms?: number } {
  const made = recentWrites.get(store) ?? []
  recentWrites.set(store, made)
  if (ms !== null) made.push(ms)
  if (made.length > WRITES_KEPT) made.shift()
  const p99 = made.toSorted((a, b) => a - b)[Math.ceil(made.length * 0.99) - 1]
  return p99 === undefined ? {} : { appendP99Ms: p99 }
}

export async function handleSession(asked: ApiRequest): Promise<ApiAnswer> {
  const { host } = asked
  const found = await requireCard(asked)
  const handle = host.harness.session(found.session, { stored: true })
  const about = { head: found.seq, now: host.store.now(), store: host.storeId }
  const card = await addTreeCost(asked, found)
  try {
    const { pending: waiting, accounts } = await handle.status({ include: ['accounts'] })
    const pending = await addPendingContext(host.store, waiting)
    const { include } = asked.query as { readonly include?: 'pursuit' }
    const pursued = include === undefined ? {} : { pursuit: (await handle.status({ include: [include] })).pursuit }
    return { json: { card, pending, accounts, ...about, ...pursued } satisfies SessionAnswer }
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'session_damaged') throw error
    // A damaged session takes no decisions, but its intact events can be read.
    const damaged = await findDamage(asked, found)
    return { json: { card, pending: [], accounts: [], ...about, damaged } satisfies SessionAnswer }
  }
}

const PAGE = 500

/** Finds the first event that cannot be read. */
async function findDamage({ host }: ApiRequest, { session: id, seq: head }: Card): Promise<Damaged> {
  for (let after = 0; after < head; ) {
    const { events, damaged } = await host.store.read(id, after, PAGE)
    if (damaged) return damaged
    if (events.length === 0) return { seq: after + 1, reason: 'it is not there' }
    after += events.length
  }
  return { seq: head, reason: 'it does not follow from the events before it' }
}

/** Adds the cost of all sessions below this one. A child's id begins with its parent's id. */
async function addTreeCost({ host }: Pick<ApiRequest, 'host'>, card: Card): Promise<WireCard> {
  let below = 0
  for (let after = `${card.session}~`; ; ) {
    const page = await host.store.list({ root: card.root, after, limit: PAGE })
    const mine = page.filter((one) => one.session.startsWith(`${card.session}~`))
    for (const { cost } of mine) below += cost
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE || mine.length < page.length) break
    after = last.session
  }
  return { ...addElsewhere(host, card), costUsd: usdOf(card.cost), treeCostUsd: usdOf(card.cost + below) }
}

const SESSIONS = 50

/**
 * Ordered by `id`, the list includes children, and the cursor is the last id. Otherwise it lists roots, or the children
 * of one session.
 */
export async function handleSessions({ host, principal, query }: ApiRequest): Promise<ApiAnswer> {
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
  } = query as SessionListQuery
  const own = principal.reach === 'own' ? { where: { [OWNER]: principal.name } } : {}
  if (order === 'id' || root !== undefined) {
    if ([q, agent, outcome, since, until].some((each) => each !== undefined))
      throw new HttpRefusal(
        400,
        'invalid_input',
        'A search, an agent, an outcome and times go with the order newest or made, and not with a root.',
      )
    const within = { ...filter, ...own, ...(root === undefined ? {} : { root }) }
    const page = await host.harness.list({ ...within, order: 'id', limit, ...(cursor === undefined ? {} : { cursor }) })
    return { json: sessionPage(host, page) }
  }
  const times = { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) }
  const ends = outcome === undefined ? {} : { outcome: parseOutcomes(outcome) }
  const wanted = {
    ...filter,
    ...own,
    ...times,
    ...ends,
    ...(q ? { q } : {}),
    ...(agent === undefined ? {} : { agent }),
  }
  const page = await host.harness.list({ ...wanted, order, limit, ...(cursor === undefined ? {} : { cursor }) })
  return { json: sessionPage(host, page) }
}

function sessionPage(host: ServerHost, { cards, next }: ListedPage): SessionPage {
  const sessions = cards.map((card) => addElsewhere(host, card))
  return { sessions, next, now: host.store.now(), store: host.storeId }
}

function parseOutcomes(text: string): readonly CardOutcome[] {
  const names = text.split(',')
  if (names.every((name): name is CardOutcome => Object.hasOwn(CARD_OUTCOMES, name))) return names
  const known = Object.keys(CARD_OUTCOMES).join(', ')
  throw new HttpRefusal(400, 'invalid_input', `An outcome is one of ${known}. Several are separated by commas.`)
}

export async function handlePending({ host, principal, query }: ApiRequest): Promise<ApiAnswer> {
  const { limit = 200 } = query as { readonly limit?: number }
  const own = principal.reach === 'own' ? { where: { [OWNER]: principal.name } } : {}
  const all = await host.harness.pending({ ...own, limit: Math.max(limit, 1) })
  const shown = await addPendingContext(host.store, all.slice(0, limit))
  const roots = new Set(shown.map(({ sessionId, path }) => path[0] ?? sessionId))
  const cards = await Promise.all([...roots].map((id) => host.store.card(id)))
  const found = cards.filter((card) => card !== null)
  const sessions = await Promise.all(found.map((card) => addTreeCost({ host }, card)))
  return { json: { pending: shown, total: all.length, sessions, now: host.store.now() } satisfies PendingAnswer }
}

/** Sessions that wait for their due time, the earliest first. */
export async function handleDue({ host, principal, query }: ApiRequest): Promise<ApiAnswer> {
  const { limit = 200 } = query as { readonly limit?: number }
  const own = principal.reach === 'own' ? { where: { [OWNER]: principal.name } } : {}
  const found = (await host.store.listWaking?.(limit, own.where)) ?? (await readWaking(host.store, limit, own.where))
  const rows = found
    .filter((card) => mayReach(principal, card))
    .map(async (card) => {
      const { session: id, agent, due: at, wakes, title, outage } = card
      const named = title === undefined ? {} : { title }
      const tried = outage === undefined ? {} : { tries: outage.tries }
      return { session: id, agent, due: at ?? 0, wakes, ...named, ...(await readDueReason(host, card)), ...tried }
    })
  return { json: { due: await Promise.all(rows), now: host.store.now() } satisfies DueAnswer }
}

/** From all cards, where the store has no index of what is due. */
async function readWaking(store: CompleteStore, limit: number, where: Labels | undefined): Promise<readonly Card[]> {
  const own = where === undefined ? {} : { where }
  const found: Card[] = []
  for (const status of ['rescheduling', 'running'] as const) {
    for (let after = ''; ; ) {
      const page = await store.list({ ...own, status, after, limit: PAGE })
      found.push(...page.filter((card) => card.due !== null && !isLaneAgent(card.agent)))
      const last = page.at(-1)
      if (last === undefined || page.length < PAGE) break
      after = last.session
    }
  }
  return found.toSorted((a, b) => (a.due ?? 0) - (b.due ?? 0)).slice(0, limit)
}

type ListedPage = Awaited<ReturnType<ServerHost['harness']['list']>>

type SessionListQuery = {
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
