// A session whose page is open while it works: text that comes in pieces, a page that is loaded again, an attempt that was lost, messages
// of several people, and what the buttons do.
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { Model } from '../../src/index.ts'
import { moment } from '../graphs/moment.ts'
import { PEOPLE } from '../server/served.ts'
import { Tale } from '../tracing/tale.ts'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { written } from './session-server.ts'
import { sessionStage, type Stage } from './session-stage.ts'

const LONG = 120_000
const FIRST = 'The page is '
const REST = 'ready, and **nobody** reads it twice.'

/** Says half of a sentence, and the rest when the test lets it. */
function speaking() {
  const go = moment()
  const model: Model = {
    name: 'speaking',
    async call(_, { emit, signal }) {
      emit({ kind: 'reasoning', part: 0, text: 'I think.' })
      emit({ kind: 'text', part: 1, text: FIRST })
      await Promise.race([go.here, new Promise((stop) => signal.addEventListener('abort', stop))])
      if (signal.aborted) return { type: 'failure', class: 'other', message: 'aborted', retryable: false } as never
      emit({ kind: 'text', part: 1, text: REST })
      const parts = [{ type: 'reasoning', text: 'I think.' } as const, { type: 'text', text: FIRST + REST } as const]
      return { type: 'reply', parts, calls: [], finish: 'stop', usage: null }
    },
  }
  return { go: go.come, model }
}

async function speakingStage(): Promise<{ readonly stage: Stage; readonly go: () => void }> {
  const { go, model } = speaking()
  return { stage: await sessionStage({ harness: { model } as object }), go }
}

const times = async (page: Page, text: string): Promise<number> =>
  (await page.locator('.timeline').innerText()).split(text).length - 1

describe.skipIf(noChromium)('a session at work', () => {
  it(
    'B-WEB-36: text appears while it is said, also on a page that is opened or loaded again meanwhile, and stands there once when it is whole',
    async () => {
      const { stage, go } = await speakingStage()
      const id = await stage.open('Say something.')
      const page = await stage.page(`/s/${id}`)
      await until(async () => expect(await times(page, 'The page is')).toBe(1))
      expect(await page.locator('.line.saying').innerText()).toContain('thinking…')
      await page.reload()
      await until(async () => expect(await times(page, 'The page is')).toBe(1))
      const other = await stage.page(`/s/${id}`)
      await until(async () => expect(await times(other, 'The page is')).toBe(1))
      go()
      for (const each of [page, other]) {
        await until(async () => expect(await each.locator('.line.saying').count()).toBe(0))
        expect([await times(each, 'The page is'), await times(each, 'ready, and nobody reads')]).toEqual([1, 1])
      }
    },
    LONG,
  )

  it(
    'B-WEB-37: an attempt that was lost is shown as lost, with the one that followed, and long waits are one row',
    async () => {
      const stage = await sessionStage({ harness: { worker: { drives: false } } })
      const tale = new Tale('lost-one')
      const said = tale.say('Go.')
      tale.begin([said])
      tale.ask([said])
      tale.epoch = 2
      tale.add({ type: 'model.failed', class: 'lost', message: 'The worker was lost.', retryable: true })
      tale.ask()
      tale.reply([], { cost: 500 })
      tale.add({ type: 'run.settled', outcome: { type: 'completed' } })
      tale.at += 7_200_000
      tale.say('More.')
      const page = await stage.page(`/s/${await written(stage, tale)}`)
      await page.waitForSelector('.line.settled')
      const text = (await page.locator('.timeline').innerText()).replaceAll(/\s+/g, ' ')
      expect(text).toMatch(/Turn 1 ! attempt lost .*! attempt lost, asked again · The worker was lost\. .*Turn 2/)
      expect(text).toContain('idle 2h 00m, waiting for a message')
      expect(await page.locator('.slider-mark.idle').getAttribute('title')).toBe('idle 2h 00m')
    },
    LONG,
  )

  it(
    'B-WEB-41: operators send, interrupt and fork; those who may only look see no such buttons',
    async () => {
      const { stage, go } = await speakingStage()
      const [viewer, operator] = PEOPLE
      const id = await stage.open('Say something.')
      const { page } = await stage.look(`/s/${id}`, { token: stage.token(operator as (typeof PEOPLE)[0]) })
      await page.waitForSelector('.line.saying')
      await page.keyboard.press('s')
      await page.fill('textarea', 'And hurry <b>up</b>.')
      await page.keyboard.press('Control+Enter')
      await until(async () =>
        expect(await page.locator('.line.message').last().innerText()).toContain('And hurry <b>up</b>.'),
      )
      expect(await page.locator('.line.message').last().innerText()).toContain('otto')
      await page.getByRole('button', { name: 'Interrupt' }).click()
      await until(async () => expect(await page.locator('.line.settled').innerText()).toContain('interrupted'))
      // B-SERVE-89: and by whom.
      expect(await page.getByText('interrupted by otto').count()).toBe(1)
      go()
      await page.getByRole('button', { name: 'Fork here' }).first().click()
      await page.getByRole('dialog').getByRole('button', { name: 'Fork', exact: true }).click()
      await until(() => expect(new URL(page.url()).pathname).not.toBe(`/s/${id}`))
      await until(async () =>
        expect(await page.locator('.line.divider').innerText()).toContain(`forked from ${id} at event`),
      )
      // What was said before the fork is above it.
      expect(await page.locator('.list-row.origin').first().innerText()).toContain('begun')
      const looker = await stage.look(`/s/${id}`, { token: stage.token(viewer as (typeof PEOPLE)[0]) })
      await looker.page.waitForSelector('.line')
      for (const name of ['Send…', 'Interrupt', 'Fork here'])
        expect(await looker.page.getByRole('button', { name }).count()).toBe(0)
      await looker.page.getByRole('button', { name: 'More' }).click()
      expect(await looker.page.locator('.menu-items').innerText()).not.toMatch(/Wake|Close|Undo/)
      expect(await looker.page.locator('.menu-items').innerText()).toMatch(/Download the log[\s\S]*Copy curl/)
    },
    LONG,
  )
})
