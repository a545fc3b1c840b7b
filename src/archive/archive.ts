// A root and its children, taken out of a store into a file and brought back as they were: the same ids, events and money. The store
// remembers the checksum of what it gave away, and takes back nothing else: a file from elsewhere is for `importSession`.
import { hash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { Fault } from '../kernel/failure.ts'
import type { AccountRow, Card, Charge, Removal, Store } from '../ports/store.ts'
import { isOwnAccount } from '../stores/plan/charges.ts'
import type { Restoration } from '../stores/plan/plan.ts'
import { canonicalJson } from '../tools/core/canonical.ts'
import { isObject } from '../view/json.ts'
import { copied, isThere, type Portable, portableOf, restoration, soundCopy } from './portable.ts'
import { readLog } from './replay.ts'
import { invalid } from './schema-check.ts'

export type Archive = {
  readonly format: 'terret.archive'
  readonly version: 1
  /** The root. */
  readonly session: string
  /** The root first. Each with its folder. */
  readonly sessions: readonly Portable[]
  /** What was spent on the accounts that go with these sessions, and their limits. */
  readonly accounts: readonly Omit<AccountRow, 'held'>[]
  /** Of all the rest. */
  readonly checksum: string
}

const PAGE = 500

export async function archiveOf(store: Store, root: string): Promise<Archive> {
  const ids = [root]
  for (let after = ''; ; ) {
    const page = await store.list({ root, after, limit: PAGE })
    ids.push(...page.map(({ session }) => session).filter((id) => id !== root))
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) break
    after = last.session
  }
  const sessions: Portable[] = []
  for (const session of ids) sessions.push(await portableOf(store, { session, events: await readLog(store, session) }))
  const accounts = (await Promise.all(sessions.map((each) => accountsOf(store, each)))).flat()
  const rest = { format: 'terret.archive', version: 1, session: root, sessions, accounts } as const
  return { ...rest, checksum: checksumOf(rest) }
}

function checksumOf(rest: Omit<Archive, 'checksum'>): string {
  return hash('sha256', canonicalJson(rest))
}

/** What is still held is spent when a session is removed. */
async function accountsOf(store: Store, { session, events }: Portable): Promise<Archive['accounts']> {
  const runs = events.flatMap(({ type, seq }) => (type === 'run.started' ? [`run:${session}:${seq}`] : []))
  const names = [`session:${session}`, `tree:${session}`, ...runs].flatMap((name) => [name, `raised:${name}`])
  const rows = await Promise.all(names.map((name) => store.account(name)))
  return rows.flatMap((row) => {
    if (row === null) return []
    const { id, limit, held, spent, assumed } = row
    return [{ id, limit, spent: spent + held, assumed: assumed + held }]
  })
}

/** A copy of its own that is whole. Throws the Fault that says what is wrong. */
export async function checkArchive(value: unknown): Promise<Archive> {
  if (!isObject(value) || value['format'] !== 'terret.archive' || value['version'] !== 1)
    throw invalid('it is not a file that `terret store archive` wrote.')
  const { checksum, ...rest } = value as Archive
  const { session, sessions, accounts } = rest
  if (checksum !== checksumOf(rest)) throw invalid('it was changed or damaged: its checksum does not match.')
  if (!Array.isArray(sessions) || !Array.isArray(accounts)) throw invalid('it has no list of sessions.')
  const copies = sessions.map(copied)
  for (const copy of copies) await soundCopy(copy)
  const ids = copies.map((copy) => copy.session)
  if (ids[0] !== session || new Set(ids).size !== ids.length) throw invalid('its sessions are not those it says.')
  for (const account of accounts as readonly unknown[]) checkAccount(account, ids)
  return { ...(rest as Archive), sessions: copies, checksum }
}

function checkAccount(account: unknown, ids: readonly string[]): void {
  if (!isObject(account)) throw invalid('an account of it is none.')
  const { id, limit, spent, assumed } = account
  const isAmount = (amount: unknown): boolean => typeof amount === 'number' && amount >= 0 && Number.isFinite(amount)
  const isSound = isAmount(spent) && isAmount(assumed) && (limit === null || isAmount(limit))
  if (typeof id !== 'string' || !isSound || !ids.some((session) => isOwnAccount(session, id)))
    throw invalid('an account of it is none of its sessions.')
}

/** Out of the store, if it is still as it was archived. Its file must be safe by then. */
export function removeArchived(store: Store, archive: Archive, by: string): Promise<readonly Removal[]> {
  const ends = new Map(archive.sessions.map(({ session, events }) => [session, events.length]))
  return store.remove(archive.session, archivedBy(by, archive.checksum), ends)
}

/** So the log of removals says where it went. */
function archivedBy(by: string, checksum: string): string {
  return `${by.slice(0, 200)} (archive ${checksum})`
}

/** `removedBy`: what the store says of the last removal of that root; null if it says nothing. */
export async function restoreArchive(store: Store, value: unknown, removedBy: string | null): Promise<Card> {
  const { session, sessions, accounts, checksum } = await checkArchive(value)
  if (removedBy?.endsWith(archivedBy('', checksum)) !== true) {
    const text = `Session ${session} did not leave this store with this file. Restore the last one that was archived; a session of another store is for \`terret import\`.`
    throw new Fault('invalid_input', text)
  }
  const writes: Restoration[] = []
  for (const copy of sessions) {
    for (const parent of copy.parents ?? [])
      if (!(await isThere(store, parent))) throw missingOrigin(copy.session, parent.session)
    const { state, blobs } = await soundCopy(copy)
    const own = accounts.filter(({ id }) => isOwnAccount(copy.session, id))
    writes.push({ ...restoration(store, copy, state, blobs), charges: own.flatMap(chargesOf) })
  }
  await committed(store, writes)
  return (await store.card(session)) ?? (writes[0] as Restoration).card
}

function missingOrigin(session: string, origin: string): Fault {
  return new Fault('session_missing', `Session ${session} was forked from session ${origin}. Restore that one first.`)
}

/** It may be there because of this very commit, whose answer was lost. */
async function committed(store: Store, writes: readonly Restoration[]): Promise<void> {
  try {
    await store.commit(writes)
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'store_busy') throw error
    const [{ session, history }] = writes as readonly [Restoration]
    const there = (await store.card(session)) === null ? [] : await readLog(store, session)
    if (!isDeepStrictEqual(there, JSON.parse(JSON.stringify(history)))) throw error
  }
}

/** Money moves by holds alone. The limit comes last: what was spent may be more. */
function chargesOf({ id, limit, spent, assumed }: Archive['accounts'][number]): readonly Charge[] {
  const key = `restored:${hash('sha256', id)}`
  const known = Math.max(0, spent - assumed)
  return [
    { type: 'hold', key, accounts: [id], amount: known },
    { type: 'settle', key, amount: known },
    { type: 'hold', key: `${key}:assumed`, accounts: [id], amount: assumed },
    { type: 'settle', key: `${key}:assumed`, amount: assumed, assumed: true },
    { type: 'limit', account: id, limit },
  ]
}
