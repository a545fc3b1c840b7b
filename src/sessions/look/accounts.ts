// Money accounts in dollars for people: those that pay for a session, or today's accounts by agent. It only reads.
import type { Account, Frozen } from '../../kernel/content.ts'
import type { Services } from '../../runtime/state/runtime-ports.ts'
import { readSessionHead, rootAgentOf } from '../../runtime/state/session-tree.ts'
import { accountsOf } from '../../runtime/money/spending-limits.ts'
import { usdOf } from '../../view/usd.ts'

/**
 * `account` is the scope of the limit: the last run, the session, its tree, or a day of the paying agent. `heldUsd` is
 * set aside for calls in progress; `assumedUsd` is the spending that no provider reported. `limitUsd` is null without a
 * limit.
 */
export type MoneyAccount = Frozen<{
  account: Account
  id: string
  agent: string
  limitUsd: number | null
  spentUsd: number
  heldUsd: number
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
