// The example of docs/guide/plugins.md, word for word but for this line and its imports. plugins.test.ts compares and runs it.
import { defineTool, Harness, type Plugin, scripted } from '../../src/index.ts'
import { z } from 'zod'

/** Tickets of a help desk: a tool to close one, what the model should know, a rule, and a record of what happened. */
function helpDesk(address: string): Plugin {
  const open = new Set<string>()
  const record: string[] = []
  return {
    name: 'help-desk',
    instructions: 'Close a ticket only when its customer said that it is solved.',
    tools: [
      defineTool({
        name: 'close_ticket',
        description: 'Closes a ticket.',
        input: z.object({ id: z.string() }),
        effect: 'idempotent',
        execute: ({ id }) => (open.delete(id) ? `${id} is closed` : `there is no open ticket ${id}`),
      }),
    ],
    hooks: [
      {
        type: 'before_tool_call',
        tools: ['close_ticket'],
        run: ({ args }) =>
          (args as { id: string }).id === 'T-1' ? { cancel: 'T-1 belongs to the law team' } : undefined,
      },
    ],
    consumers: [
      {
        name: 'desk-record',
        run: ({ session, outcome, usage }) => void record.push(`${session}: ${outcome.type}, ${usage.toolCalls} calls`),
      },
    ],
    connect: async () => {
      console.log(`connected to ${address}`)
      for (const id of ['T-1', 'T-2']) open.add(id)
      return { close: () => console.log(`closed, after ${record.join('; ')}`) }
    },
  }
}

const model = scripted([
  { calls: ['T-1', 'T-2'].map((id) => ({ tool: 'close_ticket', args: { id } })) },
  'T-2 is closed. T-1 is not mine to close.',
])
const harness = new Harness({ model, instructions: 'You work at the help desk.', plugins: [helpDesk('desk.example')] })
const session = await harness.open({ id: 'monday' })
const result = await session.run('Close both.')
console.log(result.calls.map(({ status }) => status).join(', '))
console.log(result.text)
await harness.close()
