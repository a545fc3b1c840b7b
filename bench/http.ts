// `http`: what a turn costs when the model is behind HTTP and SSE. The provider is another process, the store is memory.
import { Agent, request } from 'node:http'
import { Harness, model } from '../src/index.ts'
import { provider, startProvider, TURNS } from './child-provider.ts'
import { type Case, cpuMs, type Family } from './family.ts'
import { LIMITS, lookup, resultOf } from './turn.ts'

const LOOPS = 6

/** One run of so many turns. */
type Loop = (url: string) => Promise<number>

const throughHarness: Loop = async (baseUrl) => {
  const prices = { 'openrouter:*': { input: 1, output: 4, contextTokens: 128_000 } }
  // With a key, as every paid provider has one: so everything that is written is searched for it.
  const hosted = model('openrouter:bench', { baseUrl, key: 'sk-bench-0123456789abcdef', prices })
  const subject = new Harness({ model: hosted, tools: [lookup], limits: LIMITS, secrets: {} })
  const { status, usage } = await subject.run('go')
  await subject.close()
  if (status !== 'completed') throw new Error(`the run ${status}`)
  return usage.toolCalls
}

type Reply = { readonly text: string; readonly call: { readonly id: string; readonly args: string } | null }
type Piece = { readonly id?: string; readonly function: { readonly arguments: string } }
type Chunk = {
  readonly choices: readonly { readonly delta: { content?: string | null; tool_calls?: readonly Piece[] } }[]
}

const agent = new Agent({ keepAlive: true })

/** One connection, one string that only grows, lines and JSON: the least that can be called an agent over HTTP. */
const bare: Loop = async (url) => {
  const tool = async (args: unknown): Promise<string> => resultOf(args)
  const { name, description, parameters } = lookup
  const tools = JSON.stringify([{ type: 'function', function: { name, description, parameters } }])
  let body = `{"model":"bench","stream":true,"tools":${tools},"messages":[{"role":"user","content":"go"}`
  for (let calls = 0; ; calls++) {
    const { call } = await post(`${url}/chat/completions`, `${body}]}`)
    if (call === null) return calls
    const content = await tool(JSON.parse(call.args))
    const asked = { id: call.id, type: 'function', function: { name, arguments: call.args } }
    body += `,${JSON.stringify({ role: 'assistant', content: null, tool_calls: [asked] })}`
    body += `,${JSON.stringify({ role: 'tool', tool_call_id: call.id, content })}`
  }
}

function post(url: string, body: string): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const sent = request(url, { method: 'POST', agent, headers }, (response) => {
      let [text, id, args, rest] = ['', '', '', '']
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        const lines = (rest + chunk).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) {
          if (!line.startsWith('data: ') || line === 'data: [DONE]') continue
          const { content, tool_calls: pieces } = (JSON.parse(line.slice(6)) as Chunk).choices[0]?.delta ?? {}
          text += content ?? ''
          for (const piece of pieces ?? []) {
            id ||= piece.id ?? ''
            args += piece.function.arguments
          }
        }
      })
      response.on('end', () => resolve({ text, call: id === '' ? null : { id, args } }))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** The first loop of a process, as others were measured, and the sixth, when what it runs is compiled. */
function looping(loop: Loop): Case {
  return async () => {
    const { url, child } = await startProvider('http')
    const ms: number[] = []
    for (let n = 0; n < LOOPS; n++) {
      const begun = cpuMs()
      const calls = await loop(`${url}/turns`)
      ms.push((cpuMs() - begun) / TURNS)
      if (calls !== TURNS) throw new Error(`${calls} calls were made`)
    }
    agent.destroy()
    child.disconnect()
    return { ms: ms[0] ?? Number.NaN, warmMs: ms[LOOPS - 1] ?? Number.NaN }
  }
}

export const http: Family = {
  repetitions: 7,
  cases: { harness: looping(throughHarness), floor: looping(bare) },
  parts: { provider },
  figures: [
    {
      name: 'http',
      unit: 'CPU ms a turn',
      target: 1.2,
      value: (median) => median('harness.ms'),
      floor: (median) => median('floor.ms'),
      note: (median) => `warm: ${median('harness.warmMs').toFixed(2)}, floor ${median('floor.warmMs').toFixed(2)}`,
    },
  ],
}
