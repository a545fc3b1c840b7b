// Whether a harness can work: it makes a write and asks for the store's health. A refusing store is an answer, not an
// error.
import type { Frozen } from '../../kernel/content.ts'
import { Fault, type FaultCode } from '../../kernel/failure.ts'
import type { StoreHealth } from '../../ports/store.ts'
import type { Services } from '../../runtime/state/runtime-ports.ts'
import type { Worker } from '../../runtime/loop/worker.ts'
import { type MoneyAccount, readMoneyAccounts } from './accounts.ts'

/** How a harness and its store are: whether something can be written now, and if not, why. */
export type Health = Frozen<{
  /** A write was made, and the store was read. */
  ok: boolean
  /** The fault, if it is not ok; else null. */
  trouble: Frozen<{ code: FaultCode; message: string }> | null
  /** How long that write took, to the disk if the store has one. */
  writeMs: number | null
  /** The store's clock, in ms: ages are counted by it. */
  now: number
  /** The running version. */
  code: string
  /** Whether this harness drives sessions itself. */
  drives: boolean
  /**
   * The claims of sessions by this harness since it was made, and those that failed because another worker had the
   * session. Null from a server.
   */
  claims: Frozen<{ asked: number; vain: number }> | null
  /** Today's money accounts by agent, without empty ones. Null from a server, and if the store cannot be read. */
  accounts: readonly MoneyAccount[] | null
  /** Null if the store's health cannot be read. */
  store: StoreHealth | null
}>

export async function checkHealth(
  services: Services,
  worker: Pick<Worker, 'beat' | 'drives' | 'claims'>,
  agents: readonly string[],
): Promise<Health> {
  const { store, clock, code } = services
  await store.open().catch(() => {})
  const about = { now: store.now(), code, drives: worker.drives, claims: { ...worker.claims } }
  const began = clock.now()
  try {
    await worker.beat()
    const writeMs = Math.max(0, clock.now() - began)
    const accounts = await readMoneyAccounts(services, agents, undefined)
    return { ok: true, trouble: null, writeMs, ...about, accounts, store: await store.health() }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const { code: why, message } = error
    const known = await store.health().catch(() => null)
    return { ok: false, trouble: { code: why, message }, writeMs: null, ...about, accounts: null, store: known }
  }
}
