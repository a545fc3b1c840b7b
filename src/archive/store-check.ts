// Reads everything that a store holds and says what is wrong with it: logs by their checksums, cards by their logs, blobs by their hashes,
// money by events and holds. Through the verbs of a store; what these do not list comes from its reader. A check
// changes nothing; `repairCard` brings one card up to date that an earlier version wrote.
import { hash } from 'node:crypto'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { open, take } from '../kernel/fold.ts'
import { next } from '../kernel/next.ts'
import { EMPTY, type Session } from '../kernel/session.ts'
import type { Card, Store } from '../ports/store.ts'
import { bareCard, type Reader, type Row } from '../stores/move/rows.ts'
import { canonicalJson } from '../tools/core/canonical.ts'
import { cardOf } from '../view/card.ts'
import { needs } from './sound.ts'

/** `what` is a session, an account, a hold, a blob or the store. */
export type StoreProblem = { readonly what: string; readonly text: string }
export type StoreCheck = {
  readonly sessions: number
  readonly events: number
  readonly blobs: number
  readonly accounts: number
  readonly holds: number
  readonly problems: readonly StoreProblem[]
  /** Cards that an earlier version wrote: lists by outcome do not find them. `repairCard` brings one up to date. */
  readonly behind: readonly CardBehind[]
}
/** `says`: what the log says, and the card does not. */
export type CardBehind = { readonly session: string; readonly seq: number; readonly says: Pick<Card, Later> }

/** Cards of earlier versions have none of these. */
const LATER = ['cause', 'limit', 'unknown'] as const
type Later = (typeof LATER)[number]

type Found = { -readonly [K in keyof StoreCheck]: StoreCheck[K] } & { problems: StoreProblem[]; behind: CardBehind[] }
/** How much was found so far, or in all. */
export type StoreCounts = Omit<StoreCheck, 'problems' | 'behind'>
type Tell = (so: StoreCounts) => void

const PAGE = 500
/** Damage that a log says of itself, and its end: how often it is read again because it grew meanwhile. */
const TRIES = 3

export async function checkStore(store: Store, reader: Reader, tell: Tell = () => {}): Promise<StoreCheck> {
  const found: Found = { sessions: 0, events: 0, blobs: 0, accounts: 0, holds: 0, problems: [], behind: [] }
  const seen = new SeenBlobs(store)
  const { problem } = await store.health()
  if (problem !== undefined) found.problems.push({ what: 'store', text: problem })
  for (let after = ''; ; ) {
    const cards = await store.list({ after, limit: PAGE })
    for (const { session } of cards) {
      found.sessions += 1
      found.problems.push(...(await checkSession(store, session, seen, found)))
      tell(found)
    }
    const last = cards.at(-1)
    if (last === undefined || cards.length < PAGE) break
    after = last.session
  }
  await checkShared(store, reader, found, tell)
  return found
}

/** One that is written to meanwhile is looked at again. */
async function checkSession(
  store: Store,
  session: string,
  seen: SeenBlobs,
  found: Found,
): Promise<readonly StoreProblem[]> {
  for (let tries = 1; ; tries++) {
    const card = await store.card(session)
    // It was removed meanwhile.
    if (card === null) return []
    const { texts, events, behind } = await examined(store, card, seen)
    const now = await store.card(session)
    if (texts.length > 0 && tries < TRIES && canonicalJson(now) !== canonicalJson(card)) continue
    found.events += events
    if (behind) found.behind.push(behind)
    return texts.map((text) => ({ what: `session ${session}`, text }))
  }
}

type Examined = { readonly texts: readonly string[]; readonly events: number; readonly behind?: CardBehind | null }

async function examined(store: Store, card: Card, seen: SeenBlobs): Promise<Examined> {
  const { session, trouble } = card
  if (trouble?.reason.startsWith('The session is damaged')) return { texts: [trouble.reason], events: 0 }
  const log = new LogCheck(session, await lastOwned(store, card))
  const texts: string[] = []
  while (log.seq < card.seq) {
    const page = await store.read(session, log.seq, Math.min(PAGE, card.seq - log.seq))
    for (const event of page.events) {
      const wrong = log.take(event)
      if (wrong !== null) return { texts: [...texts, wrong], events: log.seq }
      for (const blob of needs(event)) texts.push(...(await seen.check(blob, session, event.seq)))
    }
    if (page.damaged)
      return { texts: [...texts, `event ${page.damaged.seq}: ${page.damaged.reason}.`], events: log.seq }
    if (page.events.length === 0)
      return { texts: [...texts, `its log ends before event ${card.seq}.`], events: log.seq }
  }
  texts.push(...log.unlike(card), ...(await log.unpaid(store)))
  return { texts, events: log.seq, behind: log.behind(card) }
}

/** The last event of its owner, as far as it is near: the card was written with it, or after it. 0: not found. */
async function lastOwned(store: Store, { session, seq }: Card): Promise<number> {
  const { events } = await store.read(session, Math.max(0, seq - PAGE), PAGE)
  return events.findLast(({ epoch }) => epoch > 0)?.seq ?? 0
}

/** Folds one log, and remembers what its card may say and what its requests came to. */
class LogCheck {
  seq = 0
  readonly #session: string
  readonly #owned: number
  readonly #state = open(EMPTY)
  /** Cards as they may stand: what an inbox says is on the card when the owner has looked. */
  readonly #cards = new Set<string>()
  /** What those cards say that cards of earlier versions do not. */
  readonly #later = new Set<string>()
  #imported = false
  /** Of the open request: what was held for it. */
  #held = 0
  #spent = 0

  constructor(session: string, owned: number) {
    this.#session = session
    this.#owned = owned
  }

  take(event: Event): string | null {
    try {
      take(this.#state, event)
    } catch (error) {
      return `event ${event.seq} does not follow from what is before it: ${error instanceof Error ? error.message : String(error)}`
    }
    this.seq = event.seq
    this.#pay(event)
    if (event.type === 'session.imported') this.#imported = true
    // Of the fold alone: whether it is due, and so its state, depends on the time at which its owner looked.
    if (event.seq >= this.#owned) {
      const card = this.#card(this.#state)
      this.#cards.add(lasting(card))
      this.#later.add(canonicalJson(laterOf(card)))
    }
    return null
  }

  unlike(card: Card): readonly string[] {
    return this.#cards.has(lasting(card)) ? [] : ['its card does not say what its log says.']
  }

  /** Only of a card that is right in all that earlier versions wrote. */
  behind(card: Card): CardBehind | null {
    const { session, seq } = card
    if (this.unlike(card).length > 0 || this.#later.has(canonicalJson(laterOf(card)))) return null
    return { session, seq, says: laterOf(this.#card(this.#state)) }
  }

  #card(state: Session): Card {
    return cardOf(this.#session, state, next(state, { now: state.at, epoch: state.epoch }))
  }

  /** A request is paid when it ends: at its cost, or at all that was held if that is not known. */
  #pay(event: Event): void {
    if (event.type === 'model.started') this.#held = event.held ?? 0
    if (event.type !== 'agent.message' && event.type !== 'model.failed') return
    const free = event.type === 'model.failed' && event.class !== 'lost' && !event.assumed && event.cost === undefined
    const known = event.cost !== undefined && !event.assumed
    if (this.#held > 0 && !free) this.#spent += known ? (event.cost ?? 0) : this.#held
    this.#held = 0
  }

  /** At least so much: tools and summaries pay from the same account. What came with an import was paid elsewhere. */
  async unpaid(store: Store): Promise<readonly string[]> {
    if (this.#imported || this.#spent === 0) return []
    const spent = (await store.account(`session:${this.#session}`))?.spent ?? 0
    if (spent >= this.#spent - ROUNDING * (1 + this.#spent)) return []
    return [`its account says that ${spent} was spent, and its log ${this.#spent} (millionths of a dollar).`]
  }
}

const ROUNDING = 1e-9

/** What a card says whatever the time is, and whichever version wrote it. */
function lasting(card: Card): string {
  const { status: _status, urgent: _urgent, outage: _outage, ...rest } = bareCard(card)
  return canonicalJson(withoutLater(rest))
}

function withoutLater<One extends Partial<Card>>(card: One): Omit<One, Later> {
  const { cause: _cause, limit: _limit, unknown: _unknown, ...always } = card
  return always
}

function laterOf(card: Card): Pick<Card, Later> {
  return Object.fromEntries(LATER.flatMap((name) => (card[name] === undefined ? [] : [[name, card[name]]])))
}

const REPAIR_LEASE_MS = 30_000
/** One name for all: of two repairs at once the later has the session, and the other writes nothing. */
const REPAIRER = 'repair'

/**
 * Writes the card anew, with what its log says. False: the session is driven, has grown, or is gone. A worker that drives it writes its
 * card by itself. Nothing else of the session is changed.
 */
export async function repairCard(store: Store, { session, seq, says }: CardBehind): Promise<boolean> {
  const claim = await store.claim(session, REPAIRER, REPAIR_LEASE_MS).catch(passMissing)
  if (claim === null) return false
  const { epoch } = claim
  try {
    const known = await store.card(session)
    if (known === null || known.seq !== seq) return false
    const { trouble: _trouble, ...own } = withoutLater(known)
    await store.commit([{ session, lane: 'owner', epoch, expectedSeq: seq, events: [], card: { ...own, ...says } }])
    return true
  } catch (error) {
    if (error instanceof Fault && (error.code === 'conflict' || error.code === 'lease_lost')) return false
    throw error
  } finally {
    // Without `release` in the commit: that would forget the trouble of a session that is left alone.
    await store.release(session, epoch).catch(() => {})
  }
}

function passMissing(error: unknown): null {
  if (error instanceof Fault && error.code === 'session_missing') return null
  throw error
}

/** Each blob is read once, as far as so many can be remembered. */
class SeenBlobs {
  readonly #store: Store
  readonly #sound = new Set<string>()

  constructor(store: Store) {
    this.#store = store
  }

  async check(blob: string, session: string, seq: number): Promise<readonly string[]> {
    if (this.#sound.has(blob)) return []
    try {
      const found = (await this.#store.blob(blob, session)) ?? (await this.#store.blob(blob))
      if (found === null) return [`event ${seq} refers to the blob ${blob}, which is missing.`]
      if (hash('sha256', found.data) !== blob)
        return [`event ${seq} refers to the blob ${blob}, which has other bytes.`]
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      return [`event ${seq}: ${error.message}`]
    }
    if (this.#sound.size >= SOUND_MAX) this.#sound.clear()
    this.#sound.add(blob)
    return []
  }
}

const SOUND_MAX = 100_000

/** What belongs to no single session: each account must have exactly what the open holds hold on it. */
async function checkShared(store: Store, reader: Reader, found: Found, tell: Tell): Promise<void> {
  const held = new Map<string, number>()
  const wrong = (what: string, text: string): void => void found.problems.push({ what, text })
  const damaged = (fault: Fault): void => wrong('store', fault.message)
  for await (const piece of reader.shared(damaged)) {
    for (const row of piece) {
      if (row.type === 'hold') await checkHold(store, row, held, wrong)
      if (row.type === 'account') checkAccount(row, held, wrong)
      if (row.type === 'blob' && hash('sha256', row.data) !== row.hash)
        wrong(`blob ${row.hash}`, 'it has other bytes than its hash says.')
      if (row.type === 'hold') found.holds += 1
      if (row.type === 'account') found.accounts += 1
      if (row.type === 'blob') found.blobs += 1
    }
    tell(found)
  }
  for (const [account, amount] of held)
    if (amount > 0) wrong(`account ${account}`, `holds name it with ${amount}, and it is missing.`)
}

type Wrong = (what: string, text: string) => void

async function checkHold(
  store: Store,
  { key, amount, accounts, session }: Extract<Row, { type: 'hold' }>,
  held: Map<string, number>,
  wrong: Wrong,
): Promise<void> {
  for (const account of accounts) held.set(account, (held.get(account) ?? 0) + amount)
  if (session !== '' && (await store.card(session)) === null)
    wrong(`hold ${key}`, `it is of session ${session}, which is missing.`)
}

function checkAccount(
  { id, held, spent, assumed }: Extract<Row, { type: 'account' }>,
  holds: Map<string, number>,
  wrong: Wrong,
): void {
  const open = holds.get(id) ?? 0
  holds.delete(id)
  if (Math.abs(held - open) > ROUNDING * (1 + Math.abs(open)))
    wrong(`account ${id}`, `${held} is held on it, and its open holds are ${open} (millionths of a dollar).`)
  if (!(spent >= 0 && assumed >= 0 && assumed <= spent + ROUNDING * (1 + spent)))
    wrong(`account ${id}`, `its amounts make no sense: spent ${spent}, of it assumed ${assumed}.`)
}
