// Pins on the page of a session, in a real browser: see them, pin a rule, let it go.
import { mkdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { PinsAnswer } from '../../src/server/wire.ts'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { sessionStage } from './session-stage.ts'

describe.skipIf(noChromium)('the pins of a session', () => {
  it('B-RULE-4: are listed, added and let go by a button of the page', { timeout: 120_000 }, async () => {
    const stage = await sessionStage()
    const id = await stage.open('Publish the news of Oslo.')
    await stage.rests(id)
    await stage.allows(id)
    await stage.rests(id)
    const pins = async () =>
      (await stage.json<PinsAnswer>('GET', `/v1/sessions/${id}/pins`)).pins.map(({ text }) => text)
    const { page, wrong } = await stage.look(`/s/${id}`)
    await until(async () =>
      expect(await page.locator('.session-head .status').first().innerText()).toMatch(/completed/),
    )
    await page.getByRole('button', { name: 'Pins' }).click()
    await until(async () => expect(await page.locator('.dialog').innerText()).toContain('Nothing is pinned.'))
    await page.getByLabel('Rule to pin').fill('Only ever deploy to staging. <b>\u001b[2J')
    await page.getByRole('button', { name: 'Pin', exact: true }).click()
    await until(async () =>
      expect(await page.locator('.pins').innerText()).toContain('Only ever deploy to staging. <b>'),
    )
    expect(await pins()).toEqual(['Only ever deploy to staging. <b>\u001b[2J'])
    mkdirSync('.build/shots', { recursive: true })
    await page.screenshot({ path: '.build/shots/pins.png' })
    await page.getByRole('button', { name: /^Unpin/ }).click()
    await until(async () => expect(await page.locator('.dialog').innerText()).toContain('Nothing is pinned.'))
    expect(await pins()).toEqual([])
    expect(wrong).toEqual([])
  })
})
