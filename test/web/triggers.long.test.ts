// The triggers page of a real server, in a real browser.
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { deadLetters } from '../../src/consumers/index.ts'
import { scripted } from '../../src/index.ts'
import { createTriggers } from '../../src/triggers/index.ts'
import { DROP, ESCALATE, NOTIFY, REACT, TARGETS } from '../triggers/stage.ts'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { inspector, peopleOf, type Inspector } from './inspector.ts'
import { SHOTS } from './stage.ts'

const HOSTILE = '<img src=x onerror="document.title=1"> build.failed'

function triggerStage() {
  const answers: Readonly<Record<string, string>> = { news: DROP, disk: NOTIFY, ticket: REACT, outage: ESCALATE }
  let broken = true
  const triage = scripted((request) => {
    const text = JSON.stringify(request.messages)
    const known = Object.keys(answers).find((each) => text.includes(`${each}.received`))
    if (known !== undefined) return answers[known] ?? DROP
    if (text.includes('away.received')) return { error: 'server' }
    return broken ? { error: 'auth' } : DROP
  })
  const triggers = createTriggers({
    models: [triage],
    sources: { mail: { targets: TARGETS }, 'status-page-of-the-shop': { targets: TARGETS } },
  })
  const subagents = { helper: { description: 'does small tasks' }, chief: { description: 'plans' } }
  const mended = (): void => {
    broken = false
  }
  return { options: { triggers, subagents }, mended }
}

async function deliver(one: Inspector, source: string, labels: readonly string[]): Promise<readonly string[]> {
  const sessions: string[] = []
  for (const label of labels) {
    const { sessionId } = await one.host.harness.trigger({ source, label, payload: `${label} in ${source}` })
    await until(async () => expect((await one.host.store.card(sessionId))?.outcome).not.toBe(null))
    sessions.push(sessionId)
  }
  return sessions
}

describe.skipIf(noChromium)('the triggers page', () => {
  it('B-TRIGGER-44: shows sources and the last triggers, filters them, leads to their sessions, and retries and drops dead ones', async () => {
    const { options, mended } = triggerStage()
    const one = await inspector(() => 'Done.', options)
    await deliver(one, 'status-page-of-the-shop', ['outage.received', 'away.received'])
    const labels = ['news.received', 'news.received', 'disk.received', 'ticket.received', HOSTILE, 'key.refused']
    await deliver(one, 'mail', labels)
    const { page, wrong } = await one.tab('/triggers')
    const rows = page.locator('.trigger')
    await until(async () => expect(await rows.count()).toBe(8))
    const mail = (await page.locator('.trigger-source', { hasText: 'mail' }).innerText()).split(/\s+/).join(' ')
    expect(mail).toContain('6 accepted 2 dropped 1 notified 1 reacted 0 escalated 0 deferred 2 dead')
    const ticket = await rows.filter({ hasText: 'ticket.received' }).innerText()
    for (const part of ['mail: A known task.', 'reacted', 'helper', 'first model']) expect(ticket).toContain(part)
    expect(await page.locator('.trigger img').count()).toBe(0)
    for (const [width, dark] of [
      [1280, false],
      [1280, true],
      [390, false],
      [390, true],
    ] as const) {
      const shown = await one.tab('/triggers', { width, dark })
      await shown.page.waitForSelector('.trigger')
      await shown.page.screenshot({ path: join(SHOTS, `triggers-${width}-${dark ? 'dark' : 'light'}.png`) })
      const wide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
      expect(await shown.page.evaluate(wide)).toBe(false)
      const last = shown.page.locator('.trigger-acts').last()
      await last.scrollIntoViewIfNeeded()
      await last.getByRole('button').last().click({ trial: true })
      expect(shown.wrong).toEqual([])
      await shown.page.close()
    }
    await page.getByLabel('Decision', { exact: true }).selectOption('dead')
    await until(async () => expect(await rows.count()).toBe(2))
    mended()
    await rows.filter({ hasText: 'key.refused' }).getByRole('button', { name: 'Retry' }).click()
    await until(async () => expect(await rows.count()).toBe(1))
    await rows.getByRole('button', { name: 'Drop' }).click()
    await rows.getByRole('button', { name: 'Drop it now' }).click()
    await until(async () => expect(await page.locator('.triggers').innerText()).toContain('No trigger is like this.'))
    await page.getByLabel('Decision', { exact: true }).selectOption('')
    await until(async () => expect(await rows.filter({ hasText: 'key.refused' }).innerText()).toContain('dropped'))
    expect(await rows.filter({ hasText: 'build.failed' }).innerText()).toContain('stopped')
    await page.getByLabel('Source', { exact: true }).selectOption('status-page-of-the-shop')
    await until(async () => expect(await rows.count()).toBe(2))
    await rows.getByRole('link', { name: 'outage.received' }).click()
    await page.waitForURL(/\/s\/trigger\./)
    expect(wrong).toEqual([])
  }, 180_000)

  it('B-CONSUME-29: shows dead letters of consumers, retries and drops them, and says who was first', async () => {
    let isDeaf = true
    const told: string[] = []
    const run = async ({ session }: { readonly session: string }) => {
      if (isDeaf) throw new Error(HOSTILE)
      told.push(session)
    }
    const plugins = [{ name: 'watch', consumers: [{ name: 'desk', attempts: 1, run }] }]
    const one = await inspector(() => 'Done.', { plugins })
    for (const id of ['first', 'second', 'third']) {
      await (await one.host.harness.open({ id })).run('Hello.')
      await until(async () =>
        expect((await deadLetters(one.host.harness)).at(-1)?.about).toMatchObject({ session: id }),
      )
    }
    const { page, wrong } = await one.tab('/triggers')
    const rows = page.locator('.letter')
    await until(async () => expect(await rows.count()).toBe(3))
    expect(await page.locator('.triggers').innerText()).toContain('3 runs could not be told')
    expect(await rows.first().innerText()).toContain(`desk: ${HOSTILE}`)
    expect(await page.locator('.letter img').count()).toBe(0)
    for (const width of [1280, 390]) {
      const shown = await one.tab('/triggers', { width })
      await shown.page.waitForSelector('.letter')
      await shown.page.screenshot({ path: join(SHOTS, `letters-${width}.png`) })
      const wide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
      expect(await shown.page.evaluate(wide)).toBe(false)
      expect(shown.wrong).toEqual([])
      await shown.page.close()
    }
    isDeaf = false
    await rows.filter({ hasText: 'first' }).getByRole('button', { name: 'Retry' }).click()
    await until(async () => expect(await rows.count()).toBe(2))
    await until(() => expect(told).toEqual(['first']))
    await rows.filter({ hasText: 'second' }).getByRole('button', { name: 'Drop' }).click()
    await rows.getByRole('button', { name: 'Drop it now' }).click()
    await until(async () => expect(await rows.count()).toBe(1))
    // Somebody else drops the last one, which this page still shows.
    const { otto = '', vera = '' } = peopleOf(one)
    const viewer = await one.tab('/triggers', { token: vera })
    await viewer.page.waitForSelector('.letter')
    expect(await viewer.page.locator('.letter').getByRole('button', { name: 'Retry' }).isDisabled()).toBe(true)
    const [letter] = await deadLetters(one.host.harness)
    const body = { lane: letter?.lane, key: letter?.key, decision: 'drop' }
    await one.json('POST', '/v1/letters', { token: otto, body })
    await rows.getByRole('button', { name: 'Retry' }).click()
    await until(async () =>
      expect(await page.locator('.toasts').innerText()).toMatch(/otto decided|has no dead letter/),
    )
    await until(async () => expect(await rows.count()).toBe(0))
    expect(told).toEqual(['first'])
    expect(wrong).toEqual([])
  }, 180_000)

  it('B-TRIGGER-45: says how to configure triggers, who decided first, and who may decide', async () => {
    const plain = await inspector(() => 'Done.')
    const empty = await plain.tab('/triggers')
    await empty.page.waitForSelector('.face')
    expect(await empty.page.locator('.face').innerText()).toMatch(/No triggers are configured[^]*createTriggers/)
    const { options } = triggerStage()
    const one = await inspector(() => 'Done.', options)
    const fresh = await one.tab('/triggers')
    await until(async () => expect(await fresh.page.locator('.triggers').innerText()).toContain('Nothing has come in'))
    const [session = ''] = await deliver(one, 'mail', ['key.refused'])
    const { vera = '', otto = '' } = peopleOf(one)
    const viewer = await one.tab('/triggers', { token: vera })
    await viewer.page.waitForSelector('.trigger-acts')
    for (const name of ['Retry', 'Drop'])
      expect(await viewer.page.getByRole('button', { name }).isDisabled()).toBe(true)
    const { page } = await one.tab('/triggers')
    await page.waitForSelector('.trigger-acts')
    await one.json('POST', `/v1/triggers/${session}/drop`, { token: otto, body: {} })
    await page.getByRole('button', { name: 'Retry' }).click()
    await until(async () => expect(await page.locator('.toasts').innerText()).toContain('dropped already by otto'))
    await until(async () => expect(await page.locator('.trigger').innerText()).toContain('stopped'))
    const own = await one.tab('/triggers', { token: one.token({ name: 'eva', role: 'viewer', reach: 'own' }) })
    await own.page.waitForSelector('.face.bad')
    expect(await own.page.locator('.face').innerText()).toContain('need a token with the reach')
  }, 180_000)
})
