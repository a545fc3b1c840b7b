// The agent, the file that keeps its chats, and the handler of the page's requests. It runs on the server alone.
import { defineTool, Harness, scripted, sqlite } from 'terret'
import { chatHandler, uiMessages } from 'terret/ui'
import type { UIMessage } from 'ai'
import { z } from 'zod'

const placeOrder = defineTool({
  name: 'place_order',
  description: 'Orders something for the customer',
  input: z.object({ item: z.string(), pieces: z.int().positive() }),
  effect: 'once', // never twice, also if the server dies while it runs
  approval: 'ask', // the customer says yes or no in the page
  execute: ({ item, pieces }) => `${pieces} × ${item} will be sent.`, // your shop goes here
})

/** Plays the model while none is named, so that everything here runs without a key and without a network. */
const rehearsal = scripted(({ messages }) => {
  const last = messages.at(-1)
  if (last?.role === 'tool') return last.ok ? 'Your lamp is on its way.' : 'Then I do not order it.'
  if (/order/i.test(JSON.stringify(last)))
    return { calls: [{ tool: 'place_order', args: { item: 'lamp', pieces: 1 } }] }
  return { deltas: ['We open ', 'at nine.'] }
})

function openShop() {
  const store = sqlite(process.env['CHAT_DB'] ?? 'chat.db')
  const harness = new Harness({
    model: process.env['MODEL'] ?? rehearsal,
    instructions: 'You answer questions about our shop, and order what customers want.',
    tools: [placeOrder],
    store,
    limits: { modelRequests: 20 },
    budget: { runUsd: 0.5 },
  })
  return { store, harness }
}

// Next.js loads this file anew for each route and after each change. The store and the harness are made once.
const place = globalThis as { shop?: ReturnType<typeof openShop> }
const { store, harness } = (place.shop ??= openShop())

/** Who is behind a request. Read your own login here: this one knows only that it is the same browser (proxy.ts). */
function whoIs(request: Request): string | null {
  return /(?:^|;\s*)visitor=([0-9a-f-]{36})(?:;|$)/.exec(request.headers.get('cookie') ?? '')?.[1] ?? null
}

/** The browser chooses the id of a chat: it may be a new one, or one of its own. */
async function mayUse(visitor: string, session: string): Promise<boolean> {
  const card = await store.card(session)
  return card === null || card.labels?.['visitor'] === visitor
}

export const chat = chatHandler(harness, {
  by: async (request, session) => {
    const visitor = whoIs(request)
    return visitor !== null && (await mayUse(visitor, session)) ? visitor : null
  },
  open: (request) => ({ labels: { visitor: whoIs(request) ?? '' } }),
})

/** What was said before, for the first picture of the page. */
export async function historyOf(session: string, visitor: string): Promise<UIMessage[]> {
  const card = await store.card(session)
  if (card === null || card.labels?.['visitor'] !== visitor) return []
  return (await uiMessages(harness.session(session))) as UIMessage[]
}
