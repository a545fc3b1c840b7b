// The agent: its model, its tools, and the file that its sessions are kept in.
import { defineTool, Harness, scripted, sqlite } from 'terret'
import { z } from 'zod'

const openingHours = defineTool({
  name: 'opening_hours',
  description: 'When the shop is open on a day',
  input: z.object({ day: z.string() }),
  effect: 'read', // may run again if a process dies while it runs
  execute: ({ day }) => (day === 'sunday' ? 'The shop is closed.' : 'The shop is open from nine to six.'),
})

/** Plays the model while none is named, so that everything here runs without a key and without a network. */
const rehearsal = scripted(({ messages }) => {
  const last = messages.at(-1)
  if (last?.role === 'tool') return 'We open at nine.'
  return { calls: [{ tool: 'opening_hours', args: { day: 'monday' } }] }
})

export function openAgent(file = 'shop.db') {
  const store = sqlite(file)
  const harness = new Harness({
    model: process.env['MODEL'] ?? rehearsal,
    instructions: 'You answer questions about our shop.',
    tools: [openingHours],
    store,
    limits: { modelRequests: 20 },
    budget: { runUsd: 0.5 },
    // Other programs may use the same store: only processes of this name go on with its sessions.
    program: 'shop',
  })
  return { harness, store }
}
