// The example of the council in docs/guide/workflows.md, word for word but for this line and its imports. guide.test.ts runs it.
import { Harness, scripted } from '../../src/index.ts'
import { councilAgents, councilGraph, type CouncilState } from '../../src/graphs/index.ts'

// Offline: name real models instead, such as 'openai:…' and 'anthropic:…'.
const council = {
  seats: [
    scripted(() => 'Move it.', 'one'),
    scripted(() => 'Keep it.', 'two'),
    scripted(() => ({ error: 'bad_request' }), 'three'),
  ],
  chair: scripted(() => '## Answer\nThey differ: ask the fishers.', 'chair'),
}
const harness = new Harness({
  model: scripted([]),
  graphs: [councilGraph(council)],
  subagents: councilAgents(council),
})
const result = await harness.run('Shall we move the harbour?', { agent: 'council' })
if (result.status === 'completed') console.log((result.output as CouncilState).text)
await harness.close()
