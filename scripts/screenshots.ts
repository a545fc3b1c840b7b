// Pictures of every page of the inspector, on a real server with sample sessions: `npm run screenshots`. Both themes, a desk and a phone,
// into docs/images. It needs Chromium; `npm run build` makes the pages that are shown.
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'
import { Harness, sqlite } from '../src/index.ts'
import { startHttpServer } from '../src/server/http-server.ts'
import { withFileLock } from '../src/stores/sqlite/file-lock.ts'
import { TokenRegistry } from '../src/server/token-registry.ts'
import { VERSION } from '../src/version.ts'
import { fillSample, SampleClock, sampleOptions } from './sample-sessions.ts'

const OUT = process.argv[2] ?? 'docs/images'
const BYTES_MAX = 45_000
/** The first that makes a picture small enough. */
const QUALITIES = [70, 50, 30] as const
const CHROMIUM = [process.env['TERRET_CHROMIUM'] ?? '', '/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find(
  (path) => path !== '' && existsSync(path),
)

type Shot = { readonly name: string; readonly path: string }

/** The addresses of all pages. */
function shotsOf(ids: Readonly<Record<string, string>>): readonly Shot[] {
  const id = (title: string): string => encodeURIComponent(ids[title] ?? '')
  const report = id('A report on the sick-room')
  const compare = id('Compare three vector databases')
  return [
    { name: 'sessions', path: '/' },
    { name: 'inbox', path: `/inbox?session=${id('Publish the weekly news')}` },
    { name: 'inbox-change', path: `/inbox?session=${id('Tidy the changelog for 2.3.1')}` },
    { name: 'session', path: `/s/${id('Fix the flaky retry test in outbox')}` },
    { name: 'waterfall', path: `/s/${compare}?v=waterfall` },
    { name: 'graph', path: `/s/${report}?v=graph` },
    { name: 'context', path: `/s/${id('Fix the flaky retry test in outbox')}?v=context` },
    { name: 'compare', path: `/compare?a=${compare}&b=${id('Publish the weekly news')}` },
    { name: 'agents', path: '/agents' },
    { name: 'schedules', path: '/schedules' },
    { name: 'health', path: '/health' },
    { name: 'settings', path: '/settings' },
  ]
}

const SIZES = [
  { name: 'desk', width: 1280, height: 800 },
  { name: 'phone', width: 390, height: 780 },
] as const

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'terret-pictures-'))
  const clock = new SampleClock()
  const store = sqlite(join(folder, 'terret.db'), { clock })
  const harness = new Harness({ ...sampleOptions(join(folder, 'work'), clock), store })
  const { store: storeId } = await store.mark()
  const host = {
    version: VERSION,
    store,
    storeId,
    harness,
    harnessOf: () => Promise.resolve(harness),
    begin: () => Promise.resolve({ harness }),
    agents: () => harness.agents(),
    elsewhere: () => null,
    program: 'unnamed',
    drives: true,
    driving: () => 1,
  }
  const tokens = new TokenRegistry(join(folder, 'tokens.json'), 'ana', withFileLock)
  tokens.make({ name: 'bob', role: 'approver', roles: ['lead'] }, Date.now() - 86_400_000)
  tokens.make({ name: 'ci', role: 'operator', reach: 'own' }, Date.now() - 9 * 86_400_000)
  const server = await startHttpServer({
    host,
    tokens,
    port: 0,
    pages: 'dist/web',
    report: (where, error) => console.error(where, error),
  })
  const working = harness.work()
  const browser = await chromium.launch({ executablePath: CHROMIUM ?? '', args: ['--no-sandbox'] })
  try {
    const ids = await fillSample(harness, join(folder, 'work'), clock)
    mkdirSync(OUT, { recursive: true })
    for (const shot of shotsOf(ids)) await taken(browser, shot, `${server.url}${shot.path}#token=${tokens.own}`)
  } finally {
    await browser.close()
    await server.close()
    await harness.close()
    await working.catch(() => {})
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function taken(browser: Browser, { name }: Shot, url: string): Promise<void> {
  for (const { name: size, width, height } of SIZES) {
    for (const theme of ['light', 'dark'] as const) {
      const context = await browser.newContext({
        viewport: { width, height },
        colorScheme: theme,
        reducedMotion: 'reduce',
      })
      const page = await context.newPage()
      await page.goto(url)
      await page.waitForLoadState('load')
      await page.waitForSelector('.page, .face')
      await page.waitForSelector('.skeleton', { state: 'detached' })
      // Graphs and colours of code are loaded by themselves.
      await page.waitForTimeout(400)
      const file = join(OUT, `${name}-${size}-${theme}.webp`)
      const session = await context.newCDPSession(page)
      for (const quality of QUALITIES) {
        const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality })
        writeFileSync(file, Buffer.from(data, 'base64'))
        if (statSync(file).size <= BYTES_MAX) break
      }
      console.log(`${file} ${statSync(file).size}`)
      await context.close()
    }
  }
}

await main()
