// "What if…" at the slider in a real browser, over a real server: from the window to the result beside the original.
import { mkdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { talking, type Talk, turnOf, world } from '../whatif/stage.ts'
import { faults } from './faults.ts'
import { sessionStage } from './session-stage.ts'
import { looks, SHOTS } from './stage.ts'

const TALK: Talk = (request) => {
  const careful = request.instructions.includes('careful')
  if (turnOf(request) === 0) return { text: 'First I look.', calls: [{ tool: 'look', args: { what: 'the invoice' } }] }
  if (turnOf(request) === 1 && careful)
    return { text: 'I look twice.', calls: [{ tool: 'look', args: { what: 'the bank' } }] }
  if (turnOf(request) === (careful ? 2 : 1))
    return { text: 'I pay.', calls: [{ tool: 'pay', args: { to: 'ann', amount: 3 } }] }
  return careful ? 'Paid, and looked at twice.' : 'Paid.'
}

async function stage() {
  const ran: string[] = []
  const { look, pay } = world(ran)
  const harness = { model: talking(TALK, [], 'careful-one'), tools: [look, pay], instructions: 'Pay what is due.' }
  const one = await sessionStage({ harness })
  const id = await one.open('Pay the invoice.')
  await until(async () => expect((await one.host.store.card(id))?.outcome).toBe('completed'))
  ran.length = 0
  return { one, id, ran }
}

describe.skipIf(noChromium)('what if, at the slider', () => {
  it('B-WEB-150: asks from the shown event with a model, instructions and tools, and shows the result beside the original', async () => {
    const { one, id, ran } = await stage()
    mkdirSync(SHOTS, { recursive: true })
    const { page, wrong } = await one.look(`/s/${id}?at=2`)
    await page.getByRole('button', { name: 'What if…' }).click()
    await page.waitForSelector('dialog[open]')
    expect(await page.locator('dialog h2').innerText()).toBe('What if, from event 2…')
    // Only the tool that reads can be chosen to run.
    expect(await page.locator('.what-if-tools label').allInnerTexts()).toEqual([expect.stringContaining('look')])
    await page.getByLabel('Model').fill('nobody')
    await page.getByRole('button', { name: 'Show beside the original' }).click()
    expect(await page.locator('[role=alert]').innerText()).toContain('nobody')
    await page.getByLabel('Model').fill('careful-one')
    await page.getByLabel('Instructions').fill('Be careful: look twice.')
    await page.locator('.what-if-tools select').selectOption('recorded_or_live')
    await page.screenshot({ path: `${SHOTS}/what-if-1280-light.png` })
    expect(await faults(page)).toEqual([])
    await page.getByRole('button', { name: 'Show beside the original' }).click()
    await page.waitForSelector('.cmp-pair')
    expect(new URL(page.url()).searchParams.get('a')).toBe(id)
    expect(await page.locator('.page-head h1').innerText()).toBe('What if')
    expect(await page.locator('.cmp-head').innerText()).toContain('What if, from event 2')
    expect(await page.locator('.cmp-first').count()).toBe(1)
    expect(await page.locator('.page').innerText()).toContain('Paid, and looked at twice.')
    expect(await page.locator('.what-if-facts').innerText()).toContain('0 answers not in the recording')
    expect(ran).toEqual(['look the bank'])
    // Steps of a what-if have no page of their own.
    expect(await page.locator('.cmp-pair.differs .cmp-cell:last-child a').count()).toBe(0)
    for (const { width, dark } of looks()) {
      await page.setViewportSize({ width, height: 860 })
      await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' })
      await page.screenshot({ path: `${SHOTS}/what-if-compare-${width}-${dark ? 'dark' : 'light'}.png` })
      expect([width, dark, await faults(page)]).toEqual([width, dark, []])
      expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
    }
    expect(wrong.filter((each) => !each.includes('400'))).toEqual([])
    await page.reload()
    expect(await page.locator('.face h2').innerText()).toBe('This what-if is gone')
  }, 200_000)

  it('B-WEB-151: the recording alone answers without a model; what it does not have is listed; a viewer cannot ask', async () => {
    const { one, id } = await stage()
    const { page } = await one.look(`/s/${id}?at=4`, { width: 390, dark: true })
    await page.waitForSelector('.slider')
    expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
    await page.screenshot({ path: `${SHOTS}/what-if-slider-390-dark.png` })
    await page.getByRole('button', { name: 'What if…' }).click()
    await page.waitForSelector('dialog[open]')
    await page.screenshot({ path: `${SHOTS}/what-if-390-dark.png` })
    expect(await faults(page)).toEqual([])
    await page.getByRole('button', { name: 'Show beside the original' }).click()
    await page.waitForSelector('.cmp-head')
    expect(await page.locator('.page-head p').innerText()).toBe('They said and did the same')
    await page.goBack()
    await page.getByRole('button', { name: 'What if…' }).click()
    await page.getByLabel('Instructions').fill('Otherwise.')
    await page.getByRole('button', { name: 'Show beside the original' }).click()
    await page.waitForSelector('.what-if-facts li')
    expect(await page.locator('.what-if-facts').innerText()).toContain('A request was different')
    const viewer = await one.look(`/s/${id}?at=4`, { token: one.token({ name: 'vera', role: 'viewer' }) })
    await viewer.page.waitForSelector('.slider')
    expect(await viewer.page.getByRole('button', { name: 'What if…' }).count()).toBe(0)
  }, 200_000)
})
