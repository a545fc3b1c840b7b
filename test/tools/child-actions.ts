// A process of its own that runs sessions at once on one file, each with one action, and says how many of them acted.
import { z } from 'zod'
import { defineTool, Harness, scripted, sqlite } from '../../src/index.ts'

const [path = '', runs = '1', actionsPerHour = '1'] = process.argv.slice(2)
let ran = 0
const tool = defineTool({ name: 'act', description: 'd', input: z.object({}), execute: () => void (ran += 1) })
const model = scripted((request) => (request.messages.length > 1 ? 'done' : { calls: [{ tool: 'act' }] }))
const store = sqlite(path)
const policy = { rules: [], actionsPerHour: Number(actionsPerHour) }
const harness = new Harness({ model, tools: [tool], store, approvals: { policy } })
await Promise.all(Array.from({ length: Number(runs) }, () => harness.run('go')))
await harness.close()
await store.close()
process.stdout.write(`${ran}`)
