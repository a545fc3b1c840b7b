// The routes: your own, and under /terret the API and the inspector of terret. It opens no port, so tests call it directly.
import { Hono } from 'hono'
import type { Harness } from 'terret'
import { serve } from 'terret/server'

export async function openApp(harness: Harness, token?: string) {
  // Behind a name of your own: names: ['agents.example.com'].
  const terret = await serve({ harness, base: '/terret', ...(token === undefined ? {} : { token }) })
  const app = new Hono()

  app.post('/ask', async (c) => {
    const { question } = await c.req.json<{ question?: unknown }>().catch(() => ({ question: undefined }))
    if (typeof question !== 'string') return c.json({ error: 'Send {"question": "…"}.' }, 400)
    const { sessionId, status, text } = await harness.run(question)
    return c.json({ session: sessionId, status, text })
  })
  app.all('/terret', (c) => terret.fetch(c.req.raw))
  app.all('/terret/*', (c) => terret.fetch(c.req.raw))

  return { app, terret }
}
