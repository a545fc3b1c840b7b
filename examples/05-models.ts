// 05 · A model by name, a typed answer and a budget. The provider is a local stand-in, so it needs no key and no network.
// Run it: README.md here says how.
import { z } from 'zod'
import { startChaos } from 'terret/testing'
import { Harness, model } from 'terret'

const chaos = await startChaos({
  strict: true,
  script: (_request, n) =>
    n === 0
      ? {
          calls: [{ tool: 'final_result', args: { city: 'Oslo', celsius: 4 } }],
          usage: { inputTokens: 5_000, outputTokens: 300 },
        }
      : { text: 'Never asked.' },
})

const harness = new Harness({
  model: model('anthropic:claude-sonnet-4-5', {
    baseUrl: chaos.url,
    key: 'a-key-for-the-example',
    outputTokensMax: 1_000,
  }),
  output: { schema: z.object({ city: z.string(), celsius: z.number() }) },
  budget: { sessionUsd: 0.03 },
})

const session = await harness.open()
const first = await session.run('How warm is it in Oslo?')
console.log(first.status, first.status === 'completed' ? JSON.stringify(first.output) : '', `$${first.cost.usd}`)

const second = await session.run('And in Bergen?')
console.log(second.status, second.status === 'limit' ? second.limit : '', `${chaos.requests.length} request was made`)

await harness.close()
await chaos.close()
