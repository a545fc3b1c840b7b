// Streams of server-sent events: one session, or many and the cards that change. Each pulls what is there, writes it and waits until the
// socket took it, so a slow reader costs one page and no queue. Nothing is driven by being watched.
import type { IncomingMessage } from 'node:http'
import { Fault } from '../../kernel/index.ts'
import { type Asked, cardOf, type Given, type Host, OWNER, reaches, shownCard } from '../host.ts'
import { Refused } from '../refusals.ts'
import { EventStream, frameOf } from '../sse.ts'
import type { StreamBody, WireCard } from '../wire.ts'

/** What is said comes in so many frames a second at most: it is merged meanwhile. */
const DELTA_MS = 50
const CARDS_MS = 250
const STREAMS_MAX = 2_000
/** Of one principal: nobody can take all of them. */
const OWN_STREAMS_MAX = 1_500

/** `Last-Event-ID` beats `after`: a browser that connects again sends both. */
export async function follow(asked: Asked): Promise<Given> {
  const { host } = asked
  const { session, seq: head } = await cardOf(asked)
  const {
    after = 0,
    deltas = '1',
    store,
  } = asked.query as {
    readonly after?: number
    readonly deltas?: '0' | '1'
    readonly store?: string
  }
  checkStore(asked, store)
  const from = lastIdOf(asked.request) ?? after
  checkCursor(session, from, head)
  const stream = openStream(asked)
  await stream.send('hello', { store: host.storeId, head, now: host.store.now() })
  await pump(asked, stream, { session, after: from, deltas: deltas === '1', many: false })
  ended(asked, stream)
  return null
}

/** Frames say whose they are, and have no ids: the reader keeps the last seq of each. */
export async function streams(asked: Asked): Promise<Given> {
  const { host, principal } = asked
  const { sessions = {}, cards = false, deltas = false } = asked.body as StreamBody
  const heads: Record<string, number> = {}
  const gone: string[] = []
  for (const [id, after] of Object.entries(sessions)) {
    const card = await host.store.card(id)
    if (card === null || !reaches(principal, card)) gone.push(id)
    else {
      checkCursor(id, after, card.seq)
      heads[id] = card.seq
    }
  }
  const stream = openStream(asked)
  const where = principal.reach === 'own' ? { where: { [OWNER]: principal.name } } : {}
  // From before `hello` on: what is listed after it has no gap.
  const watched = cards ? host.harness.watch({ ...where, signal: stream.signal }) : null
  await stream.send('hello', { store: host.storeId, head: heads, now: host.store.now() })
  for (const session of gone) await stream.send('gone', { session })
  const pumps = Object.keys(heads).map((session) => {
    return pump(asked, stream, { session, after: sessions[session] ?? 0, deltas, many: true })
  })
  if (watched) pumps.push(pumpCards(asked, stream, watched))
  // With nothing to follow it only beats: its reader asked for that.
  if (pumps.length === 0) pumps.push(left(stream))
  await Promise.all(pumps)
  // Sessions that are gone end their part only.
  if (stream.open && !asked.server.closing.aborted) await left(stream)
  ended(asked, stream)
  return null
}

function openStream({ response, server, principal }: Asked): EventStream {
  if (server.streams.size >= STREAMS_MAX)
    throw new Refused(503, 'too_many', `There are ${STREAMS_MAX} streams open. Close some, or try again later.`, 5)
  let own = 0
  for (const { name } of server.streams.values()) if (name === principal.name) own += 1
  if (own >= OWN_STREAMS_MAX)
    throw new Refused(503, 'too_many', `You have ${own} streams open. Close some, or follow many sessions in one.`, 5)
  const stream = new EventStream(response, server.sse)
  server.streams.set(stream, principal)
  stream.signal.addEventListener('abort', () => server.streams.delete(stream), { once: true })
  return stream
}

function ended({ server }: Asked, stream: EventStream): void {
  if (stream.open) stream.bye(server.closing.aborted ? 'closing' : 'trouble')
}

function left({ signal }: EventStream): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function lastIdOf({ headers }: IncomingMessage): number | null {
  const given = headers['last-event-id']
  if (given === undefined || given === '') return null
  const seq = Number(given)
  if (typeof given === 'string' && /^\d{1,15}$/.test(given) && Number.isSafeInteger(seq)) return seq
  throw new Refused(400, 'invalid_input', 'Last-Event-ID is the seq of the last event that was seen.')
}

function checkStore({ host }: Asked, store: string | undefined): void {
  if (store === undefined || store === host.storeId) return
  throw new Refused(409, 'store_changed', 'store changed: this is another one than you read before. Read it anew.')
}

/** Never silently backwards: a log that is shorter than what was seen is another log. */
function checkCursor(session: string, after: number, head: number): void {
  if (after <= head) return
  const text = `store changed: session ${JSON.stringify(session)} has ${head} events, and you saw event ${after}. Read it anew.`
  throw new Refused(409, 'cursor_stale', text)
}

type Pumped = { readonly session: string; readonly after: number; readonly deltas: boolean; readonly many: boolean }

async function pump(asked: Asked, stream: EventStream, { session, after, deltas, many }: Pumped): Promise<void> {
  const whose = many ? { session } : {}
  const merging = new Merging(asked.host.store, session)
  try {
    const followed = asked.host.harness
      .session(session, { stored: true })
      .follow({ after, deltas, signal: stream.signal })
    for await (const item of followed) {
      if (item.type === 'event')
        await stream.send('event', { ...whose, ...item.event }, many ? undefined : item.event.seq)
      else {
        const { type: _, ...delta } = item
        await stream.send('delta', { ...whose, ...delta })
        await merging.pause()
      }
    }
  } catch (error) {
    await failed(asked, stream, session, error, many)
  } finally {
    merging.close()
  }
}

/** The pause after a piece of what is said, in which more of it comes together. An event ends it: no event waits for text. */
class Merging {
  readonly #unwatch: () => void
  #grown = false
  #go: (() => void) | null = null

  constructor(store: Host['store'], session: string) {
    this.#unwatch = store.watch(session, () => {
      this.#grown = true
      this.#go?.()
    })
  }

  async pause(): Promise<void> {
    if (!this.#grown)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, DELTA_MS)
        this.#go = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    this.#go = null
    this.#grown = false
  }

  close(): void {
    this.#unwatch()
  }
}

async function failed(
  asked: Asked,
  stream: EventStream,
  session: string,
  error: unknown,
  many: boolean,
): Promise<void> {
  const fault = error instanceof Fault ? error : null
  if (!fault) asked.server.report('stream', error)
  if (fault?.code === 'session_missing') await stream.send('gone', { session })
  if (many && fault?.code === 'session_missing') return
  if (fault?.code === 'harness_closed') return stream.bye('closing')
  stream.bye('trouble', fault?.message)
}

type Watched = AsyncIterable<
  { readonly type: 'card'; readonly card: WireCard } | { readonly type: 'gone'; readonly session: string }
>

/** Written together, a few times a second; of a card that changed several times meanwhile only the last. */
async function pumpCards(asked: Asked, stream: EventStream, watched: Watched): Promise<void> {
  const frames = new Map<string, string>()
  let flushing: Promise<void> | null = null
  const flush = async (): Promise<void> => {
    await sleep(CARDS_MS)
    const all = [...frames.values()]
    frames.clear()
    flushing = null
    await stream.sendAll(all)
  }
  try {
    for await (const change of watched) {
      if (change.type === 'card') frames.set(change.card.session, frameOf('card', shownCard(asked.host, change.card)))
      else frames.set(change.session, frameOf('gone', { session: change.session }))
      flushing ??= flush()
      if (stream.full) await flushing
    }
  } catch (error) {
    if (!(error instanceof Fault)) asked.server.report('cards', error)
    stream.bye('trouble', error instanceof Fault ? error.message : undefined)
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms))
}
