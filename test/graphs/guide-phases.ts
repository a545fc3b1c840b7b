// The example of the phases in docs/guide/workflows.md, word for word but for this line and its imports. guide.test.ts runs it.
import { Harness, offline } from '../../src/index.ts'
import { phasesAgents, phasesGraph, type PhasesState } from '../../src/graphs/index.ts'

const review = {
  id: 'review',
  description: 'Reviews a change from two sides, and sums up.',
  safety_tier: 'read_only',
  phases: [
    { name: 'read', description: 'Say what the change does.', agents: ['reader'] },
    { name: 'judge', description: 'Find what is wrong with it.', agents: ['reader', 'critic'], depends_on: ['read'] },
    { name: 'synthesize', description: 'Sum up for the author.', agents: ['critic'], depends_on: ['judge'] },
  ],
} as const
const options = {
  agents: {
    reader: { description: 'reads', instructions: 'You read code, and say what it does.' },
    critic: { description: 'judges', instructions: 'You look for mistakes.' },
  },
}
const harness = new Harness({
  model: offline(),
  graphs: [phasesGraph(review, options)],
  subagents: phasesAgents(review, options),
})
const result = await harness.run('The change of the harbour plan.', { agent: 'review' })
const { results, summary } = (result.status === 'completed' ? result.output : {}) as PhasesState
console.log(`${result.status}: ${Object.keys(results).join(', ')}; the summary is of ${summary.phase}`)
await harness.close()
