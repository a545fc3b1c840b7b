// The slope test of the soak, on series made by hand and by a seed: what is flat or noisy passes, and a planted leak does not.
import { expect, it } from 'vitest'
import { Chance } from '../crash/random.ts'
import { slopeOf } from './slope.ts'

const allowance = { share: 0.1, amount: 10 }
const series = (length: number, of: (i: number) => number): readonly number[] => Array.from({ length }, (_, i) => of(i))

it('B-SOAK-2: a figure that rises beyond its allowance grows, also under noise that is larger than each rise', () => {
  const chance = new Chance(1)
  expect(
    slopeOf(
      series(30, (i) => 100 + i),
      allowance,
    ),
  ).toMatchObject({ grows: true, measurements: 24, allowed: 10.9 })
  for (let n = 0; n < 200; n += 1) {
    const noisy = series(60, (i) => 100 + i + chance.between(-10, 10))
    expect(slopeOf(noisy, allowance).grows).toBe(true)
  }
})

it('B-SOAK-2: what is flat, falls, warms up, jumps about or rises within its allowance does not grow', () => {
  const chance = new Chance(2)
  expect(
    slopeOf(
      series(30, () => 100),
      allowance,
    ).grows,
  ).toBe(false)
  expect(
    slopeOf(
      series(30, (i) => 100 - i),
      allowance,
    ).grows,
  ).toBe(false)
  expect(
    slopeOf(
      series(30, (i) => 100 + Math.min(i, 6) * 20),
      allowance,
    ).grows,
  ).toBe(false)
  expect(
    slopeOf(
      series(30, (i) => 100 + i * 0.2),
      allowance,
    ).grows,
  ).toBe(false)
  expect(
    slopeOf(
      series(30, (i) => (i % 7 === 0 ? 1_000 : 100)),
      allowance,
    ).grows,
  ).toBe(false)
  let wrong = 0
  for (let n = 0; n < 500; n += 1)
    wrong += slopeOf(
      series(40, () => chance.between(0, 300)),
      allowance,
    ).grows
      ? 1
      : 0
  expect(wrong).toBeLessThanOrEqual(3)
})

it('B-SOAK-2: with too few measurements nothing is said', () => {
  expect(
    slopeOf(
      series(11, (i) => i * 100),
      allowance,
    ).grows,
  ).toBeNull()
  expect(slopeOf([], allowance).grows).toBeNull()
})
