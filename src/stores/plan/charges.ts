// Money: holds on accounts with limits, settled or freed by key. Pure; part of the plan of a commit (plan.ts).
// It knows no prices and no sessions: the owner says what to hold, and the caller what the limits are.
import { Fault } from '../../kernel/failure.ts'
import type { AccountRow, Charge } from '../../ports/store.ts'
import { checkId } from './id.ts'

/** An open hold, and the session that opened it. It is forgotten once it is settled or freed. */
export type Hold = { readonly amount: number; readonly accounts: readonly string[]; readonly session: string }

/** What a commit changes: accounts as they will be, holds as they will be (null: closed). */
export type AccountChanges = { readonly accounts: Map<string, AccountRow>; readonly holds: Map<string, Hold | null> }

/** The accounts as they are. */
export interface Ledger {
  account(id: string): AccountRow | null
  hold(key: string): Hold | null
  /** The open holds of a session, by key. */
  holdsOf(session: string): ReadonlyMap<string, Hold>
}

export function planCharges(
  begun: AccountChanges | null,
  known: Ledger,
  session: string,
  charges: readonly Charge[],
): AccountChanges {
  const book = begun ?? { accounts: new Map(), holds: new Map() }
  for (const charge of charges) {
    if (charge.type === 'limit') {
      checkId('account', charge.account)
      const limit = limitOf(book, known, charge)
      book.accounts.set(charge.account, { ...accountOf(book, known, charge.account), limit })
    } else if (charge.type === 'hold') hold(book, known, session, charge)
    else if (charge.type === 'lost') lose(book, known, session, charge.key)
    else close(book, known, charge)
  }
  return book
}

/** Money that was allowed beyond a limit is read here: the code that sets the limit may not know of it. */
function limitOf(
  book: AccountChanges,
  known: Ledger,
  { limit, raisedBy }: Extract<Charge, { type: 'limit' }>,
): number | null {
  if (limit === null) return null
  checkAmount(limit)
  return raisedBy === undefined ? limit : limit + accountOf(book, known, raisedBy).spent
}

/** The outcome of these is never reported. */
function lose(book: AccountChanges, known: Ledger, session: string, under: string): void {
  for (const [key, { amount }] of known.holdsOf(session))
    if (key.startsWith(under)) close(book, known, { type: 'settle', key, amount, assumed: true })
}

type Holding = Extract<Charge, { type: 'hold' }>

/** A hold over any limit refuses the whole commit, with a detail that begins with the account. The same key twice is one hold. */
function hold(book: AccountChanges, known: Ledger, session: string, { key, accounts, amount }: Holding): void {
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

/** Settling or freeing what is not held changes nothing, so both may be repeated. */
function close(book: AccountChanges, known: Ledger, charge: Exclude<Charge, { type: 'hold' | 'limit' }>): void {
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

function holdOf(book: AccountChanges, known: Ledger, key: string): Hold | null {
  const planned = book.holds.get(key)
  return planned === undefined ? known.hold(key) : planned
}

function accountOf(book: AccountChanges, known: Ledger, id: string): AccountRow {
  return book.accounts.get(id) ?? known.account(id) ?? { id, limit: null, held: 0, spent: 0, assumed: 0 }
}

const OWN = ['session:', 'tree:', 'run:', 'raised:session:', 'raised:tree:', 'raised:run:'] as const

/** How the names of a session's own accounts begin. Not every name that begins like this is one: `isOwnAccount` says. */
export function ownPrefixes(session: string): readonly string[] {
  return OWN.map((kind) => `${kind}${session}`)
}

/** Named after this session, and after no other: an account of all sessions, such as a day's, belongs to none of them. */
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
