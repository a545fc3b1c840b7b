// One life of a run: a harness on the store, the same session and the same message in every life. The first life may end
// at a point; the next one finds what it left and goes on.
import {
  type Answer,
  type CompleteStore,
  Fault,
  Harness,
  type Pending,
  type Session,
  type Sessions,
} from '../../index.ts'
import type { Event } from '../../kernel/event.ts'
import type { Clock, Random } from '../../ports/system.ts'
import { agentOfLife, type CrashLife } from './agent-of-life.ts'
import { type CrashAgent, checkCrashAgent, type CrashTestOptions, type PersonAnswer } from './crash-options.ts'
import { MESSAGE, SESSION } from './notes.ts'
import { storeOfLife } from './points.ts'
import type { CrashTrialLogs } from './same-world.ts'

/** Both lives have one worker, so that the second need not wait for the lease of the first; and no heartbeat falls in between. */
const WORKER = { id: SESSION, leaseMs: 7 * 24 * 60 * 60 * 1_000 }
const ROUNDS_MAX = 1_000
const SESSIONS_MAX = 10_000
/** As long as a run may wait for a provider. */
const PATIENCE_MS = 365 * 24 * 60 * 60 * 1_000

type LifeInput = {
  readonly test: CrashTestOptions
  readonly store: CompleteStore
  readonly life: CrashLife
  readonly nth: 1 | 2
}

/** Lives until the run has settled. Returns why it did not, or null. */
export async function liveOnce({ test, store, life, nth }: LifeInput): Promise<string | null> {
  const { points, clock, trial } = life
  const agent = checkCrashAgent(await test.options(trial.world))
  const system = { random: countedRandom(nth), ...(clock ? { clock: clockOfLife(clock, life) } : {}) }
  const harness = new Harness({
    ...checkedAgentOfLife(agent, life),
    store: storeOfLife(store, points, clock),
    worker: WORKER,
    system,
  })
  const session = await harness.open({ id: SESSION, reuse: true, ...(test.agent ? { agent: test.agent } : {}) })
  const trouble = await runToEnd({ harness, session, store, test })
  await harness.close()
  return trouble
}

/** Options of wrong types are for the harness to refuse. */
function checkedAgentOfLife(agent: CrashAgent, life: CrashLife): CrashAgent {
  try {
    return agentOfLife(agent, life)
  } catch (error) {
    if (error instanceof TypeError) new Harness(agent)
    throw error
  }
}

type RunInput = {
  readonly harness: Sessions
  readonly session: Session
  readonly store: CompleteStore
  readonly test: CrashTestOptions
}

async function runToEnd({ harness, session, store, test }: RunInput): Promise<string | null> {
  let result = await session.run(test.run, { id: MESSAGE, patienceMs: PATIENCE_MS })
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const waiting = await driveOpenWork(harness, store)
    if (!waiting && result.status !== 'requires_action') break
    const { pending } = await session.status()
    const said = await Promise.all(pending.map((call) => askPerson(session, call, test)))
    if (!said.includes(true)) {
      const calls = pending.map(({ tool }) => tool).join(', ')
      return `it waits for a person (${calls || result.stopReason}), and people of the test decides nothing`
    }
    result = await session.run(undefined, { patienceMs: PATIENCE_MS })
  }
  return result.status === 'sleeping' ? `it waits for a provider: ${result.reason ?? 'no reason is known'}` : null
}

/**
 * Drives all sessions that have open work: children that work on, and consumers that are to be told. They are named one
 * by one, because the worker of the first life still has their leases. True if one of them waits for a person.
 */
async function driveOpenWork(harness: Sessions, store: CompleteStore): Promise<boolean> {
  for (let round = 0; ; round++) {
    const cards = await store.list({ limit: SESSIONS_MAX })
    const now = store.now()
    const open = cards.filter(({ due }) => due !== null && due <= now)
    if (open.length === 0 || round >= ROUNDS_MAX) return cards.some(({ asks, waits }) => asks.length + waits.length > 0)
    await Promise.all(open.map(({ session }) => harness.work({ session })))
  }
}

/** True if the person said something. */
async function askPerson(session: Session, call: Pending, { people }: CrashTestOptions): Promise<boolean> {
  const said: PersonAnswer | null = (await people?.(call)) ?? null
  if (said === null) return false
  if (typeof said !== 'object')
    throw new Fault(
      'invalid_config',
      'people() of crashTest gives { allow: true }, { content } for a question, or null.',
    )
  const { callId, sessionId } = call
  if ('content' in said) await session.answer({ ...said, callId, sessionId } satisfies Answer)
  else {
    const by = said.by ?? `person-${(call.votes?.length ?? 0) + 1}`
    await session.decide({ ...said, by, callId, sessionId, ...(call.digest ? { digest: call.digest } : {}) })
  }
  return true
}

/** Ids that are the same in each run, and others in its second life. */
function countedRandom(nth: 1 | 2): Random {
  let n = 0
  return { id: () => `id-${nth}-${++n}`, fraction: () => 0.5 }
}

/** No timer of a dead life fires. */
function clockOfLife(clock: Clock, { points }: CrashLife): Clock {
  const fireAlive = (fire: () => void) => (): void => {
    if (!points.dead) fire()
  }
  return { now: () => clock.now(), timer: (ms, fire) => (points.dead ? () => {} : clock.timer(ms, fireAlive(fire))) }
}

/** The logs of the session and its children. */
export async function readLogs(store: CompleteStore): Promise<CrashTrialLogs> {
  const cards = await store.list({ root: SESSION, limit: SESSIONS_MAX })
  const logs = cards.map(async ({ session }): Promise<[string, readonly Event[]]> => {
    return [session, (await store.read(session, 0)).events]
  })
  return Object.fromEntries(await Promise.all(logs))
}
