// `npm start`: the app on a port, and a worker that goes on with what was open when the last process ended.
import { serve } from '@hono/node-server'
import { openAgent } from './agent.ts'
import { openApp } from './app.ts'

const { harness, store } = openAgent()
// Without TERRET_TOKEN each start has a new one.
const { app, terret } = await openApp(harness, process.env['TERRET_TOKEN'])
const working = harness.work()

const port = Number(process.env['PORT'] ?? 3000)
const server = serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, (address) => {
  const url = `http://127.0.0.1:${address.port}`
  console.log(`Ask: curl ${url}/ask --json '{"question": "When do you open on Monday?"}'`)
  console.log(`Inspector: ${url}/terret/#token=${terret.token}`)
})

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, async () => {
    await terret.close()
    server.close()
    await harness.close() // gives its sessions back: the next process goes on with them
    await working
    await store.close()
  })
