// The inspector of the built package under a path of another server, in a real browser.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import type * as Library from '../../src/index.ts'
import type * as Server from '../../src/server/index.ts'
import { browser } from '../ui/browser.ts'

/** As a stranger imports it: the pages lie beside the built server. */
async function built<T>(path: string): Promise<T> {
  return (await import(new URL(`../../dist/${path}`, import.meta.url).href)) as T
}

it('B-MOUNT-8, B-PAGE2-27: the inspector works under the path where the server is mounted, also when a page of it is loaded anew, and Health says that it is mounted', async () => {
  const { Harness, memory, scripted } = await built<typeof Library>('index.js')
  const { serve } = await built<typeof Server>('server/index.js')
  const store = memory()
  const harness = new Harness({ model: scripted(['We open at nine.']), store, program: 'shop' })
  const other = new Harness({ model: scripted([]), store, program: 'billing', worker: { drives: false } })
  const { sessionId } = await harness.run('When do you open?')
  const { id } = await other.open()
  await other.session(id).send('Pay the invoice.')
  const terret = await serve({ harness, base: '/terret' })
  const http = createServer((request, response) => {
    if (request.url?.startsWith('/terret')) terret.listener(request, response)
    else response.writeHead(404).end()
  })
  await new Promise<void>((up) => http.listen(0, '127.0.0.1', up))
  const { port } = http.address() as AddressInfo
  const context = await (await browser()).newContext()
  onTestFinished(async () => {
    await context.close()
    await terret.close()
    http.closeAllConnections()
    http.close()
    await harness.close()
    await other.close()
    await store.close()
  })
  const page = await context.newPage()
  const wrong: string[] = []
  page.on('pageerror', (error) => wrong.push(error.message))
  page.on('response', (response) => {
    if (response.status() >= 400) wrong.push(`${response.status()} ${response.url()}`)
  })
  const url = `http://127.0.0.1:${port}/terret`
  await page.goto(`${url}/#token=${terret.token}`)
  await page.getByText('When do you open?').first().click()
  await page.waitForURL(`${url}/s/${sessionId}`)
  await page.getByText('We open at nine.').first().waitFor()
  await page.reload()
  await page.getByText('We open at nine.').first().waitFor()
  await page.goto(`${url}/s/${id}`)
  await page.getByText('It waits for a worker of agent "default" of the program "billing".').first().waitFor()
  await page.goto(`${url}/health`)
  await page.getByText('mounted in another server').waitFor()
  expect(await page.locator('.page-head').innerText()).not.toContain('answers to')
  expect(wrong).toEqual([])
})
