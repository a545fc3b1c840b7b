// Replies with calls, results and sources of the provider's own tools: a process is killed after each of its commits, or a share of
// them, and another one finishes. The provider is a server here, which sees the bytes of every request.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { bytesOf } from '../models/aisdk-stage.ts'
import { makeFile } from '../stores/folder.ts'
import { share, upTo } from '../runs.ts'
import { COMMITS_MAX, killedAfter } from './killed.ts'

const CHILD = fileURLToPath(new URL('../../.build/test/runtime/child-provider-parts.js', import.meta.url))

const URL_FOUND = 'https://a.example/'
const SEARCH = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'when' } }
const PAGE = { type: 'web_search_result', url: URL_FOUND, title: 'A', encrypted_content: 'RW5j', page_age: null }
const FOUND = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [PAGE] }
const CITATION = {
  type: 'web_search_result_location',
  url: URL_FOUND,
  title: 'A',
  encrypted_index: 'SWR4',
  cited_text: 'x',
}
const CITED = { type: 'text', text: 'At noon.', citations: [CITATION] }
const CALL = { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }

const event = (type: string, data: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`

function answer(blocks: readonly object[], stop: string): string {
  const usage = { input_tokens: 9, output_tokens: 9 }
  return [
    event('message_start', { message: { id: 'msg_1', content: [], usage } }),
    ...blocks.flatMap((content_block, index) => [
      event('content_block_start', { index, content_block }),
      event('content_block_stop', { index }),
    ]),
    event('message_delta', { delta: { stop_reason: stop }, usage: { output_tokens: 9 } }),
    event('message_stop', {}),
  ].join('')
}

/** What it says depends on the request alone, so that a repeated one has the same answer. */
const PROVIDERS = {
  'anthropic:claude-sonnet-4-5': (body: string) =>
    body.includes('"role":"assistant"')
      ? answer([{ type: 'text', text: 'Done.' }], 'end_turn')
      : answer([SEARCH, FOUND, CITED, CALL], 'tool_use'),
  'openai:gpt-5.1': () => bytesOf('responses/unknown-events'),
} as const

async function provider(name: keyof typeof PROVIDERS): Promise<{ readonly url: string; readonly bodies: string[] }> {
  const bodies: string[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      bodies.push(body)
      response.setHeader('content-type', 'text/event-stream').end(PROVIDERS[name](body))
    })
  })
  await new Promise<void>((up) => server.listen(0, '127.0.0.1', up))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url: name.startsWith('openai') ? `${base}/v1` : base, bodies }
}

async function finished(name: keyof typeof PROVIDERS, commits: number) {
  const [file, { url, bodies }] = [makeFile(), await provider(name)]
  const ended = await killedAfter(commits, (last) => [CHILD, file, String(last), name, url])
  return { ...ended, requests: [...new Set(bodies)] }
}

it.each([
  ['anthropic:claude-sonnet-4-5', 3, 'srvtoolu_1'],
  ['openai:gpt-5.1', 2, 'ws_unk14'],
] as const)(
  'B-SERVERTOOL-10: on %s, killed after any commit, another process sends the same request bytes',
  async (name, count, own) => {
    const whole = await finished(name, 0)
    expect(JSON.parse(whole.said)).toMatchObject({ status: 'completed', last: 'completed' })
    expect(whole.requests).toHaveLength(count)
    expect(whole.requests.at(-1)).toContain(own)
    for (const commits of share(upTo(COMMITS_MAX))) {
      const { said, killed, requests } = await finished(name, commits)
      expect(said, `after commit ${commits}`).toBe(whole.said)
      expect(requests, `after commit ${commits}`).toEqual(whole.requests)
      if (!killed) return
    }
    throw new Error(`It made more than ${COMMITS_MAX} commits.`)
  },
  180_000,
)
