// What holds on every page: ten tabs, clocks that disagree, the keyboard alone, screen readers, and text of others that stays text. On a
// real server with the sample sessions of a working day, and in a real browser.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { fillSample, SampleClock, sampleOptions } from '../../scripts/sample-sessions.ts'
import type { HarnessOptions } from '../../src/index.ts'
import { sqlite } from '../../src/index.ts'
import { tool } from '../runtime/scene.ts'
import { browser, noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { faults } from './faults.ts'
import { type Inspector, FOCUS_SEEN, inspector } from './inspector.ts'
import { looks } from './stage.ts'

const HOUR = 3_600_000
const publish = tool('publish', { approval: 'ask', effect: 'once' })

type Sample = { readonly one: Inspector; readonly ids: Readonly<Record<string, string>> }

async function sample(): Promise<Sample> {
  const folder = mkdtempSync(join(tmpdir(), 'terret-sample-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const clock = new SampleClock()
  const store = sqlite(join(folder, 'terret.db'), { clock })
  const { model, ...options } = sampleOptions(join(folder, 'work'), clock)
  if (typeof model === 'string') throw new Error('The model of the sample is scripted.')
  const one = await inspector([], { ...options, model } as Omit<HarnessOptions, 'model' | 'store'>, { folder, store })
  return { one, ids: await fillSample(one.host.harness, join(folder, 'work'), clock) }
}

/** The addresses of all pages. Those of a session are there in every build; a view that is not there is its timeline. */
function addresses(ids: Readonly<Record<string, string>>): readonly string[] {
  const id = (title: string): string => encodeURIComponent(ids[title] ?? '')
  const [flaky, report] = [id('Fix the flaky retry test in outbox'), id('A report on the sick-room')]
  const views = ['', '?v=waterfall', '?v=graph', '?v=context', '?v=raw']
  return [
    '/',
    '/?q=nothing-like-it',
    '/agents',
    '/schedules',
    '/triggers',
    '/evals',
    '/health',
    '/settings',
    '/inbox',
    '/nowhere',
    ...['Publish the weekly news', 'Tidy the changelog for 2.3.1', 'Roll out 2.3.1 to production'].map(
      (title) => `/inbox?session=${id(title)}`,
    ),
    `/inbox?session=${id('Quarterly figures for the board')}`,
    '/inbox?session=gone&call=1.0',
    ...views.flatMap((view) => [`/s/${flaky}${view}`, `/s/${report}${view}`]),
    `/s/${id('Migrate invoices to the new tax rates')}`,
    `/compare?a=${flaky}&b=${report}`,
  ]
}

async function settled(page: Page): Promise<void> {
  await page.waitForSelector('.page, .face')
  await page.waitForSelector('.skeleton', { state: 'detached' })
  await page.waitForTimeout(300)
}

describe.skipIf(noChromium)('every page', () => {
  it('B-WEB-88: axe finds nothing on real data, in light and dark, at 1280 and 390 pixels, and nothing is wider than the page', async () => {
    const { one, ids } = await sample()
    const wrong: string[] = []
    for (const { width, dark } of looks()) {
      const { page, wrong: seen } = await one.tab('/', { width, dark })
      for (const path of addresses(ids)) {
        await page.goto(`${one.server.url}${path}`)
        await settled(page)
        for (const fault of await faults(page)) wrong.push(`${path} at ${width} ${dark ? 'dark' : 'light'}: ${fault}`)
        const fits = await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')
        if (fits !== true) wrong.push(`${path} is wider than ${width}`)
      }
      for (const key of ['n', '?', 'Control+k']) {
        await page.keyboard.press(key)
        await page.waitForSelector('dialog[open]')
        for (const fault of await faults(page)) wrong.push(`the window of ${key} at ${width}: ${fault}`)
        await page.keyboard.press('Escape')
      }
      wrong.push(...seen)
      await page.context().close()
    }
    expect(wrong).toEqual([])
  }, 600_000)

  it('B-WEB-85: ten tabs hold at most four streams of a real server, and each shows what happens', async () => {
    const one = await inspector([], { worker: { drives: false } })
    const context = await (await browser()).newContext({ reducedMotion: 'reduce' })
    const pages: Page[] = []
    for (let i = 0; i < 10; i++) pages.push((await one.tab('/', { context })).page)
    for (const page of pages) await page.waitForSelector('.face')
    await until(async () => expect(await one.json('GET', '/v1/health')).toMatchObject({ streams: 4 }))
    await one.open('Seen in ten tabs')
    for (const page of pages)
      await until(async () => expect(await page.locator('.session-link').innerText()).toBe('Seen in ten tabs'))
    expect(await one.json('GET', '/v1/health')).toMatchObject({ streams: 4 })
  }, 180_000)

  it.each([24, -24])(
    'B-WEB-86: with the clock of the browser %i hours off, ages are right',
    async (hours) => {
      const asks = { calls: [{ tool: 'publish', args: { n: 1 } }] }
      const one = await inspector([asks], { tools: [publish], approvals: { timeoutMs: 2 * HOUR + 30_000 } })
      const session = await one.open('Go.')
      await one.waiting(session)
      const { page } = await one.tab('/', {
        prepare: (tab) =>
          tab
            .addInitScript(`(() => {
          const now = Date.now
          Date.now = () => now() + ${hours * HOUR}
        })()`)
            .then(() => {}),
      })
      await page.waitForSelector('.session-row')
      await until(async () => expect(await page.locator('.session-age').innerText()).toMatch(/^(now|\d+ s)$/))
      await page.goto(`${one.server.url}/inbox`)
      await page.waitForSelector('.waiting-facts')
      const facts = await page.locator('.waiting-facts').innerText()
      expect(facts).toMatch(/Expires\s+in (2 h|1 h)/)
      expect(facts).toMatch(/Waits\s+(now|\d+ s)/)
    },
    60_000,
  )

  it('B-WEB-87, B-WEB-91: with the keyboard alone a session is found, what waits is reviewed and allowed, and a fork is made; the focus is always visible', async () => {
    const asks = { calls: [{ tool: 'publish', args: { n: 1 } }] }
    const one = await inspector(({ messages }) => (messages.length > 1 ? 'Published.' : asks), { tools: [publish] })
    const session = await one.open('Publish the needle')
    await one.open('Something else')
    await one.waiting(session)
    const { page } = await one.tab('/')
    await page.waitForSelector('.session-row')
    const seen = async (): Promise<void> => expect(await page.evaluate(FOCUS_SEEN)).toBe('seen')
    // Through the whole page: every stop is visible.
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press('Tab')
      if ((await page.evaluate('document.activeElement === document.body')) === true) break
      await seen()
    }
    await page.keyboard.press('Control+k')
    await page.waitForSelector('[role=combobox]')
    await page.keyboard.type('needle')
    await until(async () =>
      expect(await page.locator('[role=option]').allInnerTexts()).toEqual([expect.stringContaining('needle')]),
    )
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/s/${encodeURIComponent(session)}`)
    await page.keyboard.press('g')
    await page.keyboard.press('i')
    await page.waitForSelector('.waiting')
    while (!(await page.locator('.inbox-item.chosen').innerText()).includes('needle')) await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    expect(await page.evaluate('document.activeElement.id')).toBe('waiting')
    await seen()
    for (let i = 0; i < 12; i++) {
      await page.keyboard.press('Tab')
      await seen()
      if ((await page.evaluate('document.activeElement.innerText')) === 'Allow once') break
    }
    await page.waitForTimeout(500)
    await page.keyboard.press('Enter')
    await until(async () => {
      const { events } = await one.host.store.read(session, 0)
      expect(events.filter(({ type }) => type === 'agent.tool_use')).toHaveLength(1)
    })
    await page.keyboard.press('Control+k')
    await page.waitForSelector('[role=combobox]')
    await page.keyboard.type('needle')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/s/${encodeURIComponent(session)}`)
    await page.waitForSelector('.line')
    await page.keyboard.press('k')
    await page.keyboard.press('f')
    await page.waitForSelector('[role=dialog], dialog[open]')
    for (let i = 0; i < 12; i++) {
      await seen()
      if ((await page.evaluate('document.activeElement.innerText')) === 'Fork') break
      await page.keyboard.press('Tab')
    }
    await page.keyboard.press('Enter')
    await page.waitForURL(
      (url) => url.pathname.startsWith('/s/') && !url.pathname.endsWith(encodeURIComponent(session)),
    )
    expect(await one.host.store.list({ limit: 10 })).toHaveLength(3)
  }, 90_000)
})
