import assert from 'node:assert/strict'
import { test } from 'node:test'
import { priceOf } from '../src/price.js'

test('the price of an order counts each piece', () => {
  assert.equal(
    priceOf([
      { cents: 250, pieces: 2 },
      { cents: 100, pieces: 1 },
    ]),
    600,
  )
})
