// A session's log and what follows from it: pages of events, the state at an event, messages, the result. Nothing is driven, and every
// answer is bounded: a page by its events and bytes, a search by how many events it looks at.
import { setImmediate } from 'node:timers/promises'
import type { Event, Store } from '../../kernel/index.ts'
import { charsOf } from '../../view/history.ts'
import { type Asked, cardOf, type Given } from '../host.ts'
import { Refused } from '../refusals.ts'
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
/** How many events one search reads. */
const SCAN_MAX = 20_000
const SCAN_BYTES_MAX = 32 * BYTES_MAX
const CHUNK = 500
const MESSAGES_CHARS_MAX = 16 * BYTES_MAX
const TOO_LONG = 'This conversation has more than 16 million characters.'

type Wanted = { readonly types: ReadonlySet<string> | null; readonly q: string | null }

export async function pins(asked: Asked): Promise<Given> {
  const { session } = await cardOf(asked)
  const found = await asked.host.harness.session(session, { stored: true }).pins()
  return { json: { pins: found } satisfies PinsAnswer }
}

export async function events(asked: Asked): Promise<Given> {
  const { seq: head } = await cardOf(asked)
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
    throw new Refused(400, 'invalid_input', 'Events are read after one, or before one. Give one of the two.')
  if ((after ?? 0) > head || (before ?? 0) > head + 1)
    throw new Refused(409, 'cursor_stale', `The log ends at ${head}. Read it again from there.`)
  const wanted = {
    types: types === undefined ? null : new Set(types.split(',')),
    q: q === undefined || q === '' ? null : q.toLowerCase(),
  }
  const page = before === undefined ? forwards : backwards
  return { json: await page(asked, { from: before ?? after ?? 0, limit, head, wanted }) }
}

type Span = { readonly from: number; readonly limit: number; readonly head: number; readonly wanted: Wanted }

function fits({ types, q }: Wanted, event: Event, text: () => string): boolean {
  return (types === null || types.has(event.type)) && (q === null || text().toLowerCase().includes(q))
}

const searches = ({ types, q }: Wanted): boolean => types !== null || q !== null

/** What a page holds so far, and the event that was looked at last. */
type Filled = { readonly found: Event[]; at: number; bytes: number; looked: number; full: boolean; damaged?: Damaged }

function take(page: Filled, events: readonly Event[], { limit, wanted }: Span): void {
  for (const event of events) {
    const text = JSON.stringify(event)
    page.looked += text.length
    if (fits(wanted, event, () => text)) {
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

function goesOn({ full, at, looked }: Filled, from: number): boolean {
  return !full && Math.abs(at - from) < SCAN_MAX && looked < SCAN_BYTES_MAX
}

/** Others are answered in between: a store reads without a pause. */
async function readSome({ store }: Asked['host'], id: string, after: number, size: number): ReturnType<Store['read']> {
  await setImmediate()
  return store.read(id, after, size, BYTES_MAX)
}

async function forwards({ host, params }: Asked, span: Span): Promise<EventsAnswer> {
  const { id = '' } = params
  const { from, limit, head, wanted } = span
  const page: Filled = { found: [], at: from, bytes: 0, looked: 0, full: false }
  while (goesOn(page, from) && page.at < head && page.damaged === undefined) {
    const size = Math.min(CHUNK, searches(wanted) ? CHUNK : limit - page.found.length)
    const { events: read, damaged } = await readSome(host, id, page.at, size)
    if (damaged) page.damaged = damaged
    if (read.length === 0) break
    take(page, read, span)
  }
  const { found, at, damaged } = page
  const [first] = found
  return {
    events: found,
    head,
    after: at < head && damaged === undefined ? at : null,
    before: (first?.seq ?? at) > 1 ? (first?.seq ?? at + 1) : null,
    ...seen(page, wanted),
  }
}

/** What stands before an event, nearest first, given in order. */
async function backwards({ host, params }: Asked, span: Span): Promise<EventsAnswer> {
  const { id = '' } = params
  const { from, limit, head, wanted } = span
  const page: Filled = { found: [], at: from, bytes: 0, looked: 0, full: false }
  let chunk = CHUNK
  while (goesOn(page, from) && page.at > 1) {
    const size = Math.min(chunk, page.at - 1, searches(wanted) ? chunk : limit - page.found.length)
    const { events: read, damaged } = await readSome(host, id, page.at - 1 - size, size)
    // Its bytes were too many to be read up to the last event that is looked at: fewer are.
    if (!damaged && read.length > 0 && read.length < size) {
      chunk = Math.ceil(size / 4)
      continue
    }
    if (damaged) page.damaged = damaged
    if (read.length === 0) page.at -= size
    take(page, read.toReversed(), span)
  }
  const { found, at, damaged } = page
  const [last] = found
  return {
    events: found.toReversed(),
    head,
    after: last && last.seq < head && damaged === undefined ? last.seq : null,
    before: at > 1 ? at : null,
    ...seen(page, wanted),
  }
}

function seen({ at, damaged }: Filled, wanted: Wanted): Pick<EventsAnswer, 'scanned' | 'damaged'> {
  return { ...(searches(wanted) ? { scanned: at } : {}), ...(damaged ? { damaged } : {}) }
}

export async function state(asked: Asked): Promise<Given> {
  const { session: id, seq: head } = await cardOf(asked)
  const { at = head } = asked.query as { readonly at?: number }
  if (at > head) throw new Refused(409, 'cursor_stale', `The log ends at ${head}. There is no event ${at} yet.`)
  const { seq, session } = await asked.host.harness.session(id, { stored: true }).stateAt(at)
  return { json: { seq, head, session } satisfies StateAnswer }
}

/** Waits at most so long: a client asks again. */
export async function result(asked: Asked): Promise<Given> {
  const { session } = await cardOf(asked)
  const { wait = 0 } = asked.query as { readonly wait?: number }
  const found = await asked.host.harness.session(session, { stored: true }).result({ waitMs: wait * 1_000 })
  return { json: { open: found === null, result: found as WireResult | null } satisfies ResultAnswer }
}

export async function messages(asked: Asked): Promise<Given> {
  const { session, seq } = await cardOf(asked)
  await checkLength(asked, session, seq)
  const all = await asked.host.harness.session(session, { stored: true }).messages()
  return { json: { messages: all, head: seq } satisfies MessagesAnswer }
}

/** A conversation is made of its whole log, and of the log it was forked from. */
async function checkLength({ host }: Asked, session: string, head: number): Promise<void> {
  const logs = [{ session, seq: head }]
  let chars = 0
  for (const log of logs)
    for (let after = 0; after < log.seq; ) {
      const { events: read } = await readSome(host, log.session, after, CHUNK)
      for (const event of read) {
        chars += charsOf(event)
        if (event.type === 'session.created' && event.fork) logs.push(event.fork)
      }
      if (chars > MESSAGES_CHARS_MAX)
        throw new Refused(413, 'too_large', `${TOO_LONG} Read its events in pages: GET /v1/sessions/ID/events.`)
      after = read.at(-1)?.seq ?? log.seq
    }
}
