// `many`, `many.heap`, `parked`: many sessions in one process. How many turns a second of CPU does, what a session that is open
// costs in memory, and what one that waits for a person does. Memory store, scripted model, as in loop.ts.
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { defineTool, Harness, scripted, sqlite, type StandardSchema } from '../src/index.ts'
import { type Case, cpuMs, type Family, type Sample } from './family.ts'
import { bareRun } from './bare-run.ts'
import { ask, LIMITS, lookup } from './turn.ts'

export const SESSIONS = 500
export const TURNS = 10
const PARKED = 10_000
const WIDTH = 200

/** What is reachable now. Twice: what a first collection frees may hold what only a second one finds. */
export function liveBytes(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  return process.memoryUsage().heapUsed
}

/** All sessions wait for one another in their last turn, so all are open when their memory is measured. */
class Barrier {
  bytes = 0
  #here = 0
  #open = (): void => {}
  readonly #passed = new Promise<void>((resolve) => {
    this.#open = resolve
  })

  arrive(): Promise<void> {
    this.#here += 1
    if (this.#here === SESSIONS) {
      this.bytes = liveBytes()
      this.#open()
    }
    return this.#passed
  }
}

/** All sessions, from nothing to their end. What the collections at the barrier take is not counted as theirs. */
export async function measured(all: (barrier: Barrier | null) => Promise<void>): Promise<Sample> {
  const begun = cpuMs()
  await all(null)
  const perSecond = (SESSIONS * (TURNS + 1)) / ((cpuMs() - begun) / 1_000)
  const before = liveBytes()
  const barrier = new Barrier()
  await all(barrier)
  return { perSecond, heap: (barrier.bytes - before) / SESSIONS / 1_024 }
}

/** Each session makes its turns; the model finds out from the request which turn it is. */
export const harness: Case = () =>
  measured(async (barrier) => {
    const model = scripted(async (request) => {
      const turns = request.messages.filter(({ role }) => role === 'assistant').length
      if (turns === TURNS) await barrier?.arrive()
      return turns < TURNS ? ask(turns) : 'done'
    })
    const subject = new Harness({ model, tools: [lookup], limits: LIMITS })
    const runs = Array.from({ length: SESSIONS }, async () => (await subject.run('go')).status === 'completed')
    const completed = (await Promise.all(runs)).filter(Boolean).length
    await subject.close()
    if (completed !== SESSIONS) throw new Error(`${completed} sessions completed`)
  })

const floor: Case = () =>
  measured(async (barrier) => {
    const runs = Array.from({ length: SESSIONS }, async () => {
      const messages = await bareRun(TURNS)
      await barrier?.arrive()
      return messages
    })
    await Promise.all(runs)
  })

const anything: StandardSchema<object> = {
  '~standard': {
    validate: (value) => ({ value: value as object }),
    jsonSchema: { input: () => ({ type: 'object', properties: {} }) },
  },
}

export const risky = defineTool({
  name: 'risky',
  description: 'Asks',
  input: anything,
  approval: 'ask',
  execute: () => 'ok',
})

/** Sessions on disk that wait for an approval: what each keeps in memory, and whether anything ticks for them. */
const parked: Case = async (folder) => {
  const store = sqlite(join(folder, `parked-${process.pid}.db`))
  const subject = new Harness({ model: scripted(() => ({ calls: [{ tool: 'risky' }] })), tools: [risky], store })
  await park(subject, WIDTH)
  const before = liveBytes()
  for (let i = 0; i < PARKED / WIDTH; i++) await park(subject, WIDTH)
  const kilobytes = (liveBytes() - before) / PARKED / 1024
  const timers = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  await subject.close()
  await store.close()
  return { kilobytes, timers }
}

async function park(subject: Harness, count: number): Promise<void> {
  const runs = await Promise.all(Array.from({ length: count }, () => subject.run('go')))
  const odd = runs.find(({ status }) => status !== 'requires_action')
  if (odd) throw new Error(`the run ${odd.status}`)
}

/** A map with one small object per session: the least memory that any list of waiting sessions needs. */
export const list: Case = async () => {
  const waiting = new Map<string, object>()
  const before = liveBytes()
  for (let i = 0; i < PARKED; i++) waiting.set(`session-${i}`, { call: `${i}.0` })
  const kilobytes = (liveBytes() - before) / PARKED / 1024
  return { kilobytes: waiting.size === PARKED ? kilobytes : Number.NaN, timers: 0 }
}

export const parking: Family = {
  repetitions: 3,
  cases: { parked, list },
  figures: [
    {
      name: 'parked',
      unit: 'KB a session',
      target: 1,
      value: (median) => median('parked.kilobytes'),
      floor: (median) => median('list.kilobytes'),
    },
    {
      name: 'parked.timers',
      unit: 'timers',
      target: 0,
      value: (median) => median('parked.timers'),
      floor: (median) => median('list.timers'),
    },
  ],
}

export const many: Family = {
  repetitions: 7,
  cases: { harness, floor },
  figures: [
    {
      name: 'many',
      unit: 'turns a CPU second',
      target: 8_400,
      atLeast: true,
      value: (median) => median('harness.perSecond'),
      floor: (median) => median('floor.perSecond'),
    },
    {
      name: 'many.heap',
      unit: 'KB a session',
      target: 22,
      value: (median) => median('harness.heap'),
      floor: (median) => median('floor.heap'),
    },
  ],
}
