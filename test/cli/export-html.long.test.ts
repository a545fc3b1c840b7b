// A session that was exported as a page, opened from a file in a real browser: it shows the session without any request, whatever is in it.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { buildPage, buildSessionFile } from '../../src/cli/state/session-page.ts'
import type { SessionFile } from '../../src/server/wire-file.ts'
import { browser, noChromium } from '../ui/browser.ts'
import { faults } from '../web/faults.ts'
import { looks, SHOTS } from '../web/stage.ts'
import { HOSTILE, newsIn, tales } from '../web/tales.ts'

async function told(): Promise<SessionFile> {
  const one = await tales('')
  const card = await one.host.store.card(await newsIn(one))
  if (!card) throw new Error('no card')
  return buildSessionFile(one.host.store, card)
}

function written(page: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'terret-export-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'session.html')
  writeFileSync(file, page)
  return pathToFileURL(file).href
}

/** `asked` has every request but that for the file itself; `wrong` every error, refused load and dialog. */
async function opened(url: string, width: number, dark: boolean) {
  const context = await (await browser()).newContext({
    viewport: { width, height: 860 },
    colorScheme: dark ? 'dark' : 'light',
    reducedMotion: 'reduce',
    offline: true,
  })
  const page = await context.newPage()
  const [asked, wrong]: string[][] = [[], []]
  page.on('request', (request) => {
    if (request.url() !== url && !request.url().startsWith('data:')) asked?.push(request.url())
  })
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') wrong?.push(message.text())
  })
  page.on('pageerror', (error) => wrong?.push(String(error)))
  page.on('dialog', (dialog) => {
    wrong?.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  await page.goto(url)
  return { page, asked, wrong }
}

async function textOf(page: Page): Promise<string> {
  await page.waitForSelector('[role=listitem]')
  return page.locator('main').innerText()
}

describe.skipIf(noChromium)('an exported page', () => {
  it('B-EXPORT-10: opened from a file without a network it shows the session: no request, nothing refused, axe finds nothing, in light and dark, wide and narrow', async () => {
    mkdirSync(SHOTS, { recursive: true })
    const url = written(buildPage(await told()))
    for (const { width, dark } of looks()) {
      const { page, asked, wrong } = await opened(url, width, dark)
      const text = await textOf(page)
      expect(text).toContain('Publish the news.')
      await page.screenshot({ path: `${SHOTS}/export-${width}-${dark ? 'dark' : 'light'}.png` })
      expect(await faults(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
      expect(await page.title()).toBe('Publish the news.')
      expect([asked, wrong]).toEqual([[], []])
      await page.context().close()
    }
  }, 200_000)

  it('B-EXPORT-11: text of the log stays text, and the theme can be chosen', async () => {
    const { page, asked, wrong } = await opened(written(buildPage(await told())), 1280, false)
    const text = await textOf(page)
    expect(text).toContain('<img src=x onerror=alert(1)>')
    expect(text).toContain('\\u{202e}')
    expect(HOSTILE).toContain('\u202E')
    expect(await page.locator('#page img, #page script').count()).toBe(0)
    await page.getByLabel('Theme').selectOption('dark')
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(19, 20, 22)')
    expect([asked, wrong]).toEqual([[], []])
  }, 120_000)

  it('B-EXPORT-12: a page whose log was cut says so, one of a damaged log says to which event it can be read, and what was left out is listed', async () => {
    const file = await told()
    const page = buildPage(file)
    const at = page.indexOf('"seq":5')
    const cut = await opened(written(page.slice(0, at) + page.slice(at + 40)), 1280, false)
    expect(await cut.page.locator('h2').innerText()).toBe('This file is not whole')
    const own = file.sessions[file.session]
    if (!own) throw new Error('no session')
    const events = own.events.slice(0, 10)
    const damaged = { ...own, events, damaged: { seq: 11, reason: 'its checksum is wrong' } }
    const sessions = { ...file.sessions, [file.session]: damaged }
    const { page: hurt } = await opened(
      written(buildPage({ ...file, sessions, left: [`The file ${'a'.repeat(64)} (${HOSTILE}, 9.0 MB).`] })),
      1280,
      false,
    )
    await textOf(hurt)
    expect(await hurt.locator('.notice').innerText()).toContain('readable to event 10: its checksum is wrong')
    await hurt.locator('summary', { hasText: '1 thing left out' }).click()
    expect(await hurt.locator('.file-left li').innerText()).toContain('9.0 MB')
    expect(await faults(hurt)).toEqual([])
  }, 120_000)
})
