// Work goes on where power was lost: a worker drives what is due, and a person serves what waits, until everything rests. What they do is
// noted as the processes before them did, so that all of it can be compared at the end.
import { setTimeout as sleep } from 'node:timers/promises'
import type { CompleteStore } from '../../src/ports/store.ts'
import type { InboxBody } from '../../src/kernel/event.ts'
import { Bug, Fault } from '../../src/kernel/failure.ts'
import { Worker } from '../../src/runtime/loop/worker.ts'
import { Appender, digestOf, type ErrorLine, type JournalLine } from '../crash/evidence.ts'
import { serve } from '../crash/serve.ts'
import { message, servicesOf } from '../crash/stage.ts'
import { agentOf } from '../crash/workload.ts'

const LEASE_MS = 2_000
/** Long, because others may keep the machine busy, and several cuts are tried at once. */
const SETTLE_MS = 600_000
const LOOK_MS = 150
const RESTLESS = ['requires_action', 'running', 'rescheduling'] as const

export type DrivenOn = {
  readonly journal: readonly JournalLine[]
  readonly errors: readonly ErrorLine[]
  /** What did not come to rest in time. */
  readonly restless: readonly string[]
}

/** `oracle` is the file of effects that happened before, and it takes those that happen now. */
export async function driveOn(store: CompleteStore, oracle: string): Promise<DrivenOn> {
  const errors: ErrorLine[] = []
  const person = new PersonAfter(store)
  const worker = new Worker(servicesOf(store, agentOf(new Appender(oracle), oracle)), {
    id: `after-${process.pid}`,
    leaseMs: LEASE_MS,
    attemptsMax: Number.MAX_SAFE_INTEGER,
    onError: (session, error) => errors.push(errorLine(session, error)),
  })
  worker.start()
  const until = Date.now() + SETTLE_MS
  let restless = await person.look()
  while (restless.length > 0 && Date.now() < until) {
    await sleep(LOOK_MS)
    restless = await person.look()
  }
  await worker.close()
  return { journal: person.journal, errors, restless }
}

class PersonAfter {
  readonly journal: JournalLine[] = []
  readonly #store: CompleteStore
  #ids = 0

  constructor(store: CompleteStore) {
    this.#store = store
  }

  /** Serves what waits, and says what does not rest. */
  async look(): Promise<readonly string[]> {
    const restless: string[] = []
    for (const status of RESTLESS)
      for (const card of await this.#store.list({ status, limit: 1_000 })) {
        restless.push(`${card.session} is ${status}, due ${card.due}`)
        if (status === 'requires_action') await this.#serve(card.session)
      }
    const { next } = await this.#store.due(0)
    return next === null ? restless : [...restless, `a session is due at ${next}`]
  }

  #serve(session: string): Promise<void> {
    return serve(this.#store, session, {
      decide: (call, digest) =>
        this.#send(session, {
          type: 'user.tool_confirmation',
          call,
          digest,
          allow: true,
          by: 'client',
          id: this.#newId(),
        }),
      answer: (call) =>
        this.#send(session, { type: 'user.custom_tool_result', id: this.#newId(), call, ok: true, content: 'answer' }),
      goOn: () => this.#send(session, message(this.#newId(), { turns: [] })),
    })
  }

  async #send(session: string, body: InboxBody): Promise<void> {
    this.journal.push({ type: 'try', session, id: body.id, digest: digestOf(body) })
    try {
      const [receipt] = await this.#store.commit([{ session, lane: 'inbox', events: [body] }])
      this.journal.push({ type: 'ack', session, id: body.id, seq: receipt?.seqs[0] ?? 0, verb: 'after' })
    } catch (error) {
      // Its parent closed this child meanwhile.
      if (!(error instanceof Fault && error.code === 'session_closed')) throw error
    }
  }

  #newId(): string {
    this.#ids += 1
    return `after${this.#ids}`
  }
}

function errorLine(session: string, error: unknown): ErrorLine {
  const kind = error instanceof Bug ? 'Bug' : error instanceof Fault ? 'Fault' : 'Error'
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { kind, code: error instanceof Fault ? error.code : '', session, text }
}
