// What people look for in their first week with the pages: failures behind many sessions, parents whose children wait, what a child
// answered, what a tree cost, and one row of a long log.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Proposal } from '../../src/kernel/content.ts'
import type { Card } from '../../src/ports/store.ts'
import type { Served } from '../server/served.ts'
import { defineTool } from '../../src/index.ts'
import { fold } from '../../src/kernel/fold.ts'
import { next } from '../../src/kernel/next.ts'
import { EMPTY } from '../../src/kernel/session.ts'
import { cardOf } from '../../src/view/card.ts'
import { card, creation } from '../contract/fixture.ts'
import { proposal, Tale } from '../tracing/tale.ts'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { faults } from './faults.ts'
import { inspector, type Inspector } from './inspector.ts'
import { SHOTS } from './stage.ts'

/** Puts a log that was written by hand into the store. */
async function keep({ host: { store } }: Served, { session, events }: Tale, over: Partial<Card> = {}): Promise<void> {
  const now = store.now()
  const shift = now - (events.at(-1)?.at ?? now)
  const history = events.map((event) => ({ ...event, at: event.at + shift }))
  const state = history.reduce(fold, EMPTY)
  const made = { ...cardOf(session, state, next(state, { now, epoch: state.epoch })), ...over }
  const write = { session, lane: 'owner', epoch: 0, expectedSeq: 0, events: [], card: made, history } as never
  await store.commit([write])
}

/** Works in turns of one call until the log has that many events. Nine calls failed. */
function longTale(session: string, size: number): Tale {
  const tale = new Tale(session)
  tale.begin([tale.say('Work for long.')])
  for (let i = 0; tale.events.length < size; i++) {
    tale.ask(i === 0 ? [2] : [])
    const reply = tale.reply([proposal('look', { args: { n: i } })])
    tale.add({ type: 'agent.tool_use', call: `${reply}.0` })
    const bad = i % 100 === 7 && i < 900
    const failure = bad ? { failure: { kind: 'Failed', message: `It broke at ${i}.` } as const } : {}
    tale.add({
      type: 'agent.tool_result',
      call: `${reply}.0`,
      status: bad ? 'error' : 'ok',
      content: `seen <${i}>`,
      ...failure,
    })
    for (let n = 0; n < 12; n++) tale.add({ type: 'note.added', kind: 'nudge', text: 'go on' })
  }
  tale.ask()
  tale.reply([])
  tale.settle()
  return tale
}

const outside = (child?: string): Partial<Proposal> => ({
  gate: { type: 'outside', ...(child === undefined ? {} : { child }) },
})
/** A call that a person is asked about. */
const ASK: Partial<Proposal> = { gate: { type: 'ask', class: 'write', n: 1, roles: [], expiresAt: null }, digest: 'x' }

/** A parent that waits for its child, and the child, which asks a person. */
function family(name: string, title: string): { readonly parent: Tale; readonly child: Tale; readonly call: string } {
  const parent = new Tale(name)
  parent.begin([parent.say(title)])
  parent.ask([2])
  const call = `${parent.reply([proposal('subagent', outside('helper'))])}.0`
  parent.add({ type: 'agent.custom_tool_use', call })
  const child = new Tale(`${name}~${call}`, { session: name, call, root: name, depth: 1 })
  child.begin([child.say('Publish it.')])
  child.ask([2])
  child.reply([proposal('publish', ASK)])
  return { parent, child, call }
}

const usage = (tokens: number) => ({ usage: { inputTokens: tokens, outputTokens: 10 } })

async function picture(one: Inspector, path: string, name: string, ready: string): Promise<void> {
  mkdirSync(SHOTS, { recursive: true })
  for (const [width, dark] of [
    [1280, false],
    [1280, true],
    [390, false],
    [390, true],
  ] as const) {
    const { page, wrong } = await one.tab(path, { width, dark })
    await page.waitForSelector(ready)
    await page.waitForTimeout(300)
    await page.screenshot({ path: join(SHOTS, `${name}-${width}-${dark ? 'dark' : 'light'}.png`) })
    expect([path, width, dark, await faults(page)]).toEqual([path, width, dark, []])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
    expect(wrong).toEqual([])
    await page.context().close()
  }
}

describe.skipIf(noChromium)('the first week with the pages', () => {
  it('B-PAGE2-5: twenty failures behind a thousand newer sessions are under Problems, each with its reason, and are found by outcome and time', async () => {
    const one = await inspector([], { worker: { drives: false } })
    const { store } = one.host
    const made = (id: string, over: Partial<Card>) => creation(store, id, { card: card(id, over) })
    const failed = Array.from({ length: 20 }, (_, i) => `failed${i}`)
    await store.commit([
      ...failed.map((id) => made(id, { outcome: 'failed', cause: `The provider refused ${id}.` })),
      made('broke', { outcome: 'limit', limit: 'usd' }),
      made('long', { outcome: 'limit', limit: 'model_requests' }),
    ])
    const perhaps = new Tale('perhaps')
    perhaps.begin([perhaps.say('Pay twice.')])
    perhaps.ask([2])
    const paid = perhaps.reply([proposal('pay'), proposal('pay')])
    for (const call of [`${paid}.0`, `${paid}.1`]) {
      perhaps.add({ type: 'agent.tool_use', call })
      perhaps.add({ type: 'agent.tool_result', call, status: 'unknown', content: 'It may have happened.' })
    }
    perhaps.ask()
    perhaps.reply([])
    perhaps.settle()
    await keep(one, perhaps)
    await store.commit(Array.from({ length: 1_000 }, (_, i) => made(`n${i}`, { outcome: 'completed' })))
    const { page, wrong } = await one.tab('/')
    await until(async () =>
      expect((await page.locator('.session-group').allInnerTexts())[0]?.replaceAll(/\s+/g, ' ')).toBe('Problems 21'),
    )
    const rows = page.locator('.session-row')
    expect(await rows.filter({ hasText: 'Pay twice.' }).innerText()).toContain('2 calls may have happened')
    await until(async () => expect(await rows.nth(1).innerText()).toContain('The provider refused failed'))
    await page.getByLabel('Status').selectOption('last:limit')
    await until(async () => expect(await rows.count()).toBe(2))
    const texts = (await rows.allInnerTexts()).join('\n')
    expect(texts).toContain('out of money')
    expect(texts).toContain('all model requests of the run are used up')
    expect(page.url()).toContain('outcome=limit')
    await page.getByLabel('Status').selectOption('last:failed')
    await until(async () => expect(await rows.count()).toBeGreaterThan(5))
    await page.getByLabel('Time').selectOption('1h')
    await until(async () => expect(page.url()).toContain('since=1h'))
    await until(async () => expect(await page.locator('.session-group').innerText()).toMatch(/Problems\s+20/))
    await page.goto(`${one.server.url}/s/perhaps`)
    await until(async () =>
      expect(await page.locator('.session-facts').innerText()).toContain('2 calls may have happened'),
    )
    expect(wrong).toEqual([])
    await picture(one, '/', 'week-list', '.session-row')
  }, 120_000)

  it('B-PAGE2-6: a parent whose child waits is under Waiting and in its head, and the list has exactly what the inbox has', async () => {
    const asked = { approval: 'ask', effect: 'once', execute: () => 'done' } as const
    const publish = defineTool({ name: 'publish', description: 'x', input: z.object({ path: z.string() }), ...asked })
    const bash = defineTool({ name: 'bash', description: 'x', input: z.object({ command: z.string() }), ...asked })
    const one = await inspector(
      ({ messages }) => {
        const said = JSON.stringify(messages)
        if (said.includes('Publish it.') && !said.includes('Go.'))
          return { calls: [{ tool: 'publish', args: { path: 'docs/notes.md' } }] }
        if (said.includes('Run them.'))
          return {
            calls: [
              { tool: 'bash', args: { command: 'npm test -- --watch' } },
              { tool: 'bash', args: { command: 'rm -rf build' } },
            ],
          }
        return { calls: [{ tool: 'subagent', args: { task: 'Publish it.', agent: 'worker' } }] }
      },
      { tools: [publish, bash], subagents: { worker: { description: 'publishes' } } },
    )
    const parent = await one.open('Go.')
    const asks = await one.open('Run them.')
    await one.waiting(parent)
    await one.waiting(asks)
    const { page, wrong } = await one.tab('/')
    await until(async () =>
      expect(
        (await page.locator('.session-group').allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' ')),
      ).toEqual(['Waiting for a person 2']),
    )
    const row = page.locator('.session-row', { hasText: 'Go.' })
    await until(async () => expect(await row.innerText()).toMatch(/child waits[\s\S]*waits for approval of publish/))
    await page.goto(`${one.server.url}/s/${encodeURIComponent(parent)}`)
    await until(async () => expect(await page.locator('.session-facts').innerText()).toContain('a child waits'))
    await page.goto(`${one.server.url}/inbox`)
    const items = page.locator('.inbox-item')
    await until(async () => expect(await items.count()).toBe(3))
    await until(async () =>
      expect(await page.locator('.inbox-what').allInnerTexts()).toEqual(
        expect.arrayContaining(['docs/notes.md', 'npm test -- --watch', 'rm -rf build']),
      ),
    )
    expect((await page.locator('.inbox-group').allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '))).toEqual([
      'Run them. 2',
    ])
    await page.keyboard.press('/')
    await page.keyboard.type('rm build')
    await until(async () => expect(await items.count()).toBe(1))
    await until(async () => expect(await items.innerText()).toContain('rm -rf build'))
    expect(wrong).toEqual([])
    await picture(one, '/inbox', 'week-inbox', '.inbox-item')
    await picture(one, '/', 'week-waiting', '.session-row')
  }, 180_000)

  it('B-PAGE2-7: what a child and a person answered is shown in the row and in the panel, also where the answer is not loaded', async () => {
    const one = await inspector([], { worker: { drives: false } })
    const tale = new Tale('s')
    tale.begin([tale.say('go')])
    tale.ask([2])
    const reply = tale.reply([proposal('dig', outside('digger')), proposal('ask_user', outside())])
    for (const i of [0, 1]) tale.add({ type: 'agent.custom_tool_use', call: `${reply}.${i}` })
    const answers = ['What the child found.', 'What the person said.'].map((content, i) =>
      tale.add({ type: 'user.custom_tool_result', id: `a${i}`, call: `${reply}.${i}`, ok: true, content, by: 'ana' }),
    )
    // So many that the page does not read the whole log by itself.
    for (let i = 0; i < 5_200; i++) tale.add({ type: 'note.added', kind: 'nudge', text: 'wait' })
    answers.forEach((from, i) =>
      tale.add({ type: 'agent.tool_result', call: `${reply}.${i}`, status: 'ok', content: '', from }),
    )
    tale.ask()
    tale.reply([])
    tale.settle()
    await keep(one, tale)
    const short = new Tale('t')
    for (const event of tale.events.filter(({ seq, type }) => seq > 1 && type !== 'note.added')) {
      const { seq: _seq, at: _at, epoch: _epoch, ...body } = event
      short.add(body)
    }
    await keep(one, short)
    const { page, wrong } = await one.tab(`/s/t?e=${reply}.0`)
    await until(async () => expect(await page.locator('.side-body').innerText()).toContain('What the child found.'))
    expect(await page.locator('.side-body').innerText()).not.toContain('no text')
    for (const session of ['t', 's']) {
      await page.goto(`${one.server.url}/s/${session}?e=${session === 's' ? tale.events.length - 4 : reply}`)
      if (session === 's') await page.getByRole('searchbox', { name: 'Search in this session' }).fill('ask_user')
      await page.getByRole('button', { name: `Open ask_user ${reply}.1` }).click()
      await until(async () => expect(await page.locator('.line-open').innerText()).toContain('What the person said.'))
    }
    expect(wrong).toEqual([])
  }, 60_000)

  it('B-PAGE2-8: the waterfall nests children with tokens and cost, its rows add up to the head of the page, and turns have numbers', async () => {
    const one = await inspector([], { worker: { drives: false } })
    const tale = new Tale('s')
    tale.begin([tale.say('Find out what changed.')])
    tale.ask([2])
    const reply = tale.reply([proposal('subagent', outside('digger'))], { cost: 12_600, ...usage(900) })
    const call = `${reply}.0`
    tale.add({ type: 'agent.custom_tool_use', call })
    tale.at += 30_000
    const child = new Tale(`s~${call}`, { session: 's', call, root: 's', depth: 1 }, tale.at - 29_000)
    child.begin([child.say('Dig.')])
    child.ask([2])
    child.at += 9_000
    const looked = child.reply([proposal('read_file')], { cost: 100_000, ...usage(4_000) })
    child.use(`${looked}.0`)
    child.ask()
    child.at += 4_000
    child.reply([], { cost: 76_400, ...usage(5_000) })
    child.settle()
    const from = tale.add({ type: 'user.custom_tool_result', id: 'a', call, ok: true, content: 'dug' })
    tale.add({ type: 'agent.tool_result', call, status: 'ok', content: '', from })
    tale.ask()
    tale.add({ type: 'model.failed', class: 'interrupted', message: 'Somebody stopped it.', retryable: false })
    tale.add({ type: 'run.settled', outcome: { type: 'interrupted' } })
    await keep(one, tale)
    await keep(one, child)
    const { page, wrong } = await one.tab('/s/s?v=waterfall')
    await until(async () => expect(await page.locator('.wf-row').count()).toBe(8))
    const names = await page.locator('.wf-row .wf-name').allInnerTexts()
    expect(names.map((name) => name.replaceAll(/\s+/g, ' ').trim())).toEqual([
      expect.stringContaining('run'),
      expect.stringContaining('Turn 1'),
      expect.stringContaining('subagent → digger'),
      expect.stringContaining('run'),
      expect.stringContaining('Turn 1'),
      expect.stringContaining('read_file'),
      expect.stringContaining('Turn 2'),
      expect.stringContaining('Turn 2'),
    ])
    for (const place of ['.session-facts .money', '.wf-sums .money', '.wf-row.depth-0 .money'])
      await until(async () => expect(await page.locator(place).innerText()).toBe('$0.1890'))
    expect(await page.locator('.wf-row .bad, .wf-bar.bad').count()).toBe(0)
    await page.goto(`${one.server.url}/s/s`)
    await page.waitForSelector('.line')
    expect(await page.locator('.line.turn .status.bad').count()).toBe(0)
    expect(wrong).toEqual([])
    await picture(one, '/s/s?v=waterfall', 'week-waterfall', '.wf-sums')
  }, 120_000)

  it('B-PAGE2-9: in a log of 1,202 events a row is found, failures stand alone, turns are closed together, and Context and Waterfall show all of it', async () => {
    const one = await inspector([], { worker: { drives: false } })
    const tale = new Tale('long')
    tale.begin([tale.say('Work for long.')])
    for (let i = 0; i < 239; i++) {
      tale.ask(i === 0 ? [2] : [])
      const reply = tale.reply([proposal('look', { args: { n: i } })], { cost: 10, ...usage(100 + i) })
      tale.add({ type: 'agent.tool_use', call: `${reply}.0` })
      const status = i % 100 === 50 ? 'error' : 'ok'
      const failure = status === 'error' ? { failure: { kind: 'Failed', message: `It broke at ${i}.` } as const } : {}
      tale.add({ type: 'agent.tool_result', call: `${reply}.0`, status, content: `seen ${i * 7}x`, ...failure })
    }
    while (tale.events.length < 1_199) tale.add({ type: 'note.added', kind: 'nudge', text: 'go on' })
    tale.ask()
    tale.reply([])
    tale.settle()
    expect(tale.events).toHaveLength(1_202)
    await keep(one, tale)
    const { page, wrong } = await one.tab('/s/long')
    const lines = page.locator('.timeline .line')
    await until(async () => expect(await page.locator('.line.turn').last().innerText()).toContain('Turn 240'))
    await page.keyboard.press('/')
    await page.keyboard.type('21x')
    await until(async () => expect(await lines.count()).toBeLessThan(4))
    await until(async () => expect(await lines.first().innerText()).toContain('n: 3'))
    await page.getByRole('searchbox', { name: 'Search in this session' }).fill('')
    await page.getByRole('button', { name: 'Failures only' }).click()
    await until(async () => expect(await lines.count()).toBe(2))
    expect((await lines.allInnerTexts()).join('\n')).toContain('It broke at 150.')
    await page.getByRole('button', { name: 'Failures only' }).click()
    await page.getByRole('button', { name: 'Collapse all' }).click()
    await until(async () => expect(await page.locator('.line.call').count()).toBe(0))
    for (const view of ['context', 'waterfall']) {
      await page.goto(`${one.server.url}/s/long?v=${view}`)
      const text = view === 'context' ? 'Request 240 of 240' : 'Turn 240'
      await until(async () => {
        // The rows before those that are shown first are still read.
        if (view === 'waterfall') await page.getByRole('list', { name: 'Waterfall' }).press('End')
        expect(await page.locator('.session-view').innerText()).toContain(text)
      })
      expect(await page.getByRole('button', { name: /^Read all/ }).count()).toBe(0)
    }
    expect(wrong).toEqual([])
    await picture(one, '/s/long', 'week-timeline', '.line.turn')
  }, 180_000)

  it('B-PAGE2-10: headings of a page go down one level at a time, whatever a model wrote', async () => {
    const one = await inspector([], { worker: { drives: false } })
    const tale = new Tale('s')
    tale.begin([tale.say('go')])
    tale.ask([2])
    tale.reply([], { parts: [{ type: 'text', text: '#### Small\n\ntext\n\n# Large\n\n###### Smaller' }] })
    tale.settle()
    await keep(one, tale)
    for (const path of [
      '/',
      '/inbox',
      '/s/s',
      '/s/s?v=waterfall',
      '/s/s?v=context',
      '/agents',
      '/health',
      '/settings',
    ]) {
      const { page } = await one.tab(path)
      await page.waitForTimeout(300)
      const levels = (await page.evaluate(
        `[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map(({ tagName }) => Number(tagName[1]))`,
      )) as readonly number[]
      const jumps = levels.filter((level, i) => level > (levels[i - 1] ?? 0) + 1)
      expect([path, levels[0], jumps]).toEqual([path, 1, []])
      await page.context().close()
    }
  }, 60_000)

  it('B-PAGE2-20: a filter of the list shows the section of its name with the same rows and count, and the head counts what the section Running has', async () => {
    const one = await inspector([], { worker: { drives: false } })
    const { store } = one.host
    const made = (id: string, over: Partial<Card>) => creation(store, id, { card: card(id, over) })
    const asks = new Tale('asks')
    asks.begin([asks.say('One that asks.')])
    asks.ask([2])
    asks.reply([proposal('publish', ASK)])
    await keep(one, asks)
    for (const name of ['family', 'kin']) {
      const { parent, child } = family(name, `The ${name}.`)
      await keep(one, parent)
      await keep(one, child)
    }
    await store.commit([
      made('busy', { status: 'running' }),
      made('stopped', { status: 'requires_action', held: true }),
      made('later', { status: 'rescheduling', wakes: 1, due: store.now() + 9e6 }),
      made('broken', { outcome: 'failed', cause: 'It broke.' }),
      made('ended', { status: 'terminated', outcome: 'completed' }),
    ])
    await store.commit(Array.from({ length: 300 }, (_, i) => made(`n${i}`, { outcome: 'completed' })))
    const { page, wrong } = await one.tab('/')
    const sections = async () =>
      (await page.locator('.session-group h2').allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '))
    const whole = ['Problems 1', 'Waiting for a person 3', 'Paused 1', 'Running 1', 'Scheduled 1']
    await until(async () => expect((await sections()).slice(0, 5)).toEqual(whole))
    expect(await page.locator('.now').innerText()).toContain('1 running')
    const filter = page.getByLabel('Status')
    const names = (await filter.locator('> option').allInnerTexts()).slice(1, 6)
    expect(names).toEqual(whole.map((text) => text.replace(/ \d+$/, '')))
    for (const section of whole) {
      await filter.selectOption({ label: section.replace(/ \d+$/, '') })
      await until(async () => expect(await sections()).toEqual([section]))
      expect(await page.locator('.session-row').count()).toBe(Number(section.split(' ').at(-1)))
      expect(await page.locator('.now').innerText()).toContain('1 running')
    }
    // An address of an earlier version shows what its filter was meant to show.
    for (const [status, section] of [
      ['requires_action', 'Waiting for a person 3'],
      ['rescheduling', 'Scheduled 1'],
    ]) {
      await page.goto(`${one.server.url}/?status=${status}`)
      await until(async () => expect(await sections()).toEqual([section]))
    }
    await page.goto(`${one.server.url}/?status=waiting&q=kin`)
    await until(async () => expect(await sections()).toEqual(['Waiting for a person 1']))
    await filter.selectOption({ label: 'Resting' })
    await page.getByRole('searchbox', { name: 'Search sessions' }).fill('')
    await until(async () => expect((await sections()).join()).toMatch(/^Earlier \d+$/))
    await filter.selectOption({ label: 'Closed' })
    await until(async () => expect(await sections()).toEqual(['Earlier 1']))
    expect(wrong).toEqual([])
  }, 120_000)

  it('B-PAGE2-21: search and Failures only look at the whole of a long log, and turns keep their numbers in a part of it', async () => {
    const one = await inspector([], { worker: { drives: false } })
    await keep(one, longTale('long', 19_790))
    await keep(one, longTale('huge', 24_000))
    const { page, wrong } = await one.tab('/s/long')
    const lines = page.locator('.timeline .line')
    const search = page.getByRole('searchbox', { name: 'Search in this session' })
    // Only its end is loaded, and its turns have their numbers.
    await until(async () => expect(await page.locator('.line.turn').last().innerText()).toContain('Turn 1238'))
    await page.getByRole('button', { name: 'Failures only' }).click()
    await until(async () => expect(await lines.count()).toBe(9))
    await until(async () => expect(await lines.first().innerText()).toMatch(/Turn 8[^]*It broke at 7\./))
    await page.getByRole('button', { name: 'Failures only' }).click()
    await search.fill('seen <3>')
    await until(async () => expect(await lines.count()).toBe(1))
    await until(async () => expect(await lines.first().innerText()).toMatch(/Turn 4[^]*n: 3/))
    // A log that does not fit into the page is searched by the server, from where the page stands.
    await page.goto(`${one.server.url}/s/huge`)
    await page.waitForSelector('.line.turn')
    await search.fill('seen <3>')
    await until(async () => expect(await page.locator('.face').innerText()).toContain('No loaded row is like that'))
    expect(await page.locator('.timeline-tools').innerText()).toMatch(/Searched events [\d,]+ to 24,0\d\d of 24,0\d\d/)
    // The log grows while the server searches.
    const tools = page.locator('.timeline-tools')
    const size = async (): Promise<string | undefined> => / of ([\d,]+)/.exec(await tools.innerText())?.[1]
    const before = await size()
    await page.route(
      /\/events\?.*q=/,
      async (route) => {
        await one.host.harness.session('huge').send('One more thing.')
        await until(async () => expect(await size()).not.toBe(before))
        await route.continue()
      },
      { times: 1 },
    )
    await page.getByRole('button', { name: 'Search earlier events' }).click()
    await until(async () => expect(await lines.allInnerTexts()).toEqual([expect.stringMatching(/n: 3/)]))
    expect(await size()).not.toBe(before)
    await search.fill('')
    await page.getByRole('button', { name: 'Failures only' }).click()
    await until(async () => expect(await lines.count()).toBe(1))
    await page.getByRole('button', { name: 'Search later events' }).click()
    await until(async () => expect(await lines.allInnerTexts()).toEqual([expect.stringMatching(/broke at 107/)]))
    await search.fill('nowhere at all')
    await page.getByRole('button', { name: 'Search earlier events' }).click()
    await until(async () =>
      expect(await page.locator('.timeline-tools').innerText()).toContain('No earlier event is like that'),
    )
    expect(wrong).toEqual([])
    await picture(one, '/s/huge', 'week-huge', '.line.turn')
  }, 180_000)

  it('B-PAGE2-22: rows with long titles show their reason, what they wait for and calls that may have happened on a line of their own', async () => {
    const one = await inspector([], { worker: { drives: false } })
    const long = (name: string): string =>
      `${name} ${'of the quarterly report of the northern region '.repeat(2)}`.slice(0, 80)
    const cause = 'The provider refused the request: the prompt is longer than the model takes.'
    const perhaps = new Tale('perhaps')
    perhaps.begin([perhaps.say(long('Payments'))])
    perhaps.ask([2])
    const paid = perhaps.reply([proposal('pay'), proposal('pay')])
    for (const call of [`${paid}.0`, `${paid}.1`]) {
      perhaps.add({ type: 'agent.tool_use', call })
      perhaps.add({ type: 'agent.tool_result', call, status: 'unknown', content: 'It may have happened.' })
    }
    perhaps.ask()
    perhaps.reply([])
    perhaps.settle()
    await keep(one, perhaps)
    const asks = new Tale('asks')
    asks.begin([asks.say(long('Approval'))])
    asks.ask([2])
    asks.reply([proposal('publish', ASK)])
    await keep(one, asks)
    const failed = new Tale('failed')
    failed.begin([failed.say(long('Failure'))])
    failed.ask([2])
    failed.reply([])
    failed.add({ type: 'run.settled', outcome: { type: 'halted', reason: cause } })
    await keep(one, failed)
    await keep(one, family('kin', long('A parent')).parent)
    await keep(one, family('kin', long('A parent')).child)
    const says = [
      '2 calls may have happened',
      'waits for approval of publish',
      cause,
      '~5.0 waits for approval of publish',
    ]
    for (const width of [1280, 390]) {
      const { page, wrong } = await one.tab('/', { width })
      const rows = page.locator('.session-row')
      await until(async () => expect(await rows.count()).toBe(4))
      await until(async () => {
        const texts = (await rows.allInnerTexts()).join('\n')
        for (const text of says) expect(texts).toContain(text)
      })
      const faulty = await page.evaluate(`[...document.querySelectorAll('.session-row')].flatMap((row) => {
        const why = row.querySelector('.session-why')
        const link = row.querySelector('.session-link')
        const [a, b] = [why, link].map((each) => each.getBoundingClientRect())
        const others = [...row.querySelectorAll('.session-agent, .session-age, .money')]
          .map((each) => each.getBoundingClientRect())
          .filter(({ width }) => width > 0)
        const inner = [...why.querySelectorAll('*')].map((each) => each.getBoundingClientRect())
        const over = others.some((box) => [a, b].some((own) => own.right > box.left + 1 && own.bottom > box.top + 1 && own.top < box.bottom - 1))
        return [
          ...(a.top < b.bottom - 2 ? ['the reason is beside the title'] : []),
          ...(over ? ['it is drawn over another column'] : []),
          ...(why.scrollWidth > why.clientWidth && getComputedStyle(why).textOverflow !== 'ellipsis' ? ['it is cut'] : []),
          ...(why.title === '' || link.title === '' ? ['it has no title'] : []),
          ...(${width} === 1280 && why.scrollWidth > why.clientWidth ? ['it does not fit'] : []),
        ].map((fault) => fault + ': ' + row.innerText)
      })`)
      expect(faulty).toEqual([])
      expect(wrong).toEqual([])
      await page.context().close()
    }
    await picture(one, '/', 'week-long-titles', '.session-why')
  }, 120_000)

  it('B-PAGE2-23: a child that waits is said with the same words in the list, the head, the timeline, the waterfall and the graph', async () => {
    const one = await inspector([], { worker: { drives: false } })
    const { parent, child, call } = family('kin', 'The family.')
    await keep(one, parent)
    const { page, wrong } = await one.tab('/s/kin')
    const callRow = page
      .getByRole('listitem')
      .filter({ has: page.getByRole('button', { name: `Open subagent ${call}` }) })
    await until(async () => expect(await callRow.innerText()).toContain('child at work'))
    await keep(one, child)
    for (const path of ['/', '/s/kin', '/s/kin?v=waterfall', '/s/kin?v=graph']) {
      await page.goto(`${one.server.url}${path}`)
      const where = path === '/' ? '.session-row' : '.session-view'
      await until(async () =>
        expect([path, await page.locator(where).innerText()]).toEqual([path, expect.stringContaining('a child waits')]),
      )
      const text = await page.locator('.page').innerText()
      expect(text).not.toMatch(/child at work|answered outside/)
      if (path !== '/') expect(await page.locator('.session-facts').innerText()).toMatch(/a child waits/)
      if (path !== '/') expect(await page.locator('.session-facts').innerText()).not.toMatch(/running/)
    }
    expect(wrong).toEqual([])
    // The name of a bar keeps its room beside its state.
    await picture(one, '/s/kin?v=waterfall', 'week-child-waits', '.wf-state')
    const narrow = (await one.tab('/s/kin?v=waterfall', { width: 390 })).page
    const name = narrow.locator('.wf-row .wf-name > .text', { hasText: 'subagent → helper' })
    await until(async () => expect(await narrow.locator('.wf-state').allInnerTexts()).toContain('◆ a child waits'))
    const fits = '(each) => each.scrollWidth <= each.clientWidth'
    expect(await name.evaluate(`(${fits})(document.querySelectorAll('.wf-row .wf-name > .text')[2])`)).toBe(true)
  }, 120_000)

  it('B-PAGE2-24: a budget in the inbox has as many digits as its reason needs, and is not called used up while it is not', async () => {
    const one = await inspector([], { worker: { drives: false } })
    const broke = (
      name: string,
      short: { limit: number; spent: number; held: number; needed: number },
    ): Promise<void> => {
      const tale = new Tale(name)
      tale.begin([tale.say(name)])
      tale.ask([2])
      tale.reply([])
      tale.add({ type: 'run.settled', outcome: { type: 'limit', limit: 'usd', short } })
      return keep(one, tale)
    }
    await broke('close', { limit: 123_500, spent: 0, held: 0, needed: 124_800 })
    await broke('closer', { limit: 200_000, spent: 100_003, held: 0, needed: 99_998 })
    await broke('gone', { limit: 2_000_000, spent: 2_000_000, held: 0, needed: 500_000 })
    await broke('held', { limit: 1_000_000, spent: 0, held: 750_000, needed: 500_000 })
    const { page, wrong } = await one.tab('/inbox')
    await until(async () => expect(await page.locator('.inbox-item').count()).toBe(4))
    expect((await page.locator('.inbox-what').allInnerTexts()).toSorted()).toEqual([
      '$0.00 of $1.00 spent, $0.75 set aside, the next call needs up to $0.50',
      '$0.0000 of $0.1235 spent, the next call needs up to $0.1248',
      '$0.100003 of $0.200000 spent, the next call needs up to $0.099998',
      '$2.00 of $2.00 spent, the next call needs up to $0.50',
    ])
    for (const [session, title, figure] of [
      ['close', 'The budget would be exceeded', '$0.1248'],
      ['closer', 'The budget would be exceeded', '$0.099998'],
      ['gone', 'The budget is used up', '$0.50'],
    ] as const) {
      await page.goto(`${one.server.url}/inbox?session=${session}&call=budget`)
      await until(async () => expect(await page.locator('.waiting').innerText()).toContain(title))
      expect(await page.locator('.waiting .figures').innerText()).toContain(figure)
    }
    expect(wrong).toEqual([])
    await picture(one, '/inbox?session=close&call=budget', 'week-budget', '.waiting')
  }, 120_000)

  it('B-PAGE2-25: what was stopped is not red, and costs with and without children say which they are', async () => {
    const one = await inspector([], { worker: { drives: false } })
    const tale = new Tale('s')
    tale.begin([tale.say('Work.')])
    tale.ask([2])
    const reply = tale.reply([proposal('subagent', outside('helper')), proposal('bash')], { cost: 2_000 })
    tale.add({ type: 'agent.custom_tool_use', call: `${reply}.0` })
    tale.add({ type: 'agent.tool_use', call: `${reply}.1` })
    const failure = { kind: 'Interrupted', message: 'Stopped while it ran.' } as const
    for (const call of [`${reply}.0`, `${reply}.1`])
      tale.add({ type: 'agent.tool_result', call, status: 'aborted', content: '', failure })
    tale.add({ type: 'run.settled', outcome: { type: 'interrupted' } })
    await keep(one, tale)
    const child = new Tale(`s~${reply}.0`, { session: 's', call: `${reply}.0`, root: 's', depth: 1 })
    child.begin([child.say('Help.')])
    child.ask([2])
    child.reply([], { cost: 6_000 })
    child.settle()
    await keep(one, child)
    const { page, wrong } = await one.tab(`/s/s?e=${reply}.1`)
    await page.waitForSelector('.side .line-failure')
    expect(await page.locator('.line-failure').count()).toBe(3)
    const red = `(() => {
      const probe = document.body.appendChild(document.createElement('i'))
      probe.className = 'status bad'
      const bad = getComputedStyle(probe).color
      probe.remove()
      return [...document.querySelectorAll('.page *')].filter((each) => getComputedStyle(each).color === bad && each.textContent !== '').map((each) => each.outerHTML.slice(0, 80))
    })()`
    expect(await page.evaluate(red)).toEqual([])
    const flat = (text: string): string => text.replaceAll(/\s+/g, ' ')
    expect(flat(await page.locator('.session-facts').innerText())).toContain('$0.0080 with children')
    expect(flat(await page.locator('.line.settled').innerText())).toContain('own $0.0020')
    await page.goto(`${one.server.url}/s/${encodeURIComponent(child.session)}`)
    await page.waitForSelector('.line.settled')
    expect(await page.locator('.page').innerText()).not.toMatch(/with children|own/)
    expect(wrong).toEqual([])
    await picture(one, '/s/s', 'week-interrupted', '.line.settled')
  }, 120_000)

  it('B-PAGE2-26: the address of a child, whose id has a dot, opens its page, also when it is loaded anew', async () => {
    const one = await inspector([], { worker: { drives: false } })
    const { parent, child } = family('kin', 'The family.')
    await keep(one, parent)
    await keep(one, child)
    const { page, wrong } = await one.tab(`/s/${encodeURIComponent(child.session)}`)
    await page.waitForSelector('.line.turn')
    await page.reload()
    await page.waitForSelector('.line.turn')
    expect(await page.locator('h1').innerText()).toBe('Publish it.')
    expect(wrong).toEqual([])
    expect((await fetch(`${one.server.url}/missing.js`)).status).toBe(404)
  }, 60_000)

  it('B-PAGE2-30: the address of a session opens its page whatever characters its id has, and stays that address; a wrong one is said', async () => {
    const one = await inspector([], { worker: { drives: false } })
    for (const id of ['100%', '50%25', 'a/b?c#d %2F', 'é ü']) {
      const { parent } = family(id, `The family of ${id}.`)
      await keep(one, parent)
      const { page, wrong } = await one.tab(`/s/${encodeURIComponent(id)}`)
      await page.waitForSelector('.line.turn')
      expect(await page.locator('h1').innerText()).toBe(`The family of ${id}.`)
      await page.keyboard.press('w')
      await page.waitForURL('**v=*')
      await page.reload()
      await page.waitForSelector('h1')
      expect(await page.locator('h1').innerText()).toBe(`The family of ${id}.`)
      expect(decodeURIComponent(new URL(page.url()).pathname)).toBe(`/s/${id}`)
      expect(wrong).toEqual([])
    }
    const { page } = await one.tab('/')
    await page.waitForSelector('.session-row')
    await page.evaluate("history.pushState(null, '', '/s/100%')")
    await until(async () => expect(await page.locator('h1').innerText()).toBe('The family of 100%.'))
  }, 60_000)
})
