// Text of others stays text: five hundred attacks (or a share of them) in every field that a log or an answer of the server can hold. First in real sessions,
// whose logs hold them; then in every text of every answer, whatever the server would say.
import type { Page, Route } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, type Script } from '../../src/index.ts'
import type { WirePending } from '../../src/server/wire.ts'
import { askUserTool } from '../../src/tools/index.ts'
import { runs, share } from '../runs.ts'
import { noChromium } from '../ui/browser.ts'
import { until } from '../until.ts'
import { type Inspector, inspector, type Seen } from './inspector.ts'
import { PAYLOADS } from './payloads.ts'

/** What the policy refuses is written down, and so is every mark that an attack sets. */
const WATCH = `(() => {
  window.refused = []
  document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
    window.refused.push(violatedDirective + ' ' + blockedURI)
  })
})()`

/** Elements and attributes that no page of ours has. */
const INJECTED = [
  'body script, iframe, frame, object, embed, base, form[action], img, video, audio, marquee, math, template, body style, body link',
  '[onerror], [onload], [onclick], [onfocus], [ontoggle], [onstart], [srcdoc], [href^="javascript:" i], [href^="data:text" i], [href^="vbscript:" i]',
].join(', ')

/** Nothing of an attack happened on what is shown now. */
async function clean({ page, wrong }: Seen, where: string): Promise<void> {
  const found = await page.evaluate(
    `({ hit: window.hit ?? null, refused: window.refused, injected: [...document.querySelectorAll(${JSON.stringify(INJECTED)})].map((each) => each.outerHTML.slice(0, 200)) })`,
  )
  expect({ where, wrong, ...(found as object) }).toEqual({ where, wrong: [], hit: null, refused: [], injected: [] })
}

/** To its end, so that rows that are drawn only when they are seen have been seen. */
async function scrolled(page: Page): Promise<void> {
  const list = page.locator('.list').first()
  if ((await list.count()) === 0) return
  for (let top = 0; ; top += 700) {
    const height = await list.evaluate((each: { scrollTop: number; scrollHeight: number }, to) => {
      each.scrollTop = to
      return each.scrollHeight
    }, top)
    await page.waitForTimeout(40)
    if (top > height) return
  }
}

async function opened(seen: Seen, one: Inspector, path: string): Promise<void> {
  await seen.page.goto(`${one.server.url}${path}`)
  await seen.page.waitForSelector('.page, .face')
  await seen.page.waitForSelector('.skeleton', { state: 'detached' })
  await seen.page.waitForTimeout(400)
}

async function watched(one: Inspector): Promise<Seen> {
  const seen = await one.tab('/', {
    prepare: async (page) => {
      await page.addInitScript(WATCH)
    },
  })
  return seen
}

const ATTACKS = share(PAYLOADS)
const ALL = ATTACKS.join('\n\n')
const keyed = Object.fromEntries(ATTACKS.map((payload, i) => [`${payload} ${i}`, payload]))

type StepFunction = Extract<Script, (...args: never) => unknown>

const spoken = defineTool({
  name: 'note',
  description: ALL,
  input: z.object({}).loose(),
  effect: 'once',
  approval: 'ask',
  execute: () => ALL,
})

/** By the first word of its message: it asks, it fails, or it calls a tool and one that is not there. */
const hostile: StepFunction = ({ messages }) => {
  const call = { tool: 'note', args: { ...keyed, list: [...ATTACKS] } }
  const question = { tool: 'ask_user', args: { question: ALL, choices: ATTACKS.slice(0, 50) } }
  const turns = messages.filter(({ role }) => role === 'assistant').length
  const said = JSON.stringify(messages[0])
  if (said.includes('ASK')) return turns === 0 ? { text: ALL, calls: [question] } : { text: ALL }
  if (said.includes('FAIL')) return { error: 'bad_request', message: ALL.slice(0, 4_000) }
  if (turns > 1) return { text: ALL }
  const unknown = { tool: '<img src=x onerror=alert(1)>', args: {} }
  return { text: ALL, reasoning: ALL, calls: turns === 0 ? [call, unknown] : [call] }
}

describe.skipIf(noChromium)('text of others', () => {
  it('B-WEB-89: 500 attacks in the messages, replies, thoughts, arguments, results, questions and reasons of real logs are text', async () => {
    expect(PAYLOADS).toHaveLength(500)
    const one = await inspector(hostile, { tools: [spoken, askUserTool()] })
    const body = {
      metadata: { title: ATTACKS[2] ?? '', note: ALL.slice(0, 8_000) },
      labels: { note: (ATTACKS[4] ?? '').slice(0, 100) },
    }
    const [talk, ask, fail] = await Promise.all(
      ['GO', 'ASK', 'FAIL'].map((word) => one.open('', { body: { ...body, input: `${word} ${ALL}` } })),
    )
    const first = await one.waiting(talk ?? '')
    await one.waiting(ask ?? '')
    const seen = await watched(one)
    for (const path of [
      '/',
      `/inbox?session=${talk}`,
      `/inbox?session=${ask}`,
      '/agents',
      '/health',
      `/s/${talk}`,
      `/s/${ask}`,
      `/s/${fail}`,
    ]) {
      await opened(seen, one, path)
      await scrolled(seen.page)
      await clean(seen, path)
    }
    // Decided with a reason, answered with a text: both are in the log then.
    const decision = { callId: first.callId, digest: first.digest, allow: true, why: ALL.slice(0, 4_000) }
    await one.json('POST', `/v1/sessions/${talk}/decisions`, { body: decision })
    const [question1] = (await one.json<{ pending: readonly WirePending[] }>('GET', `/v1/sessions/${ask}`)).pending
    await one.json('POST', `/v1/sessions/${ask}/answers`, { body: { callId: question1?.callId, content: ALL } })
    await until(async () => {
      const { events } = await one.host.store.read(ask ?? '', 0)
      expect(events.some(({ type }) => type === 'run.settled')).toBe(true)
    })
    for (const path of [
      '/',
      `/s/${talk}`,
      `/s/${ask}`,
      `/s/${talk}?v=raw`,
      `/s/${talk}?v=context`,
      `/s/${talk}?v=waterfall`,
      `/compare?a=${talk}&b=${ask}`,
    ]) {
      await opened(seen, one, path)
      await scrolled(seen.page)
      await clean(seen, path)
    }
  }, 300_000)

  it('B-WEB-89: 500 attacks in every text of every answer of the server are text, on every page', async () => {
    const note = defineTool({
      name: 'note',
      description: 'note',
      input: z.object({}).loose(),
      effect: 'once',
      approval: 'ask',
      execute: () => '',
    })
    const one = await inspector([{ text: 'I note it.', calls: [{ tool: 'note', args: { a: 'b' } }], cost: 5 }], {
      tools: [note],
    })
    const session = await one.open('Go.')
    await one.waiting(session)
    const seen = await watched(one)
    const filled: string[] = []
    await seen.page.route(/\/v1\/(?!stream)/, async (route: Route) => {
      const answer = await route.fetch()
      if (!answer.headers()['content-type']?.includes('json')) return route.fulfill({ response: answer })
      const json = spoiled(JSON.parse(await answer.text()) as Json)
      filled.push(new URL(route.request().url()).pathname)
      // A page that was left meanwhile takes no answer.
      return route.fulfill({ response: answer, body: JSON.stringify(json) }).catch(() => {})
    })
    for (const path of [
      '/',
      '/inbox',
      '/agents',
      '/schedules',
      '/triggers',
      '/evals',
      '/health',
      '/settings',
      `/s/${session}`,
      `/s/${session}?v=raw`,
    ]) {
      await opened(seen, one, path)
      await scrolled(seen.page)
      await clean(seen, path)
    }
    for (const name of [
      'sessions',
      'pending',
      'agents',
      'health',
      'usage',
      'due',
      'triggers',
      'letters',
      'me',
      'tokens',
    ])
      expect(filled).toContain(`/v1/${name}`)
    // Every refusal, too.
    await seen.page.unrouteAll()
    for (const payload of ATTACKS.slice(0, runs(8, 3))) {
      await seen.page.route('**/v1/agents', (route) =>
        route.fulfill({ status: 500, body: JSON.stringify({ error: { code: payload, message: ALL } }) }),
      )
      await opened(seen, one, '/agents')
      await clean(seen, `refused with ${payload}`)
      await seen.page.unrouteAll()
    }
  }, 600_000)
})

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Words that say what an answer is: with others a page would show nothing of it. */
const KEPT = new Set([
  'type',
  'status',
  'needs',
  'mark',
  'role',
  'reach',
  'effect',
  'root',
  'day',
  'kind',
  'state',
  'planner',
])

/** Every list of records becomes as many as there are attacks, the n-th with the n-th attack in all its texts. */
function spoiled(value: Json, payload = ATTACKS[0] ?? '', depth = 0): Json {
  if (typeof value === 'string') return payload
  if (Array.isArray(value)) {
    const [first] = value as readonly Json[]
    if (first === undefined || first === null) return [...(value as readonly Json[])]
    const many = depth <= 1 ? ATTACKS : [payload]
    return many.map((each, i) => numbered(spoiled(first, each, depth + 1), i))
  }
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, KEPT.has(key) ? each : spoiled(each, payload, depth + 1)]),
  )
}

/** Sessions are told apart by their ids. */
function numbered(value: Json, i: number): Json {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
  const record = value as { readonly [key: string]: Json }
  const { session, sessionId, name } = record
  return {
    ...record,
    ...(typeof session === 'string' ? { session: `${session} ${i}`, root: `${session} ${i}` } : {}),
    ...(typeof sessionId === 'string' ? { sessionId: `${sessionId} ${i}` } : {}),
    ...(typeof name === 'string' ? { name: `${name} ${i}` } : {}),
  }
}
