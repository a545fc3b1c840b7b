// 04 · An MCP server: its tools beside your own, started when a run needs them, pinned, and ended with the harness.
// Run it: README.md here says how.
import { fileURLToPath } from 'node:url'
import { Harness, scripted } from 'terret'
import { mcpServer } from 'terret/tools'

const everything = mcpServer({
  name: 'everything',
  command: process.execPath,
  args: [fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'))],
  tools: ['echo', 'get-sum'], // the rest is not offered
  effects: { echo: 'read' }, // your word, not the server's: read may run unasked, all else is asked about
})

const model = scripted([
  { calls: [{ tool: 'everything__echo', args: { message: 'Hello over MCP' } }] },
  { calls: [{ tool: 'everything__get-sum', args: { a: 19, b: 23 } }] },
  (request) => `The server said: ${JSON.stringify(request.messages.at(-1))}`,
])

const harness = new Harness({ model, tools: [everything] })
const parked = await harness.run('Say hello and add two numbers.')
console.log(`${everything.status().state}: ${everything.status().tools.join(', ')}`)

// The sum is of a tool that nobody vouched for, so somebody is asked.
const [call] = parked.pending
console.log(`${parked.status}: ${call?.tool} ${JSON.stringify(call?.args)}`)
const session = harness.session(parked.sessionId)
await session.decide({ callId: call?.callId ?? '', allow: true, by: 'ana' })
const result = await session.run()
console.log(`${result.status}: ${result.text}`)
await harness.close()
