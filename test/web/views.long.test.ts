// The views of a session in a real browser, over real sessions of a real server: what they show, how they are used, and how they look
// (pictures in .build/shots). The page of a session, which has them side by side, is tested elsewhere.
import { mkdirSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { faults } from './faults.ts'
import { BUILT, gallery, looking, looks, type Look, SHOTS } from './stage.ts'
import { newsIn, reportIn, tales } from './tales.ts'

const WIDE: Look = { width: 1280, dark: false }

type Place = Awaited<ReturnType<typeof tales>>

async function place(): Promise<Place> {
  await gallery()
  return tales(BUILT)
}

async function opened(one: Place, view: string, session: string, look: Look = WIDE) {
  const looked = await looking(look)
  const [name, query = ''] = view.split('?')
  await looked.page.goto(`${one.server.url}/views/${name}?s=${session}&${query}#token=${one.tokens.own}`)
  await looked.page.waitForSelector('.view, .face')
  return looked
}

const chosen = (page: Page): Promise<string> => page.locator('.page-head p').innerText()

describe.skipIf(noChromium)('the views of a session', () => {
  it('B-WEB-50: each view, in light and dark, wide and on a phone: axe finds nothing, nothing is refused, nothing is wider than the page', async () => {
    mkdirSync(SHOTS, { recursive: true })
    const one = await place()
    const [news, report] = [await newsIn(one), await reportIn(one)]
    const views = [`waterfall ${news}`, `graph ${report}`, `graph ${news}`, `context ${news}`, `raw ${news}`]
    for (const look of looks()) {
      const { page, wrong } = await looking(look)
      for (const [view = '', session = ''] of views.map((each) => each.split(' '))) {
        await page.goto(`${one.server.url}/views/${view}?s=${session}#token=${one.tokens.own}`)
        await page.waitForSelector(view === 'graph' && session === report ? '.graph svg' : '.list-row')
        const name = `view-${view}-${session}-${look.width}-${look.dark ? 'dark' : 'light'}`
        await page.screenshot({ path: `${SHOTS}/${name}.png` })
        expect([name, await faults(page)]).toEqual([name, []])
        expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
      }
      expect(wrong).toEqual([])
    }
  }, 300_000)

  it('B-WEB-51: the waterfall has a bar for each run, request, call and child, in the order they began, with what each took and cost; waits are folded', async () => {
    const one = await place()
    const { page } = await opened(one, 'waterfall', await newsIn(one))
    await page.waitForSelector('.wf-row')
    const names = await page.locator('.wf-row .wf-name').allInnerTexts()
    expect(names.map((name) => name.replace(/\s+/g, ' '))).toEqual(
      // biome-ignore format: in the order of the rows
      ['▸ run', '∴ Turn 1 · model', '⚙ search', '⚙ search', '⚙ weather error', '∴ Turn 2 · model', '↳ subagent → researcher', '∴ Turn 3 · model', '⚙ publish', '∴ Turn 4 · model', '▸ run', '∴ Turn 5 · model'],
    )
    expect(await page.locator('.wf-fold-word').first().innerText()).toBe('╫ idle 2h 00m ╫')
    expect(await page.locator('.wf-fold-word').first().getAttribute('title')).toBe('waits for a person, 2h 00m')
    expect(await page.locator('.wf-row').nth(1).innerText()).toMatch(/ms\s+1\.4k\s+\$0\.0031/)
    // The seconds of work have most of the width beside the hours of waiting.
    const width = async (row: number): Promise<number> =>
      (await page.locator('.wf-row').nth(row).locator('.wf-bar').last().boundingBox())?.width ?? 0
    expect(await width(1)).toBeGreaterThan(40)
    await page.getByRole('button', { name: 'Fold waits' }).click()
    expect(await page.locator('.wf-fold-word').count()).toBe(0)
    expect(await width(1)).toBeLessThan(5)
    expect(await page.locator('.wf-row').nth(8).locator('.wf-bar.waited').count()).toBe(1)
  }, 120_000)

  it('B-WEB-52: a range of the waterfall is seen closer by dragging, buttons or keys, and all of it again; a click on a bar chooses its event', async () => {
    const one = await place()
    const { page } = await opened(one, 'waterfall', await newsIn(one))
    await page.waitForSelector('.wf-row')
    const range = (): Promise<string> => page.locator('.wf-range').innerText()
    const all = await range()
    const axis = (await page.locator('.wf-axis').boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 }
    await page.mouse.move(axis.x + 10, axis.y + 90)
    await page.mouse.down()
    await page.mouse.move(axis.x + 60, axis.y + 90)
    await page.mouse.move(axis.x + 120, axis.y + 95)
    expect(await page.locator('.wf-selected').count()).toBe(1)
    await page.mouse.up()
    expect(await range()).not.toBe(all)
    expect(await chosen(page)).toBe('chosen: none')
    const dragged = await range()
    await page.getByRole('button', { name: 'Show all' }).click()
    expect(await range()).toBe(all)
    await page.locator('.wf-axis').focus()
    await page.keyboard.press('+')
    const closer = await range()
    expect([all, dragged]).not.toContain(closer)
    await page.keyboard.press('ArrowRight')
    expect(await range()).not.toBe(closer)
    await page.keyboard.press('0')
    expect(await range()).toBe(all)
    await page.locator('.wf-row', { hasText: 'weather' }).click()
    expect(await chosen(page)).toBe('chosen: 9')
    expect(await page.locator('.list-row.chosen').innerText()).toContain('weather')
  }, 120_000)

  it('B-WEB-53: a graph is drawn from START to END as it ran: how often each node did, the one that waits now outlined, its steps below', async () => {
    const one = await place()
    const { page } = await opened(one, 'graph', await reportIn(one))
    await page.waitForSelector('.graph svg')
    const names = await page.locator('.graph-name').allTextContents()
    expect(names).toEqual(['START', 'plan', 'search', 'draft ×2', 'review ×2', 'publish', 'END'])
    expect(await page.locator('.graph-node.now').allTextContents()).toEqual([expect.stringContaining('publish')])
    const steps = await page.locator('.stop-node').allInnerTexts()
    expect(steps).toEqual(['plan', 'search', 'draft', 'review', 'draft', 'review', 'publish'])
    await page.locator('.graph-node', { hasText: 'publish' }).click()
    expect(await chosen(page)).toMatch(/chosen: \d+/)
    expect(await page.locator('.list-row.chosen').innerText()).toContain('publish')
  }, 120_000)

  it('B-WEB-54: a session that is no graph is shown as a tree of runs, turns and calls, with a way to its children', async () => {
    const one = await place()
    const { page } = await opened(one, 'graph', await newsIn(one))
    await page.waitForSelector('.branch')
    const names = await page.locator('.branch-name').allInnerTexts()
    expect(names.slice(0, 6)).toEqual(['Run 1', 'Turn 1', 'search', 'search', 'weather', 'Turn 2'])
    expect(await page.getByRole('link', { name: 'Open child' }).getAttribute('href')).toBe('/s/news~13.0')
    await one.host.harness.open({ id: 'empty' })
    const { page: empty } = await opened(one, 'graph', 'empty')
    expect(await empty.locator('.face h2').innerText()).toBe('Nothing has run yet')
  }, 120_000)

  it('B-WEB-55: the context shows what each request held by size, what came from the cache, and where, why and for how much the cache missed', async () => {
    const one = await place()
    const session = await newsIn(one)
    const { page } = await looking(WIDE)
    // The scripted model has no price, so no miss of it is counted: one reply is given one on its way.
    await page.route('**/events*', async (route) => {
      const response = await route.fetch()
      const text = await response.text()
      const miss = '"missed":{"why":"history","tokens":2800,"cost":7100,"at":3},"cost":9900'
      await route.fulfill({ response, body: text.replace('"cost":9900', miss) })
    })
    await page.goto(`${one.server.url}/views/context?s=${session}#token=${one.tokens.own}`)
    await page.waitForSelector('.column')
    expect(await page.locator('.column').count()).toBe(5)
    expect(await page.locator('.column.missed').count()).toBe(1)
    await page.locator('.column.missed').click()
    const whole = await page.locator('.view').innerText()
    expect(whole).toContain('Request 4 of 5')
    expect(whole).toContain(
      'The cache missed: the messages changed from message 4 on. 2.8k tokens were read again for $0.0071.',
    )
    expect(whole).toMatch(/From the cache\s+100 2 %/)
    expect(await page.locator('.context-sources').innerText()).toMatch(/tools 4\s+[\d,]+ chars\s+\d+ %/)
    expect(await page.locator('.part').count()).toBe(9)
    expect(await page.locator('.kept-line').count()).toBe(1)
    await page.getByRole('button', { name: 'The request before' }).click()
    expect(await page.locator('.view').innerText()).toContain('Request 3 of 5')
    expect(await page.locator('.miss').count()).toBe(0)
  }, 120_000)

  it('B-WEB-56: where the beginning of a log is not loaded, the context reads it by itself', async () => {
    const one = await place()
    const { page } = await opened(one, 'context?from=10', await newsIn(one))
    await page.waitForSelector('.column')
    expect(await page.locator('.column').count()).toBe(5)
  }, 120_000)

  it('B-WEB-57: raw events are JSON rows, found by type and text, copied whole; text in them stays text', async () => {
    const one = await place()
    const { page, wrong } = await opened(one, 'raw', await newsIn(one))
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.waitForSelector('.raw-row')
    await page.getByLabel('Type').selectOption('agent.tool_result')
    expect(await page.locator('[role=status]', { hasText: 'of' }).innerText()).toBe('5 of 29 events')
    await page.keyboard.press('Escape')
    await page.getByLabel('Search in events').fill('ATLANTIS')
    await until(async () => expect(await page.locator('.face h2').innerText()).toBe('No event is like that'))
    await page.getByLabel('Search in events').fill('no such place')
    await until(async () => expect(await page.locator('.raw-row').count()).toBe(1))
    await page.locator('.raw-row').click()
    expect(await chosen(page)).toBe('chosen: 9')
    const text = await page.locator('.raw-whole').innerText()
    expect(text).toContain('</script><img src=x onerror=alert(1)>')
    expect(text).toContain('\\u{202e}')
    await page.getByRole('button', { name: 'Copy event 9' }).click()
    const copied: unknown = JSON.parse(await page.evaluate('navigator.clipboard.readText()'))
    expect(copied).toMatchObject({ seq: 9 })
    expect(await page.locator('#page img, #page script').count()).toBe(0)
    expect(wrong).toEqual([])
  }, 120_000)
})
