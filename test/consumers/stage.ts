// The stage of the tests of consumers: a harness with consumers, whose runs are answered by a scripted model, and reads of their lanes.
import { expect, onTestFinished } from 'vitest'
import {
  type Consumer,
  type ConsumerContext,
  type Event,
  Harness,
  type HarnessOptions,
  memory,
  scripted,
  type SettledRun,
} from '../../src/index.ts'
import type { Clock } from '../../src/ports/system.ts'
import { laneId } from '../../src/view/lanes.ts'
import { until } from '../until.ts'

export type Told = { readonly settled: SettledRun; readonly key: string }

/** A consumer that keeps what it is told. `act` may throw or wait. */
export function keeper(
  name: string,
  act: (settled: SettledRun, context: ConsumerContext) => unknown = () => {},
): Consumer & { readonly told: Told[] } {
  const told: Told[] = []
  return {
    name,
    told,
    run: async (settled, context) => {
      told.push({ settled, key: context.key })
      await act(settled, context)
    },
  }
}

export type Staged = { readonly harness: Harness; readonly reports: [string, string][] }

/** The fields of `keeper` are its own: a harness takes none that it does not know. */
export function stage(consumers: readonly Consumer[], options: Partial<HarnessOptions> = {}): Staged {
  const reports: [string, string][] = []
  const own = consumers.map(({ name, run, timeoutMs, attempts, usd, runs, deadLetters }) => {
    return { name, run, timeoutMs, attempts, usd, runs, deadLetters }
  })
  const harness = new Harness({
    model: scripted(() => 'done'),
    store: memory(),
    onError: (where, error) => void reports.push([where, error instanceof Error ? error.message : String(error)]),
    plugins: [{ name: 'watchers', consumers: own as readonly Consumer[] }],
    ...options,
  })
  onTestFinished(() => harness.close())
  return { harness, reports }
}

export async function told(consumer: { readonly told: readonly Told[] }, count: number): Promise<void> {
  await until(() => expect(consumer.told.length).toBeGreaterThanOrEqual(count))
}

/** The events of the lane that has the runs of this session. */
export async function laneEvents(harness: Harness, consumer: string, session: string): Promise<readonly Event[]> {
  const lane = harness.session(laneId(consumer, session, null))
  const events: Event[] = []
  for (let after: number | null = 0; after !== null; ) {
    const page: Awaited<ReturnType<typeof lane.events>> = await lane.events({ after })
    events.push(...page.events)
    after = page.next
  }
  return events
}

/** A clock that goes with the machine's, and can be set forward: timers that are due then fire. */
export function clockAhead(): Clock & { add(ms: number): void } {
  let ahead = 0
  const waiting = new Set<{ readonly at: number; readonly fire: () => void }>()
  const now = (): number => 1_000_000 + performance.now() + ahead
  const look = (): void => {
    for (const one of waiting) {
      if (one.at > now()) continue
      waiting.delete(one)
      one.fire()
    }
  }
  const handle = setInterval(look, 5)
  onTestFinished(() => clearInterval(handle))
  return {
    now,
    timer: (ms, fire) => {
      const one = { at: now() + ms, fire }
      waiting.add(one)
      return () => void waiting.delete(one)
    },
    add: (ms) => {
      ahead += ms
      look()
    },
  }
}
