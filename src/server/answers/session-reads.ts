// The handlers that read a session: pages of events, the state at an event, messages, the result. They drive nothing,
// and each answer is bounded: a page by events and bytes, a search by the events it reads.
import { setImmediate } from 'node:timers/promises'
import type { Harness } from '../../harness.ts'
import type { Event, Store } from '../../kernel/index.ts'
import { charsOf } from '../../view/session-history.ts'
import { type ApiRequest, requireCard, type ApiAnswer } from '../server-host.ts'
import { HttpRefusal } from '../refusals.ts'
import type {
  Damaged,
  EventsAnswer,
  MessagesAnswer,
  PinsAnswer,
  ResultAnswer,
  StateAnswer,
  WireResult,
} from '../wire.ts'

const LIMIT = 200
const BYTES_MAX = 1024 * 1024
/** The most events that one search reads. */
const SCAN_MAX = 20_000
const SCAN_BYTES_MAX = 32 * BYTES_MAX
const CHUNK = 500
const MESSAGES_CHARS_MAX = 16 * BYTES_MAX
const TOO_LONG = 'This conversation has more than 16 million characters.'

type EventPageFilter = { readonly types: ReadonlySet<string> | null; readonly q: string | null }

export async function handlePins(asked: ApiRequest): Promise<ApiAnswer> {
  const { session } = await requireCard(asked)
  const found = (await asked.host.harness.session(session, { stored: true }).status({ include: ['pins'] })).pins
  return { json: { pins: found } satisfies PinsAnswer }
}

export async function handleEvents(asked: ApiRequest): Promise<ApiAnswer> {
  const { seq: head } = await requireCard(asked)
  const {
    after,
    before,
    limit = LIMIT,
    types,
    q,
  } = asked.query as {
    readonly after?: number
    readonly before?: number
    readonly limit?: number
    readonly types?: string
    readonly q?: string
  }
  if (after !== undefined && before !== undefined)
    throw new HttpRefusal(400, 'invalid_input', 'Events are read after one, or before one. Give one of the two.')
  if ((after ?? 0) > head || (before ?? 0) > head + 1)
    throw new HttpRefusal(409, 'cursor_stale', `The log ends at ${head}. Read it again from there.`)
  const wanted = {
    types: types === undefined ? null : new Set(types.split(',')),
    q: q === undefined || q === '' ? null : q.toLowerCase(),
  }
  const page = before === undefined ? readForwards : readBackwards
  return { json: await page(asked, { from: before ?? after ?? 0, limit, head, wanted }) }
}

type EventPageRequest = {
  readonly from: number
  readonly limit: number
  readonly head: number
  readonly wanted: EventPageFilter
}

function matchesPageFilter({ types, q }: EventPageFilter, event: Event, text: () => string): boolean {
  return (types === null || types.has(event.type)) && (q === null || text().toLowerCase().includes(q))
}

const isSearch = ({ types, q }: EventPageFilter): boolean => types !== null || q !== null

/** The events of a page so far, and the seq of the event read last. */
type FilledPage = {
  readonly found: Event[]
  at: number
  bytes: number
  looked: number
  full: boolean
  damaged?: Damaged
}

function fillPage(page: FilledPage, events: readonly Event[], { limit, wanted }: EventPageRequest): void {
  for (const event of events) {
    const text = JSON.stringify(event)
    page.looked += text.length
    if (matchesPageFilter(wanted, event, () => text)) {
      page.bytes += text.length
      page.full = page.found.length > 0 && page.bytes > BYTES_MAX
      if (page.full) return
      page.found.push(event)
    }
    page.at = event.seq
    page.full = page.found.length >= limit
    if (page.full) return
  }
}

function mayReadOn({ full, at, looked }: FilledPage, from: number): boolean {
  return !full && Math.abs(at - from) < SCAN_MAX && looked < SCAN_BYTES_MAX
}

/** Lets other requests run between two reads, because a store reads synchronously. */
async function readChunk(
  { store }: ApiRequest['host'],
  id: string,
  after: number,
  size: number,
): ReturnType<Store['read']> {
  await setImmediate()
  return store.read(id, after, size, BYTES_MAX)
}

async function readForwards({ host, params }: ApiRequest, span: EventPageRequest): Promise<EventsAnswer> {
  const { id = '' } = params
  const { from, limit, head, wanted } = span
  const page: FilledPage = { found: [], at: from, bytes: 0, looked: 0, full: false }
  while (mayReadOn(page, from) && page.at < head && page.damaged === undefined) {
    const size = Math.min(CHUNK, isSearch(wanted) ? CHUNK : limit - page.found.length)
    const { events: read, damaged } = await readChunk(host, id, page.at, size)
    if (damaged) page.damaged = damaged
    if (read.length === 0) break
    fillPage(page, read, span)
  }
  const { found, at, damaged } = page
  const [first] = found
  return {
    events: found,
    head,
    after: at < head && damaged === undefined ? at : null,
    before: (first?.seq ?? at) > 1 ? (first?.seq ?? at + 1) : null,
    ...searchProgress(page, wanted),
  }
}

/** Reads the events before a position, nearest first, and returns them in log order. */
async function readBackwards({ host, params }: ApiRequest, span: EventPageRequest): Promise<EventsAnswer> {
  const { id = '' } = params
  const { from, limit, head, wanted } = span
  const page: FilledPage = { found: [], at: from, bytes: 0, looked: 0, full: false }
  let chunk = CHUNK
  while (mayReadOn(page, from) && page.at > 1) {
    const size = Math.min(chunk, page.at - 1, isSearch(wanted) ? chunk : limit - page.found.length)
    const { events: read, damaged } = await readChunk(host, id, page.at - 1 - size, size)
    // The chunk has too many bytes to reach the last event of the page, so a smaller chunk is read.
    if (!damaged && read.length > 0 && read.length < size) {
      chunk = Math.ceil(size / 4)
      continue
    }
    if (damaged) page.damaged = damaged
    if (read.length === 0) page.at -= size
    fillPage(page, read.toReversed(), span)
  }
  const { found, at, damaged } = page
  const [last] = found
  return {
    events: found.toReversed(),
    head,
    after: last && last.seq < head && damaged === undefined ? last.seq : null,
    before: at > 1 ? at : null,
    ...searchProgress(page, wanted),
  }
}

function searchProgress(
  { at, damaged }: FilledPage,
  wanted: EventPageFilter,
): Pick<EventsAnswer, 'scanned' | 'damaged'> {
  return { ...(isSearch(wanted) ? { scanned: at } : {}), ...(damaged ? { damaged } : {}) }
}

export async function handleState(asked: ApiRequest): Promise<ApiAnswer> {
  const { session: id, seq: head } = await requireCard(asked)
  const { at = head } = asked.query as { readonly at?: number }
  if (at > head) throw new HttpRefusal(409, 'cursor_stale', `The log ends at ${head}. There is no event ${at} yet.`)
  const { seq, session } = await asked.host.harness.session(id, { stored: true }).status({ at })
  return { json: { seq, head, session } satisfies StateAnswer }
}

/** Waits for the given time at most. A client asks again. */
export async function handleResult(asked: ApiRequest): Promise<ApiAnswer> {
  const { session } = await requireCard(asked)
  const { wait = 0 } = asked.query as { readonly wait?: number }
  const found = await asked.host.harness.session(session, { stored: true }).result({ waitMs: wait * 1_000 })
  return { json: { open: found === null, result: found && wireResult(found) } satisfies ResultAnswer }
}

type Result = NonNullable<Awaited<ReturnType<ReturnType<Harness['session']>['result']>>>

function wireResult({ cost, ownUsage, ...result }: Result): WireResult {
  const { usd, ownUsd, micros } = cost
  const own = { usage: ownUsage, cost: Math.round(ownUsd * MICROS) }
  return { ...result, costUsd: ownUsd, treeCostUsd: usd, cost: micros, own }
}

const MICROS = 1_000_000

export async function handleMessages(asked: ApiRequest): Promise<ApiAnswer> {
  const { session, seq } = await requireCard(asked)
  await checkLength(asked, session, seq)
  const all = await asked.host.harness.session(session, { stored: true }).messages()
  return { json: { messages: all, head: seq } satisfies MessagesAnswer }
}

/** A conversation consists of its own log and the logs it was forked from. */
async function checkLength({ host }: ApiRequest, session: string, head: number): Promise<void> {
  const logs = [{ session, seq: head }]
  let chars = 0
  for (const log of logs)
    for (let after = 0; after < log.seq; ) {
      const { events: read } = await readChunk(host, log.session, after, CHUNK)
      for (const event of read) {
        chars += charsOf(event)
        if (event.type === 'session.created' && event.fork) logs.push(event.fork)
      }
      if (chars > MESSAGES_CHARS_MAX)
        throw new HttpRefusal(413, 'too_large', `${TOO_LONG} Read its events in pages: GET /v1/sessions/ID/events.`)
      after = read.at(-1)?.seq ?? log.seq
    }
}
