// A fork and the comparison of two sessions in a real browser, over a real server: from the window that makes the fork to the first
// difference. How logs are aligned is tested without a browser.
import { mkdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { faults } from './faults.ts'
import { BUILT, gallery, looking, looks, SHOTS } from './stage.ts'
import { newsIn, tales } from './tales.ts'

async function place() {
  await gallery()
  const one = await tales(BUILT)
  const session = await newsIn(one)
  const { events } = await one.host.harness.session(session, { stored: true }).events()
  const at = events.find(({ type }) => type === 'run.settled')?.seq ?? 0
  return { ...one, session, at }
}

describe.skipIf(noChromium)('forks and comparisons', () => {
  it('B-WEB-65: a fork at an event with another model goes to the new session, and compared with its origin shows the first difference', async () => {
    const one = await place()
    const { page, wrong } = await looking({ width: 1280, dark: false })
    await page.goto(`${one.server.url}/views/fork?s=${one.session}&at=${one.at}#token=${one.tokens.own}`)
    await page.waitForSelector('dialog[open]')
    await page.getByLabel('Model').fill('nobody')
    await page.getByRole('button', { name: 'Fork', exact: true }).click()
    expect(await page.locator('[role=alert]').innerText()).toContain('nobody')
    await page.getByLabel('Model').fill('other')
    await page.getByLabel('Message').fill('Thank you. Once more?')
    mkdirSync(SHOTS, { recursive: true })
    await page.screenshot({ path: `${SHOTS}/fork-1280-light.png` })
    expect(await faults(page)).toEqual([])
    await page.getByRole('button', { name: 'Fork', exact: true }).click()
    await page.waitForSelector('[data-session]')
    const fork = (await page.locator('[data-session]').getAttribute('data-session')) ?? ''
    expect(fork).not.toBe(one.session)
    await until(async () => expect((await one.host.store.card(fork))?.outcome).toBe('completed'))
    await page.goto(`${one.server.url}/compare?a=${one.session}&b=${fork}`)
    await page.waitForSelector('.cmp-pair')
    expect(await page.locator('.page-head p').innerText()).toBe('First difference at turn 5; 1 of 7 steps differ')
    expect(await page.locator('.cmp-first').count()).toBe(1)
    const pair = await page.locator('.cmp-pair.differs').innerText()
    for (const word of ['said otherwise', 'The page is online.', 'It rains on. </script><img src=x', '+$0.0101'])
      expect(pair).toContain(word)
    expect(await page.locator('.cmp-same').innerText()).toMatch(/\d steps the same, show/)
    const before = await page.locator('.cmp-pair').count()
    await page.locator('.cmp-same').click()
    expect(await page.locator('.cmp-pair').count()).toBeGreaterThan(before)
    const costs = await page.locator('.cmp-figures tr td:nth-child(5)').allInnerTexts()
    expect(costs).toEqual(['$0.0297', '$0.0398', '+$0.0101'])
    expect(wrong.filter((each) => !each.includes('400'))).toEqual([])
    for (const look of looks()) {
      const looked = await looking(look)
      await looked.page.goto(`${one.server.url}/compare?a=${one.session}&b=${fork}#token=${one.tokens.own}`)
      await looked.page.waitForSelector('.cmp-pair')
      await looked.page.screenshot({ path: `${SHOTS}/compare-${look.width}-${look.dark ? 'dark' : 'light'}.png` })
      expect([look, await faults(looked.page)]).toEqual([look, []])
      expect(await looked.page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
      await looked.page.context().close()
    }
  }, 200_000)

  it('B-WEB-66: a press on fork that is tried again makes one fork, and the window can lead to the comparison at once', async () => {
    const one = await place()
    const { page } = await looking({ width: 390, dark: true })
    let refused = 0
    await page.route('**/fork', async (route) => {
      // The server made it, but its answer was lost.
      const response = await route.fetch()
      if (refused++ === 0) await route.abort()
      else await route.fulfill({ response })
    })
    await page.goto(`${one.server.url}/views/fork?s=${one.session}&at=${one.at}#token=${one.tokens.own}`)
    await page.waitForSelector('dialog[open]')
    const press = page.getByRole('button', { name: 'Fork and compare with the original' })
    await press.click()
    await page.waitForSelector('[role=alert]')
    await press.click()
    await page.waitForSelector('.cmp-head')
    const { searchParams } = new URL(page.url())
    expect(searchParams.get('a')).toBe(one.session)
    const cards = await one.host.store.list({ limit: 100 })
    const forks = cards.filter(({ session }) => session !== one.session && !session.includes('~'))
    expect(forks.map(({ session }) => session)).toEqual([searchParams.get('b')])
  }, 120_000)

  it('B-WEB-67: the page says what is missing: no sessions named, one that is not there, the same twice', async () => {
    const one = await place()
    const { page } = await looking({ width: 1280, dark: false })
    await page.goto(`${one.server.url}/compare#token=${one.tokens.own}`)
    expect(await page.locator('.face h2').innerText()).toBe('Two sessions are needed')
    await page.goto(`${one.server.url}/compare?a=${one.session}&b=nobody`)
    expect(await page.locator('.face h2').innerText()).toBe('There is nothing here')
    await page.goto(`${one.server.url}/compare?a=${one.session}&b=${one.session}`)
    await page.waitForSelector('.cmp-same')
    expect(await page.locator('.notice').innerText()).toBe('Both are the same session.')
    expect(await page.locator('.page-head p').innerText()).toBe('They said and did the same')
  }, 120_000)
})
