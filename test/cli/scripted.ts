// A stage for each test of a file, and a provider that speaks from a script, both gone after it. Imported for its hooks as well.
import { afterEach, beforeEach } from 'vitest'
import { type Chaos, type ChaosScript, startChaos } from '../../src/testing/index.ts'
import { endpoint, openStage, type Stage } from './stage.ts'

/** Of the test that runs now: filled anew before each. */
export const stage = {} as Stage
export const provider: { chaos: Chaos | null } = { chaos: null }

beforeEach(() => {
  Object.assign(stage, openStage())
})
afterEach(async () => {
  await provider.chaos?.close()
  provider.chaos = null
  stage.close()
})

export async function scriptedBy(script: ChaosScript, more: object = {}): Promise<Chaos> {
  const chaos = await startChaos({ script })
  provider.chaos = chaos
  stage.configure({ ...endpoint(chaos.url), ...more })
  return chaos
}
