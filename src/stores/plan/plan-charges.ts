// Money: holds on accounts with limits, settled or freed by key. Pure; part of planning a commit (plan-writes.ts). It
// knows no prices and no sessions: the owner says what to hold, and the caller sets the limits.
import { Fault } from '../../kernel/failure.ts'
import type { AccountRow, Charge } from '../../ports/store.ts'
import { checkId } from './store-ids.ts'

/** An open hold. It is dropped once it is settled or freed. */
export type Hold = {
  /** What is reserved, in millionths of a dollar. */
  readonly amount: number
  /** The accounts on which it is reserved. */
  readonly accounts: readonly string[]
  /** The session that opened it. */
  readonly session: string
}

/** The changes of accounts and holds by a commit. */
export type AccountChanges = {
  /** The accounts that change, as they are afterwards. */
  readonly accounts: Map<string, AccountRow>
  /** The holds that change, as they are afterwards. Null: the hold is closed. */
  readonly holds: Map<string, Hold | null>
}

/** The present accounts and holds. */
export interface AccountBook {
  /** The account with this id. Null if there is none. */
  account(id: string): AccountRow | null
  /** The open hold with this key. Null if there is none. */
  hold(key: string): Hold | null
  /** The open holds of a session, by key. */
  holdsOf(session: string): ReadonlyMap<string, Hold>
}

export function planCharges(
  begun: AccountChanges | null,
  known: AccountBook,
  session: string,
  charges: readonly Charge[],
): AccountChanges {
  const book = begun ?? { accounts: new Map(), holds: new Map() }
  for (const charge of charges) {
    if (charge.type === 'limit') {
      checkId('account', charge.account)
      const limit = limitOf(book, known, charge)
      book.accounts.set(charge.account, { ...accountOf(book, known, charge.account), limit })
    } else if (charge.type === 'hold') openHold(book, known, session, charge)
    else if (charge.type === 'lost') settleLost(book, known, session, charge.key)
    else closeHold(book, known, charge)
  }
  return book
}

/** An allowance beyond a limit is read here, because the code that sets the limit may not know of it. */
function limitOf(
  book: AccountChanges,
  known: AccountBook,
  { limit, raisedBy }: Extract<Charge, { type: 'limit' }>,
): number | null {
  if (limit === null) return null
  checkAmount(limit)
  return raisedBy === undefined ? limit : limit + accountOf(book, known, raisedBy).spent
}

/** The outcome of these calls will never be reported. */
function settleLost(book: AccountChanges, known: AccountBook, session: string, under: string): void {
  for (const [key, { amount }] of known.holdsOf(session))
    if (key.startsWith(under)) closeHold(book, known, { type: 'settle', key, amount, assumed: true })
}

type HoldCharge = Extract<Charge, { type: 'hold' }>

/**
 * A hold over any limit refuses the whole commit, with a detail that begins with the account. The same key twice is one
 * hold.
 */
function openHold(
  book: AccountChanges,
  known: AccountBook,
  session: string,
  { key, accounts, amount }: HoldCharge,
): void {
  checkId('key of a hold', key)
  checkAmount(amount)
  if (holdOf(book, known, key)) return
  for (const id of accounts) {
    checkId('account', id)
    const account = accountOf(book, known, id)
    if (account.limit !== null && account.held + account.spent + amount > account.limit) {
      const detail = `${id}: limit ${account.limit}, spent ${account.spent}, held ${account.held}, asked ${amount}`
      throw new Fault('over_budget', `The budget of ${id} does not cover this call.`, detail)
    }
    book.accounts.set(id, { ...account, held: account.held + amount })
  }
  book.holds.set(key, { amount, accounts, session })
}

/** Settling or freeing a hold that does not exist changes nothing, so both may be repeated. */
function closeHold(
  book: AccountChanges,
  known: AccountBook,
  charge: Exclude<Charge, { type: 'hold' | 'limit' }>,
): void {
  const spent = charge.type === 'settle' ? charge.amount : 0
  const assumed = charge.type === 'settle' && charge.assumed ? spent : 0
  checkAmount(spent)
  const open = holdOf(book, known, charge.key)
  if (!open) return
  for (const id of open.accounts) {
    const account = accountOf(book, known, id)
    const held = account.held - open.amount
    book.accounts.set(id, { ...account, held, spent: account.spent + spent, assumed: account.assumed + assumed })
  }
  book.holds.set(charge.key, null)
}

function holdOf(book: AccountChanges, known: AccountBook, key: string): Hold | null {
  const planned = book.holds.get(key)
  return planned === undefined ? known.hold(key) : planned
}

function accountOf(book: AccountChanges, known: AccountBook, id: string): AccountRow {
  return book.accounts.get(id) ?? known.account(id) ?? { id, limit: null, held: 0, spent: 0, assumed: 0 }
}

const OWN = ['session:', 'tree:', 'run:', 'raised:session:', 'raised:tree:', 'raised:run:'] as const

/** The prefixes of a session's own accounts. Not every name with such a prefix is one: `isOwnAccount` decides. */
export function ownPrefixes(session: string): readonly string[] {
  return OWN.map((kind) => `${kind}${session}`)
}

/**
 * True for an account named after this session and no other. A shared account, such as that of a day, belongs to no
 * session.
 */
export function isOwnAccount(session: string, account: string): boolean {
  const kind = OWN.find((each) => account.startsWith(`${each}${session}`))
  if (kind === undefined) return false
  const rest = account.slice(kind.length + session.length)
  return kind.endsWith('run:') ? /^:\d+$/.test(rest) : rest === ''
}

function checkAmount(amount: number): void {
  if (amount >= 0 && Number.isFinite(amount)) return
  throw new Fault('invalid_input', 'An amount of money must be a finite number and not negative.', `got ${amount}`)
}
