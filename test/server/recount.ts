// What /metrics says, read as Prometheus reads it, and a recount of the logs: the same events, added up in another way.
import { expect, onTestFinished } from 'vitest'
import { Harness, type HarnessOptions, memory } from '../../src/index.ts'
import type { CompleteStore, Event, OwnerEvent } from '../../src/kernel/index.ts'
import { RunMetrics } from '../../src/server/metrics.ts'
import { completeStore } from '../../src/stores/plan/complete-store.ts'
import { readLog } from '../../src/view/session-log.ts'

export type Counted = Readonly<Record<string, number>>

export function counted(options: Partial<HarnessOptions> & Pick<HarnessOptions, 'model'>, given = memory()) {
  const store = completeStore(options.store ?? given)
  const harness = new Harness({ secrets: {}, ...options, store })
  const metrics = new RunMetrics(store)
  metrics.listenTo(harness)
  onTestFinished(() => harness.close())
  return { harness, store, metrics }
}

/** The series of the counters that are not 0. */
export async function told(metrics: RunMetrics): Promise<Counted> {
  const lines = [...(await metrics.text()).matchAll(/^terret_(\w+_total\{.*\}) (\S+)$/gm)]
  return Object.fromEntries(lines.flatMap(([, name = '', value]) => (value === '0' ? [] : [[name, Number(value)]])))
}

/** Adds up the logs of all sessions: of each, what happened in this store. */
export async function recounted(store: CompleteStore): Promise<Counted> {
  const sums: Record<string, number> = {}
  const add = (name: string, agent: string, more = '', n = 1): void => {
    const key = `${name}_total{agent="${agent}"${more}}`
    if (n !== 0) sums[key] = (sums[key] ?? 0) + n
  }
  const cards = await store.list({ limit: 10_000 })
  for (const { session, agent } of cards) {
    const events = await readLog(store, session)
    const tools = new Map<string, string>(
      events.flatMap((event) =>
        event.type === 'agent.message' ? event.calls.map(({ tool }, i) => [`${event.seq}.${i}`, tool] as const) : [],
      ),
    )
    for (const event of events.slice(cameFromElsewhere(events))) {
      const { usage, cost = 0 } = event as Extract<OwnerEvent, { type: 'agent.message' }>
      add('input_tokens', agent, '', usage?.inputTokens ?? 0)
      add('output_tokens', agent, '', usage?.outputTokens ?? 0)
      add('cached_tokens', agent, '', usage?.cachedTokens ?? 0)
      add('cost_usd', agent, '', cost)
      if (event.type === 'run.settled') add('runs', agent, `,end="${event.outcome.type}"`)
      if (event.type === 'model.failed') add('model_failures', agent, `,class="${event.class}"`)
      if (event.type === 'agent.message' && event.missed !== undefined) add('cache_misses', agent)
      if (event.type === 'context.compacted' && event.cut !== undefined) add('compactions', agent, ',result="ok"')
      if (event.type !== 'agent.tool_result') continue
      const tool = tools.get(event.call) ?? '?'
      add('tool_calls', agent, `,tool="${tool === 'made_up' ? '(unknown)' : tool}",status="${event.status}"`)
      if (event.status === 'unknown') add('unknown_calls', agent)
    }
  }
  return Object.fromEntries(Object.entries(sums).map(([name, n]) => [name, name.startsWith('cost') ? n / 1e6 : n]))
}

/** What stood in the file that was imported, and what a fork was created with. */
function cameFromElsewhere(events: readonly Event[]): number {
  const imported = events.findLast(({ type }) => type === 'session.imported')?.seq ?? 0
  return Math.max(
    imported,
    events.findIndex(({ epoch }) => epoch > 0),
  )
}

/** The page, each line of it as Prometheus reads it, and each series once. */
export function seriesOf(text: string): ReadonlyMap<string, number> {
  const label = String.raw`\w+="([^"\\\n]|\\["\\])*"`
  const sample = new RegExp(String.raw`^(terret_\w+(?:\{${label}(?:,${label})*\})?) (\d+(?:\.\d+)?(?:e-?\d+)?)$`)
  const lines = text.trimEnd().split('\n')
  const samples = lines.filter((line) => !/^# (HELP terret_\w+ .+|TYPE terret_\w+ (gauge|counter))$/.test(line))
  const series = samples.map((line) => {
    const read = sample.exec(line)
    if (read === null) throw new Error(`not a line of Prometheus: ${line.slice(0, 200)}`)
    return [read[1] ?? '', Number(read.at(-1))] as const
  })
  expect(new Set(series.map(([key]) => key)).size).toBe(series.length)
  return new Map(series)
}
