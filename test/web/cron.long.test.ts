// Cron jobs on the schedules page of a real server, in a real browser.
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cronPlanner } from '../../src/cron/index.ts'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { inspector, peopleOf } from './inspector.ts'
import { SHOTS } from './stage.ts'

const NIGHTLY = {
  name: 'nightly-report',
  line: '0 3 * * *',
  zone: 'Europe/Oslo',
  prompt: 'Write the <b>report</b> of the night.',
}

describe.skipIf(noChromium)('cron jobs on the schedules page', () => {
  it('B-CRON-23: the page shows each job with its line, its next five times and its last run, and runs and switches it', async () => {
    const one = await inspector(() => 'Done.', { graphs: [cronPlanner()] })
    const add = (job: object) => one.json('POST', '/v1/cron', { body: { action: 'add', job } })
    await add(NIGHTLY)
    await add({ ...NIGHTLY, name: 'inbox', line: '*/15 8-18 * * MON-FRI', zone: 'America/New_York', overlap: 'queue' })
    await add({ ...NIGHTLY, name: 'cleanup', line: '0 4 1 * *', on: false })
    const { page, wrong } = await one.tab('/schedules')
    await until(async () => expect(await page.locator('.cron-job').count()).toBe(3))
    const job = page.locator('.cron-job', { hasText: 'nightly-report' })
    const text = await job.innerText()
    for (const part of ['0 3 * * *', 'Europe/Oslo', 'Write the <b>report</b> of the night.', 'Has not run yet'])
      expect(text).toContain(part)
    expect(await job.locator('.cron-next li').count()).toBe(5)
    await job.getByRole('button', { name: 'Run now' }).click()
    await until(async () => expect(await job.innerText()).toContain('completed'))
    await job.getByRole('button', { name: 'Switch off' }).click()
    await until(async () => expect(await job.innerText()).toContain('No next time'))
    await job.getByRole('button', { name: 'Switch on' }).click()
    await until(async () => expect(await job.locator('.cron-next li').count()).toBe(5))
    // A job is no second row among the sessions that wake.
    expect(await page.locator('.due').count()).toBe(0)
    expect(wrong).toEqual([])
    for (const [width, dark] of [
      [1280, false],
      [1280, true],
      [390, false],
      [390, true],
    ] as const) {
      const shown = await one.tab('/schedules', { width, dark })
      await shown.page.waitForSelector('.cron-job')
      await shown.page.screenshot({ path: join(SHOTS, `cron-${width}-${dark ? 'dark' : 'light'}.png`) })
      const wide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
      expect(await shown.page.evaluate(wide)).toBe(false)
      const last = shown.page.locator('.cron-job').last()
      await last.scrollIntoViewIfNeeded()
      await last.getByRole('button').last().click({ trial: true })
      await shown.page.close()
    }
    const { vera } = peopleOf(one)
    const other = await one.tab('/schedules', { token: vera })
    await other.page.waitForSelector('.cron-job')
    expect(await other.page.getByRole('button', { name: 'Run now' }).first().isDisabled()).toBe(true)
  }, 120_000)
})
