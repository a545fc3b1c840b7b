// The list of sessions, agents, schedules, health and settings on a real server.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Fault, output } from '../../src/index.ts'
import type { WireCard } from '../../src/server/wire.ts'
import { tool } from '../runtime/scene.ts'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { inspector, peopleOf } from './inspector.ts'

const publish = tool('publish', { approval: 'ask', effect: 'once' })

describe.skipIf(noChromium)('the list of sessions', () => {
  it('B-WEB-70: has problems first, then what waits, then the others; it is searched, filtered and walked by keys', async () => {
    const asks = { calls: [{ tool: 'publish', args: { n: 1 } }] }
    const one = await inspector(
      ({ messages }) => {
        const said = JSON.stringify(messages[0])
        return said.includes('broken') ? { error: 'auth' } : said.includes('asks') ? asks : 'Done.'
      },
      { tools: [publish] },
    )
    for (const input of ['a broken one', 'one that asks', 'a good one', 'another good one']) await one.open(input)
    const { page, wrong } = await one.tab('/')
    await until(async () =>
      expect(await page.locator('.session-group').allInnerTexts()).toEqual([
        'Problems 1',
        'Waiting for a person 1',
        'Earlier 2',
      ]),
    )
    const titles = page.locator('.session-link')
    expect(await titles.allInnerTexts()).toEqual(['a broken one', 'one that asks', 'another good one', 'a good one'])
    for (const key of ['j', 'j', 'j', 'k']) await page.keyboard.press(key)
    expect(await page.locator('.list-row.chosen').innerText()).toContain('one that asks')
    await page.keyboard.press('/')
    await page.keyboard.type('good')
    await until(async () => expect(await titles.count()).toBe(2))
    expect(page.url()).toContain('q=good')
    await page.keyboard.press('Escape')
    await page.goto(`${one.server.url}/?status=requires_action`)
    await until(async () => expect(await titles.allInnerTexts()).toEqual(['one that asks']))
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    expect(page.url()).toContain('/s/')
    expect(wrong).toEqual([])
  }, 60_000)

  it('B-WEB-71: new sessions and changes come by themselves, with many of them at most four drawings a second', async () => {
    const one = await inspector([], { worker: { drives: false } })
    const { page } = await one.tab('/', {
      prepare: async (tab) => {
        await tab.addInitScript(`(() => {
          new MutationObserver((all) => {
            if (all.some(({ target }) => target.closest?.('.session-row, .session-group, .list'))) window.frames.push(performance.now())
          }).observe(document, { subtree: true, childList: true, characterData: true })
          window.frames = []
        })()`)
      },
    })
    await page.waitForSelector('.face')
    await one.open('The first.')
    await page.waitForSelector('.session-row')
    expect(await page.locator('.session-link').innerText()).toBe('The first.')
    const sessions = await Promise.all(Array.from({ length: 60 }, (_, i) => one.open(`Session ${i}`)))
    await until(async () => expect(await page.locator('.session-group').innerText()).toBe('Earlier 61'))
    const before = Date.now()
    const { length: from } = (await page.evaluate('window.frames')) as readonly number[]
    for (let round = 0; round < 5; round++)
      for (const session of sessions)
        await one.json('POST', `/v1/sessions/${session}/messages`, { body: { input: `More ${round}` } })
    const seconds = (Date.now() - before) / 1_000
    const { length: to } = (await page.evaluate('window.frames')) as readonly number[]
    expect(to - from).toBeLessThanOrEqual(5 * seconds + 10)
  }, 120_000)

  it('B-WEB-72: opens a session from the page; a lost answer and a second try are one session; a viewer is told that it may not', async () => {
    const one = await inspector(['Done.', 'Done.'])
    const { vera } = peopleOf(one)
    const { page } = await one.tab('/')
    let lost = false
    await page.route('**/v1/sessions', async (route) => {
      if (route.request().method() !== 'POST' || lost) return route.continue()
      lost = true
      await route.fetch()
      await route.abort()
    })
    await page.keyboard.press('n')
    await page.waitForSelector('.form textarea')
    await page.keyboard.type('Say hello.')
    await page.getByRole('button', { name: 'Begin' }).click()
    await page.waitForSelector('.form-trouble')
    await page.getByRole('button', { name: 'Begin' }).click()
    await page.waitForURL('**/s/*')
    const { sessions } = await one.json<{ readonly sessions: readonly WireCard[] }>('GET', '/v1/sessions')
    expect(sessions.map(({ title }) => title)).toEqual(['Say hello.'])
    const other = await one.tab('/', { token: vera })
    await other.page.keyboard.press('n')
    await other.page.waitForSelector('.form textarea')
    await other.page.keyboard.type('Say hello.')
    expect(await other.page.getByRole('button', { name: 'Begin' }).isDisabled()).toBe(true)
    expect(await other.page.locator('.form').innerText()).toContain('needs a token with the role operator')
  }, 60_000)

  it('B-WEB-73: two that are marked are compared, and children are below their root when it is opened', async () => {
    const start = { calls: [{ tool: 'subagent', args: { agent: 'helper', task: 'Help.' } }], cost: 500 }
    const one = await inspector([start, { text: 'Helped.', cost: 900 }, 'Done.', 'Alone.'], {
      subagents: { helper: { description: 'helps' } },
    })
    const family = await one.open('With a child')
    await one.json('GET', `/v1/sessions/${family}/result?wait=20`)
    const alone = await one.open('Alone')
    await one.json('GET', `/v1/sessions/${alone}/result?wait=20`)
    const { page } = await one.tab('/')
    await until(async () => expect(await page.locator('.session-row').count()).toBe(2))
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('o')
    await page.waitForSelector('.session-row.child')
    expect(await page.locator('.session-row.child').innerText()).toContain('Help.')
    await page.keyboard.press('x')
    expect(await page.locator('.notice.accent').innerText()).toContain('With a child')
    await page.keyboard.press('k')
    await page.keyboard.press('x')
    await page.waitForURL('**/compare?*')
    expect(new URL(page.url()).searchParams.toString()).toBe(new URLSearchParams({ a: family, b: alone }).toString())
    expect(await page.evaluate("sessionStorage.getItem('terret.compare')")).toBe(JSON.stringify([family, alone]))
  }, 60_000)

  it('B-PAGE2-28: a session that is removed leaves its section, filtered lists and the counts, also after another page was shown', async () => {
    const asks = { calls: [{ tool: 'publish', args: { n: 1 } }] }
    const one = await inspector(({ messages }) => (JSON.stringify(messages[0]).includes('asks') ? asks : 'Done.'), {
      tools: [publish],
    })
    const [waits, rests, stays] = [await one.open('one that asks'), await one.open('one'), await one.open('another')]
    const { page, wrong } = await one.tab('/')
    const filtered = await one.tab('/?outcome=completed')
    const sees = (tab: typeof page, titles: readonly string[]): Promise<void> =>
      until(async () => expect(await tab.locator('.session-link').allInnerTexts()).toEqual(titles))
    await sees(page, ['one that asks', 'another', 'one'])
    await sees(filtered.page, ['another', 'one'])
    for (const session of [waits, rests]) await one.json('DELETE', `/v1/sessions/${session}`)
    await sees(page, ['another'])
    await sees(filtered.page, ['another'])
    expect(await page.locator('.session-group').allInnerTexts()).toEqual(['Earlier 1'])
    await page.getByRole('link', { name: 'another' }).click()
    await page.waitForSelector('.line')
    expect(page.url()).toContain(stays)
    await page.goBack()
    await sees(page, ['another'])
    expect([...wrong, ...filtered.wrong]).toEqual([])
  }, 60_000)
})

describe.skipIf(noChromium)('the other pages', () => {
  it('B-WEB-82: agents, schedules and health show what the server says, and a session is woken', async () => {
    const remind = defineTool({
      name: 'remind',
      description: 'remind',
      input: z.object({}),
      effect: 'read',
      execute: (_, { clock }) => {
        const wake = { type: 'wake.scheduled', due: clock.now() + 9e6, reason: 'Look <b>again</b>', key: 'k' } as const
        return output({ content: 'ok', follows: [wake] })
      },
    })
    const one = await inspector([{ calls: [{ tool: 'remind', args: {} }], cost: 40_000 }, 'Later.'], {
      tools: [remind, publish],
      subagents: { helper: { description: 'helps' } },
    })
    const session = await one.open('Watch it')
    await one.json('GET', `/v1/sessions/${session}/result?wait=20`)
    const { page, wrong } = await one.tab('/agents')
    await page.waitForSelector('.agent')
    const agents = await page.locator('.agent').first().innerText()
    for (const text of [
      'default',
      'scripted',
      'publish',
      'once',
      'asks first',
      'remind',
      'runs unasked',
      'Requests a run',
    ])
      expect(agents).toContain(text)
    await page.goto(`${one.server.url}/schedules`)
    await page.waitForSelector('.due')
    expect(await page.locator('.due').innerText()).toMatch(/in 2 h\s+Watch it[^]*Look <b>again<\/b>/)
    await page.getByRole('button', { name: 'Wake now' }).click()
    await until(async () => expect(await page.locator('.toast').innerText()).toContain('Woken'))
    await page.goto(`${one.server.url}/health`)
    await page.waitForSelector('.chart-line')
    const health = await page.locator('.page').innerText()
    for (const text of [
      'All is well',
      'Append',
      'p99',
      'Streams',
      'Leases',
      'Due backlog',
      'SQLite',
      '$0.04 in 30 days',
    ])
      expect(health).toContain(text)
    expect(wrong).toEqual([])
  }, 60_000)

  it('B-WEB-83: with a full disk health says so and what to do, and the list can still be read', async () => {
    const one = await inspector(['Done.'], { worker: { drives: false } })
    await one.open('Before the disk was full')
    one.host.store.extend = () => Promise.reject(new Fault('disk_full', 'The disk is full.'))
    const { page } = await one.tab('/health')
    await page.waitForSelector('.standing.bad')
    const said = await page.locator('.standing').innerText()
    expect(said).toContain('The server cannot write')
    expect(said).toContain('The disk is full.')
    expect(said).toContain('Make room on the disk')
    await page.keyboard.press('g')
    await page.keyboard.press('s')
    expect(await page.locator('.session-link').innerText()).toBe('Before the disk was full')
  }, 60_000)

  it('B-WEB-84: settings say who one is; an admin makes a token, sees it once, and drops it', async () => {
    const one = await inspector([])
    const { otto } = peopleOf(one)
    const { page } = await one.tab('/settings')
    await page.fill('.token-form input >> nth=0', 'eva')
    await page.selectOption('.token-form select >> nth=0', 'approver')
    await page.fill('.token-form input >> nth=1', 'lead, finance')
    await page.getByRole('button', { name: 'Make a token' }).click()
    const token = await page.locator('.token-made code').innerText()
    expect(await one.json('GET', '/v1/me', { token })).toMatchObject({
      name: 'eva',
      role: 'approver',
      roles: ['lead', 'finance'],
    })
    await page.getByRole('button', { name: 'I have it' }).click()
    expect(await page.content()).not.toContain(token)
    await page.getByRole('button', { name: 'Drop the token of eva' }).click()
    await page.getByRole('button', { name: 'Drop it now' }).click()
    await until(async () => expect((await one.ask('GET', '/v1/me', { token })).status).toBe(401))
    await page.getByText('dark', { exact: true }).click()
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
    const other = await one.tab('/settings', { token: otto })
    await until(async () => expect(await other.page.locator('.setting-facts').innerText()).toContain('otto'))
    expect(await other.page.locator('.token-form').count()).toBe(0)
  }, 60_000)

  it('B-WEB-90: empty pages name the next command, trouble names its cause and a way on and keeps what there is, and a dropped token is asked for again', async () => {
    const one = await inspector([])
    const eva = one.token({ name: 'eva', role: 'viewer' })
    const { page } = await one.tab('/', { token: eva })
    for (const [path, command] of [
      ['/', 'terret run'],
      ['/inbox', 'terret pending'],
      ['/schedules', 'terret wake'],
      ['/triggers', 'terret serve'],
      ['/evals', 'terret eval run FILE'],
    ] as const) {
      await page.goto(`${one.server.url}${path}`)
      await page.waitForSelector('.face')
      expect(await page.locator('.face').innerText()).toContain(command)
    }
    await page.route('**/v1/agents', (route) =>
      route.fulfill({ status: 503, body: '{"error":{"code":"store_busy","message":"The store <i>is</i> busy."}}' }),
    )
    await page.goto(`${one.server.url}/agents`)
    await page.waitForSelector('.face.bad')
    expect(await page.locator('.face').innerText()).toMatch(/The store <i>is<\/i> busy\.[^]*store_busy[^]*Try again/)
    await page.unroute('**/v1/agents')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.waitForSelector('.agent')
    await one.json('DELETE', '/v1/tokens/eva')
    await page.waitForSelector('.ask-token')
  }, 90_000)
})
