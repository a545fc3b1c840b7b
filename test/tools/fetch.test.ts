// `web_fetch` against real servers on this host: what it gives of a page, and what it refuses. The way there is fetch-way.test.ts's.
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { Harness, scripted } from '../../src/index.ts'
import { webFetchTool, type WebFetchOptions } from '../../src/tools/web/web-fetch.ts'
import { toolContext } from './context.ts'
import { allClosed, html, output, outside, packed, type Page, page, shown, typed, web } from './fetch-bench.ts'

describe('a page', () => {
  it('B-FETCH-1: comes back as JSON with its address, status, type and content, labelled as not to be trusted', async () => {
    const one = await web(html('<title>T</title><h1>Hello</h1><p>a <b>b</b> <a href="/c?d=1&amp;e=2">link</a></p>'))
    const url = `http://site.test:${one.port}/a#part`
    const { note, ...rest } = await page({ url }, outside(one))
    expect(note).toContain('ntrusted')
    expect(rest).toEqual({
      url,
      final_url: `http://site.test:${one.port}/a`,
      status: 200,
      content_type: 'text/html; charset=utf-8',
      format: 'markdown',
      content: `T\n\n# Hello\n\na **b** [link](http://site.test:${one.port}/c?d=1&e=2)`,
      truncated: false,
    })
    expect(await allClosed(one)).toBe(true)
  })

  it('B-FETCH-2: is markdown, text or HTML, as asked for; what is no HTML is given as it is', async () => {
    const body =
      '<h1>A *b*</h1><ul><li>c<li>d<ol><li>e</ol></ul><pre>f\n  g</pre><table><tr><td>1<td>2</table><blockquote>q'
    const markdown = await shown(html(body))
    expect(markdown.content).toBe('# A \\*b\\*\n\n-   c\n-   d\n    1.  e\n\n```\nf\n  g\n```\n\n1 | 2\n\n> q')
    const text = await shown(html(body), { format: 'text' })
    expect(text.content).toBe('A *b*\n\n- c\n\n- d\n\n- e\n\nf\n  g\n\n1 | 2\n\nq')
    expect((await shown(html(body), { format: 'html' })).content).toBe(body)
    const json = await shown(typed('application/ld+json', '{"a": "<b>"}'))
    expect(json).toMatchObject({ format: 'text', content: '{"a": "<b>"}' })
  })

  it('B-FETCH-2: is markdown that means what the page shows', async () => {
    const cases = [
      // Marks are what the page marks, and nothing that only looks like one.
      [
        '<p>1. a<br>- b<br># c *d* [e] snake_case __f__',
        '1\\. a  \n\\- b  \n\\# c \\*d\\* \\[e\\] snake_case \\_\\_f\\_\\_',
      ],
      ['<b> a <i>b</b> c</i><b></b> d', '**a _b_** _c_ d'],
      ['<h2>a<br>b</h2>c<br><br>d', '## a b\n\nc\n\nd'],
      // Nothing in code is a mark, and code may hold what marks it.
      ['<code>a_b <a href="http://x.test/">c</a>`</code>', '`a_b` [`c`](http://x.test/)`` ` ``'],
      ['<pre>\n  a\n\n```</pre>', '````\n  a\n\n```\n````'],
      [
        '<a href="http://x.test/?a=1&amp;b&copy=(2)"><h3>a</h3><p>b</a>c',
        '### [a](http://x.test/?a=1&b&copy=%282%29)\n\n[b](http://x.test/?a=1&b&copy=%282%29)c',
      ],
      // Lists and quotes within each other.
      [
        '<ol><li>a<p>b<pre>c\n\nd</pre><li><li>e<ul><li>f</ul></ol>g',
        '1.  a\n\n    b\n\n    ```\n    c\n\n    d\n    ```\n3.  e\n    -   f\n\ng',
      ],
      [
        '<blockquote>a<p>b<ul><li>c<blockquote>d</blockquote></ul></blockquote><blockquote>e',
        '> a\n>\n> b\n>\n> -   c\n>\n>     > d\n\n> e',
      ],
    ] as const
    for (const [body, expected] of cases) expect((await shown(html(body))).content).toBe(expected)
    const long = `<p>${'a&amp;b '.repeat(40_000)}`
    const { content } = await shown(html(long), { max_length: 200_000 })
    expect(content).toBe('a&b '.repeat(40_000).trim())
  })

  it('B-FETCH-3: is asked for, unless its host is listed; the approval can be set for all', () => {
    const approval = (url: string, options: WebFetchOptions) => webFetchTool(options).approval({ url })
    const hosts = ['docs.example.org', '*.example.com']
    for (const url of ['https://docs.example.org/x', 'http://DOCS.example.org.:80', 'https://a.b.example.com/'])
      expect(approval(url, { hosts })).toBe('auto')
    for (const url of [
      'https://example.com/',
      'https://evil-docs.example.org',
      'https://docs.example.org@evil.test/',
      'nonsense',
    ])
      expect(approval(url, { hosts })).toBe('ask')
    expect(approval('https://example.net/', {})).toBe('ask')
    expect(approval('https://docs.example.org/', { hosts, approval: 'always' })).toBe('always')
    expect(webFetchTool().effect).toBe('read')
  })

  it('B-FETCH-3: waits for a person in a harness, and is fetched once they agree', async () => {
    const one = await web(html('<p>hello there'))
    const url = `http://site.test:${one.port}/`
    const model = scripted([{ calls: [{ tool: 'web_fetch', args: { url } }] }, 'done'])
    const harness = new Harness({ model, tools: [webFetchTool(outside(one))] })
    const asked = await harness.run('go')
    expect(asked.pending.map(({ tool }) => tool)).toEqual(['web_fetch'])
    expect(one.connections.made).toBe(0)
    const session = harness.session(asked.sessionId)
    await session.decide({ callId: asked.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    await session.run()
    const { events } = await session.events()
    expect(JSON.stringify(events)).toContain('hello there')
    expect(one.connections.made).toBe(1)
    await harness.close()
  })

  it('B-FETCH-4: that is long is cut where asked, and kept whole', async () => {
    const kept = new Map<string, string>()
    const long = 'line\n'.repeat(20_000)
    const cut = await shown(typed('text/plain', long), { max_length: 1_000 }, toolContext({ kept }))
    expect(cut.truncated).toBe(true)
    expect(cut.content.length).toBeLessThan(1_300)
    expect([...kept.values()]).toEqual([long])
    expect(cut.content).toContain(`blob:${[...kept.keys()][0]}`)
    expect((await shown(typed('text/plain', long))).content.length).toBeLessThan(50_300)
    expect(await shown(typed('text/plain', long), { max_length: 200_000 })).toMatchObject({
      content: long,
      truncated: false,
    })
  })

  it('B-FETCH-5: over 5 MiB is refused, whether it says so or not', async () => {
    const over = 5 * 1024 * 1024 + 1
    const declared = await web((_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain', 'content-length': over }).write('x')
    })
    const endless = await web((_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' })
      const more = (): void => void response.write(Buffer.alloc(65_536, 'x'), (error) => (error ? null : more()))
      more()
    })
    for (const one of [declared, endless]) {
      const fetched = output({ url: `http://site.test:${one.port}/` }, outside(one))
      await expect(fetched).rejects.toMatchObject({
        kind: 'Failed',
        message: expect.stringContaining('5 MiB') as string,
      })
      expect(await allClosed(one)).toBe(true)
    }
  })

  it('B-FETCH-5: that is small only until it is unpacked is refused too', async () => {
    const bomb = Buffer.alloc(16 * 1024 * 1024, 'x')
    const bombs = {
      gzip: gzipSync(bomb),
      deflate: deflateSync(bomb),
      br: brotliCompressSync(bomb, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
    }
    for (const [encoding, body] of Object.entries(bombs))
      await expect(shown(packed(encoding, body))).rejects.toThrow('5 MiB')
  })

  it('B-FETCH-6: is unpacked; one that is damaged or packed otherwise is a failure', async () => {
    const body = Buffer.from('unpacked '.repeat(1_000))
    const ways = {
      gzip: gzipSync(body),
      'X-GZIP': gzipSync(body),
      deflate: deflateSync(body),
      br: brotliCompressSync(body),
      identity: body,
    }
    for (const [encoding, bytes] of Object.entries(ways))
      expect((await shown(packed(encoding, bytes))).content).toBe(body.toString())
    await expect(shown(packed('gzip', gzipSync(body).subarray(0, 40)))).rejects.toMatchObject({ kind: 'Unavailable' })
    await expect(shown(packed('gzip', body))).rejects.toMatchObject({ kind: 'Unavailable' })
    for (const encoding of ['zstd', 'gzip, gzip', 'constructor'])
      await expect(shown(packed(encoding, body))).rejects.toMatchObject({ kind: 'Failed' })
  })

  it('B-FETCH-7: that is no text is refused, by its type or by its bytes', async () => {
    const bytes = Buffer.from(Array.from({ length: 2_000 }, (_, i) => (i * 37) % 256))
    for (const type of ['image/png', 'application/pdf', 'application/octet-stream', 'application/zip', 'nonsense'])
      await expect(shown(typed(type, 'text'))).rejects.toMatchObject({ kind: 'Failed' })
    for (const type of ['text/plain', 'text/html', ''])
      await expect(shown(typed(type, bytes))).rejects.toMatchObject({ kind: 'Failed' })
    expect((await shown(typed('', '<!doctype html><p>sniffed'))).content).toBe('sniffed')
  })

  it('B-FETCH-8: is decoded by its mark, its header or its own word, and as UTF-8 otherwise', async () => {
    const latin = Buffer.from('<p>caf\xe9', 'latin1')
    const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('<p>café', 'utf16le')])
    const own = Buffer.from('<meta charset="windows-1252"><p>caf\xe9', 'latin1')
    const all = [
      typed('text/html; charset=ISO-8859-1', latin),
      typed('text/html', utf16),
      typed('text/html', own),
      typed('text/html', '<p>café'),
      typed('text/html; charset=nonsense', '<p>café'),
    ]
    for (const answer of all) expect((await shown(answer)).content).toBe('café')
  })

  it('B-FETCH-9: that is an error page is a result, with its status', async () => {
    const lost = await shown((_, response) => {
      response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not here</h1>')
    })
    expect(lost).toMatchObject({ status: 404, content: '# Not here' })
    expect(await shown((_, response) => void response.writeHead(204).end())).toMatchObject({ status: 204, content: '' })
  })

  it('B-FETCH-10: loses its scripts, its styles and what is not shown', async () => {
    const body = `<head><style>p{}</style><script>if (1 < 2) "<p>evil</p>"</script></head><p>a<p hidden>evil<p>b
      <div style="color:red; DISPLAY : none">evil<div>evil</div></div><span aria-hidden="true">evil</span><template>evil</template>
      <svg><text>evil</text><svg/></svg><!-- evil --><div style="font-size:0">evil</div><textarea>evil</textarea>
      <a href="javascript:evil()">c</a> <img alt="d" src="data:evil"><p title="> hidden">e`
    expect((await shown(html(body))).content.split(/\s+/)).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect((await shown(html(body), { format: 'text' })).content.split(/\s+/)).toEqual(['a', 'b', 'c', 'e'])
  })

  it('B-FETCH-10: loses invisible characters, in every format, and they are counted', async () => {
    const tags = '\u{e006f}\u{e0062}\u{e0065}\u{e0079}'
    const one = await web(html(`<p>a${tags}b\u202e\u200bc&#x200b;&shy;d`))
    for (const format of ['markdown', 'text']) {
      const { content, metadata } = await output({ url: `http://site.test:${one.port}/`, format }, outside(one))
      expect((JSON.parse(content) as Page).content).toBe('abcd')
      expect(metadata['invisible_removed']).toBe(8)
    }
  })

  it('B-FETCH-11: made to choke on is converted all the same, with others getting their turn', async () => {
    const depth = 20_000
    const bodies = [
      `${'<div>'.repeat(1_000_000)}deep`,
      `${'<ul><li>x'.repeat(depth)}deep`,
      `${'<blockquote><b><a href=x><i>'.repeat(depth)}deep`,
      `${'<svg><td>'.repeat(depth)}</svg>`,
      `deep${'<a '.repeat(depth)}"${'<!--'.repeat(depth)}`,
      `deep<p ${'x="'.repeat(depth)}`,
      `${'<table><tr><td><b>'.repeat(depth)}deep`,
    ]
    for (const body of bodies) {
      let turns = 0
      const timer = setInterval(() => (turns += 1), 1)
      const { content } = await shown(html(body), { max_length: 200_000, timeout_ms: 60_000 })
      clearInterval(timer)
      expect(turns).toBeGreaterThan(0)
      expect(content.includes('deep') || body.endsWith('</svg>') || content.includes('blob:')).toBe(true)
    }
  }, 120_000)
})

describe('the options', () => {
  it('B-FETCH-40: that make no sense are refused at once', () => {
    const wrong: readonly WebFetchOptions[] = [
      { hosts: ['*'] },
      { privateHosts: ['a b'] },
      { ports: [] },
      { ports: [0] },
      { ports: [70_000] },
    ]
    for (const options of wrong)
      expect(() => webFetchTool(options)).toThrow(expect.objectContaining({ code: 'invalid_config' }))
  })

  it('B-FETCH-40: of a call are bounded', async () => {
    const { validate } = webFetchTool()
    const url = 'https://example.org/'
    const wrong = [
      {},
      { url: '' },
      { url, format: 'pdf' },
      { url, max_length: 200_001 },
      { url, timeout_ms: 60_001 },
      { url, method: 'POST' },
    ]
    for (const args of wrong) expect((await validate(args)).issues).toBeDefined()
    expect((await validate({ url, format: 'text', max_length: 200_000, timeout_ms: 60_000 })).issues).toBeUndefined()
  })
})
