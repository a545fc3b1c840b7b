// The example page in a real browser: React and useChat as they are published, against the example server. The protocol by itself is
// chat.test.ts.
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { browser, exampleAt, noChromium, pageOf } from './browser.ts'

const COUNTED = `I count slowly: ${Array.from({ length: 60 }, (_, i) => i + 1).join(' ')} and that is all.`

/** The page of the example as its server gives it, or made of another major of the AI SDK. */
async function opened(major: number): Promise<{ page: Page; trouble: string[] }> {
  const trouble: string[] = []
  const url = await exampleAt('13-chat')
  const page = await (await browser()).newPage()
  if (major === 7) {
    const body = await pageOf('examples/13-chat/page.tsx', 'ai-sdk-react-v4')
    await page.route('**/page.js', (route) => route.fulfill({ body, contentType: 'text/javascript' }))
  }
  page.on('pageerror', (error) => trouble.push(error.message))
  page.on('console', (message) => message.type() === 'error' && trouble.push(message.text()))
  await page.goto(url)
  return { page, trouble }
}

async function say(page: Page, text: string): Promise<void> {
  await page.fill('#text', text)
  await page.click('#send')
}

const shows = (page: Page, text: string) => page.locator('article.assistant p', { hasText: text }).waitFor()
const answers = (page: Page) => page.locator('article.assistant p').allInnerTexts()

describe.skipIf(noChromium).each([6, 7])('the example chat in Chromium, with the AI SDK %i', (major) => {
  it('B-UI-18: it streams, and a reload in the middle of a text goes on with it and ends with all of it once', async () => {
    const { page, trouble } = await opened(major)
    await say(page, 'Count.')
    await shows(page, ' 5 ')
    const early = (await answers(page))[0] ?? ''
    expect(COUNTED.startsWith(early) && early.length < COUNTED.length).toBe(true)
    await shows(page, ' 12 ')
    await page.reload()
    await page.waitForSelector('article.assistant p')
    expect((await answers(page))[0]?.length).toBeLessThan(COUNTED.length)
    await shows(page, 'that is all')
    await page.locator('#status', { hasText: 'ready' }).waitFor()
    expect(await answers(page)).toEqual([COUNTED])
    expect(await page.locator('article.user').allInnerTexts()).toEqual(['Count.'])
    await page.reload()
    await page.waitForSelector('article.assistant p')
    expect(await answers(page)).toEqual([COUNTED])
    expect(trouble).toEqual([])
  })

  it('B-UI-18: it shows an approval, also after a reload, and goes on when it is approved', async () => {
    const { page, trouble } = await opened(major)
    await say(page, 'Publish the news.')
    await page.waitForSelector('button.yes')
    expect(await page.locator('.call').innerText()).toContain('publish {"page":"news.html"} approval-requested')
    await page.reload()
    await page.waitForSelector('button.yes')
    await page.click('button.yes')
    await shows(page, 'The news are online.')
    expect(await page.locator('.call').innerText()).toContain('output-available {"online":true,"page":"news.html"}')
    expect(await page.locator('button.yes').count()).toBe(0)
    expect(await answers(page)).toEqual(['I will publish the news, if you say yes.', 'The news are online.'])
    await page.reload()
    await shows(page, 'The news are online.')
    expect(await answers(page)).toEqual(['I will publish the news, if you say yes.', 'The news are online.'])
    expect(trouble).toEqual([])
  })

  it('B-UI-18: a no leaves the call undone, and the page says so', async () => {
    const { page } = await opened(major)
    await say(page, 'Publish the news.')
    await page.click('button.no')
    await shows(page, 'Then I leave it.')
    expect(await page.locator('.call').innerText()).toContain('output-denied')
  })
})
