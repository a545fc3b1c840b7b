// Whether a harness can work: a write is made, and the store says how it stands. A store that refuses is an answer, not an error.
import type { Frozen } from '../../kernel/content.ts'
import { Fault, type FaultCode } from '../../kernel/failure.ts'
import type { StoreHealth } from '../../ports/store.ts'
import type { Services } from '../../engine/wiring.ts'
import type { Worker } from '../../engine/worker.ts'

export type Health = Frozen<{
  /** A write was made, and the store was read. */
  ok: boolean
  /** Why not; null if it is. */
  trouble: Frozen<{ code: FaultCode; message: string }> | null
  /** How long that write took, to the disk if the store has one. */
  writeMs: number | null
  /** The store's clock, in ms: ages are counted by it. */
  now: number
  /** Which version runs. */
  code: string
  /** This harness drives sessions itself. */
  drives: boolean
  /** Sessions that this harness asked for since it was made, and those of them that another worker had. */
  claims: Frozen<{ asked: number; vain: number }>
  /** Null if it cannot be read. */
  store: StoreHealth | null
}>

export async function healthOf(
  services: Services,
  worker: Pick<Worker, 'beat' | 'drives' | 'claims'>,
): Promise<Health> {
  const { store, clock, code } = services
  await store.open().catch(() => {})
  const about = { now: store.now(), code, drives: worker.drives, claims: { ...worker.claims } }
  const began = clock.now()
  try {
    await worker.beat()
    const writeMs = Math.max(0, clock.now() - began)
    return { ok: true, trouble: null, writeMs, ...about, store: await store.health() }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const { code: why, message } = error
    const known = await store.health().catch(() => null)
    return { ok: false, trouble: { code: why, message }, writeMs: null, ...about, store: known }
  }
}
