// A worker process of the load model: it drives whatever is due, and counts what it asks of the store. Run by main.ts as: URL SHAPE, or
// as: URL SHAPE NAME ACCOUNT WIDTH to move money on one account, so many at a time, until it is told to stop.
import type { CompleteStore } from '../../src/ports/store.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { harnessOn, type Shape } from './agent.ts'

/** Since it began. `vain`: claims that another worker had been faster with; `empty`: questions that found nothing due. */
export type Counts = {
  readonly commits: number
  /** Calls that have their result. */
  readonly turns: number
  readonly takes: number
  readonly empty: number
  readonly claims: number
  readonly vain: number
}
/** It rests since event `seq`. `ask`: the call that a person must allow; null: its run is over. */
export type Rested = { readonly session: string; readonly seq: number; readonly ask: string | null }
export type Told = { readonly counts: Counts; readonly rested: readonly Rested[] }

const TELL_MS = 50

const [url = '', shape = '{}', name = '', account = '', width = '1'] = process.argv.slice(2)
const store = postgres(url)
const counts = { commits: 0, turns: 0, takes: 0, empty: 0, claims: 0, vain: 0 }
let rested: Rested[] = []
await store.open()
process.send?.('ready')
await (name === '' ? drive() : charge())
await store.close()
tell()
process.disconnect()

function tell(): void {
  process.send?.({ counts, rested } satisfies Told)
  rested = []
}

async function drive(): Promise<void> {
  const stop = new AbortController()
  process.once('message', () => stop.abort())
  const telling = setInterval(tell, TELL_MS)
  const harness = harnessOn(counted(store), JSON.parse(shape) as Shape, true)
  await harness.work({ signal: stop.signal })
  await harness.close()
  clearInterval(telling)
}

/** Each is a commit of its own: held, then settled. */
async function charge(): Promise<void> {
  let stopped = false
  process.once('message', () => void (stopped = true))
  const loop = async (i: number): Promise<void> => {
    const session = `${name}-${i}`
    const own = account === '' ? `day:${session}` : account
    const at = store.now()
    const rest = { cost: 0, asks: [], waits: [], wakes: 0, outcome: null, due: null } as const
    const card = { session, agent: 'hot', root: session, status: 'idle', seq: 1, at, ...rest } as const
    const created = { seq: 1, at, epoch: 0, type: 'session.created', agent: 'hot', planner: 'model' } as const
    await store.commit([{ session, lane: 'owner', epoch: 0, expectedSeq: 0, events: [created], card }])
    for (let n = 0; !stopped; n++) {
      const key = `${session}:${n}`
      const hold = { type: 'hold', key, accounts: [own], amount: 2 } as const
      for (const charges of [[hold], [{ type: 'settle', key, amount: 1 } as const]]) {
        await store.commit([{ session, lane: 'inbox', events: [], charges }])
        counts.commits += 1
      }
    }
  }
  await Promise.all(Array.from({ length: Number(width) }, (_, i) => loop(i)))
}

/** The same store, with its questions counted and the sessions noted that came to rest. */
function counted(inner: CompleteStore): CompleteStore {
  const own: Pick<CompleteStore, 'commit' | 'claim'> & Required<Pick<CompleteStore, 'take'>> = {
    async commit(writes) {
      const receipts = await inner.commit(writes)
      counts.commits += 1
      for (const write of writes) {
        if (write.lane !== 'owner') continue
        counts.turns += write.events.filter(({ type }) => type === 'agent.tool_result').length
        const { session, seq, status, asks, outcome } = write.card
        if (status === 'idle' && outcome !== 'completed') throw new Error(`a run of ${session} ended as ${outcome}`)
        if (status === 'idle') rested.push({ session, seq, ask: null })
        else if (status === 'requires_action') rested.push({ session, seq, ask: asks[0] ?? null })
      }
      return receipts
    },
    async claim(...asked) {
      const claim = await inner.claim(...asked)
      counts.claims += 1
      if (claim === null) counts.vain += 1
      return claim
    },
    async take(...asked) {
      const taken = (await inner.take?.(...asked)) ?? new Map<string, never>()
      counts.takes += 1
      counts.claims += taken.size
      if (taken.size === 0) counts.empty += 1
      return taken
    },
  }
  return new Proxy(inner, {
    get(target, key) {
      const value: unknown = Reflect.get(key in own ? own : target, key)
      // Its private fields are known to the store itself alone.
      return typeof value === 'function' ? (value.bind(key in own ? own : target) as unknown) : value
    },
  })
}
