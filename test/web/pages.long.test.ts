// The built inspector in a real browser, beside a server that answers what the test says: tokens, clocks, streams, a server that goes away.
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BrowserContext, Page } from 'playwright-core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { InspectorFiles } from '../../src/server/inspector-files.ts'
import { browser, noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { DIST } from './stage.ts'

const TOKEN = 'token-of-the-test-0123456789'
const HOUR = 3_600_000

/** Streams that are open, how many there were, and what each request had as its token. */
class Server {
  readonly streams = new Set<ServerResponse>()
  readonly tokens: (string | undefined)[] = []
  readonly asked: string[] = []
  now = Date.now()
  store = 'a'
  url = ''
  events: object[] = [{ seq: 1, at: 1, epoch: 0, type: 'session.created', agent: 'coder', planner: 'model' }]
  readonly #server = createServer((request, response) =>
    this.#answer(request.url ?? '', request.headers.authorization, response),
  )

  async listen(port = 0): Promise<string> {
    await new Promise<void>((up) => this.#server.listen(port, '127.0.0.1', up))
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    onTestFinished(() => this.close())
    return this.url
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  /** A new event, to all open streams. */
  say(text: string): void {
    const seq = this.events.length + 1
    const event = {
      seq,
      at: seq,
      epoch: 0,
      type: 'user.message',
      id: `m${seq}`,
      parts: [{ type: 'text', text }],
      when: 'next',
    }
    this.events.push(event)
    for (const stream of this.streams) stream.write(frame('event', { session: 's1', ...event }))
  }

  readonly #pages = new InspectorFiles(DIST)

  #answer(url: string, authorization: string | undefined, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(url, 'http://x')
    if (!pathname.startsWith('/v1/')) {
      void this.#pages.answer(pathname, response, false, null)
      return
    }
    this.tokens.push(authorization)
    this.asked.push(pathname)
    if (authorization !== `Bearer ${TOKEN}`)
      return json(response, 401, { error: { code: 'unauthorized', message: 'No token.' } })
    if (pathname === '/v1/stream') return this.#stream(response)
    const after = Number(searchParams.get('after') ?? 0)
    json(response, 200, this.#read(pathname, after))
  }

  #stream(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    this.streams.add(response)
    response.on('close', () => this.streams.delete(response))
    response.write(frame('hello', { store: this.store, head: {}, now: this.now }))
    for (const event of this.events) response.write(frame('event', { session: 's1', ...event }))
  }

  #read(path: string, after: number): object {
    const card = {
      session: 's1',
      title: 'A task',
      agent: 'coder',
      root: 's1',
      status: 'idle',
      due: null,
      seq: 1,
      at: this.now - 3 * HOUR,
    }
    const whole = {
      ...card,
      cost: 0,
      asks: [],
      waits: [],
      wakes: 0,
      outcome: 'completed',
      costUsd: 0.5,
      treeCostUsd: 0.5,
    }
    const { now, store } = this
    if (path === '/v1/sessions') return { sessions: [whole], next: null, now, store }
    if (path === '/v1/sessions/s1')
      return { card: whole, pending: [], accounts: [], head: this.events.length, now, store }
    if (path.endsWith('/events'))
      return { events: this.events.slice(after), head: this.events.length, after: null, before: null }
    if (path === '/v1/pending') return { pending: [], now }
    return { name: 'ana', role: 'viewer', roles: [], reach: 'all', now, store }
  }
}

function frame(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function context(): Promise<BrowserContext> {
  return (await browser()).newContext({ reducedMotion: 'reduce' })
}

async function rowsOf(page: Page, count: number): Promise<readonly string[]> {
  const texts = page.locator('.line.message .text.block')
  // A line that was just added has no text on the screen before the next frame.
  const shown = async (): Promise<readonly string[]> => (await texts.allInnerTexts()).filter((text) => text !== '')
  await until(async () => expect((await shown()).length).toBeGreaterThanOrEqual(count))
  return shown()
}

describe.skipIf(noChromium)('the pages', () => {
  it('B-WEB-20: the token comes in the address behind the #, leaves it at once, and goes to new tabs; without one the page asks for it', async () => {
    const server = new Server()
    const url = await server.listen()
    const tabs = await context()
    const first = await tabs.newPage()
    await first.goto(`${url}/#token=${TOKEN}`)
    await first.waitForSelector('.session-row')
    expect(first.url()).toBe(`${url}/`)
    const second = await tabs.newPage()
    await second.goto(`${url}/s/s1`)
    await second.waitForSelector('.rail-me')
    expect(await second.evaluate("sessionStorage.getItem('terret.token')")).toBe(TOKEN)
    expect(await second.evaluate('document.cookie + JSON.stringify(localStorage)')).not.toContain(TOKEN)
    const stranger = await (await context()).newPage()
    await stranger.goto(url)
    await stranger.waitForSelector('.ask-token')
    await stranger.fill('input[type=password]', `${TOKEN}-wrong`)
    await stranger.keyboard.press('Enter')
    await until(() => expect(server.tokens).toContain(`Bearer ${TOKEN}-wrong`))
    await stranger.waitForSelector('.ask-token')
  }, 60_000)

  it('B-WEB-21: ages are counted from the clock of the server, whatever the clock of the browser says', async () => {
    const server = new Server()
    server.now = Date.now() + 24 * HOUR
    const page = await (await context()).newPage()
    await page.goto(`${await server.listen()}/#token=${TOKEN}`)
    expect(await page.locator('.session-age').innerText()).toBe('3 h')
  }, 60_000)

  it('B-WEB-22: of six tabs at most four hold a stream, the others read again and again, and each shows every event once', async () => {
    const server = new Server()
    const url = await server.listen()
    const tabs = await context()
    const pages: Page[] = []
    for (let i = 0; i < 6; i++) {
      const page = await tabs.newPage()
      await page.goto(`${url}/s/s1#token=${TOKEN}`)
      await page.waitForSelector('.line, .face')
      pages.push(page)
    }
    expect(server.streams.size).toBeLessThanOrEqual(4)
    expect(server.streams.size).toBeGreaterThan(0)
    for (const text of ['one', 'two', 'three']) server.say(text)
    for (const page of pages) expect(await rowsOf(page, 3)).toEqual(['one', 'two', 'three'])
    // Every stream is cut, and sends all of it again from the beginning.
    for (const stream of server.streams) stream.destroy()
    server.say('four')
    for (const page of pages) expect(await rowsOf(page, 4)).toEqual(['one', 'two', 'three', 'four'])
  }, 120_000)

  it('B-WEB-23: when the server goes away the page says so and keeps what it has; when it is back the page goes on by itself', async () => {
    const server = new Server()
    const url = await server.listen()
    const page = await (await context()).newPage()
    await page.goto(`${url}/s/s1#token=${TOKEN}`)
    server.say('before')
    await rowsOf(page, 1)
    server.close()
    await page.waitForSelector('.notice.bad')
    expect(await page.locator('.line.message .text.block').innerText()).toBe('before')
    const back = new Server()
    back.events = server.events
    await back.listen(Number(new URL(url).port))
    back.say('after')
    expect(await rowsOf(page, 2)).toEqual(['before', 'after'])
    await until(async () => expect(await page.locator('.notice.bad').count()).toBe(0))
  }, 60_000)

  it('B-WEB-24: when the server comes back with another store the page reads everything anew, and says so', async () => {
    const server = new Server()
    const url = await server.listen()
    const page = await (await context()).newPage()
    await page.goto(`${url}/s/s1#token=${TOKEN}`)
    server.say('before')
    server.say('lost with the store')
    await rowsOf(page, 2)
    server.close()
    const back = new Server()
    back.store = 'b'
    back.events = server.events.slice(0, 2)
    await back.listen(Number(new URL(url).port))
    await page.getByText('another store').waitFor()
    expect(await rowsOf(page, 1)).toEqual(['before'])
  }, 60_000)
})
