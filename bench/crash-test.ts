// `crash.test`: an agent of twenty turns, crashed at each of its 162 points, in memory and in one process. The floor is the same agent
// run to its end as often, without a crash and without rules.
import { z } from 'zod'
import { defineTool, type EffectClass, Harness, type Model, scripted, type Tool } from '../src/index.ts'
import { crashTest } from '../src/testing/index.ts'
import { type Case, cpuMs, type Family } from './family.ts'

const TURNS = 20
const POINTS = 162
/** Two clean runs, and one for each point. */
const RUNS = POINTS + 2
const EFFECTS: readonly EffectClass[] = ['read', 'idempotent', 'once']

type Rows = Map<string, number>

function model(): Model {
  return scripted(({ messages }) => {
    const done = messages.filter(({ role }) => role === 'tool').length
    return done < TURNS - 1 ? { calls: [{ tool: EFFECTS[done % 3] ?? '', args: { n: done } }] } : 'Done.'
  })
}

function tools(rows: Rows): readonly Tool[] {
  const input = z.object({ n: z.number() })
  return EFFECTS.map((effect) =>
    defineTool({
      name: effect,
      description: effect,
      input,
      effect,
      execute: ({ n }, { key }) => (effect === 'read' ? `${rows.size} rows` : rows.set(key, n) && `${n} is kept`),
    }),
  )
}

const crashed: Case = async () => {
  const begun = cpuMs()
  const report = await crashTest({
    world: () => {
      const rows: Rows = new Map()
      return { rows, look: () => [...rows] }
    },
    options: ({ rows }) => ({ model: model(), tools: tools(rows) }),
    run: 'Go.',
  })
  if (!report.passed || report.points.length !== POINTS) throw new Error(report.text)
  return { cpuS: (cpuMs() - begun) / 1_000, unknown: report.unknown }
}

const bare: Case = async () => {
  const begun = cpuMs()
  for (let i = 0; i < RUNS; i++) {
    const harness = new Harness({ model: model(), tools: tools(new Map()) })
    const { status } = await harness.run('Go.')
    if (status !== 'completed') throw new Error(status)
    await harness.close()
  }
  return { cpuS: (cpuMs() - begun) / 1_000 }
}

export const crashTests: Family = {
  repetitions: 3,
  cases: { crashed, bare },
  figures: [
    {
      name: 'crash.test',
      unit: 'CPU s',
      target: 5,
      value: (median) => median('crashed.cpuS'),
      floor: (median) => median('bare.cpuS'),
      note: (median) => `${POINTS} points, in ${median('crashed.unknown')} runs a call was unknown`,
    },
  ],
}
