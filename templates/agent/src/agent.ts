// The agent: its model, its tools, and the file that its sessions are kept in.
import { Harness, scripted, sqlite } from 'terret'
import { findOrder, refund } from './tools.ts'

/** Plays the model while none is named, so that everything here runs without a key and without a network. */
const rehearsal = scripted(({ messages }) => {
  const results = messages.filter(({ role }) => role === 'tool').length
  if (results === 0) return { calls: [{ tool: 'find_order', args: { order: 17 } }] }
  if (results === 1) return { calls: [{ tool: 'refund', args: { order: 17, dollars: 40 } }] }
  return 'I have handled order 17.'
})

export function openAgent(file = 'agent.db') {
  const store = sqlite(file)
  const harness = new Harness({
    model: process.env['MODEL'] ?? rehearsal,
    instructions: 'You help the customers of a shop. Look an order up before you refund it.',
    tools: [findOrder, refund],
    store,
    limits: { modelRequests: 20 },
    budget: { runUsd: 0.5 },
  })
  return { harness, store }
}
