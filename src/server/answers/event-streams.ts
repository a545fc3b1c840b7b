// The handlers for streams of server-sent events: of one session, or of many sessions and changed cards. Each stream
// writes and then waits until the socket has taken the bytes, so a slow reader costs one page of memory and no queue.
// Streams drive nothing.
import type { IncomingMessage } from 'node:http'
import { Fault } from '../../kernel/index.ts'
import {
  type ApiRequest,
  requireCard,
  type ApiAnswer,
  type ServerHost,
  OWNER,
  mayReach,
  addElsewhere,
} from '../server-host.ts'
import { HttpRefusal } from '../refusals.ts'
import { EventStream, frameOf } from '../sse.ts'
import type { StreamBody, WireCard } from '../wire.ts'

/** The shortest time between two delta frames, and between two writes of cards. Changes in between are merged. */
const DELTA_MS = 50
const CARDS_MS = 250

/** `Last-Event-ID` wins over `after`: a reconnecting browser sends both. */
export async function handleFollow(asked: ApiRequest): Promise<ApiAnswer> {
  const { host } = asked
  const { session, seq: head } = await requireCard(asked)
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
  const from = parseLastEventId(asked.request) ?? after
  checkCursor(session, from, head)
  const stream = openStream(asked)
  await stream.send('hello', { store: host.storeId, head, now: host.store.now() })
  await pumpSession(asked, stream, { session, after: from, deltas: deltas === '1', many: false })
  endStream(asked, stream)
  return null
}

/** Each frame names its session and has no id. The reader keeps the last seq of each session. */
export async function handleStreams(asked: ApiRequest): Promise<ApiAnswer> {
  const { host, principal } = asked
  const { sessions = {}, cards = false, deltas = false } = asked.body as StreamBody
  const heads: Record<string, number> = {}
  const gone: string[] = []
  for (const [id, after] of Object.entries(sessions)) {
    const card = await host.store.card(id)
    if (card === null || !mayReach(principal, card)) gone.push(id)
    else {
      checkCursor(id, after, card.seq)
      heads[id] = card.seq
    }
  }
  const stream = openStream(asked)
  const where = principal.reach === 'own' ? { where: { [OWNER]: principal.name } } : {}
  // Watching begins before `hello`, so a list that is read after it has no gap.
  const watched = cards ? host.harness.watch({ ...where, signal: stream.signal }) : null
  await stream.send('hello', { store: host.storeId, head: heads, now: host.store.now() })
  for (const session of gone) await stream.send('gone', { session })
  const pumps = Object.keys(heads).map((session) => {
    return pumpSession(asked, stream, { session, after: sessions[session] ?? 0, deltas, many: true })
  })
  if (watched) pumps.push(pumpCards(asked, stream, watched))
  // A stream with nothing to follow only sends heartbeats, as its reader asked.
  if (pumps.length === 0) pumps.push(waitUntilLeft(stream))
  await Promise.all(pumps)
  // A removed session ends only its own part of the stream.
  if (stream.open && !asked.server.closing.aborted) await waitUntilLeft(stream)
  endStream(asked, stream)
  return null
}

function openStream({ response, server, principal }: ApiRequest): EventStream {
  const { all, own: ownMax } = server.streamsLimit
  if (server.streams.size >= all)
    throw new HttpRefusal(503, 'too_many', `There are ${all} streams open. Close some, or try again later.`, 5)
  let own = 0
  for (const { name } of server.streams.values()) if (name === principal.name) own += 1
  if (own >= ownMax)
    throw new HttpRefusal(
      503,
      'too_many',
      `You have ${own} streams open. Close some, or follow many sessions in one.`,
      5,
    )
  const stream = new EventStream(response, server.sse)
  server.streams.set(stream, principal)
  stream.signal.addEventListener('abort', () => server.streams.delete(stream), { once: true })
  return stream
}

function endStream({ server }: ApiRequest, stream: EventStream): void {
  if (stream.open) stream.bye(server.closing.aborted ? 'closing' : 'trouble')
}

function waitUntilLeft({ signal }: EventStream): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function parseLastEventId({ headers }: IncomingMessage): number | null {
  const given = headers['last-event-id']
  if (given === undefined || given === '') return null
  const seq = Number(given)
  if (typeof given === 'string' && /^\d{1,15}$/.test(given) && Number.isSafeInteger(seq)) return seq
  throw new HttpRefusal(400, 'invalid_input', 'Last-Event-ID is the seq of the last event that was seen.')
}

function checkStore({ host }: ApiRequest, store: string | undefined): void {
  if (store === undefined || store === host.storeId) return
  throw new HttpRefusal(409, 'store_changed', 'store changed: this is another one than you read before. Read it anew.')
}

/**
 * A log shorter than the reader's position is another log. The server never restarts it silently from an earlier event.
 */
function checkCursor(session: string, after: number, head: number): void {
  if (after <= head) return
  const text = `store changed: session ${JSON.stringify(session)} has ${head} events, and you saw event ${after}. Read it anew.`
  throw new HttpRefusal(409, 'cursor_stale', text)
}

type PumpOptions = {
  readonly session: string
  readonly after: number
  readonly deltas: boolean
  readonly many: boolean
}

async function pumpSession(
  asked: ApiRequest,
  stream: EventStream,
  { session, after, deltas, many }: PumpOptions,
): Promise<void> {
  const whose = many ? { session } : {}
  const merging = new DeltaPause(asked.host.store, session)
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
    await endAfterError(asked, stream, session, error, many)
  } finally {
    merging.close()
  }
}

/**
 * A pause after each delta, during which further deltas are merged. An event ends the pause, so that no event waits for
 * text.
 */
class DeltaPause {
  readonly #unwatch: () => void
  #grown = false
  #go: (() => void) | null = null

  constructor(store: ServerHost['store'], session: string) {
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

async function endAfterError(
  asked: ApiRequest,
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

type CardStream = AsyncIterable<
  { readonly type: 'card'; readonly card: WireCard } | { readonly type: 'gone'; readonly session: string }
>

/**
 * Writes changed cards a few times a second, together. Of a card that changed several times only the last version is
 * sent.
 */
async function pumpCards(asked: ApiRequest, stream: EventStream, watched: CardStream): Promise<void> {
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
      if (change.type === 'card')
        frames.set(change.card.session, frameOf('card', addElsewhere(asked.host, change.card)))
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
