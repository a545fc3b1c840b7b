// The example of docs/guide/agents.md, word for word but for this line and its imports. guide.test.ts compares and runs it.
import { mkdirSync, writeFileSync } from 'node:fs'
import { Harness, scripted } from '../../src/index.ts'
import { loadAgents, subagentsOf } from '../../src/agents/index.ts'

mkdirSync('config/agents', { recursive: true })
writeFileSync(
  'config/agents/greeter.md',
  `---
when_to_use: greeting a customer by name
max_iterations: 3
tools: []
---
You write one friendly sentence that greets the customer you are told about. Nothing else.
`,
)

const { definitions, troubles } = await loadAgents({ config: 'config' })
const { subagents } = subagentsOf(definitions)

// Offline: a script stands for the models. The greeter answers its task, the agent above passes it on.
const model = scripted((request) => {
  if (request.instructions.includes('one friendly sentence')) return 'Good day, Ada!'
  return request.messages.length > 1
    ? 'She was greeted: Good day, Ada!'
    : { calls: [{ tool: 'subagent', args: { agent: 'greeter', task: 'Greet Ada.' } }] }
})
const harness = new Harness({ model, subagents })
const { text } = await harness.run('Greet Ada.')
console.log(text) // She was greeted: Good day, Ada!
console.log(definitions.length, troubles.length) // 16 0
await harness.close()
