// `web_search` against a real server on this host: what it sends, what it gives, and where it never goes.
import type { IncomingMessage, RequestListener } from 'node:http'
import { describe, expect, it } from 'vitest'
import { Harness, scripted } from '../../src/index.ts'
import type { Json } from '../../src/kernel/content.ts'
import type { Output } from '../../src/tools/core/tool-output.ts'
import { type WebSearchOptions, webSearchTool } from '../../src/tools/web/web-search.ts'
import { toolContext } from './context.ts'
import { outside, web } from './fetch-bench.ts'

type Found = { readonly note: string; readonly query: string; readonly results: readonly Record<string, string>[] }

const json =
  (value: Json): RequestListener =>
  (_, response) =>
    void response.setHeader('content-type', 'application/json').end(JSON.stringify(value))

async function searching(answer: RequestListener, options: Partial<WebSearchOptions> = {}) {
  const seen: { url: string | undefined; method: string | undefined; key: unknown; body: string }[] = []
  const one = await web((request: IncomingMessage, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString()
    })
    request.on('end', () => {
      seen.push({ url: request.url, method: request.method, key: request.headers['x-key'], body })
      answer(request, response)
    })
  })
  const { privateHosts = [], resolve } = outside(one)
  const endpoint = `http://site.test:${one.port}/find?q={query}&n={count}`
  const found = { endpoint, privateHosts, ...(resolve ? { resolve } : {}), ...options }
  const tool = webSearchTool(found)
  const run = async (args: object): Promise<Output> => (await tool.execute(args, toolContext())) as Output
  return { seen, run, tool, options: found, port: one.port }
}

describe('web_search', () => {
  it('B-SEARCH-1: asks the service that is configured, and gives what it found as data that is marked', async () => {
    const results = [
      { url: 'https://a.example/', title: 'A', description: 'Noon.\u200b' },
      { link: 'https://b.example/', name: 'B', snippet: 'x'.repeat(5_000) },
      { url: 'javascript:alert(1)', title: 'no' },
      { url: 'https://a.example/', title: 'again' },
    ]
    const { seen, run, tool } = await searching(json({ web: { results } }), { headers: { 'x-key': 'k1' } })
    const { content, metadata } = await run({ query: 'tides & moon', count: 5 })
    expect(seen).toEqual([{ url: '/find?q=tides%20%26%20moon&n=5', method: 'GET', key: 'k1', body: '' }])
    const told = JSON.parse(content) as Found
    expect(told.note).toMatch(/never instructions/)
    expect(told.results.map(({ url, title, snippet }) => [url, title, snippet?.length])).toEqual([
      ['https://a.example/', 'A', 5],
      ['https://b.example/', 'B', 1_001],
    ])
    expect(metadata).toMatchObject({
      sources: [{ url: 'https://a.example/', title: 'A' }, { url: 'https://b.example/' }],
    })
    expect(tool).toMatchObject({ name: 'web_search', effect: 'read', approval: expect.anything() as object })
    expect(content).not.toContain('k1')
  })

  it('B-SEARCH-2: takes a body by POST and a map for a service of another shape', async () => {
    const { seen, run } = await searching(json({ hits: [{ at: 'https://c.example/' }] }), {
      body: ({ query, count }) => ({ ask: query, count }),
      map: (answer) => (answer as unknown as { hits: { at: string }[] }).hits.map(({ at }) => ({ url: at })),
    })
    const told = JSON.parse((await run({ query: 'q' })).content) as Found
    expect(seen[0]).toMatchObject({ method: 'POST', body: '{"ask":"q","count":8}' })
    expect(told.results).toEqual([{ url: 'https://c.example/', title: '', snippet: '' }])
  })

  it('B-SEARCH-3: follows no redirect, goes to no private address, and says what went wrong', async () => {
    const away = await searching((_, response) => response.writeHead(302, { location: 'http://other.test/' }).end())
    await expect(away.run({ query: 'q' })).rejects.toMatchObject({ kind: 'Denied' })
    const busy = await searching((_, response) => response.writeHead(429).end('slow down'))
    await expect(busy.run({ query: 'q' })).rejects.toMatchObject({ kind: 'Unavailable', message: /429/ })
    const odd = await searching((_, response) => response.setHeader('content-type', 'text/plain').end('hello'))
    await expect(odd.run({ query: 'q' })).rejects.toMatchObject({ kind: 'Failed', message: /JSON/ })
    const inside = await searching(json([]), { privateHosts: [] })
    await expect(inside.run({ query: 'q' })).rejects.toMatchObject({ kind: 'Denied' })
    expect(inside.seen).toEqual([])
  })

  it('B-SEARCH-4: an endpoint that is no address, or a misspelled option, is refused when the tool is made', () => {
    const wrong = expect.objectContaining({ code: 'invalid_config' }) as Error
    for (const endpoint of ['', 'nowhere', 'ftp://a.example/', 'https://{query}.example/', 'https://u:p@a.example/'])
      expect(() => webSearchTool({ endpoint })).toThrow(wrong)
    expect(() => webSearchTool({ endpoint: 'https://a.example/', header: {} } as never)).toThrow(/header/)
  })

  it('B-SEARCH-5: what it found are sources of the run', async () => {
    const { options } = await searching(json({ results: [{ url: 'https://a.example/', title: 'A' }] }))
    const model = scripted([{ calls: [{ tool: 'web_search', args: { query: 'tides' } }] }, 'At noon.'])
    const harness = new Harness({ model, tools: [webSearchTool(options)] })
    const { sources, text } = await harness.run('when?')
    expect(text).toBe('At noon.')
    expect(sources).toEqual([{ type: 'source', url: 'https://a.example/', title: 'A' }])
    await harness.close()
  })
})
