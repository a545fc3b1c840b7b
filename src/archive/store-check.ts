// Reads everything in a store and reports what is wrong: logs by their checksums, cards by their logs, blobs by their
// hashes, money by events and holds. It uses the store's methods, and the store's reader for rows that these do not
// list. A check changes nothing; `repairCard` updates one card that an earlier version wrote.
import { hash } from 'node:crypto'
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import { open, take } from '../kernel/fold.ts'
import { next } from '../kernel/next.ts'
import { EMPTY, type Session } from '../kernel/session.ts'
import type { Card, CompleteStore } from '../ports/store.ts'
import { bareCard, type StoreReader, type MoveRow } from '../stores/move/move-rows.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { cardOf } from '../view/card.ts'
import { requiredBlobs } from '../view/readable-blobs.ts'

/** `what` names a session, an account, a hold, a blob or the store. */
export type StoreProblem = {
  /** The session, account, hold or blob that is wrong, or the store itself. */
  readonly what: string
  /** What is wrong with it, as a sentence. */
  readonly text: string
}
/** What `checkStore` read, and every problem it found. */
export type StoreCheck = {
  /** How many sessions were read. */
  readonly sessions: number
  /** How many events were read. */
  readonly events: number
  /** How many blobs were read. */
  readonly blobs: number
  /** How many accounts of money were read. */
  readonly accounts: number
  /** How many open holds were read. */
  readonly holds: number
  /** What is wrong. Empty: nothing was found. */
  readonly problems: readonly StoreProblem[]
  /** Cards written by an earlier version: lists by outcome do not find them. `repairCard` updates one. */
  readonly behind: readonly OutdatedCard[]
}
/** `says` holds the fields that follow from the log and that the card lacks. */
export type OutdatedCard = {
  /** The session of the card. */
  readonly session: string
  /** The seq of its last event. */
  readonly seq: number
  /** The fields that follow from the log and that the card lacks. */
  readonly says: Pick<Card, NewerField>
}

/** Cards of earlier versions lack these fields. */
const LATER = ['cause', 'limit', 'unknown'] as const
type NewerField = (typeof LATER)[number]

type CheckTotals = { -readonly [K in keyof StoreCheck]: StoreCheck[K] } & {
  problems: StoreProblem[]
  behind: OutdatedCard[]
}
/** The totals so far, or of the whole check. */
export type StoreCounts = Omit<StoreCheck, 'problems' | 'behind'>
type OnProgress = (so: StoreCounts) => void

const PAGE = 500
/** How often a log with damage is read again, because it may have grown meanwhile. */
const TRIES = 3

/** Reads everything in a store and compares it with itself: logs, cards, blobs and accounts. It changes nothing. */
export async function checkStore(
  store: CompleteStore,
  reader: StoreReader,
  tell: OnProgress = () => {},
): Promise<StoreCheck> {
  const found: CheckTotals = { sessions: 0, events: 0, blobs: 0, accounts: 0, holds: 0, problems: [], behind: [] }
  const seen = new BlobChecker(store)
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

/** Checks again a session that changed meanwhile. */
async function checkSession(
  store: CompleteStore,
  session: string,
  seen: BlobChecker,
  found: CheckTotals,
): Promise<readonly StoreProblem[]> {
  for (let tries = 1; ; tries++) {
    const card = await store.card(session)
    // The session was removed meanwhile.
    if (card === null) return []
    const { texts, events, behind } = await examineSession(store, card, seen)
    const now = await store.card(session)
    if (texts.length > 0 && tries < TRIES && canonicalJson(now) !== canonicalJson(card)) continue
    found.events += events
    if (behind) found.behind.push(behind)
    return texts.map((text) => ({ what: `session ${session}`, text }))
  }
}

type SessionFindings = {
  readonly texts: readonly string[]
  readonly events: number
  readonly behind?: OutdatedCard | null
}

async function examineSession(store: CompleteStore, card: Card, seen: BlobChecker): Promise<SessionFindings> {
  const { session, trouble } = card
  if (trouble?.reason.startsWith('The session is damaged')) return { texts: [trouble.reason], events: 0 }
  const log = new LogCheck(session, await lastOwnerSeq(store, card))
  const texts: string[] = []
  while (log.seq < card.seq) {
    const page = await store.read(session, log.seq, Math.min(PAGE, card.seq - log.seq))
    for (const event of page.events) {
      const wrong = log.take(event)
      if (wrong !== null) return { texts: [...texts, wrong], events: log.seq }
      for (const blob of requiredBlobs(event)) texts.push(...(await seen.check(blob, session, event.seq)))
    }
    if (page.damaged)
      return { texts: [...texts, `event ${page.damaged.seq}: ${page.damaged.reason}.`], events: log.seq }
    if (page.events.length === 0)
      return { texts: [...texts, `its log ends before event ${card.seq}.`], events: log.seq }
  }
  texts.push(...log.unlike(card), ...(await log.unpaid(store)))
  return { texts, events: log.seq, behind: log.behind(card) }
}

/**
 * The seq of the owner's last event, if it is among the last events: the card was written with it or after it. 0: not
 * found.
 */
async function lastOwnerSeq(store: CompleteStore, { session, seq }: Card): Promise<number> {
  const { events } = await store.read(session, Math.max(0, seq - PAGE), PAGE)
  return events.findLast(({ epoch }) => epoch > 0)?.seq ?? 0
}

/** Folds one log, and remembers what its card may contain and what its requests cost. */
class LogCheck {
  seq = 0
  readonly #session: string
  readonly #owned: number
  readonly #state = open(EMPTY)
  /** The cards that are valid now: an inbox event reaches the card only when the owner has looked. */
  readonly #cards = new Set<string>()
  /** The newer fields of these cards. */
  readonly #later = new Set<string>()
  #imported = false
  /** The money held for the open request. */
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
    // The card comes from the fold alone. Whether it is due, and so its status, depends on when its owner looked.
    if (event.seq >= this.#owned) {
      const card = this.#card(this.#state)
      this.#cards.add(comparableCard(card))
      this.#later.add(canonicalJson(newerFields(card)))
    }
    return null
  }

  unlike(card: Card): readonly string[] {
    return this.#cards.has(comparableCard(card)) ? [] : ['its card does not say what its log says.']
  }

  /** Null unless the card is right in all fields that earlier versions wrote. */
  behind(card: Card): OutdatedCard | null {
    const { session, seq } = card
    if (this.unlike(card).length > 0 || this.#later.has(canonicalJson(newerFields(card)))) return null
    return { session, seq, says: newerFields(this.#card(this.#state)) }
  }

  #card(state: Session): Card {
    return cardOf(this.#session, state, next(state, { now: state.at, epoch: state.epoch }))
  }

  /** A request is paid when it ends: its cost, or the whole hold if the cost is not known. */
  #pay(event: Event): void {
    if (event.type === 'model.started') this.#held = event.held ?? 0
    if (event.type !== 'agent.message' && event.type !== 'model.failed') return
    const free = event.type === 'model.failed' && event.class !== 'lost' && !event.assumed && event.cost === undefined
    const known = event.cost !== undefined && !event.assumed
    if (this.#held > 0 && !free) this.#spent += known ? (event.cost ?? 0) : this.#held
    this.#held = 0
  }

  /**
   * The account must show at least this amount; tools and summaries use the same account. Imported requests were paid
   * elsewhere.
   */
  async unpaid(store: CompleteStore): Promise<readonly string[]> {
    if (this.#imported || this.#spent === 0) return []
    const spent = (await store.account(`session:${this.#session}`))?.spent ?? 0
    if (spent >= this.#spent - ROUNDING * (1 + this.#spent)) return []
    return [`its account says that ${spent} was spent, and its log ${this.#spent} (millionths of a dollar).`]
  }
}

const ROUNDING = 1e-9

/** The card without the fields that depend on the time or on the version that wrote it. */
function comparableCard(card: Card): string {
  const { status: _status, urgent: _urgent, outage: _outage, ...rest } = bareCard(card)
  return canonicalJson(withoutNewerFields(rest))
}

function withoutNewerFields<One extends Partial<Card>>(card: One): Omit<One, NewerField> {
  const { cause: _cause, limit: _limit, unknown: _unknown, ...always } = card
  return always
}

function newerFields(card: Card): Pick<Card, NewerField> {
  return Object.fromEntries(LATER.flatMap((name) => (card[name] === undefined ? [] : [[name, card[name]]])))
}

const REPAIR_LEASE_MS = 30_000
/** All repairs use one name: of two at once, the later gets the session and the other writes nothing. */
const REPAIRER = 'repair'

/**
 * Writes the card again with what its log says. False: a worker drives the session and will write the card itself, or
 * the session has grown or is gone. Nothing else changes.
 */
export async function repairCard(store: CompleteStore, { session, seq, says }: OutdatedCard): Promise<boolean> {
  const claim = await store.claim(session, REPAIRER, REPAIR_LEASE_MS).catch(nullIfMissing)
  if (claim === null) return false
  const { epoch } = claim
  try {
    const known = await store.card(session)
    if (known === null || known.seq !== seq) return false
    const { trouble: _trouble, ...own } = withoutNewerFields(known)
    await store.commit([{ session, lane: 'owner', epoch, expectedSeq: seq, events: [], card: { ...own, ...says } }])
    return true
  } catch (error) {
    if (error instanceof Fault && (error.code === 'conflict' || error.code === 'lease_lost')) return false
    throw error
  } finally {
    // The commit has no `release`, because that would clear the trouble of a quarantined session.
    await store.release(session, epoch).catch(() => {})
  }
}

function nullIfMissing(error: unknown): null {
  if (error instanceof Fault && error.code === 'session_missing') return null
  throw error
}

/** Reads a blob again only if it has forgotten it: its memory of blobs is bounded. */
class BlobChecker {
  readonly #store: CompleteStore
  readonly #sound = new Set<string>()

  constructor(store: CompleteStore) {
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

/** Checks what belongs to no single session: each account must hold exactly the sum of its open holds. */
async function checkShared(
  store: CompleteStore,
  reader: StoreReader,
  found: CheckTotals,
  tell: OnProgress,
): Promise<void> {
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

type ReportProblem = (what: string, text: string) => void

async function checkHold(
  store: CompleteStore,
  { key, amount, accounts, session }: Extract<MoveRow, { type: 'hold' }>,
  held: Map<string, number>,
  wrong: ReportProblem,
): Promise<void> {
  for (const account of accounts) held.set(account, (held.get(account) ?? 0) + amount)
  if (session !== '' && (await store.card(session)) === null)
    wrong(`hold ${key}`, `it is of session ${session}, which is missing.`)
}

function checkAccount(
  { id, held, spent, assumed }: Extract<MoveRow, { type: 'account' }>,
  holds: Map<string, number>,
  wrong: ReportProblem,
): void {
  const open = holds.get(id) ?? 0
  holds.delete(id)
  if (Math.abs(held - open) > ROUNDING * (1 + Math.abs(open)))
    wrong(`account ${id}`, `${held} is held on it, and its open holds are ${open} (millionths of a dollar).`)
  if (!(spent >= 0 && assumed >= 0 && assumed <= spent + ROUNDING * (1 + spent)))
    wrong(`account ${id}`, `its amounts make no sense: spent ${spent}, of it assumed ${assumed}.`)
}
