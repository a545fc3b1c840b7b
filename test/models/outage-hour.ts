// An hour without a provider, with many sessions: it answers 503, asks to wait for half an hour, and resets connections after the head of
// the answer. Real HTTP to the chaos server, by a clock that is stepped. It plays and counts; what must hold is asserted by its tests.
import { z } from 'zod'
import {
  type ChaosReply,
  type ChaosRequest,
  overloadedError,
  rateLimitError,
  startChaos,
} from '../../src/testing/index.ts'
import { defineTool, Harness, type Price, type CompleteStore } from '../../src/index.ts'
import { asleep } from '../runtime/wake-stage.ts'
import { conversation, eventsOf, hosted, ofType } from './hosted-stage.ts'
import { SteppedClock } from './stepped-clock.ts'

const HOUR = 3_600_000
const PRICE: Price = { input: 2, output: 10 }
const USAGE = { inputTokens: 100, outputTokens: 50 }
const COST = USAGE.inputTokens * PRICE.input + USAGE.outputTokens * PRICE.output

const BEFORE_MS = 15_000
const RATE_LIMITED_AT = 300

export type Figures = {
  readonly sessions: number
  readonly completed: number
  /** Callers of `run()` that left because their patience was over. */
  readonly callersLeft: number
  /** Requests that reached the provider: answered, refused, and reset after the head. */
  readonly requests: number
  readonly answered: number
  readonly refused: number
  readonly resets: number
  /** How often the tool that may run once ran, by its argument. */
  readonly paid: ReadonlyMap<string, number>
  readonly runsFailed: number
  /** In millionths of a dollar: what accounts say at the end, and what the log comes to. */
  readonly spent: number
  readonly held: number
  readonly spentByLog: number
  readonly assumed: number
  readonly lastedMs: number
}

/** A third of the sessions is asked by a caller that waits, a third by a message, and a third is woken. */
export async function playHour(
  make: (clock: SteppedClock) => Promise<CompleteStore> | CompleteStore,
  sessions: number,
): Promise<Figures> {
  const clock = new SteppedClock()
  const store = standing(clock, await make(clock))
  const provider = new Provider(clock, { from: clock.now() + BEFORE_MS, until: clock.now() + BEFORE_MS + HOUR })
  const chaos = await startChaos({ script: provider.answer })
  const paid = new Map<string, number>()
  const harnesses = [1, 2].map(() => {
    const model = hosted(chaos, 'messages', {
      prices: { 'anthropic:*': PRICE },
      outputTokensMax: 1_000,
      fetch: whole(clock),
    })
    const budget = { sessionUsd: 5 }
    return new Harness({ model, store, system: { clock }, tools: [payTool(paid)], budget, secrets: {} })
  })
  const [first, second] = harnesses as [Harness, Harness]
  const begun = clock.now()
  const work = harnesses.map((harness) => harness.work({ width: 16 }))
  const ids = Array.from({ length: sessions }, (_, i) => `s${i}`)
  const calls: Promise<{ readonly status: string }>[] = []
  try {
    for (const [i, id] of ids.entries()) {
      if (i % 3 === 2) await clock.during(asleep(store, id, [{ due: clock.now() + 40_000 }]))
      else {
        const session = await clock.during((i % 2 === 0 ? first : second).open({ id }))
        if (i % 3 === 0) calls.push(session.run('Pay.'))
        else await clock.during(session.send('Pay.'))
      }
      await clock.pass(1_000)
    }
    await clock.pass(HOUR)
    for (let i = 0; i < 120 && !(await areIdle(store, ids)); i++) await clock.pass(60_000)
    const results = await clock.during(Promise.all(calls))
    const lastedMs = clock.now() - begun
    const counted = await count(store, ids)
    const callersLeft = results.filter(({ status }) => status === 'sleeping').length
    return { sessions, callersLeft, ...provider.tally, paid, lastedMs, ...counted }
  } finally {
    await clock.during(Promise.all(harnesses.map((harness) => harness.close())))
    await clock.during(Promise.all(work))
    await chaos.close()
  }
}

class Provider {
  readonly #clock: SteppedClock
  readonly #down: { readonly from: number; readonly until: number }
  readonly tally = { requests: 0, answered: 0, refused: 0, resets: 0 }

  constructor(clock: SteppedClock, down: { readonly from: number; readonly until: number }) {
    this.#clock = clock
    this.#down = down
  }

  readonly answer = (request: ChaosRequest): ChaosReply => {
    const { tally } = this
    tally.requests += 1
    const now = this.#clock.now()
    if (now >= this.#down.from && now < this.#down.until) return this.#trouble()
    tally.answered += 1
    if (JSON.stringify(conversation(request)).includes('"tool_result"')) return { text: 'Paid.', usage: USAGE }
    return { calls: [{ tool: 'pay', args: { sum: 1 } }], usage: USAGE }
  }

  #trouble(): ChaosReply {
    const { tally } = this
    const n = tally.refused + tally.resets
    if (n % 5 === 2) {
      tally.resets += 1
      return { text: 'Half of an answer.', deltas: 3, chaos: { cutAfterBytes: 1 } }
    }
    tally.refused += 1
    // After a rate limit no session of the same process asks before its time.
    if (n === RATE_LIMITED_AT) return rateLimitError(1_800)
    return n % 20 === 4 ? { ...overloadedError(), retryAfter: 1_800 } : overloadedError()
  }
}

function payTool(paid: Map<string, number>) {
  return defineTool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ sum: z.number() }),
    effect: 'once',
    // It takes five seconds, so that the outage finds some sessions in the middle of their run.
    execute: (_args, { session, clock }) => {
      paid.set(session, (paid.get(session) ?? 0) + 1)
      return new Promise((resolve) => void clock.timer(5_000, () => resolve('Paid.')))
    },
  })
}

/** The clock stands still while the store is asked: a disk and a database take time of their own. */
function standing(clock: SteppedClock, store: CompleteStore): CompleteStore {
  return new Proxy(store, {
    get(target, name, outer) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value === target ? (outer as unknown) : value
      return (...args: unknown[]): unknown => {
        const given: unknown = Reflect.apply(value, target, args)
        return given instanceof Promise ? clock.outside(given) : given
      }
    },
  })
}

/** Each answer is read while the clock stands still. One that broke off breaks off for its reader too. */
function whole(clock: SteppedClock): typeof fetch {
  return (input, init) => clock.outside(fetched(input, init))
}

async function fetched(...[input, init]: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(input, init)
  const chunks: Uint8Array[] = []
  let broken: unknown = null
  try {
    for await (const chunk of response.body ?? []) chunks.push(chunk as Uint8Array)
  } catch (error) {
    broken = error
  }
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk)
      if (broken === null) controller.close()
    },
    pull(controller) {
      if (broken !== null) controller.error(broken)
    },
  })
  const { status, headers } = response
  return new Response(body, { status, headers })
}

async function areIdle(store: CompleteStore, ids: readonly string[]): Promise<boolean> {
  for (const id of ids) if ((await store.card(id))?.status !== 'idle') return false
  return true
}

async function count(store: CompleteStore, ids: readonly string[]) {
  const sums = { completed: 0, runsFailed: 0, spent: 0, held: 0, spentByLog: 0, assumed: 0 }
  for (const id of ids) {
    const card = await store.card(id)
    if (card?.outcome === 'completed') sums.completed += 1
    const events = await eventsOf(store, id)
    sums.runsFailed += ofType(events, 'run.settled').filter(({ outcome }) => outcome.type === 'failed').length
    const { spent = 0, held = 0 } = (await store.account(`session:${id}`)) ?? {}
    sums.spent += spent
    sums.held += held
    let open = 0
    for (const event of events) {
      if (event.type === 'model.started') open = event.held ?? 0
      if (event.type === 'agent.message') sums.spentByLog += COST
      if (event.type === 'model.failed' && event.assumed) {
        sums.spentByLog += open
        sums.assumed += open
      }
    }
  }
  return sums
}
