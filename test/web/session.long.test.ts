// The page of one session in a real browser, beside a real server: rows, addresses, the panel, the past, what comes live, what people do.
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { next, type Session } from '../../src/kernel/index.ts'
import type { StateAnswer } from '../../src/server/wire.ts'
import { cardOf } from '../../src/view/card.ts'
import { usdText } from '../../src/view/usd.ts'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { sessionStage, type Stage } from './session-stage.ts'

const LONG = 120_000

async function rowsOf(page: Page): Promise<readonly string[]> {
  await page.waitForSelector('.line')
  return (await page.locator('.line').allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' ').trim())
}

/** The panel's facts, by name. */
async function factsOf(page: Page): Promise<Readonly<Record<string, string>>> {
  const rows = await page.locator('.side-facts > div').all()
  return Object.fromEntries(
    await Promise.all(
      rows.map(async (row) => [await row.locator('dt').innerText(), await row.locator('dd').innerText()]),
    ),
  ) as Record<string, string>
}

async function news(stage: Stage): Promise<string> {
  const id = await stage.open('Publish the news of Oslo.')
  await stage.rests(id)
  return id
}

describe.skipIf(noChromium)('the page of a session', () => {
  it(
    'B-WEB-30: what was said, turns with figures, calls with arguments, how each stands, and how runs ended, each with the number of its event',
    async () => {
      const stage = await sessionStage()
      const id = await news(stage)
      const { page, wrong } = await stage.look(`/s/${id}`)
      const rows = await rowsOf(page)
      expect(rows[1]).toBe('2 owner Publish the news of Oslo.')
      expect(rows[2]).toMatch(/^4 Turn 1 ∴ thinking 81 characters I look for the news first\. \d+ m?s 1\.3k \$0\.0015$/)
      expect(rows[3]).toMatch(/^5 search ✓ ok \{query: "news of Oslo", limit: 10\} \d+ m?s$/)
      expect(rows[4]).toMatch(/^5 fetch_page ✕ failed .* Error: https:\/\/news\.example\/oslo answered 503\. \d+ m?s$/)
      expect(rows[6]).toMatch(/^11 publish ◆ waits for approval once Review \{path: "news\.html"/)
      await stage.allows(id)
      await until(async () => expect((await rowsOf(page)).at(-1)).toMatch(/✓ run completed/))
      const later = await rowsOf(page)
      expect(later.some((row) => /allowed publish by owner · it is true/.test(row))).toBe(true)
      expect(await page.locator('.session-head .status').first().innerText()).toMatch(/completed/)
      expect(await page.locator('.session-head .money').innerText()).toBe('$0.0045')
      // A closed turn hides its calls.
      await page.getByRole('button', { name: 'Close Turn 1' }).click()
      expect((await rowsOf(page)).some((row) => row.includes('fetch_page'))).toBe(false)
      await page.getByRole('button', { name: 'Open publish 11.0' }).click()
      expect(await page.locator('.line-open').innerText()).toContain('Published news.html.')
      expect(wrong).toEqual([])
    },
    LONG,
  )

  it(
    'B-WEB-30: failures say their class and what to do, children lead to their sessions, nodes of a graph are steps',
    async () => {
      const stage = await sessionStage()
      const [fail, retry, parent, graph] = await Promise.all([
        stage.open('Fail please'),
        stage.open('Retry once'),
        stage.open('Delegate it'),
        stage.open({ topic: 'Oslo' }, 'report'),
      ])
      for (const id of [fail, retry, parent, graph]) await stage.rests(id)
      const page = await stage.page(`/s/${fail}`)
      expect((await rowsOf(page)).join('\n')).toContain(
        '✕ auth The key was refused (401). The provider refused the key.',
      )
      await page.goto(`${stage.url}/s/${retry}`)
      await until(async () =>
        expect((await rowsOf(page)).join('\n')).toMatch(/rate limit Too many requests\.[\s\S]*Turn 2/),
      )
      await page.goto(`${stage.url}/s/${graph}`)
      await until(async () =>
        expect((await rowsOf(page)).join('\n')).toMatch(/Step 1 [\s\S]*plan ✓ ok[\s\S]*search ✓ ok/),
      )
      await page.goto(`${stage.url}/s/${parent}`)
      await page.getByRole('link', { name: 'researcher →' }).first().click()
      await until(async () => expect((await rowsOf(page)).join('\n')).toContain('It rains in Oslo'))
      expect(new URL(page.url()).pathname).toBe(`/s/${encodeURIComponent(`${parent}~5.0`)}`)
    },
    LONG,
  )

  it(
    'B-WEB-31: the view and the chosen event are in the address; Back and Forward go through them; keys do the same',
    async () => {
      const stage = await sessionStage()
      const id = await news(stage)
      const page = await stage.page(`/s/${id}`)
      await rowsOf(page)
      await page.getByRole('link', { name: 'Event 4' }).click()
      await page.waitForSelector('.side')
      expect(new URL(page.url()).search).toBe('?e=4')
      await page.locator('.line.call').first().click()
      await until(async () => expect(await page.locator('.side h2').innerText()).toBe('search'))
      expect(new URL(page.url()).search).toBe('?e=5.0')
      await page.keyboard.press('w')
      await until(() => expect(new URL(page.url()).searchParams.get('v')).toBe('waterfall'))
      expect(await page.locator('.tab.here').innerText()).toBe('Waterfall')
      await page.goBack()
      await page.waitForSelector('.line')
      await page.goBack()
      await until(async () => expect(await page.locator('.side h2').innerText()).toBe('Request and reply'))
      await page.goForward()
      await until(async () => expect(await page.locator('.side h2').innerText()).toBe('search'))
      // An address is enough.
      await page.goto(`${stage.url}/s/${id}?e=11.0`)
      await until(async () => expect(await page.locator('.side h2').innerText()).toBe('publish'))
      expect(await page.locator('.list-row.chosen').innerText()).toContain('publish')
      await page.keyboard.press('k')
      await until(() => expect(new URL(page.url()).searchParams.get('e')).toBe('10'))
    },
    LONG,
  )

  it(
    'B-WEB-35: at an earlier event the page shows the session as it was, folded as the server folds it, and nothing can be sent or decided',
    async () => {
      const stage = await sessionStage()
      const id = await stage.open('Count 6')
      const { head } = await stage.rests(id)
      const page = await stage.page(`/s/${id}`)
      await rowsOf(page)
      for (const seq of [head - 1, 7, 15, 4, 22, 11]) {
        await page.locator('.slider input').fill(String(seq))
        await until(async () =>
          expect(await page.locator('.notice.accent').innerText()).toContain(`Event ${seq} of ${head}`),
        )
        const { session } = await stage.json<StateAnswer>('GET', `/v1/sessions/${id}/state?at=${seq}`)
        await until(async () => expect(await factsOf(page)).toMatchObject(expected(id, session)))
        const numbers = await page.locator('.line-seq').allInnerTexts()
        expect(Math.max(...numbers.map(Number))).toBeLessThanOrEqual(seq)
        expect(await page.getByRole('button', { name: 'Send…' }).isDisabled()).toBe(true)
      }
      await page.keyboard.press('Tab')
      await page.locator('h1').click()
      await page.keyboard.press('ArrowRight')
      await until(async () => expect(await page.locator('.slider-count').innerText()).toContain('12'))
      await page.keyboard.press('Shift+ArrowLeft')
      await until(async () => expect(await page.locator('.slider-count').innerText()).toContain('8'))
      await page.keyboard.press('.')
      await until(async () => expect(await page.locator('.notice.accent').count()).toBe(0))
      expect(await page.getByRole('button', { name: 'Send…' }).isEnabled()).toBe(true)
      // Reviewing from the past is not offered either.
      const waits = await news(stage)
      await page.goto(`${stage.url}/s/${waits}?at=11&e=11.0`)
      await until(async () =>
        expect(await page.locator('.side').innerText()).toContain('Go back to live to send or decide.'),
      )
      expect(await page.getByRole('link', { name: 'Review' }).count()).toBe(0)
      await page.getByRole('button', { name: 'Back to live' }).click()
      await until(async () => expect(await page.getByRole('link', { name: 'Review' }).count()).toBe(1))
    },
    LONG,
  )
})

/** What the panel says of a session. */
function expected(id: string, session: Session): Readonly<Record<string, string>> {
  const { status } = cardOf(id, session, next(session, { now: session.at, epoch: session.epoch }))
  const open = session.run?.turn?.open ?? []
  return {
    Status: expect.stringContaining(status === 'idle' ? (session.last?.type ?? 'new') : status) as string,
    Spent: usdText(session.cost),
    ...(open.length > 0 ? { 'Open calls': open.map(({ key, proposal }) => `${proposal.tool} ${key}`).join(', ') } : {}),
  }
}
