// What the agent can do. `effect` says how often a call may run when a process dies while it runs.
import { appendFileSync } from 'node:fs'
import { defineTool } from 'terret'
import { z } from 'zod'

const ORDERS: Readonly<Record<number, { readonly item: string; readonly dollars: number }>> = {
  17: { item: 'a lamp', dollars: 40 },
  18: { item: 'a chair', dollars: 120 },
}

export const findOrder = defineTool({
  name: 'find_order',
  description: 'What was ordered, and for how much',
  input: z.object({ order: z.int() }),
  effect: 'read', // may run again
  execute: ({ order }) => ORDERS[order] ?? `There is no order ${order}.`,
})

export const refund = defineTool({
  name: 'refund',
  description: 'Pays the money for an order back to the customer',
  input: z.object({ order: z.int(), dollars: z.number().positive() }),
  effect: 'once', // never twice: if the process dies while it runs, the model is told that the outcome is unknown
  approval: 'ask', // a person allows it or not; `({ dollars }) => (dollars > 50 ? 'ask' : 'auto')` asks for some
  execute: ({ order, dollars }) => {
    // Your payment service goes here.
    appendFileSync('refunds.jsonl', `${JSON.stringify({ order, dollars })}\n`)
    return `${dollars} dollars were paid back.`
  },
})
