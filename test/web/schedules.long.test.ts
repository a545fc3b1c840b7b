// The schedules page in a real browser: wakes and messages for later, and who may cancel.
import { join } from 'node:path'
import { mkdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { OpenedAnswer } from '../../src/server/wire.ts'
import { repository } from '../tidy/source.ts'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { inspector } from './inspector.ts'

const SHOTS = join(repository, '.build/shots')

describe.skipIf(noChromium)('schedules', () => {
  it('B-SCHED-17: shows each wake and message with its time in the reader’s zone and its reason, and cancels a wake for those who may send', async () => {
    mkdirSync(SHOTS, { recursive: true })
    const one = await inspector(['Done.'])
    const session = await one.open('Keep an eye on the nightly build')
    await one.json('GET', `/v1/sessions/${session}/result?wait=20`)
    const at = Date.UTC(2030, 0, 31, 23, 30)
    const schedule = (of: string, body: object) => one.json('POST', `/v1/sessions/${of}/schedule`, { body })
    await schedule(session, { at, reason: 'Is the <b>nightly</b> build green?', key: 'nightly' })
    await schedule(session, { at: at + 9e6, reason: `Look ${'again '.repeat(60)}`, key: 'again' })
    await one.json('POST', `/v1/sessions/${session}/messages`, {
      body: { input: 'Write the weekly report.', at: at + 5e6 },
    })
    const { session: other } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: {} })
    await schedule(other, { inMs: 9e6, key: 'x' })
    const viewer = one.token({ name: 'vic', role: 'viewer' })
    for (const [width, dark] of [
      [1280, false],
      [390, true],
    ] as const) {
      const { page, wrong } = await one.tab('/schedules', { width, dark })
      await until(async () => expect(await page.locator('.due-time').count()).toBe(4))
      await page.screenshot({ path: join(SHOTS, `schedules-${width}.png`) })
      const wide = await page.evaluate('document.documentElement.scrollWidth <= innerWidth')
      expect([width, wide, wrong]).toEqual([width, true, []])
    }
    const seen = await one.tab('/schedules', { token: viewer })
    await until(async () => expect(await seen.page.locator('.due-time').count()).toBe(4))
    const cancels = seen.page.getByRole('button', { name: 'Cancel' })
    expect([await cancels.count(), await cancels.first().isDisabled()]).toEqual([3, true])
    const { page, wrong } = await one.tab('/schedules')
    const rows = page.locator('.due').nth(1).locator('.due-time')
    await until(async () => expect(await rows.count()).toBe(3))
    const zone = await page.evaluate(
      `new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium', hour12: false }).format(${at})`,
    )
    const texts = await rows.allInnerTexts()
    expect(texts[0]).toContain(String(zone))
    expect(texts[0]).toContain('Is the <b>nightly</b> build green?')
    expect(texts[1]).toContain('Message: Write the weekly report.')
    expect(texts[1]).not.toContain('Cancel')
    await rows.first().getByRole('button', { name: 'Cancel' }).click()
    await until(async () => expect(await page.locator('.toast').innerText()).toContain('Cancelled'))
    await until(async () => expect(await rows.count()).toBe(2))
    expect(wrong).toEqual([])
  }, 60_000)
})
