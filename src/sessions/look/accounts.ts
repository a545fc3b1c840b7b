// Money accounts as people read them, in dollars: those that pay for a session, or those of today by agent. It only reads.
import type { Account, Frozen } from '../../kernel/content.ts'
import type { Services } from '../../engine/wiring.ts'
import { headOf, rootAgentOf } from '../../riders/children/tree.ts'
import { accountsOf } from '../../riders/money/spending-limits.ts'
import { usdOf } from '../../view/usd.ts'

/**
 * `account` is what it bounds: the last run, the session, its tree, or a day of the agent that pays. `heldUsd` is set aside for calls at
 * work; `assumedUsd` is that part of what was spent which no provider reported. `limitUsd` is null where nothing bounds it.
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

/** An account that nothing was charged to, and that has no limit, is not there. */
export async function moneyOf(
  { store }: Pick<Services, 'store'>,
  agents: readonly string[],
  session: string | undefined,
): Promise<readonly MoneyAccount[]> {
  await store.open()
  const found = session === undefined ? daysOf(agents, store.now()) : await payersOf(store, session)
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

type Named = Pick<MoneyAccount, 'account' | 'id' | 'agent'>

function daysOf(agents: readonly string[], at: number): readonly Named[] {
  const nobody = { session: '', root: '', run: 0, at }
  return agents.map((agent) => ({ account: 'day', id: accountsOf(agent, nobody).day, agent }))
}

async function payersOf(store: Services['store'], id: string): Promise<readonly Named[]> {
  const session = await headOf(store, id)
  const agent = await rootAgentOf(session, store)
  const payer = { session: id, root: session.parent?.root ?? id, run: session.began, at: store.now() }
  return Object.entries(accountsOf(agent, payer)).map(([account, name]) => ({
    account: account as Account,
    id: name,
    agent,
  }))
}
