// Every part of the inspector in a real browser, under the policy of its pages: how it looks (pictures in .build/shots), what it says to
// those who do not see it, and that text of others stays text.
import { mkdirSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { noChromium } from '../ui/browser.ts'
import { faults } from './faults.ts'
import { galleryAt, looking, looks, type Look, SHOTS } from './stage.ts'

async function opened(look: Look): Promise<{ readonly page: Page; readonly wrong: readonly string[] }> {
  const looked = await looking(look)
  await looked.page.goto(await galleryAt())
  await looked.page.waitForSelector('.graph svg')
  await looked.page.waitForSelector('.chart-line')
  return looked
}

describe.skipIf(noChromium)('the parts', () => {
  it.each(looks())(
    'B-WEB-10: at %o nothing is refused by the policy, axe finds nothing, and nothing is wider than the page',
    async (look) => {
      mkdirSync(SHOTS, { recursive: true })
      const name = `${look.width}-${look.dark ? 'dark' : 'light'}`
      const { page, wrong } = await opened(look)
      await page.screenshot({ path: `${SHOTS}/parts-${name}.png` })
      expect(await faults(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
      await page.keyboard.press('Control+k')
      await page.waitForSelector('[role=option]')
      await page.screenshot({ path: `${SHOTS}/palette-${name}.png` })
      expect(await faults(page)).toEqual([])
      expect(wrong.filter((each) => !each.includes('404'))).toEqual([])
    },
    120_000,
  )

  it('B-WEB-11: text of others is shown exactly: tags are letters, and what is not drawn is shown by its code', async () => {
    const { page, wrong } = await opened({ width: 1280, dark: false })
    const text = await page.locator('[data-part=Text]').innerText()
    expect(text).toContain('<script>alert(1)</script> <img src=x onerror="alert(2)">')
    for (const code of ['202e', '200b', '1b', 'e0041', 'a0']) expect(text).toContain(`\\u{${code}}`)
    expect(text).toMatch(/[\d,]+ characters are not shown/)
    expect(await page.locator('#page img, #page script, #page iframe, #page b[onclick]').count()).toBe(0)
    expect(wrong.filter((each) => !each.includes('404'))).toEqual([])
  }, 60_000)

  it('B-WEB-12: Markdown becomes a closed list of elements: links show their host, those to scripts are no links, pictures and HTML are text', async () => {
    const { page } = await opened({ width: 1280, dark: false })
    const part = page.locator('[data-part=Markdown] .markdown')
    const all = "[...document.querySelectorAll('[data-part=Markdown] .markdown *')]"
    const names = (await page.evaluate(`${all}.map((each) => each.tagName.toLowerCase())`)) as readonly string[]
    const links = await page.evaluate(`${all}.flatMap((each) => each.getAttribute('href') ?? [])`)
    const known =
      'h3 h4 p ol ul li strong em del code pre blockquote table thead tbody tr th td a span div button svg path rect br hr'
    expect(names.filter((name) => !known.split(' ').includes(name))).toEqual([])
    expect(links).toEqual(['https://example.com/clock?a=1'])
    expect(await part.innerText()).toContain('example.com')
    expect(await part.innerText()).toContain('<b onclick="alert(3)">bold?</b>')
    expect(await part.innerText()).toContain('[picture: a picture, https://example.com/x.png]')
  }, 60_000)

  it('B-WEB-13: keys act as the list of keys says, and not while somebody writes; a window keeps the focus and gives it back', async () => {
    const { page } = await opened({ width: 1280, dark: false })
    await page.locator('.find').focus()
    await page.keyboard.press('?')
    await page.waitForSelector('dialog .keys')
    expect(await page.locator('dialog[open]').innerText()).toContain('Go to Inbox')
    await page.keyboard.press('Escape')
    expect(await page.locator('dialog[open]').count()).toBe(0)
    expect(await page.evaluate('document.activeElement.className')).toBe('find')
    await page.locator('input[type=search]').first().fill('')
    await page.keyboard.type('g i?')
    expect(await page.locator('dialog[open]').count()).toBe(0)
    expect(new URL(page.url()).pathname).toBe('/')
    await page.locator('.find').focus()
    await page.keyboard.press('g')
    await page.keyboard.press('i')
    expect(new URL(page.url()).pathname).toBe('/inbox')
    // A key that a script pressed does nothing.
    await page.evaluate("window.dispatchEvent(new KeyboardEvent('keydown', { key: '?' }))")
    expect(await page.locator('dialog[open]').count()).toBe(0)
  }, 60_000)

  it('B-WEB-14: short news is said politely, and what waits is counted in the title and on the rail', async () => {
    const { page } = await opened({ width: 1280, dark: false })
    await page.evaluate("window.sayToast('Sent \\u202E<b>')")
    const region = page.locator('[role=status][aria-live=polite]')
    expect(await region.innerText()).toContain('Sent \\u{202e}<b>')
    expect(await page.title()).toBe('(3) Terret')
    expect(await page.locator('.count').innerText()).toBe('3')
  }, 60_000)
})
