// A process with a Postgres store of its own, for the tests with several processes. Run as: url schema task name.
// Tasks: `open` the store; `hold` on the account "day" until it is refused; `commit` as the owner of "s" until told to stop.
import { Fault } from '../../src/kernel/failure.ts'
import { PostgresConnections } from '../../src/stores/postgres/connections.ts'
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { card, claim, create, note, ownerWrite } from '../contract/fixture.ts'

export type Told = { readonly done: number; readonly refusals: readonly string[] }

const [url = '', schema = '', task = '', name = ''] = process.argv.slice(2)
const store = new PostgresStore(new PostgresConnections({ url, hints: false }), { schema })

const tasks: Readonly<Record<string, () => Promise<Told>>> = {
  open: async () => {
    await create(store, name)
    return { done: 1, refusals: [] }
  },
  hold: async () => {
    await create(store, name)
    for (let done = 0; ; done++) {
      const charges = [{ type: 'hold', key: `${name}:${done}`, accounts: ['day'], amount: 3 }] as const
      const refusal = await refusalOf(store.commit([{ session: name, lane: 'inbox', events: [], charges }]))
      if (refusal !== null) return { done, refusals: [refusal] }
    }
  },
  commit: async () => {
    const owner = await claim(store, 's', name)
    let [done, stop] = [0, false]
    process.on('message', () => void (stop = true))
    const refusals: string[] = []
    for (let tries = 0; !stop; tries++) {
      const charges = [
        { type: 'hold', key: `${name}:${tries}`, accounts: ['day'], amount: 3 },
        { type: 'settle', key: `${name}:${tries}`, amount: 1 },
      ] as const
      const made = ownerWrite(store, owner, [note('x')], { charges, card: card('s', { status: 'running' }) })
      const refusal = await refusalOf(store.commit([made]))
      if (refusal === null) done += 1
      else refusals.push(refusal)
      owner.seq = (await store.card('s'))?.seq ?? 0
      if (tries % 5 === 0) process.send?.('tick')
    }
    return { done, refusals }
  },
}

async function refusalOf(promise: Promise<unknown>): Promise<string | null> {
  try {
    await promise
    return null
  } catch (error) {
    return error instanceof Fault ? error.code : String(error)
  }
}

process.send?.('started')
const told = await tasks[task]?.()
process.send?.(told)
await store.close()
process.disconnect()
