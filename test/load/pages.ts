// A log of a million events in the inspector: `npm run pages`. `terret serve` as it is published and a real browser, on one machine. How
// long something takes is measured inside the page. Exit 1 if a bound is missed.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { chromium, type Page } from 'playwright-core'
import { argumentsOf, refuse, wholeNumber } from '../../sim/arguments.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { Chance } from '../crash/random.ts'
import { chromiumPath } from '../ui/chromium.ts'
import { MILLION, million } from '../web/million.ts'
import { prepareFolder, ServerProcess, startProvider } from './server.ts'

const BOUNDS = { paintMs: 300, pageMs: 300, jumpMs: 200, taskMs: 50 }
const PAINTS = 5
const JUMPS = 40
const SCROLLS = 200

/** `jump`: from the slider's move to the frame in which its event and the session after it are shown. `long`: tasks over 50 ms. */
const IN_PAGE = `
  const long = []
  new PerformanceObserver((list) => long.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' })
  const jump = (seq, title) => new Promise((done) => {
    const slider = document.querySelector('.slider input')
    const begun = performance.now()
    const changes = new MutationObserver(() => {
      const isShown = [...document.querySelectorAll('.line-seq')].some((line) => Math.abs(line.textContent - seq) < 8)
      if (!isShown || !document.querySelector('.side').textContent.includes(title)) return
      changes.disconnect()
      requestAnimationFrame(() => done(performance.now() - begun))
    })
    changes.observe(document.body, { subtree: true, childList: true, characterData: true })
    // As the browser sets it, past React's own setter: else no change is seen.
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(slider, seq)
    slider.dispatchEvent(new Event('input', { bubbles: true }))
  })
  const reads = () => performance.getEntriesByType('resource')
    .filter(({ name }) => /\\/(events|state)\\?/.test(name))
    .map(({ requestStart, responseEnd }) => responseEnd - requestStart)
  Object.assign(globalThis, { long, jump, reads })
`

const { values } = argumentsOf('pages', { options: { events: { type: 'string' }, seed: { type: 'string' } } })
const events = wholeNumber(values.events ?? String(MILLION), 'events', 20_000)
const seed = wholeNumber(values.seed ?? '1', 'seed')
if (chromiumPath === undefined) refuse('There is no Chromium here. Install chromium-headless-shell, and run it again.')

mkdirSync('.build', { recursive: true })
const folder = mkdtempSync(resolve('.build', 'pages-'))
const provider = await startProvider('1', '1')
prepareFolder(folder, provider.url)
const server = new ServerProcess(folder, [])
const browser = await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox'] })
const stop = async (): Promise<void> => {
  await browser.close()
  await server.end('SIGTERM')
  provider.child.kill()
  if (process.exitCode === 0) rmSync(folder, { recursive: true, force: true })
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop().then(() => process.exit(1)))
try {
  mkdirSync(join(folder, 'data'), { recursive: true })
  const store = sqlite(join(folder, 'data/terret.db'))
  await million(store, 'long', events)
  await store.close()
  await server.start()
  process.exitCode = (await measured()) ? 0 : 1
} finally {
  await stop()
}

async function measured(): Promise<boolean> {
  const paints: number[] = []
  const contents: number[] = []
  for (let n = 0; n < PAINTS; n += 1) {
    const page = await opened()
    paints.push(await page.evaluate<number>("performance.getEntriesByName('first-paint')[0].startTime"))
    contents.push(await page.evaluate<number>("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
    await page.context().close()
  }
  const page = await opened()
  await page.evaluate(IN_PAGE)
  const chance = new Chance(seed)
  const jumps: number[] = []
  for (let n = 0; n < JUMPS; n += 1) {
    const seq = n === 0 ? 1 : chance.integer(1, events)
    const title = `The session after event ${seq.toLocaleString('en')}`
    jumps.push(await page.evaluate<number>(`jump(${seq}, ${JSON.stringify(title)})`))
  }
  const reads = await page.evaluate<readonly number[]>('reads()')
  const tasks = await scroll(page)
  const rows: readonly (readonly [string, readonly number[], number])[] = [
    ['first paint', paints, BOUNDS.paintMs],
    ['first paint of something to read', contents, Number.POSITIVE_INFINITY],
    ['a request for events or the state', reads, BOUNDS.pageMs],
    ['the slider, until all is shown', jumps, BOUNDS.jumpMs],
    ['the longest task while scrolling', tasks, BOUNDS.taskMs],
  ]
  console.log(`${events} events, seed ${seed}`)
  for (const [name, found, bound] of rows) {
    const sorted = [...found].sort((a, b) => a - b).map(Math.round)
    const [middle, most] = [sorted[sorted.length >> 1] ?? 0, sorted.at(-1) ?? 0]
    console.log(
      `${most <= bound ? '✓' : '✗'} ${name.padEnd(36)} ${middle} ms in the middle, ${most} ms at most ${Number.isFinite(bound) ? `(bound ${bound})` : ''}`,
    )
  }
  return rows.every(([, found, bound]) => found.every((ms) => ms <= bound))
}

/** With nothing in its cache. */
async function opened(): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1_280, height: 800 } })
  const page = await context.newPage()
  await page.goto(`${server.url}/s/long#token=${server.token}`)
  await page.locator('.line').first().waitFor()
  return page
}

/** Up through the log, with pages that are read meanwhile: how long each task took that took long. */
async function scroll(page: Page): Promise<readonly number[]> {
  await page.evaluate('long.length = 0')
  await page.mouse.move(500, 500)
  for (let n = 0; n < SCROLLS; n += 1) {
    await page.mouse.wheel(0, -400)
    await page.waitForTimeout(16)
  }
  await page.waitForTimeout(500)
  return page.evaluate<readonly number[]>('[0, ...long]')
}
