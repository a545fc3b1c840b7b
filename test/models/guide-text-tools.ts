// The program of docs/guide/models.md about textTools, word for word but for this line and its import. text-tools.test.ts compares and runs it.
import { defineTool, Harness, scripted, textTools } from '../../src/index.ts'
import { z } from 'zod'

const weather = defineTool({
  name: 'weather',
  description: 'The weather of a city.',
  input: z.object({ city: z.string(), unit: z.enum(['metric', 'imperial']).optional() }),
  execute: ({ city }) => `-3 degrees in ${city}`,
})
// In place of `model('ollama:phi4')`: it writes its calls as text.
const plain = scripted(['<tool_call>weather[Oslo|metric]</tool_call>', 'It is cold.'])
const harness = new Harness({ model: textTools(plain, { dialect: 'xml' }), tools: [weather] })

const session = await harness.open()
const { text, usage } = await session.run('Is it cold in Oslo?')
console.log(text, usage.toolCalls)
for (const message of await session.messages())
  if (message.role === 'assistant') for (const call of message.calls) console.log(call.tool, call.args, call.text)
await harness.close()
