// `resume`: a session of 1,000 turns, stopped in the middle of its run, to the point where a model could be called: the
// log folded from its first event, the decision, the transcript. In a process that has loaded the driver and nothing else.
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { Harness, scripted } from '../src/index.ts'
import { next } from '../src/kernel/next.ts'
import { SessionCache } from '../src/runtime/state/session-cache.ts'
import { GuardFold } from '../src/runtime/guard/guard.ts'
import { sqlite } from '../src/stores/sqlite/sqlite.ts'
import { checkpoint, openBare, warmDriver } from './bare.ts'
import { type Case, cpuMs, type Family } from './family.ts'
import { ask, LIMITS, lookup } from './turn.ts'

const TURNS = 1_000
/** The question, then a reply and a result for each turn. */
const MESSAGES = 1 + TURNS * 2
const ID = 'bench'

/** `stopped.db` is as the driver left it, with its snapshot; `plain.db` has none; `bare.db` is the floor's. */
const fixture: Case = async (folder) => {
  const stopped = join(folder, 'stopped.db')
  const plain = join(folder, 'plain.db')
  const store = sqlite(stopped)
  let arrive = (): void => {}
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve
  })
  const model = scripted((_request, n) => {
    if (n < TURNS) return ask(n)
    arrive()
    return { stall: true }
  })
  const harness = new Harness({ model, tools: [lookup], limits: LIMITS, store })
  const running = (await harness.open({ id: ID })).run('go')
  await arrived
  await harness.close()
  await running
  const { events } = await store.read(ID, 0)
  await store.close()
  checkpoint(stopped)
  copyFileSync(stopped, plain)
  checkpoint(plain, 'DELETE FROM snapshots')
  const bare = openBare(join(folder, 'bare.db'))
  bare.insert(events.map((event) => JSON.stringify(event)))
  bare.close()
  return {}
}

function book(file: string): Case {
  return async (folder) => {
    warmDriver()
    const begun = cpuMs()
    const store = sqlite(join(folder, file))
    const read = new SessionCache(ID, store, () => new GuardFold({}))
    await read.open()
    const decision = next(read.session, { now: store.now(), epoch: read.session.epoch + 1 })
    const { messages } = await read.transcript()
    const ms = cpuMs() - begun
    await store.close()
    // The last result is shown by the request that `decision` would record.
    if (decision.type !== 'record' || messages.length < MESSAGES - 1) throw new Error(`${messages.length} messages`)
    return { ms }
  }
}

/** The same through the public verbs, from the file as it was left: claim, snapshot, commit, and the model is called. */
const verbs: Case = async (folder) => {
  const file = join(folder, `verbs-${process.pid}.db`)
  copyFileSync(join(folder, 'stopped.db'), file)
  warmDriver()
  let called = 0
  let messages = 0
  const model = scripted((request) => {
    called = cpuMs()
    messages = request.messages.length
    return 'done'
  })
  const begun = cpuMs()
  const store = sqlite(file)
  const harness = new Harness({ model, tools: [lookup], limits: LIMITS, store })
  const result = await harness.session(ID).run()
  await harness.close()
  await store.close()
  if (result.status !== 'completed' || messages !== MESSAGES) throw new Error(`${messages} messages, ${result.status}`)
  return { ms: called - begun }
}

const floor: Case = async (folder) => {
  warmDriver()
  const begun = cpuMs()
  const bare = openBare(join(folder, 'bare.db'))
  const read = bare.readRows()
  const ms = cpuMs() - begun
  bare.close()
  if (read.length < TURNS * 4) throw new Error(`read ${read.length} events`)
  return { ms }
}

export const resume: Family = {
  repetitions: 9,
  fixture,
  cases: { plain: book('plain.db'), stopped: book('stopped.db'), verbs, floor },
  figures: [
    {
      name: 'resume',
      unit: 'CPU ms',
      target: 25,
      value: (median) => median('plain.ms'),
      floor: (median) => median('floor.ms'),
      note: (median) =>
        `with its snapshot ${median('stopped.ms').toFixed(1)}, and ${median('verbs.ms').toFixed(1)} by session.run()`,
    },
  ],
}
