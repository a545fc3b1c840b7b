// 14 · AG-UI: an agent behind HTTP, and the client of AG-UI that talks to it. It streams, is interrupted for an approval, and a
// second client that comes later has the same messages.
// Run it: README.md here says how.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { HttpAgent } from '@ag-ui/client'
import { z } from 'zod'
import { defineTool, Harness, scripted } from 'terret'
import { agUiHandler, nodeListener } from 'terret/ui'

const publish = defineTool({
  name: 'publish',
  description: 'Publish a page',
  input: z.object({ page: z.string() }),
  effect: 'once',
  approval: 'ask',
  execute: ({ page }) => `${page} is online`,
})
const model = scripted([
  { deltas: ['I publish ', 'it, if ', 'you say yes.'], calls: [{ tool: 'publish', args: { page: 'news.html' } }] },
  { deltas: ['The news ', 'are online.'] },
])

// The server. Put your own login where `by` is.
const harness = new Harness({ model, tools: [publish] })
const server = createServer(nodeListener(agUiHandler(harness, { by: () => 'ana' })))
await new Promise<void>((up) => server.listen(0, '127.0.0.1', up))
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

// A client: any frontend that speaks AG-UI.
const agent = new HttpAgent({ url, threadId: 'news' })
agent.subscribe({
  onTextMessageContentEvent: ({ event }) => console.log(`… ${event.delta}`),
  onToolCallEndEvent: ({ toolCallName, toolCallArgs }) => console.log(toolCallName, toolCallArgs),
})
agent.addMessage({ id: 'm1', role: 'user', content: 'Publish the news.' })
await agent.runAgent()

const [interrupt] = agent.pendingInterrupts
if (!interrupt) throw new Error('nothing was asked')
console.log(`asked: ${interrupt.message}`)
await agent.runAgent({ resume: [{ interruptId: interrupt.id, status: 'resolved', payload: { approved: true } }] })

// One that comes later, such as a page after a reload.
const later = new HttpAgent({ url, threadId: 'news' })
await later.runAgent()
console.log('later:', ...later.messages.map(({ role }) => role), '→', later.messages.at(-1)?.content)

server.close()
await harness.close()
