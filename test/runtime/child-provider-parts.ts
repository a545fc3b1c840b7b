// A process that runs two messages of one session with tools of the provider, for provider-parts-kill.long.test.ts, which kills it
// after the commit that it is told. The provider is a server of the test.
import { z } from 'zod'
import { defineTool, Harness, model, sqlite, webSearch } from '../../src/index.ts'
import { killable } from './killable.ts'

const [file = '', commits = '0', name = '', baseUrl = ''] = process.argv.slice(2)
const store = killable(sqlite(file), Number(commits))
const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({}),
  effect: 'read',
  execute: () => 'seen',
})
const harness = new Harness({
  model: model(name, { key: 'k', baseUrl, providerTools: [webSearch()] }),
  tools: [look],
  store,
  worker: { leaseMs: 2_000 },
})
const session = await harness.open({ id: 's', reuse: true })
const first = await session.run('When?', { id: 'm1' })
const second = await session.run('And now?', { id: 'm2' })
await harness.close()
await store.close()
const { status, sources } = first
process.stdout.write(JSON.stringify({ status, sources, last: second.status }))
