// The simulator itself: it passes, it is deterministic, and it is hard enough to mean something.
import { describe, expect, it } from 'vitest'
import { simulate } from '../sim/simulate.ts'
import { applies, FAULTS } from '../sim/planted.ts'

describe('the simulator', () => {
  it('B-SIM-1: no seed breaks an invariant while processes crash, freeze and find the disk full, and everything settles after', async () => {
    for (let seed = 1; seed <= 25; seed++) expect((await simulate(seed)).violations).toEqual([])
  })

  it('B-SIM-2: the same seed gives the same trace', async () => {
    for (const seed of [3, 14, 159]) expect((await simulate(seed)).hash).toBe((await simulate(seed)).hash)
  })

  it('B-SIM-3: a seed has at least three sessions and two workers; faults and every class of effect occur', async () => {
    const reports = await Promise.resolve([201, 202, 203, 204, 205, 206, 207, 208]).then(async (seeds) => {
      const done = []
      for (const seed of seeds) done.push(await simulate(seed))
      return done
    })
    for (const { sessions, workers } of reports) expect([sessions >= 3, workers >= 2]).toEqual([true, true])
    const sum = (of: (report: (typeof reports)[number]) => number): number =>
      reports.reduce((n, report) => n + of(report), 0)
    expect(sum((r) => r.tally.crashes + r.tally.stalls) / reports.length).toBeGreaterThan(2)
    expect([sum((r) => r.seen.read) > 0, sum((r) => r.seen.idempotent) > 0, sum((r) => r.seen.once) > 0]).toEqual([
      true,
      true,
      true,
    ])
  })

  it.each(FAULTS.map((fault) => fault.name))('B-SIM-4: the planted fault still applies: %s', (name) => {
    const fault = FAULTS.find((f) => f.name === name)
    expect(fault && applies(fault)).toBe(true)
  })
})
