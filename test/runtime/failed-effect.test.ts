// What an effect that threw comes to.
import { expect, it } from 'vitest'
import { Fault } from '../../src/kernel/failure.ts'
import { landFailedEffect } from '../../src/runtime/turn/landings.ts'

it('B-OUTAGE-29: a request during which the store was busy is made again and counts as paid, and one that broke for another reason is not', () => {
  const effect = { type: 'call', seq: 3, boost: false } as unknown as Parameters<typeof landFailedEffect>[0]
  const landed = (error: unknown) => landFailedEffect(effect, error).events
  expect(landed(new Fault('store_busy', 'The store does not answer.'))).toMatchObject([
    { retryable: true, assumed: true },
  ])
  expect(landed(new TypeError('undefined is not a function'))).toMatchObject([{ retryable: false }])
})
