// Cron jobs of a seed: three, each with other rules, while the store's clock goes on by a minute at a time, is set by hours, and
// workers die. Their runs are begun by the real planner and the real verbs. Only in some seeds.
import { cronPlanner, CRON, cronReplyIn } from '../src/cron/cron-planner.ts'
import type { CronState, CronTick } from '../src/cron/cron-job.ts'
import { AS_AGENT } from '../src/graphs/graph-definition.ts'
import type { InboxBody } from '../src/kernel/event.ts'
import { EMPTY } from '../src/kernel/session.ts'
import type { CompleteStore, Write } from '../src/ports/store.ts'
import { ownerWrite } from '../src/runtime/commit/owner-write.ts'
import type { Agent } from '../src/runtime/state/agent.ts'
import { textOf } from '../src/view/shown-text.ts'
import type { Cast } from './cast.ts'
import { buildIdleHarness, NEVER } from './idle-harness.ts'
import type { Stage } from './people.ts'
import type { SimProcess, Walls } from './process.ts'
import { OWN } from './programs.ts'
import { Chance } from './scheduler.ts'
// A harness loads these when they are first needed.
import '../src/sessions/list-page.ts'
import '../src/sessions/look/state.ts'
import '../src/sessions/reading.ts'
import '../src/sessions/meter.ts'
import '../src/sessions/run-choice.ts'

const MINUTE_MS = 60_000
const SHARE = 0.6
const JOBS = [
  { name: 'each', missed: 'all', overlap: 'queue' },
  { name: 'last', missed: 'once', overlap: 'replace' },
  { name: 'now', missed: 'skip', overlap: 'skip' },
] as const
/** The agent of the runs, one of graphs.ts. */
const AGENT = 'job'
/** How long minutes pass in a moment. The faults end soon after, and then the clock is right again. */
const HURRY_MS = 1_350
const CALM_MS = 2_500
const LOOK_MS = 50
/** Of more times than may wait, the job looks at the last ones only. */
const LOOKED_MAX = 100

/**
 * Whether this seed has jobs. Its own chance, so that the other seeds are as they were. Hooks would hold back the calls of a job, and
 * it is not asked what is made of that.
 */
export function hasJobs(seed: number, { clocks, hooks }: Cast): boolean {
  return clocks && hooks === null && new Chance(seed ^ 0xc407).yes(SHARE)
}

export class Jobs {
  readonly violations: string[] = []
  readonly tally = { begun: 0, leftOut: 0, replaced: 0 }
  busy = 0
  readonly #stage: Stage
  readonly #walls: Walls

  constructor(stage: Stage, walls: Walls) {
    this.#stage = stage
    this.#walls = walls
  }

  /** The planner of the jobs in this process. Its harness drives nothing: the worker does. */
  agentIn(process: SimProcess): (name: string) => Agent | null {
    const { store, clock } = process
    const subagents = { [AGENT]: { description: 'works', model: NEVER } }
    const sessions = buildIdleHarness(process, this.#stage.actor.chance, { subagents })
    const agent = cronPlanner()[AS_AGENT]({ store, clock, sessions })
    return (name) => (name === CRON ? agent : null)
  }

  async play(): Promise<void> {
    const { actor, store } = this.#stage
    this.busy += 1
    const created = { type: 'session.created', agent: CRON, planner: CRON, program: OWN } as const
    for (const rules of JOBS) {
      await store.commit([ownerWrite(idOf(rules), EMPTY, [created], { now: actor.now(), epoch: 0 })])
      const job = { ...rules, line: '* * * * *', agent: AGENT, input: 'Work.' }
      await this.#tell(rules, 'set', { action: 'set', job, on: true })
    }
    const { chance } = actor
    for (let minutes = 0; actor.elapsed() < HURRY_MS; ) {
      await actor.sleep(chance.between(30, 160))
      minutes += chance.pick([1, 1, 1, 3])
      this.#walls.set(minutes * MINUTE_MS)
    }
    await actor.sleep(CALM_MS)
    for (const rules of JOBS) await this.#end(rules)
    this.busy -= 1
  }

  /** What still waits is dropped with a reason. A stop drops the wakes of the session. */
  async #end(rules: (typeof JOBS)[number]): Promise<void> {
    const { actor, over, invariants } = this.#stage
    const rests = (): boolean => {
      const { run, inputs } = invariants.sessions().get(idOf(rules))?.fold ?? EMPTY
      return run === null && inputs.length === 0
    }
    await this.#tell(rules, 'off', { action: 'off' })
    while (!rests() && !over()) await actor.sleep(LOOK_MS)
    await this.#stage.say(idOf(rules), { type: 'user.interrupt', id: 'end', mode: 'stop' })
  }

  async #tell(rules: (typeof JOBS)[number], id: string, cron: object): Promise<void> {
    const parts = [{ type: 'text', text: JSON.stringify({ id, cron }) }] as const
    const event: InboxBody = { type: 'user.message', id, parts, when: 'next' }
    await this.#stage.say(idOf(rules), event)
  }

  /** Looks at each new session of a run before it is on disk. */
  look(writes: readonly Write[]): void {
    for (const { session, events } of writes) {
      if (!session.startsWith('cron.') || events[0]?.type !== 'session.created') continue
      const at = minuteOf(session)
      if (JOBS.some((rules) => idOf(rules) === session)) continue
      if (at === null) this.violations.push(`K1 ${session} is no session of a time`)
      else if (at > this.#walls.latest) this.violations.push(`K2 ${session} begins before its time`)
    }
  }

  /** At rest: each time of each job began its one session, or is noted with the reason. */
  async audit(store: CompleteStore): Promise<readonly string[]> {
    const wrong: string[] = []
    for (const rules of JOBS) {
      const { events } = await store.read(idOf(rules), 0)
      const states = events.flatMap((event) => {
        const reply = event.type === 'agent.message' ? cronReplyIn(textOf(event.parts)) : null
        return reply === null ? [] : [reply.state]
      })
      const begun = new Set<number>()
      for (const [i, state] of states.entries()) {
        const before = states[i - 1]
        const known = new Set(before?.ticks.map((tick) => JSON.stringify(tick)))
        for (const tick of state.ticks.filter((each) => !known.has(JSON.stringify(each))))
          wrong.push(...this.#tick(rules.name, tick, begun))
        if (before) for (const at of lostTimes(before, state)) wrong.push(`K3 ${idOf(rules)} leaves out ${textAt(at)}`)
      }
      const found = [...this.#stage.invariants.sessions().keys()].filter((id) => id.startsWith(`${idOf(rules)}.`))
      for (const id of found)
        if (!states.some(({ waiting }) => waiting.some(({ at }) => at === minuteOf(id))))
          wrong.push(`K4 ${id} began at a time that is none of its job`)
    }
    return wrong
  }

  #tick(name: string, tick: CronTick, begun: Set<number>): readonly string[] {
    if ('skipped' in tick) {
      this.tally.leftOut += 1
      return tick.skipped === '' ? [`K3 cron.${name} gives no reason for ${textAt(tick.at)}`] : []
    }
    this.tally.begun += 1
    const again = begun.has(tick.at)
    begun.add(tick.at)
    const run = this.#stage.invariants.sessions().get(tick.session)?.fold
    if (run?.last?.type === 'interrupted') this.tally.replaced += 1
    return [
      ...(again ? [`K5 cron.${name} begins ${textAt(tick.at)} twice`] : []),
      ...(run ? [] : [`K6 cron.${name} notes ${tick.session}, which is not there`]),
    ]
  }
}

/** Times that were to come and neither wait, nor began, nor are noted. */
function lostTimes(before: CronState, state: CronState): readonly number[] {
  const due: number[] = before.waiting.map(({ at }) => at)
  const first = Math.floor(Math.max(before.from, state.from - LOOKED_MAX * MINUTE_MS) / MINUTE_MS) * MINUTE_MS
  if (before.on && state.on)
    for (let at = first + MINUTE_MS; at <= state.from; at += MINUTE_MS) if (at > before.from) due.push(at)
  // All that waited then is noted, but no more than the last are kept.
  if (before.on && !state.on) return []
  const isNoted = (at: number): boolean =>
    state.ticks.some((tick) => {
      const times = 'skipped' in tick ? (tick.times ?? 1) : 1
      return tick.at <= at && at < tick.at + times * MINUTE_MS
    })
  return due.filter((at) => !isNoted(at) && !state.waiting.some((tick) => tick.at === at))
}

function idOf({ name }: { readonly name: string }): string {
  return `${CRON}.${name}`
}

/** Null if the id is not that of a run at a minute. */
function minuteOf(session: string): number | null {
  const [, year, month, day, hour, minute] = /^cron\.\w+\.(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)Z$/.exec(session) ?? []
  return year === undefined ? null : Date.parse(`${year}-${month}-${day}T${hour}:${minute}:00Z`)
}

function textAt(at: number): string {
  return new Date(at).toISOString().slice(0, 16)
}
