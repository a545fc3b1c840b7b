// The inbox on a real server with two people and their tabs: what is shown, who decides, who comes too late, and what cannot be decided.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool } from '../../src/index.ts'
import type { Event } from '../../src/kernel/index.ts'
import { askUserTool } from '../../src/tools/index.ts'
import { tool } from '../runtime/scene.ts'
import type { Served } from '../server/served.ts'
import { repository } from '../tidy/source.ts'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { inspector, peopleOf } from './inspector.ts'

const publish = tool('publish', { approval: 'ask', effect: 'once' })
const asks = { text: 'It only reads.', calls: [{ tool: 'publish', args: { n: 7 } }] }
/** Pictures to look at, as the other tests of the pages leave them. */
const shots = join(repository, '.build/shots')
mkdirSync(shots, { recursive: true })
/** The press of a button right after it came is not taken. */
const SETTLED_MS = 500

async function logOf(one: Served, session: string): Promise<readonly Event[]> {
  return (await one.host.store.read(session, 0)).events
}

const isDecision = ({ type }: Event): boolean => type === 'user.tool_confirmation'

async function ready(page: Page): Promise<void> {
  await page.waitForSelector('.decision')
  await page.waitForTimeout(SETTLED_MS)
}

describe.skipIf(noChromium)('the inbox', () => {
  it('B-WEB-74: shows what waits, the oldest first, with the exact arguments, the digest and the words of the model; the address names one', async () => {
    const one = await inspector([asks, asks], { tools: [publish] })
    const first = await one.open('The first.')
    await one.waiting(first)
    const second = await one.open('The second.')
    const { digest, callId } = await one.waiting(second)
    const { page, wrong } = await one.tab(`/inbox?session=${second}&call=${callId}`)
    await ready(page)
    expect(await page.locator('.page-head').innerText()).toMatch(/2 waiting · oldest/)
    expect(await page.locator('.inbox-about').allInnerTexts()).toEqual([
      'The first. · default',
      'The second. · default',
    ])
    expect(await page.locator('.inbox-item.chosen').innerText()).toContain('The second.')
    expect(await page.evaluate('document.activeElement.innerText')).toBe('Allow publish?')
    const detail = await page.locator('.waiting').innerText()
    for (const text of [
      'once',
      'Exact arguments',
      '7 characters',
      digest?.slice(0, 12) ?? '',
      'What the model says of it',
      'It only reads.',
    ])
      expect(detail).toContain(text)
    expect(await page.title()).toBe('(2) Terret')
    expect(await page.locator('link[rel=icon]').getAttribute('href')).toContain('data:image/svg')
    expect(wrong).toEqual([])
  }, 60_000)

  it('B-PAGE2-29: what a removed session asked cannot be allowed any more within seconds, and is not counted', async () => {
    const one = await inspector([asks, asks], { tools: [publish] })
    const [first, second] = [await one.open('The first.'), await one.open('The second.')]
    const { callId } = await one.waiting(first)
    await one.waiting(second)
    const { page, wrong } = await one.tab(`/inbox?session=${first}&call=${callId}`)
    await ready(page)
    // What it may have missed before its stream is read again first.
    await page.waitForTimeout(3_000)
    const removedAt = Date.now()
    await one.json('DELETE', `/v1/sessions/${first}`)
    await until(async () => expect(await page.locator('.page-head').innerText()).toContain('1 waiting'))
    expect(await page.locator('.waiting').innerText()).toContain('It does not wait any more')
    expect(await page.getByRole('button', { name: 'Allow once' }).count()).toBe(0)
    expect(Date.now() - removedAt).toBeLessThan(10_000)
    expect(wrong).toEqual([])
  }, 60_000)

  it('B-WEB-75: allows by a press of a person on the button, with the digest that is shown; no key, no script and no second click does', async () => {
    const one = await inspector([asks, asks, 'Done.', 'Done.'], { tools: [publish] })
    const sessions = [await one.open('The first.'), await one.open('The second.')]
    for (const session of sessions) await one.waiting(session)
    const { page } = await one.tab('/inbox')
    await ready(page)
    await page.evaluate("[...document.querySelectorAll('.decision button')].forEach((button) => button.click())")
    for (const key of ['a', 'y', 'd', 'Enter', 'Control+Enter']) await page.keyboard.press(key)
    await page.locator('.decision input').focus()
    await page.keyboard.press('Enter')
    expect((await logOf(one, sessions[0] ?? '')).some(isDecision)).toBe(false)
    const sent = page.waitForRequest((request) => request.url().includes('/decisions'))
    const shown = await page.locator('.exact-digest code').getAttribute('title')
    await page.fill('.decision input', 'I read it.')
    await page.getByRole('button', { name: 'Allow once' }).dblclick()
    expect(JSON.parse((await sent).postData() ?? '')).toMatchObject({ allow: true, digest: shown, why: 'I read it.' })
    await until(async () => {
      const decided = await Promise.all(sessions.map(async (id) => (await logOf(one, id)).filter(isDecision).length))
      expect(decided.toSorted((a, b) => a - b)).toEqual([0, 1])
    })
    await until(async () => expect(await page.locator('.page-head').innerText()).toContain('1 waiting'))
    await page.waitForSelector('.decision.over')
    expect(await page.evaluate('document.activeElement.id')).toBe('waiting')
  }, 60_000)

  it.each([
    ['all that waits', () => '/inbox'],
    ['one session', (session: string) => `/inbox?session=${session}`],
  ] as const)(
    'B-REFUSE-1: clicks on the same place decide one call: in the inbox of %s the decided call stays until a person moves on',
    async (_of, addressOf) => {
      const both = { calls: [1, 2].map((n) => ({ tool: 'publish', args: { n }, id: `c${n}` })) }
      const one = await inspector([both, 'Done.'], { tools: [publish] })
      const session = await one.open('The first.')
      await one.waiting(session)
      const { page } = await one.tab(addressOf(session))
      await ready(page)
      const box = await page.getByRole('button', { name: 'Allow once' }).boundingBox()
      if (!box) throw new Error('there is no button')
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
      for (let click = 0; click < 3; click++) {
        await page.mouse.click(x, y)
        await page.waitForTimeout(SETTLED_MS * 2)
      }
      expect((await logOf(one, session)).filter(isDecision)).toMatchObject([{ call: '5.0' }])
      expect(await page.locator('.decision.over').innerText()).toContain('Allowed: publish')
      expect(await page.locator('.waiting-facts').innerText()).toContain('5.0')
      await page.screenshot({ path: join(shots, 'inbox-decided.png') })
      await page.getByRole('button', { name: 'Next' }).click()
      await until(async () => expect(await page.locator('.waiting-facts').innerText()).toContain('5.1'))
      await page.waitForTimeout(SETTLED_MS)
      await page.getByRole('button', { name: 'Allow once' }).click()
      await until(async () => expect((await logOf(one, session)).filter(isDecision)).toHaveLength(2))
    },
    60_000,
  )

  it('B-EDITED-11: a call is edited in the inbox, its difference is shown before and after, and it runs with the new arguments', async () => {
    const ran: unknown[] = []
    const pay = defineTool({
      name: 'pay',
      description: 'pay',
      input: z.object({ to: z.string(), cents: z.number() }),
      effect: 'once',
      approval: 'ask',
      execute: (args) => {
        ran.push(args)
        return 'paid'
      },
    })
    const one = await inspector([{ calls: [{ tool: 'pay', args: { to: 'ann', cents: 500 } }] }, 'Done.'], {
      tools: [pay],
    })
    const session = await one.open('Pay.')
    await one.waiting(session)
    const { page, wrong } = await one.tab('/inbox')
    await ready(page)
    await page.getByRole('button', { name: 'Edit' }).click()
    const field = page.getByLabel('Arguments as JSON')
    await field.fill('{ "to": "ann", ')
    expect(await page.locator('.decision').innerText()).toContain('no JSON')
    expect(await page.getByRole('button', { name: /^Allow/ }).isDisabled()).toBe(true)
    await field.fill('{ "to": "ann", "cents": "many" }')
    await page.getByRole('button', { name: 'Allow with these arguments' }).click()
    await page.waitForSelector('.decision [role=alert]')
    expect(ran).toEqual([])
    await field.fill('{ "to": "ann", "cents": 50 }')
    expect(await page.locator('.decision .diff').innerText()).toMatch(/"cents": 500[^]*"cents": 50/)
    await page.screenshot({ path: join(shots, 'inbox-edit.png') })
    await page.getByRole('button', { name: 'Allow with these arguments' }).click()
    await until(() => expect(ran).toEqual([{ to: 'ann', cents: 50 }]))
    await page.goto(`${one.server.url}/s/${session}`)
    await page.waitForSelector('text=edited by')
    await page.screenshot({ path: join(shots, 'session-edited.png') })
    expect(await page.locator('main').innerText()).toMatch(/cents: 500 → 50/)
    expect(wrong.filter((text) => !text.includes('400'))).toEqual([])
  }, 60_000)

  it('B-WEB-76: of two tabs that decide at once one is heard, and the other is told who and when, and keeps what it showed', async () => {
    const one = await inspector([asks, 'Done.'], { tools: [publish] })
    const { ana, bob } = peopleOf(one)
    const session = await one.open('Go.')
    await one.waiting(session)
    const tabs = await Promise.all([ana, bob].map((token) => one.tab('/inbox', { token })))
    for (const { page } of tabs) await ready(page)
    const names = ['Allow once', 'Deny']
    await Promise.all(tabs.map(({ page }, i) => page.getByRole('button', { name: names[i] ?? '' }).click()))
    const said = await Promise.all(
      tabs.map(async ({ page }) => {
        await page.waitForSelector('.decision.over')
        return page.locator('.decision.over').innerText()
      }),
    )
    const log = (await logOf(one, session)).filter(isDecision)
    expect(log).toHaveLength(1)
    const winner = log[0]?.type === 'user.tool_confirmation' ? log[0].by : ''
    const loser = said[winner === 'ana' ? 1 : 0]
    expect(loser).toMatch(new RegExp(`${winner} (allowed|denied) call 5.0 at \\d{4}-|It does not wait any more`))
    for (const { page } of tabs) {
      expect(await page.locator('.waiting h2').innerText()).toBe('Allow publish?')
      expect(await page.getByRole('button', { name: 'Allow once' }).count()).toBe(0)
    }
  }, 60_000)

  it('B-WEB-76: what is decided elsewhere is said where it is shown, and nothing takes its place by itself', async () => {
    const one = await inspector([asks, asks, 'Done.'], { tools: [publish] })
    const session = await one.open('The first.')
    const { callId, digest } = await one.waiting(session)
    await one.waiting(await one.open('The second.'))
    const { page } = await one.tab('/inbox')
    await ready(page)
    await one.json('POST', `/v1/sessions/${session}/decisions`, { body: { callId, digest, allow: false } })
    await page.waitForSelector('.decision.over')
    expect(await page.locator('.waiting').innerText()).toContain('It does not wait any more')
    expect(await page.locator('.waiting-facts').innerText()).toContain('The first.')
    await page.waitForTimeout(SETTLED_MS)
    await page.getByRole('button', { name: 'Next' }).click()
    await until(async () => expect(await page.locator('.waiting-facts').innerText()).toContain('The second.'))
  }, 60_000)

  it('B-WEB-77: an old digest, an expired question and a wrong role decide nothing, and the page says why', async () => {
    const rules = [{ effect: 'ask', tool: 'publish', roles: ['lead'] }] as const
    const one = await inspector([asks, 'Done.'], { tools: [publish], approvals: { policy: { rules } } })
    const { vera, otto } = peopleOf(one)
    const gus = one.token({ name: 'gus', role: 'approver', roles: ['guest'] })
    const session = await one.open('Go.')
    await one.waiting(session)
    for (const [token, why] of [
      [vera, 'needs a token with the role approver. Yours is viewer'],
      [otto, 'needs a token with the role approver. Yours is operator'],
      [gus, 'the role lead, which your token has not'],
    ]) {
      const { page } = await one.tab('/inbox', { token })
      await ready(page)
      expect(await page.getByRole('button', { name: 'Allow once' }).isDisabled()).toBe(true)
      expect(await page.locator('.decision').innerText()).toContain(why)
    }
    const { page } = await one.tab('/inbox', {
      // What the page was told is older than what waits.
      prepare: async (tab) => {
        await tab.route('**/v1/pending', async (route) => {
          const text = await (await route.fetch()).text()
          await route.fulfill({ body: text.replace(/"digest":"[0-9a-f]{64}"/, `"digest":"${'0'.repeat(64)}"`) })
        })
      },
    })
    await ready(page)
    await page.getByRole('button', { name: 'Allow once' }).click()
    await page.waitForSelector('[role=alert]')
    expect(await page.locator('.waiting').innerText()).toContain('is not the action you saw')
    expect((await logOf(one, session)).some(({ type }) => type === 'agent.tool_use')).toBe(false)
    const late = await inspector([asks, 'Done.'], { tools: [publish], approvals: { timeoutMs: 4_000 } })
    const expiring = await late.open('Go.')
    await late.waiting(expiring)
    const tab = await late.tab('/inbox', {
      // What it is told of later is late.
      prepare: async (slow) => {
        let first = true
        await slow.route('**/v1/pending', (route) => {
          if (first) void route.continue()
          first = false
        })
      },
    })
    await ready(tab.page)
    await until(async () => expect((await logOf(late, expiring)).at(-1)).toMatchObject({ type: 'run.settled' }))
    await tab.page.getByRole('button', { name: 'Allow once' }).click()
    await tab.page.waitForSelector('[role=alert]')
    expect(await tab.page.locator('.waiting').innerText()).toMatch(
      /waited for a decision too long|not waiting for approval/,
    )
    expect((await logOf(late, expiring)).some(({ type }) => type === 'agent.tool_use')).toBe(false)
  }, 60_000)

  it('B-WEB-78: where two must allow it says 1 of 2 and who, and a person who said yes cannot say it again', async () => {
    const rules = [{ effect: 'ask', tool: 'publish', n: 2 }] as const
    const one = await inspector([asks, 'Done.'], { tools: [publish], approvals: { policy: { rules } } })
    const { ana, bob } = peopleOf(one)
    const session = await one.open('Go.')
    await one.waiting(session)
    const { page } = await one.tab('/inbox', { token: ana })
    await ready(page)
    await page.getByRole('button', { name: 'Allow (1 of 2)' }).click()
    await until(async () => expect(await page.locator('.waiting-facts').innerText()).toContain('1 of 2: ana'))
    expect(await page.locator('.decision').innerText()).toContain('You have said yes')
    expect(await page.getByRole('button', { name: 'Allow (2 of 2)' }).isDisabled()).toBe(true)
    const other = await one.tab('/inbox', { token: bob })
    await ready(other.page)
    await other.page.getByRole('button', { name: 'Allow (2 of 2)' }).click()
    await until(async () => expect((await logOf(one, session)).at(-1)).toMatchObject({ type: 'run.settled' }))
    expect((await logOf(one, session)).filter(({ type }) => type === 'agent.tool_use')).toHaveLength(1)
  }, 60_000)

  it('B-WEB-79: questions are answered by a choice or in own words, and any other call from outside with a text', async () => {
    const ask = {
      calls: [{ tool: 'ask_user', args: { question: 'Which <b>one</b>?', choices: ['The red one', 'None'] } }],
    }
    const scan = { calls: [{ tool: 'scan', args: { page: 3, deep: { er: [null, true] } } }] }
    const outside = defineTool({
      name: 'scan',
      description: 'scan',
      input: z.object({ page: z.number() }).loose(),
      effect: 'once',
    })
    const one = await inspector([ask, 'Done.', ask, 'Done.', scan, 'Done.'], { tools: [askUserTool(), outside] })
    const answered = async (session: string, content: string) =>
      until(async () =>
        expect(await logOf(one, session)).toContainEqual(
          expect.objectContaining({ type: 'user.custom_tool_result', content }),
        ),
      )
    const first = await one.open('Go.')
    await one.waiting(first)
    const { page } = await one.tab('/inbox')
    await ready(page)
    expect(await page.locator('.question').innerText()).toBe('Which <b>one</b>?')
    await page.getByRole('button', { name: 'The red one' }).click()
    await answered(first, 'The red one')
    const second = await one.open('Go on.')
    await one.waiting(second)
    await page.goto(`${one.server.url}/inbox?session=${second}`)
    await ready(page)
    await page.fill('.decision textarea', 'The blue one, please.')
    await page.getByRole('button', { name: 'Send the answer' }).click()
    await answered(second, 'The blue one, please.')
    const third = await one.open('Scan.')
    await one.waiting(third)
    await page.goto(`${one.server.url}/inbox?session=${third}`)
    await ready(page)
    expect(await page.locator('.exact-bytes').innerText()).toContain('page: 3')
    await page.getByText('It failed').click()
    await page.fill('.decision textarea', 'The paper is stuck.')
    await page.getByRole('button', { name: 'Send the answer' }).click()
    await answered(third, 'The paper is stuck.')
  }, 90_000)

  it('B-WEB-79: a session without money gets more from an admin, and goes on; an approver is told that it may not', async () => {
    const one = await inspector([{ text: 'Done.', cost: 100 }], { budget: { sessionUsd: 0 } })
    const { ana } = peopleOf(one)
    const session = await one.open('Go.')
    await one.waiting(session)
    const approver = await one.tab('/inbox', { token: ana })
    await ready(approver.page)
    expect(await approver.page.locator('.decision').innerText()).toContain('needs a token with the role admin')
    const { page } = await one.tab(`/inbox?session=${session}&call=budget`)
    await ready(page)
    expect(await page.locator('.waiting').innerText()).toMatch(/The budget is used up[^]*Limit[^]*Spent/)
    await page.fill('.decision input', '2.50')
    await page.getByRole('button', { name: 'Add $2.5000' }).click()
    await until(async () =>
      expect((await logOf(one, session)).at(-1)).toMatchObject({ outcome: { type: 'completed' } }),
    )
  }, 60_000)

  it('B-WEB-80: an argument of ten megabytes is shown by its beginning and end, does not freeze the page, and is allowed as it is', async () => {
    const text = `begin ${'x'.repeat(10_000_000)} end`
    const ran: number[] = []
    const print = defineTool({
      name: 'print',
      description: 'print',
      input: z.object({ text: z.string() }),
      effect: 'once',
      approval: 'ask',
      execute: ({ text: given }) => {
        ran.push(given.length)
        return 'printed'
      },
    })
    const one = await inspector([{ calls: [{ tool: 'print', args: { text } }] }, 'Done.'], { tools: [print] })
    const session = await one.open('Print.')
    const { digest } = await one.waiting(session)
    const { page } = await one.tab('/inbox')
    await ready(page)
    const shown = await page.locator('.exact').innerText()
    expect(shown).toMatch(/10,000,0\d\d characters/)
    expect(shown).toMatch(/begin x+/)
    expect(shown).toMatch(/x end/)
    expect(shown).toMatch(/[\d,]+ characters are not shown/)
    expect(shown.length).toBeLessThan(10_000)
    // The page answers at once: nothing in it takes long.
    await page.getByRole('button', { name: /Show 50,000 more/ }).click()
    expect(await page.locator('.exact-digest code').getAttribute('title')).toBe(digest)
    await page.getByRole('button', { name: 'Allow once' }).click()
    await until(() => expect(ran).toEqual([text.length]))
  }, 120_000)

  it('B-WEB-81: directions, escape sequences and what has no width are shown by their codes in what is approved', async () => {
    const evil = 'pay \u202Enatas\u202C \u001B[31mred\u001B[0m a\u200Bb \u2066x\u2069 \uFEFF \u00A0 \u{E0041}'
    const named = { tool: 'note', args: { [`k\u202Ey`]: evil, list: [`\u200B`, { deep: '\u001B[2J' }] } }
    const note = defineTool({
      name: 'note',
      description: 'note',
      input: z.object({}).loose(),
      effect: 'once',
      approval: 'ask',
      execute: () => 'noted',
    })
    const one = await inspector([{ text: `see \u202E`, calls: [named] }], { tools: [note] })
    const session = await one.open('Go \u202E on.')
    await one.waiting(session)
    const { page } = await one.tab('/inbox')
    await ready(page)
    const shown = await page.locator('.exact-bytes').innerText()
    for (const code of ['202e', '202c', '1b', '200b', '2066', '2069', 'feff', 'a0', 'e0041'])
      expect(shown).toContain(`\\u{${code}}`)
    expect(shown).toContain('k\\u{202e}y')
    const all = await page.locator('body').innerText()
    // eslint-disable-next-line no-control-regex
    expect(all).not.toMatch(/[\u202A-\u202E\u2066-\u2069\u200B\u001B\uFEFF]/)
  }, 60_000)
})
