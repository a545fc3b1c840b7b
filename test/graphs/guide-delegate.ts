// The example of a delegation in docs/guide/workflows.md, word for word but for this line and its imports. guide.test.ts compares and runs it.
import { Harness, scripted } from '../../src/index.ts'
import { delegateAgents, delegateGraph, delegateTool } from '../../src/graphs/index.ts'

const review = { approved: false, findings: ['It does not say when.'] }
const model = scripted(({ instructions }) => {
  if (instructions.startsWith('You plan')) return 'Say where and when the harbour opens.'
  return instructions.startsWith('You review') ? JSON.stringify(review) : 'The harbour opens.'
})
const harness = new Harness({
  // Each agent may have its own: { ...delegateAgents.delegate_reviewer, model }
  model,
  tools: [delegateTool()], // a model may start it
  graphs: [delegateGraph()],
  subagents: delegateAgents,
})
const result = await harness.run({ goal: 'Write when the harbour opens.', max_revisions: 1 }, { agent: 'delegate' })
if (result.status === 'completed') console.log(JSON.stringify(result.output, null, 2))
await harness.close()
