// `children`, `children.parked`, `children.timers`: detached subagents on SQLite. What the run of a child costs beside that of a session of its
// own, and what a child that waits for a person keeps in memory. The turn is that of turn.ts.
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Harness, type HarnessOptions, scripted, sqlite, type CompleteStore } from '../src/index.ts'
import { type Case, cpuMs, type Family, medianOf } from './family.ts'
import { list, liveBytes, risky } from './many.ts'
import { ask, LIMITS, lookup } from './turn.ts'

const CHILDREN = 100
const TURNS = 5
const WARM_UP = 5
const ROUNDS = 9
const PARKED = 10_000
const WIDTH = 200

/** What every worker does, as a child and as a session of its own. */
const worker = () =>
  scripted((request) => {
    const turns = request.messages.filter(({ role }) => role === 'assistant').length
    return turns < TURNS ? ask(turns) : 'done'
  })

async function on(folder: string, options: Omit<HarnessOptions, 'store'>, act: Act): Promise<Awaited<ReturnType<Act>>> {
  const store = sqlite(join(folder, `children-${process.pid}.db`))
  const subject = new Harness({ limits: LIMITS, secrets: {}, breaker: false, ...options, store })
  const sample = await act(subject, store)
  await subject.close()
  await store.close()
  return sample
}
type Act = (subject: Harness, store: CompleteStore) => Promise<Readonly<Record<string, number>>>

/** CPU µs of one of a hundred that work at once, once the process is warm. */
async function perChild(round: () => Promise<void>): Promise<Readonly<Record<string, number>>> {
  const measured: number[] = []
  for (let n = 0; n < WARM_UP + ROUNDS; n++) {
    const begun = cpuMs()
    await round()
    if (n >= WARM_UP) measured.push(((cpuMs() - begun) * 1_000) / CHILDREN)
  }
  return { us: medianOf(measured) }
}

const plain: Case = (folder) =>
  on(folder, { model: worker(), tools: [lookup] }, (subject) =>
    perChild(async () => {
      const runs = await Promise.all(Array.from({ length: CHILDREN }, () => subject.run('go')))
      const odd = runs.find(({ status }) => status !== 'completed')
      if (odd) throw new Error(`a run ${odd.status}`)
    }),
  )

/** A host starts all of them at once. The parent reads all reports, in as many runs as it takes, which is counted too. */
const detached: Case = (folder) => {
  const subagents = { worker: { description: 'works', model: worker(), tools: [lookup] } }
  return on(folder, { model: scripted(() => 'read'), subagents, detached: true }, (subject, store) =>
    perChild(async () => {
      const parent = await subject.open()
      const heard = allHeard(store, parent.id)
      await Promise.all(Array.from({ length: CHILDREN }, () => parent.spawn('worker', 'go')))
      await heard
    }),
  )
}

/** Told by the store, and not asked for: the run after which the parent has nothing more to read has ended. */
async function allHeard(store: CompleteStore, parent: string): Promise<void> {
  let reports = 0
  let tell = (): void => {}
  const unwatch = store.watch(parent, (news) => {
    const events = news ?? []
    reports += events.filter((event) => event.type === 'user.message' && event.report !== undefined).length
    if (reports === CHILDREN && events.some(({ type }) => type === 'run.settled')) tell()
  })
  await new Promise<void>((resolve) => {
    tell = resolve
  })
  unwatch()
}

/** Children of one session that wait for an approval: what each keeps in memory, and whether anything ticks for them. */
const parked: Case = (folder) => {
  let asked = 0
  const asks = scripted(() => {
    asked += 1
    return { calls: [{ tool: 'risky' }] }
  })
  const subagents = { worker: { description: 'works', model: asks, tools: [risky] } }
  return on(folder, { model: scripted(() => 'read'), subagents, detached: true }, async (subject, store) => {
    const parent = await subject.open()
    let made = 0
    const park = async (): Promise<void> => {
      await Promise.all(Array.from({ length: WIDTH }, () => parent.spawn('worker', 'go')))
      made += WIDTH
      const working = { parent: parent.id, status: 'running', limit: 1 } as const
      while (asked < made || (await store.list(working)).length > 0) await setTimeout(20)
    }
    await park()
    const before = liveBytes()
    while (made < PARKED + WIDTH) await park()
    const kilobytes = (liveBytes() - before) / PARKED / 1024
    const timers = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const waiting = await store.list({ parent: parent.id, status: 'requires_action', limit: 2 * PARKED })
    if (waiting.length !== made) throw new Error(`${waiting.length} of ${made} children wait`)
    return { kilobytes, timers }
  })
}

export const children: Family = {
  repetitions: 3,
  cases: { plain, detached },
  figures: [
    {
      name: 'children',
      unit: '× a session of its own',
      target: 1.3,
      value: (median) => median('detached.us') / median('plain.us'),
      floor: () => 1,
      note: (median) =>
        `${Math.round(median('detached.us'))} CPU µs a child, ${Math.round(median('plain.us'))} a session`,
    },
  ],
}

export const parkedChildren: Family = {
  repetitions: 3,
  cases: { parked, list },
  figures: [
    {
      name: 'children.parked',
      unit: 'KB a child',
      target: 1,
      value: (median) => median('parked.kilobytes'),
      floor: (median) => median('list.kilobytes'),
    },
    {
      name: 'children.timers',
      unit: 'timers',
      target: 0,
      value: (median) => median('parked.timers'),
      floor: (median) => median('list.timers'),
    },
  ],
}
