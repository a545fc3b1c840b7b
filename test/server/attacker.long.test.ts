// A page of somebody else in the same browser as the inspector: whatever it sends, nothing changes, and whatever it asks for, it reads
// nothing (threats 1 to 4 of the model).
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { OpenedAnswer } from '../../src/server/wire.ts'
import { browser, noChromium } from '../ui/browser.ts'
import { DIST } from '../web/stage.ts'
import { served } from './served.ts'

/** Each gives what it could read, or null. What it changes is looked for on the server. */
const ATTACKS = `
const SECRET = 'the secret of the session'
const body = JSON.stringify({ input: 'from elsewhere' })
const read = (text) => (typeof text === 'string' && (text.includes(SECRET) || text.includes('"session"')) ? text : null)
const attacks = {
  form: () => new Promise((done) => {
    const frame = document.createElement('iframe')
    frame.name = 'target'
    document.body.append(frame)
    const form = document.createElement('form')
    Object.assign(form, { method: 'POST', action: SERVER + '/v1/sessions', enctype: 'text/plain', target: 'target' })
    const field = document.createElement('input')
    Object.assign(field, { name: '{"input":"from elsewhere","x":"', value: '"}' })
    form.append(field)
    document.body.append(form)
    frame.onload = () => { try { done(read(frame.contentDocument?.body.innerText)) } catch { done(null) } }
    form.submit()
  }),
  'no-cors fetch': async () => {
    const answer = await fetch(SERVER + '/v1/sessions', { method: 'POST', mode: 'no-cors', credentials: 'include', body })
    return read(await answer.text())
  },
  'fetch as JSON': async () => {
    const headers = { 'content-type': 'application/json', authorization: 'Bearer ' + 'x'.repeat(43) }
    const answer = await fetch(SERVER + '/v1/sessions', { method: 'POST', headers, body })
    return read(await answer.text())
  },
  'no-cors read': async () => read(await (await fetch(SERVER + '/v1/sessions', { mode: 'no-cors' })).text()),
  'mcp': async () => read(await (await fetch(SERVER + '/mcp', { method: 'POST', mode: 'no-cors', body })).text()),
  beacon: async () => {
    navigator.sendBeacon(SERVER + '/v1/sessions', new Blob([body], { type: 'text/plain' }))
    navigator.sendBeacon(SERVER + '/v1/sessions/' + SESSION + '/interrupt')
    return null
  },
  EventSource: () => new Promise((done) => {
    const source = new EventSource(SERVER + '/v1/sessions/' + SESSION + '/stream')
    source.onmessage = source.onopen = (event) => done(String(event.data ?? 'it was opened'))
    source.addEventListener('event', (event) => done(event.data))
    source.onerror = () => { source.close(); done(null) }
  }),
  frame: () => new Promise((done) => {
    const frame = document.createElement('iframe')
    frame.src = SERVER + '/s/' + SESSION
    frame.onload = () => { try { done(read(frame.contentDocument?.body?.innerText)) } catch { done(null) } }
    document.body.append(frame)
  }),
  script: () => new Promise((done) => {
    const script = document.createElement('script')
    script.src = SERVER + '/v1/sessions'
    script.onload = () => done('it was run')
    script.onerror = () => done(null)
    document.head.append(script)
  }),
  image: () => new Promise((done) => {
    const image = new Image()
    image.onload = () => done('it was shown')
    image.onerror = () => done(null)
    image.src = SERVER + '/v1/sessions/' + SESSION + '/blobs/x'
  }),
  opened: async () => {
    const other = window.open(SERVER + '/')
    await new Promise((next) => setTimeout(next, 500))
    try { return read(other.document.body.innerText) } catch { return null }
  },
}
window.results = (async () => {
  const found = {}
  for (const [name, attack] of Object.entries(attacks)) found[name] = await attack().catch(() => null)
  return found
})()
`

async function attackerAt(server: string, session: string): Promise<number> {
  const script = `const SERVER = ${JSON.stringify(server)}\nconst SESSION = ${JSON.stringify(session)}\n${ATTACKS}`
  const page = `<!doctype html><title>elsewhere</title><body><script>${script}</script>`
  const http = createServer((_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end(page))
  await new Promise<void>((up) => http.listen(0, '127.0.0.1', up))
  onTestFinished(() => {
    http.closeAllConnections()
    http.close()
  })
  return (http.address() as AddressInfo).port
}

describe.skipIf(noChromium)('a page of another origin', { timeout: 120_000 }, () => {
  it('B-SERVE-44: beside an open inspector changes nothing and reads nothing: forms, fetches, beacons, streams, frames, scripts, images and windows', async () => {
    const one = await served(['Done.'], { serve: { pages: DIST } })
    const body = { input: 'the secret of the session' }
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body })
    await one.json('GET', `/v1/sessions/${session}/result?wait=20`)
    const context = await (await browser()).newContext()
    const inspector = await context.newPage()
    await inspector.goto(`${one.server.url}/#token=${one.tokens.own}`)
    await inspector.getByText('the secret of the session').first().waitFor()
    const stateOf = async () => [
      await one.host.store.list({ limit: 10 }),
      (await one.host.store.read(session, 0)).events,
    ]
    const before = await stateOf()
    const port = await attackerAt(one.server.url, session)
    // The same machine by another port is the same site; by another name it is another one.
    for (const host of ['127.0.0.1', 'localhost']) {
      const taken: string[] = []
      const page = await context.newPage()
      page.on('response', (response) => {
        if (response.url().startsWith(one.server.url) && response.status() < 400) taken.push(response.url())
      })
      await page.goto(`http://${host}:${port}/`)
      const results = await page.evaluate<Readonly<Record<string, unknown>>>('window.results')
      expect(Object.keys(results)).toHaveLength(11)
      expect(Object.entries(results).filter(([, given]) => given !== null)).toEqual([])
      expect(taken.filter((url) => url.includes('/v1/') || url.includes('/mcp'))).toEqual([])
      await page.close()
    }
    expect(await stateOf()).toEqual(before)
    expect(one.reports).toEqual([])
  })
})
