// The memory store keeps the contract. It has no promises of its own beyond that.
import { describe } from 'vitest'
import { describeStore } from '../contract/store.ts'
import { describeTake } from '../contract/store-take.ts'
import { type MakeFixture, StillClock } from '../contract/fixture.ts'
import { memory } from '../../src/stores/memory/memory-store.ts'

const make: MakeFixture = async () => {
  const clock = new StillClock()
  return { clock, store: memory({ clock }) }
}

describeStore('memory', make)
describe('memory as a store', () => {
  describeTake(make)
})
