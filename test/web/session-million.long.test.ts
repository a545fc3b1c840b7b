// A log of a million events in a real file, behind a real server, in a real browser. Making it takes about half a minute.
import { expect, it } from 'vitest'
import type { StateAnswer } from '../../src/server/wire.ts'
import { usdText } from '../../src/view/usd.ts'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { MILLION, million } from './million.ts'
import { sessionStage } from './session-stage.ts'

it.skipIf(noChromium)(
  'B-WEB-32: a log of a million events opens at its end, and its first, its middle and any other event are reached by slider, link and keys',
  async () => {
    const stage = await sessionStage({ harness: { worker: { drives: false } } })
    await million(stage.host.store)
    const { page, wrong } = await stage.look('/s/million')
    const numbers = async (): Promise<readonly number[]> =>
      (await page.locator('.line-seq').allInnerTexts()).map(Number)
    const shows = (seq: number) =>
      until(async () => expect((await numbers()).some((each) => Math.abs(each - seq) < 8)).toBe(true))
    await page.waitForSelector('.line')
    await shows(MILLION)
    for (const seq of [500_000, 1, 999_999, 3, 123_456, 777_777]) {
      await page.locator('.slider input').fill(String(seq))
      await until(async () =>
        expect(await page.locator('.side').innerText()).toContain(
          `The session after event ${seq.toLocaleString('en')}`,
        ),
      )
      await shows(seq)
      const { session } = await stage.json<StateAnswer>('GET', `/v1/sessions/million/state?at=${seq}`)
      expect(await page.locator('.side').innerText()).toContain(usdText(session.cost))
    }
    await page.goto(`${stage.url}/s/million?e=654321`)
    await shows(654_321)
    expect(await page.locator('.list-row.chosen').count()).toBe(1)
    // Up and up: it reads on, and does not jump.
    await page.locator('.timeline').focus()
    await until(async () => {
      await page.keyboard.press('PageUp')
      expect(Math.min(...(await numbers()))).toBeLessThan(654_321 - 600)
    })
    await page.locator('h1').click()
    await page.keyboard.press('.')
    await shows(MILLION)
    expect(wrong).toEqual([])
  },
  400_000,
)
