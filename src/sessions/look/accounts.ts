// Money accounts in dollars for people: those that pay for a session, or today's accounts by agent. It only reads.
import type { Account, Frozen } from '../../kernel/content.ts'
import type { Services } from '../../runtime/state/runtime-ports.ts'
import { readSessionHead, rootAgentOf } from '../../runtime/state/session-tree.ts'
import { accountsOf } from '../../runtime/money/spending-limits.ts'
import { usdOf } from '../../view/usd.ts'

/** One account of money and how it stands, in dollars. */
export type MoneyAccount = Frozen<{
  /** What the limit is for: the last run, the session, its tree, or one day of the agent that pays. */
  account: Account
  /** The id of the account in the store. */
  id: string
  /** The agent that pays: that of the root session. */
  agent: string
  /** The most that may be spent and set aside together. Null for no limit. */
  limitUsd: number | null
  /** What was spent so far, with the assumed part. */
  spentUsd: number
  /** Set aside for calls in progress. */
  heldUsd: number
  /** The part of the spending that no provider reported. */
  assumedUsd: number
}>

/** An account without charges and without a limit is left out. */
export async function readMoneyAccounts(
  { store }: Pick<Services, 'store'>,
  agents: readonly string[],
  session: string | undefined,
): Promise<readonly MoneyAccount[]> {
  await store.open()
  const found = session === undefined ? dayAccounts(agents, store.now()) : await payerAccounts(store, session)
  const rows: MoneyAccount[] = []
  for (const { account, id, agent } of found) {
    const row = await store.account(id)
    if (row === null) continue
    const { limit, spent, held, assumed } = row
    const amounts = { spentUsd: usdOf(spent), heldUsd: usdOf(held), assumedUsd: usdOf(assumed) }
    rows.push({ account, id, agent, limitUsd: limit === null ? null : usdOf(limit), ...amounts })
  }
  return rows
}

type NamedAccount = Pick<MoneyAccount, 'account' | 'id' | 'agent'>

function dayAccounts(agents: readonly string[], at: number): readonly NamedAccount[] {
  const nobody = { session: '', root: '', run: 0, at }
  return agents.map((agent) => ({ account: 'day', id: accountsOf(agent, nobody).day, agent }))
}

async function payerAccounts(store: Services['store'], id: string): Promise<readonly NamedAccount[]> {
  const session = await readSessionHead(store, id)
  const agent = await rootAgentOf(session, store)
  const payer = { session: id, root: session.parent?.root ?? id, run: session.began, at: store.now() }
  return Object.entries(accountsOf(agent, payer)).map(([account, name]) => ({
    account: account as Account,
    id: name,
    agent,
  }))
}
