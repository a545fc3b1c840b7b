// The way of `web_fetch` to a page, against real servers on this host: redirects, connections, deadlines, and where it never goes.
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { webFetchTool } from '../../src/tools/web/web-fetch.ts'
import { toolContext } from './context.ts'
import { allClosed, HOSTS, html, LOOPBACK, moved, output, outside, page, web } from './fetch-bench.ts'
import { spellings } from './spellings.ts'
import { names } from './web.ts'

describe('a redirect', () => {
  it('B-FETCH-20: within the host is followed, at most five times', async () => {
    const one = await web((request, response) => {
      const left = Number(request.url?.slice(1))
      if (left > 0) moved(response, `/${left - 1}`, [301, 302, 303, 307, 308][left % 5])
      else html('<p>there')(request, response)
    })
    const at = (path: string) => page({ url: `http://www.site.test:${one.port}${path}` }, outside(one))
    expect(await at('/5')).toMatchObject({ final_url: `http://www.site.test:${one.port}/0`, content: 'there' })
    await expect(at('/6')).rejects.toMatchObject({ kind: 'Failed' })
    expect(await allClosed(one)).toBe(true)
  })

  it('B-FETCH-21: to another host is named and not followed, unless that host needs no approval', async () => {
    const other = await web(html('<p>other'))
    const one = await web((_, response) => moved(response, `http://other.test:${other.port}/`))
    const url = `http://site.test:${one.port}/`
    const options = outside(one, other)
    const refused = output({ url }, { ...options, hosts: ['site.test'] })
    await expect(refused).rejects.toMatchObject({
      kind: 'Denied',
      metadata: { redirect: `http://other.test:${other.port}/` },
    })
    await expect(output({ url }, { ...options, approval: 'always' })).rejects.toMatchObject({ kind: 'Denied' })
    expect(other.connections.made).toBe(0)
    expect((await page({ url }, { ...options, hosts: ['other.test'] })).content).toBe('other')
    expect((await page({ url }, { ...options, approval: 'auto' })).content).toBe('other')
  })

  it('B-FETCH-21: between a name with and without "www." is followed', async () => {
    const one = await web((request, response) => {
      if (request.headers.host?.startsWith('www.')) html('<p>www')(request, response)
      else moved(response, `http://www.site.test:${one.port}/`)
    })
    expect((await page({ url: `http://site.test:${one.port}/` }, outside(one))).content).toBe('www')
  })

  it('B-FETCH-22: is checked like the first address: no private one, no other port, no other protocol, no credentials', async () => {
    const canary = await web(html('<p>secret'))
    const closed = await web(html('<p>secret'))
    const targets = [
      `http://127.0.0.1:${canary.port}/`,
      `http://2130706433:${canary.port}/`,
      `http://[::ffff:127.0.0.1]:${canary.port}/`,
      `//localhost:${canary.port}/`,
      `http://site.test:${closed.port}/`,
      `http://user:pass@site.test:${canary.port}/`,
      'http://169.254.169.254/latest/meta-data/',
      'file:///etc/passwd',
      'javascript:1',
      'http://',
    ]
    for (const target of targets) {
      const one = await web((_, response) => moved(response, target))
      const options = { ...outside(one, canary), approval: 'auto' } as const
      const resolve = names({ ...HOSTS, localhost: LOOPBACK })
      await expect(output({ url: `http://site.test:${one.port}/` }, { ...options, resolve })).rejects.toMatchObject({
        name: expect.stringMatching(/^(Denied|InvalidInput)$/) as string,
      })
    }
    expect(canary.connections.made + closed.connections.made).toBe(0)
  })

  it('B-FETCH-23: from https to http is not followed', async () => {
    const plain = await web(html('<p>plain'))
    const secure = await web((_, response) => moved(response, `http://secure.test:${plain.port}/`), { secure: true })
    const options = { ...outside(plain, secure), approval: 'auto' } as const
    await expect(output({ url: `https://secure.test:${secure.port}/` }, options)).rejects.toMatchObject({
      kind: 'Denied',
    })
    expect([plain.connections.made, secure.requests.length]).toEqual([0, 1])
  })

  it('B-FETCH-24: takes nothing along: no cookie, no credentials, no word of where it came from', async () => {
    const one = await web((request, response) => {
      response.setHeader('set-cookie', 'a=b; Path=/')
      if (request.url?.startsWith('/from')) moved(response, '/to')
      else html('<p>x')(request, response)
    })
    await page({ url: `http://site.test:${one.port}/from?token=secret` }, outside(one))
    const [first, second] = one.requests.map(({ headers }) => headers)
    expect(second).toEqual(first)
    expect(Object.keys(second ?? {}).toSorted()).toEqual([
      'accept',
      'accept-encoding',
      'connection',
      'host',
      'user-agent',
    ])
  })
})

describe('a connection', () => {
  it('B-FETCH-30: goes to the address that was checked, whatever the name stands for a moment later', async () => {
    const canary = await web(html('<p>canary'))
    const honest = await web(html('<p>honest'), { host: '127.0.0.2', port: canary.port })
    let asked = 0
    const resolve = () => Promise.resolve([asked++ === 0 ? '127.0.0.2' : '127.0.0.1'])
    const options = { ...outside(canary), resolve }
    expect((await page({ url: `http://site.test:${canary.port}/` }, options)).content).toBe('honest')
    expect([asked, canary.connections.made, honest.connections.made]).toEqual([1, 0, 1])
  })

  it('B-FETCH-30: tries the other addresses of the name when one does not answer', async () => {
    const one = await web(html('<p>second'))
    const options = { ...outside(one), resolve: names({ 'site.test': ['127.0.0.3', '127.0.0.1'] }) }
    expect((await page({ url: `http://site.test:${one.port}/` }, options)).content).toBe('second')
  })

  it('B-FETCH-31: by TLS proves the name that was asked for', async () => {
    const secure = await web(html('<p>proven'), { secure: true })
    const options = outside(secure)
    expect((await page({ url: `https://secure.test:${secure.port}/` }, options)).content).toBe('proven')
    const wrong = output({ url: `https://site.test:${secure.port}/` }, options)
    await expect(wrong).rejects.toMatchObject({
      kind: 'Unavailable',
      message: expect.stringContaining('ALTNAME') as string,
    })
    const { ca: _, ...untrusting } = options
    const unknown = output({ url: `https://secure.test:${secure.port}/` }, untrusting)
    await expect(unknown).rejects.toMatchObject({ kind: 'Unavailable' })
    expect(secure.requests.length).toBe(1)
  })

  it('B-FETCH-32: that breaks is a failure that names the host', async () => {
    const answers: readonly ((write: (text: string) => void, end: () => void) => void)[] = [
      (_, end) => end(),
      (write, end) => (write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc'), end()),
      (write) => write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
      (write) => write(`HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(20_000)}`),
      (write) => write('SSH-2.0-OpenSSH\r\n'),
    ]
    for (const answer of answers) {
      const server = createServer((socket) => {
        socket
          .on('error', () => {})
          .once('data', () =>
            answer(
              (text) => socket.write(text),
              () => socket.end(),
            ),
          )
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as { readonly port: number }
      const fetched = output({ url: `http://site.test:${port}/` }, { ...outside(), ports: [port] })
      await expect(fetched).rejects.toMatchObject({
        kind: 'Unavailable',
        message: expect.stringContaining('site.test') as string,
      })
      await new Promise((resolve) => server.close(resolve))
    }
  })

  it('B-FETCH-33: is given up at the deadline, in the look-up, before the headers and in the body', async () => {
    let late = (): void => {}
    const clock = { now: () => 0, timer: (_: number, fire: () => void) => ((late = fire), () => {}) }
    const context = { ...toolContext(), clock }
    const silent = await web(() => setImmediate(() => late()))
    const stalled = await web((_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' }).write('a', () => setImmediate(() => late()))
    })
    const drowsy = () => new Promise<never>(() => setImmediate(() => late()))
    for (const one of [silent, stalled]) {
      const fetched = output({ url: `http://site.test:${one.port}/`, timeout_ms: 50 }, outside(one), context)
      await expect(fetched).rejects.toMatchObject({
        kind: 'Timeout',
        message: expect.stringContaining('50 ms') as string,
      })
      expect(await allClosed(one)).toBe(true)
    }
    const unresolved = output({ url: 'http://site.test/' }, { resolve: drowsy }, context)
    await expect(unresolved).rejects.toMatchObject({ kind: 'Timeout' })
  })

  it('B-FETCH-34: ends when the call is stopped, and leaves no socket', async () => {
    const stop = new AbortController()
    const one = await web((_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' }).write('a', () => stop.abort())
    })
    const context = toolContext({ signal: stop.signal })
    await expect(output({ url: `http://site.test:${one.port}/` }, outside(one), context)).rejects.toMatchObject({
      kind: 'Interrupted',
    })
    expect(await allClosed(one)).toBe(true)
    await expect(output({ url: `http://site.test:${one.port}/` }, outside(one), context)).rejects.toMatchObject({
      kind: 'Interrupted',
    })
    expect(one.connections.made).toBe(1)
  })

  it('B-FETCH-35: is made by none of thousands of spellings of addresses that are not public', async () => {
    const canary = await web(html('<p>canary'))
    const second = await web(html('<p>canary'), { host: '::1', port: canary.port })
    const urls = spellings(canary.port)
    expect(urls.length).toBeGreaterThanOrEqual(2_000)
    const tool = webFetchTool({
      approval: 'auto',
      ports: [80, 443, canary.port],
      resolve: () => Promise.resolve(LOOPBACK),
    })
    const wrong: string[] = []
    for (const url of urls) {
      const kind = await Promise.resolve(tool.execute({ url }, toolContext())).then(
        () => 'fetched',
        (error: unknown) => (error instanceof Error ? error.name : 'odd'),
      )
      if (kind !== 'Denied' && kind !== 'InvalidInput') wrong.push(`${kind} ${url}`)
    }
    expect(wrong).toEqual([])
    expect(canary.connections.made + second.connections.made).toBe(0)
    // These URLs are not just nonsense: many of them lead a client that does not check to this server.
    const led = urls.filter((url) => URL.canParse(url) && /^(127\.|\[::(ffff:7f|1\]))/.test(new URL(url).hostname))
    for (const url of led.filter((_, at) => at % 10 === 0))
      await fetch(url).then(
        (one) => one.text(),
        () => {},
      )
    expect(led.length).toBeGreaterThan(500)
    expect(canary.requests.length + second.requests.length).toBeGreaterThan(10)
  }, 60_000)
})
