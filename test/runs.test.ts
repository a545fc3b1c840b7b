// How a share of the cases of a test is chosen.
import { describe, expect, it } from 'vitest'
import { shareFrom, startOf, upTo } from './runs.ts'

describe('a share', () => {
  it('is every third case from its start, and the starts together are all cases, each as often', () => {
    expect(shareFrom(upTo(10), 3, 0)).toEqual([1, 4, 7, 10])
    expect(shareFrom(upTo(10), 3, 4)).toEqual([2, 5, 8])
    const seen = [0, 1, 2, 3, 4, 5].flatMap((from) => shareFrom(upTo(10), 3, from))
    expect(seen.sort((a, b) => a - b)).toEqual(upTo(10).flatMap((n) => [n, n]))
  })

  it.each([0, 1, 2, 3, 4, 5])('from %i has one case at least, if there is one', (from) => {
    expect([0, 1, 2].map((length) => shareFrom(upTo(length), 3, from).length)).toEqual([0, 1, 1])
  })

  it('begins where TERRET_SHARE says, and a start that is none is refused', () => {
    expect(startOf('4')).toBe(4)
    expect(upTo(20).every(() => shareFrom(upTo(6), 6, startOf(undefined)).length === 1)).toBe(true)
    for (const wrong of ['6', '-1', '1.5', 'all', ''])
      expect(() => startOf(wrong)).toThrow(`TERRET_SHARE must be a whole number from 0 to 5, not "${wrong}".`)
  })
})
