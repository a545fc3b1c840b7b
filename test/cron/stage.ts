// Workers with cron jobs on one store and a clock that jumps from timer to timer. Nothing is asserted here.
import { cron, cronPlanner, type CronVerbs } from '../../src/cron/index.ts'
import { Harness, memory, type Model, type Store } from '../../src/index.ts'
import { SteppedClock } from '../models/stepped-clock.ts'
// What is loaded when it is first needed would take its time while the clock is stepped: a call of a test that runs first
// would time out.
import '../../src/runtime/commit/family.ts'
import '../../src/runtime/turn/compact-context.ts'
import '../../src/runtime/turn/end-run.ts'
import '../../src/sessions/drive/removed.ts'
import '../../src/sessions/event-page.ts'
import '../../src/sessions/fork.ts'
import '../../src/sessions/list-page.ts'
import '../../src/sessions/look/describe.ts'
import '../../src/sessions/look/last-result.ts'
import '../../src/sessions/look/state.ts'
import '../../src/sessions/reading.ts'
import '../../src/sessions/run-choice.ts'
import '../../src/sessions/schedule.ts'

export const HOUR = 60 * 60_000
export const MINUTE = 60_000

export type Stage = {
  readonly clock: SteppedClock
  readonly store: Store
  readonly harness: Harness
  readonly jobs: CronVerbs
  /** Runs this while the clock goes on. */
  readonly during: <T>(work: Promise<T>) => Promise<T>
  /** Starts a worker on the same store. */
  readonly work: () => Promise<void>
  readonly stopWork: () => Promise<void>
  /** The runs of a job that have begun: the times in their ids, and how they ended. */
  readonly runs: (name?: string) => Promise<readonly (readonly [time: string, outcome: string | null])[]>
  readonly close: () => Promise<void>
}

/** A model that answers after this long. Its answer is the message. */
function slowModel(clock: SteppedClock, ms: () => number): Model {
  return {
    name: 'slow',
    call: async ({ messages }, { signal }) => {
      const wait = ms()
      if (wait > 0)
        await new Promise<void>((resolve) => {
          const drop = clock.timer(wait, resolve)
          signal.addEventListener('abort', () => {
            drop()
            resolve()
          })
        })
      const last = messages.at(-1)
      const text =
        last?.role === 'user' ? last.parts.map((part) => (part.type === 'text' ? part.text : '')).join('') : ''
      return { type: 'reply', parts: [{ type: 'text', text }], calls: [], finish: 'stop', usage: null }
    },
  }
}

export function openStage(options: { readonly begin?: string; readonly workMs?: () => number } = {}): Stage {
  const { begin = '2026-11-19T00:30:00Z', workMs = () => 0 } = options
  const clock = new SteppedClock(Date.parse(begin))
  const store = memory({ clock })
  const open = (): Harness =>
    new Harness({
      model: slowModel(clock, workMs),
      store,
      program: 'cron',
      graphs: [cronPlanner()],
      system: { clock },
      limits: { modelMs: 20 * HOUR, activeMs: 20 * HOUR },
    })
  const harness = open()
  const workers: { readonly harness: Harness; readonly done: Promise<unknown> }[] = []
  const stopWork = async (): Promise<void> => {
    await clock.during(Promise.all(workers.splice(0).map(({ harness: one, done }) => one.close().then(() => done))))
  }
  return {
    clock,
    store,
    harness,
    jobs: cron(harness),
    during: (work) => clock.during(work),
    work: async () => {
      const one = open()
      workers.push({ harness: one, done: one.work() })
    },
    stopWork,
    runs: async (name = 'report') => {
      const { cards } = await clock.during(harness.list({ agent: 'default', order: 'made', limit: 500 }))
      const own = cards.filter(({ session }) => session.startsWith(`cron.${name}.`)).toReversed()
      return own.map(({ session, outcome }) => [session.slice(`cron.${name}.`.length), outcome])
    },
    close: async () => {
      await stopWork()
      await clock.during(harness.close())
    },
  }
}
