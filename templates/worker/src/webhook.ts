// `npm run webhook`: takes signed deliveries in at POST /v1/triggers/alarms. A delivery is on disk when the sender is answered; a worker
// does the rest. It also has the inspector.
import { createServer } from 'node:http'
import { serve } from 'terret/server'
import { onStop, openHarness } from './harness.ts'

if (process.env['WEBHOOK_SECRET'] === undefined) {
  process.env['WEBHOOK_SECRET'] = 'secret-of-the-rehearsal'
  console.log('WEBHOOK_SECRET is not set: deliveries are signed with "secret-of-the-rehearsal".')
}
const { harness, store } = openHarness({ drives: false })
const { TERRET_TOKEN: token, HOST: host = '127.0.0.1', NAMES: names } = process.env
const terret = await serve({
  harness,
  endpoints: {
    alarms: {
      source: 'alarms',
      verify: 'hmac',
      header: 'x-signature',
      timeHeader: 'x-time',
      keyHeader: 'x-id',
      secret: { env: 'WEBHOOK_SECRET' },
    },
  },
  ...(token === undefined ? {} : { token }),
  ...(names === undefined ? {} : { names: names.split(',') }),
})

const server = createServer(terret.listener)
server.listen(Number(process.env['PORT'] ?? 8080), host, () => {
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  console.log(`Inspector: http://127.0.0.1:${port}/#token=${terret.token}`)
})
onStop(async () => {
  await terret.close()
  server.close()
  await harness.close()
  await store.close()
})
