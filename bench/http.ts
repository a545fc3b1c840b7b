// `http`: what a turn costs when the model is behind HTTP and SSE. The provider is another process, the store is memory.
import { Agent, request } from 'node:http'
import { Harness, model } from '../src/index.ts'
import { provider, startProvider, TURNS } from './child-provider.ts'
import { type Case, cpuMs, type Family } from './family.ts'
import { LIMITS, lookup, RESULT } from './turn.ts'

const harness: Case = async () => {
  const { url, child } = await startProvider('http')
  const begun = cpuMs()
  const prices = { 'openrouter:*': { input: 1, output: 4, contextTokens: 128_000 } }
  const hosted = model('openrouter:bench', { baseUrl: `${url}/turns`, key: 'sk-bench-0123456789abcdef', prices })
  const subject = new Harness({ model: hosted, tools: [lookup], limits: LIMITS, secrets: {} })
  const { status, usage } = await subject.run('go')
  const ms = (cpuMs() - begun) / TURNS
  await subject.close()
  child.disconnect()
  if (status !== 'completed' || usage.toolCalls !== TURNS) throw new Error(`the run ${status} after ${usage.toolCalls}`)
  return { ms }
}

type Reply = { readonly text: string; readonly call: { readonly id: string; readonly args: string } | null }
type Piece = { readonly id?: string; readonly function: { readonly arguments: string } }
type Chunk = {
  readonly choices: readonly { readonly delta: { content?: string | null; tool_calls?: readonly Piece[] } }[]
}

/** One connection, one string that only grows, lines and JSON: the least that can be called an agent over HTTP. */
const floor: Case = async () => {
  const { url, child } = await startProvider('http')
  const begun = cpuMs()
  const agent = new Agent({ keepAlive: true })
  const tool = async (_args: unknown): Promise<string> => RESULT
  const { name, description, parameters } = lookup
  const tools = JSON.stringify([{ type: 'function', function: { name, description, parameters } }])
  let body = `{"model":"bench","stream":true,"tools":${tools},"messages":[{"role":"user","content":"go"}`
  let calls = 0
  for (;;) {
    const { call } = await post(`${url}/turns/chat/completions`, agent, `${body}]}`)
    if (call === null) break
    const content = await tool(JSON.parse(call.args))
    const asked = { id: call.id, type: 'function', function: { name, arguments: call.args } }
    body += `,${JSON.stringify({ role: 'assistant', content: null, tool_calls: [asked] })}`
    body += `,${JSON.stringify({ role: 'tool', tool_call_id: call.id, content })}`
    calls += 1
  }
  const ms = (cpuMs() - begun) / TURNS
  agent.destroy()
  child.disconnect()
  if (calls !== TURNS) throw new Error(`${calls} calls were made`)
  return { ms }
}

function post(url: string, agent: Agent, body: string): Promise<Reply> {
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

export const http: Family = {
  repetitions: 9,
  cases: { harness, floor },
  parts: { provider },
  figures: [
    {
      name: 'http',
      unit: 'CPU ms a turn',
      target: 1.2,
      value: (median) => median('harness.ms'),
      floor: (median) => median('floor.ms'),
    },
  ],
}
