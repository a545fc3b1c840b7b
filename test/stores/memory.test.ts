// The memory store keeps the contract. It has no promises of its own beyond that.
import { describeStore } from '../contract/store.ts'
import { StillClock } from '../contract/fixture.ts'
import { memory } from '../../src/stores/memory/memory.ts'

describeStore('memory', async () => {
  const clock = new StillClock()
  return { clock, store: memory({ clock }) }
})
