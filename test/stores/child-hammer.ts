// A process that hammers one file together with others: sends to shared sessions, drives them when it gets the lease, and
// says in the end what was acknowledged. Run by sqlite-processes.test.ts.
import { Fault } from '../../src/kernel/failure.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { card, message, note, ownerWrite } from '../contract/fixture.ts'

export type Hammered = {
  /** `session:seq` → the id or text of the event that was acknowledged there. */
  readonly acked: readonly (readonly [string, string])[]
  readonly refusals: Readonly<Record<string, number>>
}

const SESSIONS = ['shared-0', 'shared-1', 'shared-2']
const acked: [string, string][] = []
const refusals: Record<string, number> = {}

async function tolerate<T>(promise: Promise<T>): Promise<T | null> {
  try {
    return await promise
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    refusals[error.code] = (refusals[error.code] ?? 0) + 1
    return null
  }
}

async function send(store: CompleteStore, session: string, id: string): Promise<void> {
  const receipts = await tolerate(store.commit([{ session, lane: 'inbox', events: [message(id)] }]))
  for (const seq of receipts?.[0]?.seqs ?? []) acked.push([`${session}:${seq}`, id])
}

async function drive(store: CompleteStore, session: string, worker: string): Promise<void> {
  const claim = await tolerate(store.claim(session, worker, 5_000))
  if (!claim) return
  for (let i = 0; i < 3; i++) {
    const { seq } = (await store.card(session)) ?? { seq: 0 }
    const text = `${worker} ${claim.epoch} ${seq}`
    const owner = { session, worker, epoch: claim.epoch, seq }
    const write = ownerWrite(store, owner, [note(text)], { card: card(session, { due: null }) })
    if (await tolerate(store.commit([write]))) acked.push([`${session}:${seq + 1}`, text])
  }
  await store.release(session, claim.epoch)
}

async function main(file: string, name: string, rounds: number): Promise<void> {
  const store = sqlite(file)
  for (let round = 0; round < rounds; round++) {
    const session = SESSIONS[round % SESSIONS.length] ?? ''
    const work = [send(store, session, `${name}-${round}`), send(store, session, `common-${round}`)]
    if (round % 4 === 0) work.push(drive(store, session, name))
    await Promise.all(work)
  }
  await store.close()
  process.send?.({ acked, refusals } satisfies Hammered)
}

const [file = '', name = '', rounds = '0'] = process.argv.slice(2)
await main(file, name, Number(rounds))
process.disconnect()
