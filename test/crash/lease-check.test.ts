// Which sessions were taken from a worker that lived, from marks made by hand.
import { expect, it } from 'vitest'
import type { MarkLine } from './evidence.ts'
import { LeaseCheck } from './lease-check.ts'

const claim = (epoch: number, at: number): MarkLine => ({ type: 'claim', session: 's', epoch, at })
const release = (n: number): MarkLine => ({
  type: 'begin',
  n,
  writes: [{ session: 's', seq: 1, digests: [], release: true }],
})
const end = (n: number, ok: boolean): MarkLine => ({ type: 'end', n, ok })

function lostOf(...workers: readonly (readonly [readonly MarkLine[], number | null])[]): number {
  const check = new LeaseCheck()
  for (const [marks, endedAt] of workers) check.add(marks, endedAt)
  return check.lost
}

it('B-CRASH-8: a session that was taken from a worker that lived and had not given it back is counted', () => {
  expect(lostOf([[claim(1, 10)], null], [[claim(2, 20)], null])).toBe(1)
  expect(lostOf([[claim(1, 10)], 25], [[claim(2, 20)], null])).toBe(1)
  expect(lostOf([[claim(1, 10), release(1), end(1, false)], null], [[claim(2, 20)], null])).toBe(1)
  expect(lostOf([[claim(1, 10), claim(2, 20)], null])).toBe(1)
})

it('B-CRASH-8: one that was given back, or whose worker had been killed, is not', () => {
  expect(lostOf([[claim(1, 10)], 15], [[claim(2, 20)], null])).toBe(0)
  expect(lostOf([[claim(1, 10), release(1), end(1, true)], null], [[claim(2, 20)], null])).toBe(0)
  expect(lostOf([[claim(1, 10), release(1)], 19], [[claim(2, 18)], null])).toBe(0)
  expect(lostOf([[claim(1, 10), { type: 'release', session: 's' }], null], [[claim(2, 20)], null])).toBe(0)
  expect(lostOf([[claim(1, 10)], null])).toBe(0)
})
