// The stage of each test of a file: a home of its own, and a provider that speaks from a script. All of it is gone after the test.
import { beforeEach, onTestFinished } from 'vitest'
import { type Chaos, type ChaosScript, startChaos } from '../../src/testing/index.ts'
import { endpoint, openStage, type Stage } from './stage.ts'

export type Scripted = {
  /** Of the test that runs now: filled anew before each. */
  readonly stage: Stage
  readonly provider: { chaos: Chaos | null }
  /** Starts the provider, and makes it the one of the user's configuration. */
  readonly scriptedBy: (script: ChaosScript, more?: object) => Promise<Chaos>
}

/** Called once, at the top of a file of tests. */
export function stageOfEach(): Scripted {
  const stage = {} as Stage
  const provider: Scripted['provider'] = { chaos: null }
  beforeEach(() => {
    const opened = openStage()
    Object.assign(stage, opened)
    provider.chaos = null
    // Closed in reverse order: everything that uses the folders is gone before them.
    onTestFinished(() => opened.close())
  })
  const scriptedBy: Scripted['scriptedBy'] = async (script, more = {}) => {
    const chaos = await startChaos({ script })
    onTestFinished(() => chaos.close())
    provider.chaos = chaos
    stage.configure({ ...endpoint(chaos.url), ...more })
    return chaos
  }
  return { stage, provider, scriptedBy }
}
