// `stream`: what one delta of a long reply costs, from the socket to the code that iterates. The provider is another process.
import { Agent, request } from 'node:http'
import { Harness, model } from '../src/index.ts'
import { DELTAS, provider, startProvider } from './child-provider.ts'
import { type Case, cpuMs, type Family, type Sample } from './family.ts'

const agent = new Agent({ keepAlive: true })

/** Reads one reply, and says how many deltas it had. */
type Read = (url: string) => Promise<number>

const throughHarness: Read = async (url) => {
  // With a key, as every paid provider has one: so each delta is searched for it.
  const speaker = model('openrouter:bench', { baseUrl: url, key: 'sk-bench-0123456789abcdef', prices: PRICES })
  const harness = new Harness({ model: speaker, secrets: {} })
  const stream = harness.stream('go', { deltas: true })
  let deltas = 0
  for await (const event of stream) if (event.type === 'delta') deltas += 1
  const { status } = await stream.result
  if (status !== 'completed') throw new Error(`the run ${status}`)
  await harness.close()
  return deltas
}

const PRICES = { 'openrouter:*': { input: 1, output: 4, contextTokens: 128_000 } }

type Chunk = { readonly choices: readonly { readonly delta: { readonly content?: string } }[] }

/** The least that can be called a client: lines, JSON, text. */
const bare: Read = (url) => {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/chat/completions`, { method: 'POST', agent }, (response) => {
      let [deltas, text, rest] = [0, '', '']
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        const lines = (rest + chunk).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) {
          if (!line.startsWith('data: ') || line === 'data: [DONE]') continue
          const said = (JSON.parse(line.slice(6)) as Chunk).choices[0]?.delta.content ?? ''
          if (said === '') continue
          text += said
          deltas += 1
        }
      })
      response.on('end', () => resolve(text.length > deltas ? deltas : 0))
    })
    sent.on('error', reject)
    sent.end('{}')
  })
}

/** A short reply first: what is loaded once in a process is not part of a delta. It is in the note. */
function reading(read: Read, which: 'long' | 'apart'): Case {
  return async (): Promise<Sample> => {
    const { url, child } = await startProvider('stream')
    const loading = cpuMs()
    await read(`${url}/short`)
    const begun = cpuMs()
    const deltas = await read(`${url}/${which}`)
    const us = ((cpuMs() - begun) * 1_000) / DELTAS
    agent.destroy()
    child.disconnect()
    if (deltas !== DELTAS) throw new Error(`${deltas} deltas came`)
    return { us, shortMs: begun - loading }
  }
}

export const stream: Family = {
  repetitions: 9,
  cases: {
    harness: reading(throughHarness, 'long'),
    floor: reading(bare, 'long'),
    apart: reading(throughHarness, 'apart'),
    floorApart: reading(bare, 'apart'),
  },
  parts: { provider },
  figures: [
    {
      name: 'stream',
      unit: 'CPU µs a delta',
      target: 8,
      value: (median) => median('harness.us'),
      floor: (median) => median('floor.us'),
      note: (median) =>
        `a chunk of HTTP each: ${median('apart.us').toFixed(1)}, floor ${median('floorApart.us').toFixed(1)}; ` +
        `the short reply before: ${median('harness.shortMs').toFixed(0)} CPU ms`,
    },
  ],
}
