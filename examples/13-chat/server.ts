// 13 · A chat in the browser: React and `useChat` of the AI SDK on one side, a session on the other. It streams, asks before it
// publishes, and goes on after a reload. The page is page.tsx.
// Run it: README.md here says how.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { rolldown } from 'rolldown'
import { z } from 'zod'
import { defineTool, Harness, type Model } from 'terret'
import { chatHandler, nodeListener } from 'terret/ui'

const publish = defineTool({
  name: 'publish',
  description: 'Publish a page',
  input: z.object({ page: z.string() }),
  effect: 'once',
  approval: 'ask',
  execute: ({ page }) => ({ page, online: true }),
})

/** Offline, and slow enough to watch. With a key of your own: `model: 'anthropic:…'` in the harness. */
const slow: Model = {
  name: 'slow',
  call: async ({ messages }, { emit, sleep }) => {
    const last = messages.at(-1)
    const asked =
      last?.role === 'user' ? last.parts.map((part) => (part.type === 'text' ? part.text : '')).join('') : ''
    const text = last?.role === 'tool' ? said(last.ok) : counted(asked)
    for (const word of text.split(/(?<= )/)) {
      emit({ kind: 'text', part: 0, text: word })
      await sleep(40)
    }
    const publishes = /publish/i.test(asked)
    const calls = publishes ? [{ id: 'call_1', tool: 'publish', args: JSON.stringify({ page: 'news.html' }) }] : []
    const parts = [{ type: 'text', text }] as const
    return { type: 'reply', parts, calls, finish: publishes ? 'calls' : 'stop', usage: null }
  },
}

function counted(asked: string): string {
  if (/publish/i.test(asked)) return 'I will publish the news, if you say yes.'
  return `I count slowly: ${Array.from({ length: 60 }, (_, i) => i + 1).join(' ')} and that is all.`
}

const said = (ok: boolean): string => (ok ? 'The news are online.' : 'Then I leave it.')

const bundle = await rolldown({
  input: 'examples/13-chat/page.tsx',
  platform: 'browser',
  logLevel: 'silent',
  transform: { define: { 'process.env.NODE_ENV': '"production"' } },
})
const [page] = (await bundle.generate({ format: 'esm', codeSplitting: false })).output
const html =
  '<!doctype html><meta charset="utf-8"><title>Chat</title><div id="root"></div><script type="module" src="/page.js"></script>'

// These five lines are the server of the chat. Put your own login where `by` is.
const harness = new Harness({ model: slow, tools: [publish] })
const chat = chatHandler(harness, { by: () => 'ana' })
const server = createServer(
  nodeListener(async (request) => {
    const { pathname } = new URL(request.url)
    if (pathname.startsWith('/api/chat')) return chat(request)
    if (pathname === '/page.js') return new Response(page.code, { headers: { 'content-type': 'text/javascript' } })
    return new Response(html, { headers: { 'content-type': 'text/html' } })
  }),
)
server.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
