// The program of docs/guide/import.md, word for word but for this line and its imports. guide.test.ts compares and runs it.
import { Harness, memory, scripted } from '../../../src/index.ts'
import { importTranscript } from '../../../src/replay.ts'

// In place of a file: three lines as Claude Code writes them.
const file = [
  { type: 'user', uuid: 'a', parentUuid: null, message: { role: 'user', content: 'Why does the build fail?' } },
  {
    type: 'assistant',
    uuid: 'b',
    parentUuid: 'a',
    message: { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'make' } }] },
  },
  { type: 'summary', summary: 'The build', leafUuid: 'b' },
]
const text = file.map((entry) => JSON.stringify(entry)).join('\n')

const store = memory()
const { card, from } = await importTranscript(store, text, { format: 'claude-code', id: 'build' })
console.log(card.session, card.title, from)

const harness = new Harness({ model: scripted(['I begin with a clean build.']), store })
const session = harness.session('build')
const result = await session.run('Go on.')
for (const message of await session.messages())
  if (message.role === 'tool') console.log(message.tool, message.status, message.content)
console.log(result.text)
await harness.close()
