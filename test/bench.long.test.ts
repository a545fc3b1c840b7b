// The bench as a program: its names, its JSON, its choice of figures. What it measures is not judged here: no timing is
// asserted, and only the cheapest bench runs.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { allFamilies, familyOf } from '../bench/families.ts'
import { medianOf } from '../bench/family.ts'

const script = join(import.meta.dirname, '..', '.build', 'bench', 'main.js')

function bench(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' })
  return { status, stderr, lines: stdout.trim().split('\n') }
}

describe('the bench', () => {
  it('finds each family by its first figure', async () => {
    for (const family of await allFamilies()) expect(await familyOf(family.figures[0]?.name ?? '')).toBe(family)
  })

  it('keeps the names and units that others compare with', async () => {
    const figures = (await allFamilies()).flatMap((family) => family.figures)
    const known = new Map(figures.map(({ name, unit }) => [name, unit]))
    expect(known.size).toBe(figures.length)
    expect(Object.fromEntries(known)).toMatchObject({
      loop: 'CPU ms a turn',
      'loop.cold': 'CPU ms a turn',
      'loop.growth': 'ratio',
      durable: 'CPU ms a turn',
      'durable.bytes': 'bytes a turn',
      'durable.group': 'ratio',
      resume: 'CPU ms',
      open: 'CPU ms',
      'open.snapshot': 'CPU ms',
      import: 'CPU ms',
      install: 'MB',
      watch: 'CPU ms a second',
      fanout: 'CPU µs a call',
      stream: 'CPU µs a delta',
      http: 'CPU ms a turn',
    })
  })

  it('prints one object a line for the figures asked for, and nothing else', { timeout: 60_000 }, () => {
    const { status, stderr, lines } = bench('--json', '--only', 'import', '--repetitions', '1')
    expect(status).toBe(0)
    expect(stderr).toContain(process.version)
    expect(lines).toHaveLength(1)
    const figure = JSON.parse(lines[0] ?? '') as Record<string, unknown>
    expect(Object.keys(figure)).toEqual(['name', 'value', 'unit', 'floor', 'ratio', 'target', 'ok'])
    expect(figure).toMatchObject({ name: 'import', unit: 'CPU ms' })
    const { value, floor, ratio, target, ok } = figure as Record<string, number>
    expect(ratio).toBeCloseTo((value ?? 0) / (floor ?? 0), 2)
    expect(ok).toBe((value ?? 0) <= (target ?? 0))
  })

  it('refuses a name it does not know, and says which there are', () => {
    const { status, stderr } = bench('--only', 'loop,speed')
    expect(status).toBe(2)
    expect(stderr).toContain('"speed"')
    expect(stderr).toContain('durable.bytes')
  })

  it('takes medians', () => {
    expect(medianOf([3, 1, 2])).toBe(2)
    expect(medianOf([4, 1, 3, 2])).toBe(2.5)
    expect(medianOf([])).toBeNaN()
  })
})
