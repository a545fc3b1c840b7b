// A worker on a store for driver tests: an agent from a script and tools, and a store that can be watched and broken.
import type { Limits } from '../../src/kernel/content.ts'
import { DEFAULT_LIMITS } from '../../src/kernel/limits.ts'
import type { CompleteStore, Write } from '../../src/ports/store.ts'
import { Harness, memory, type Script, scripted, type SessionHandle, type Tool } from '../../src/index.ts'
import { storeWith } from '../../sim/store-with.ts'

export type Commit = readonly string[]

/** Wraps a store: notes each commit of the owner as its event types, and lets a test refuse or delay it. */
export function observed(
  inner: CompleteStore,
  before: (writes: readonly Write[], n: number) => Promise<void> | void = () => {},
): { readonly store: CompleteStore; readonly commits: Commit[] } {
  const commits: Commit[] = []
  let n = 0
  const commit: CompleteStore['commit'] = async (writes) => {
    await before(writes, n++)
    const receipts = await inner.commit(writes)
    const owner = writes.flatMap((write) =>
      write.lane === 'owner' && write.epoch > 0 ? write.events.map((event) => event.type) : [],
    )
    if (owner.length > 0) commits.push(owner)
    return receipts
  }
  const store = storeWith(inner, { commit })
  return { store, commits }
}

export type Options = {
  readonly compression?: 'off'
  readonly deny?: readonly string[]
  readonly store?: CompleteStore
  readonly tools?: readonly Tool[]
  readonly limits?: Partial<Limits>
  readonly leaseMs?: number
  readonly graceMs?: number
}

export async function stage(
  script: Script,
  options: Options = {},
): Promise<{ readonly harness: Harness; readonly session: SessionHandle; readonly store: CompleteStore }> {
  const store = options.store ?? memory()
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const worker = { leaseMs: options.leaseMs ?? 30_000, graceMs: options.graceMs ?? 50 }
  const { tools = [], compression, deny = [] } = options
  const shortened = compression === undefined ? {} : { results: { compression } }
  const harness = new Harness({
    model: scripted(script),
    tools,
    limits,
    store,
    worker,
    toolAccess: { deny },
    ...shortened,
  })
  return { harness, session: await harness.open(), store }
}

export async function typesOf(session: SessionHandle): Promise<readonly string[]> {
  return (await session.events()).events.map((event) => event.type)
}
