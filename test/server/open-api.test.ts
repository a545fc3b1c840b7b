// The OpenAPI document against what a running server answers: each answer is validated by the document that the same server gives, with
// every object closed, so that a field which the document does not name fails.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest'
import { cronPlanner } from '../../src/cron/index.ts'
import { defineSuite, runSuite, settled } from '../../src/evals/index.ts'
import type { EvalsAnswer } from '../../src/server/wire-evals.ts'
import { createTriggers } from '../../src/triggers/index.ts'
import { serve } from '../../src/server/index.ts'
import {
  type AgentRow,
  type CallRecord,
  Harness,
  memory,
  type MoneyAccount,
  type PendingCall,
  type Result,
  scripted,
  type PursuitStatus,
  type RoundGrade,
  type TreeCard,
} from '../../src/index.ts'
import { askUserTool, fileTools } from '../../src/tools/index.ts'
import type { Script } from '../../src/index.ts'
import type { Json } from '../../src/kernel/index.ts'
import {
  type LettersAnswer,
  type OpenedAnswer,
  type RouteName,
  ROUTES,
  type SessionAnswer,
  type WireAccount,
  type WireAgent,
  type WireCall,
  type WireCard,
  type WireError,
  type WirePending,
  type WireResult,
  type WireGrade,
  type WirePursuit,
  type WireTool,
} from '../../src/server/wire.ts'
import { tool } from '../runtime/scene.ts'
import { until } from '../until.ts'
import { type Ask, type Served, served } from './served.ts'

/** Of every member of a union. */
type KeyOf<T> = T extends unknown ? keyof T : never

type Document = {
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Shape>> }
}
type JsonAnswer = {
  readonly content: { readonly 'application/json': { readonly schema: { readonly $ref: string } } }
}
type Operation = { readonly responses: Readonly<Record<string, object>> }
type Shape = {
  readonly properties?: Readonly<Record<string, object>>
  readonly required?: readonly string[]
  readonly oneOf?: readonly { readonly $ref: string }[]
  readonly discriminator?: { readonly propertyName: string; readonly mapping: Readonly<Record<string, string>> }
}

const documentOf = (one: Served): Promise<Document> => one.json<Document>('GET', '/v1/openapi.json')

/** The same document with every object closed that names its properties. */
function closeObjects(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closeObjects)
  if (schema === null || typeof schema !== 'object') return schema
  const fields = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closeObjects(value)]))
  const isObject = fields['type'] === 'object' && fields['properties'] !== undefined
  return isObject && !('additionalProperties' in fields) ? { ...fields, additionalProperties: false } : fields
}

/** Validates the answers of a server by its own document, and keeps the names of the routes that were asked. */
class Checked {
  readonly asked = new Set<RouteName>()
  readonly #one: Served
  readonly #ajv = new Ajv2020({ strict: false })
  readonly #checks = new Map<string, ValidateFunction>()
  readonly #document: Document

  constructor(one: Served, document: Document) {
    this.#one = one
    this.#document = document
    const { components } = closeObjects(document as unknown as Json) as { readonly components: object }
    this.#ajv.addSchema({ $id: 'doc', components })
  }

  async ask<T>(name: RouteName, params: Readonly<Record<string, string>> = {}, ask: Ask & { query?: string } = {}) {
    const { method, path, status } = ROUTES[name]
    const filled = path.replace(/:(\w+)/g, (_, key: string) => encodeURIComponent(params[key] ?? ''))
    const answer = await this.#one.ask(method, filled + (ask.query ?? ''), ask)
    expect([name, answer.status, answer.status === status ? '' : answer.text]).toEqual([name, status, ''])
    const json = JSON.parse(answer.text) as T
    this.check(name, json)
    this.asked.add(name)
    return json
  }

  check(name: RouteName, json: unknown): void {
    const { method, path, status } = ROUTES[name]
    const operation = this.#document.paths[path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
    const given = operation?.responses[status] as JsonAnswer | undefined
    const $ref = given?.content['application/json'].schema.$ref ?? ''
    const check = this.#checks.get($ref) ?? this.#ajv.compile({ $ref: `doc${$ref}` })
    this.#checks.set($ref, check)
    expect([name, check(json), check.errors]).toEqual([name, true, null])
  }
}

const ask = tool('publish', { approval: 'ask', effect: 'once' })
const fails = tool('breaks', {
  execute: () => {
    throw new Error('It broke.')
  },
})

async function pendingOf(one: Served, id: string) {
  return until(async () => {
    const [found] = (await one.json<SessionAnswer>('GET', `/v1/sessions/${id}`)).pending
    if (!found) throw new Error('nothing waits yet')
    return found
  })
}

/** The check sees a field that the document does not name: at the top, in a card and in an event. */
async function checkSeesMore(one: Served, checked: Checked, id: string): Promise<void> {
  const page = await one.json<{ sessions: object[] }>('GET', '/v1/sessions')
  expect(() => checked.check('sessions', { ...page, extra: 1 })).toThrow()
  expect(() => checked.check('sessions', { ...page, sessions: [{ ...page.sessions[0], extra: 1 }] })).toThrow()
  const log = await one.json<{ events: object[] }>('GET', `/v1/sessions/${id}/events`)
  expect(() => checked.check('events', { ...log, events: [{ ...log.events[0], extra: 1 }] })).toThrow()
}

async function checkEvals(one: Served, checked: Checked, id: string): Promise<void> {
  const suite = defineSuite({
    name: 'checked',
    mode: 'recorded',
    cases: [{ id: 'one', input: 'x', recording: id }],
    scorers: [settled()],
  })
  const { store } = one.host
  for (const _ of [1, 2]) await runSuite(suite, { store })
  const { runs } = await one.json<EvalsAnswer>('GET', '/v1/evals')
  expect(runs).toHaveLength(2)
  const [after, before] = runs.map((run) => run.session)
  await checked.ask('evals')
  await checked.ask('evalRun', { id: after ?? '' }, { query: `?before=${before}` })
  await checked.ask('case', { id })
}

const WRITE = { tool: 'write', args: { path: 'a.txt', content: 'new\n' } }
/** A model under which a session has an approval, a failed call, a file to undo and a question. */
const EVERY_ANSWER: Script = [
  {
    calls: [
      { tool: 'publish', args: { n: 1 } },
      { tool: 'breaks', args: {} },
    ],
  },
  'Published.',
  { calls: [WRITE] },
  'Written.',
  { calls: [{ tool: 'ask_user', args: { question: 'Tea?' } }] },
  'Answered.',
  'Steered.',
]

const brokenTriggers = () => createTriggers({ models: [scripted(() => ({ error: 'auth' }))], sources: { mail: {} } })

async function checkPursuit(checked: Checked): Promise<void> {
  const { session: id } = await checked.ask<OpenedAnswer>('open', {}, { body: {} })
  await checked.ask('session', { id }, { query: '?include=pursuit' })
  await checked.ask('pursue', { id }, { body: { description: 'Tea.', rubric: '- It is hot.', usd: 1 } })
  await checked.ask('session', { id }, { query: '?include=pursuit' })
}

async function checkDeadTriggers(one: Served, checked: Checked): Promise<void> {
  for (const name of ['retryTrigger', 'dropTrigger'] as const) {
    const { sessionId: id } = await one.host.harness.trigger({ source: 'mail', label: name, payload: name })
    await until(async () => expect((await one.host.store.card(id))?.outcome).toBe('failed'))
    await checked.ask(name, { id }, { body: {} })
  }
  await checked.ask('triggers')
}

/** A consumer that is told nothing: each run is a dead letter. */
const deafConsumer = {
  name: 'watch',
  consumers: [{ name: 'deaf', attempts: 1, run: () => Promise.reject(new Error('deaf')) }],
}

async function checkLetters(one: Served, checked: Checked): Promise<void> {
  const { letters } = await until(async () => {
    const found = await one.json<LettersAnswer>('GET', '/v1/letters')
    expect(found.letters).not.toEqual([])
    return found
  })
  const { lane, key } = letters[0] as LettersAnswer['letters'][number]
  await checked.ask('letters')
  await checked.ask('decideLetter', {}, { body: { lane, key, decision: 'drop' } })
}

describe('the OpenAPI document', () => {
  it('B-OPENAPI-1: names every field of cards, of what waits and of events, which are a union told apart by their type', async () => {
    const one = await served([])
    const { components } = await documentOf(one)
    const { Card, Pending, Event } = components.schemas
    expect(Object.keys(Card?.properties ?? {})).toEqual(
      expect.arrayContaining([
        'title',
        'labels',
        'folder',
        'owner',
        'tokens',
        'trouble',
        'outage',
        'parent',
        'created',
      ]),
    )
    expect(Object.keys(Pending?.properties ?? {})).toEqual(
      expect.arrayContaining(['path', 'digest', 'files', 'votes', 'roles', 'amounts', 'preview', 'expiresAt', 'title']),
    )
    expect(Pending?.required).toContain('path')
    expect(Event?.discriminator?.propertyName).toBe('type')
    const members = (Event?.oneOf ?? []).map(({ $ref }) => $ref)
    expect(members).toEqual(Object.values(Event?.discriminator?.mapping ?? {}))
    for (const [type, $ref] of Object.entries(Event?.discriminator?.mapping ?? {}))
      expect(components.schemas[$ref.split('/').at(-1) ?? '']?.properties?.['type']).toEqual({
        type: 'string',
        const: type,
      })
    // Every reference leads somewhere.
    const text = JSON.stringify(await documentOf(one))
    for (const [, name = ''] of text.matchAll(/#\/components\/schemas\/([^"]+)"/g))
      expect([name, name in components.schemas]).toEqual([name, true])
    expect(text).not.toContain('$defs')
  })

  it('B-OPENAPI-1: has no less in the types of the wire than the library gives the server', () => {
    // Raw responses of a result, and the context and phase of a listed card, are there only if they are asked for, which no route does.
    expectTypeOf<Exclude<KeyOf<Result>, KeyOf<WireResult> | 'responses' | 'ownUsage'>>().toBeNever()
    expectTypeOf<Exclude<KeyOf<PendingCall>, KeyOf<WirePending>>>().toBeNever()
    expectTypeOf<Exclude<KeyOf<CallRecord>, KeyOf<WireCall>>>().toBeNever()
    expectTypeOf<Exclude<KeyOf<AgentRow>, KeyOf<WireAgent> | 'models' | 'setup'>>().toBeNever()
    expectTypeOf<Exclude<KeyOf<AgentRow['tools'][number]>, KeyOf<WireTool>>>().toBeNever()
    expectTypeOf<Exclude<KeyOf<MoneyAccount>, KeyOf<WireAccount>>>().toBeNever()
    expectTypeOf<Exclude<KeyOf<PursuitStatus>, KeyOf<WirePursuit>>>().toBeNever()
    expectTypeOf<Exclude<KeyOf<RoundGrade>, KeyOf<WireGrade>>>().toBeNever()
    expectTypeOf<Exclude<KeyOf<TreeCard>, KeyOf<WireCard>>>().toBeNever()
  })

  it('B-OPENAPI-2: every JSON answer of a running server is what the document says, with no field that it does not name', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'terret-openapi-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'a.txt'), 'old\n')
    const one = await served(EVERY_ANSWER, {
      harness: {
        triggers: brokenTriggers(),
        plugins: [deafConsumer],
        tools: [ask, fails, askUserTool(), ...fileTools({ root: folder })],
        graphs: [cronPlanner()],
      },
    })
    const checked = new Checked(one, await documentOf(one))
    const labels = { team: 'blue' }
    const { session: id } = await checked.ask<OpenedAnswer>('open', {}, { body: { input: 'Go.', labels } })
    const { callId, digest = '' } = await pendingOf(one, id)
    for (const name of ['health', 'me', 'sessions', 'pending', 'agents', 'usage', 'due', 'tokens'] as const)
      await checked.ask(name)
    await checked.ask('session', { id })
    await checked.ask('result', { id }, { query: '?wait=0' })
    await checked.ask('decide', { id }, { body: { callId, digest, allow: true, why: 'It is fine.' } })
    await checked.ask('result', { id }, { query: '?wait=20' })
    await checked.ask('send', { id }, { body: { input: 'Write.' } })
    await checked.ask('result', { id }, { query: '?wait=20' })
    await checked.ask('send', { id }, { body: { input: 'Ask.' } })
    const question = await pendingOf(one, id)
    await checked.ask('session', { id })
    await checked.ask('answer', { id }, { body: { callId: question.callId, content: 'Tea.' } })
    await checked.ask('result', { id }, { query: '?wait=20' })
    await checked.ask('commands', { id }, { body: { commands: [{ type: 'message', input: 'More.' }] } })
    await checked.ask('result', { id }, { query: '?wait=20' })
    await checked.ask('undo', { id }, { body: {} })
    const { seq } = await checked.ask<{ seq: number }>('pin', { id }, { body: { text: 'Only UTC.' } })
    await checked.ask('pins', { id })
    await checked.ask('messages', { id })
    await checked.ask('events', { id })
    await checked.ask('events', { id }, { query: '?q=write&limit=2' })
    await checked.ask('state', { id })
    const { session: fork } = await checked.ask<OpenedAnswer>('fork', { id }, { body: {} })
    await checked.ask('whatIf', { id }, { body: { at: 2 } })
    await checked.ask('pins', { id: fork })
    await checked.ask('unpin', { id, seq: String(seq) })
    await checked.ask('interrupt', { id }, { body: {} })
    await checked.ask('wake', { id }, { body: {} })
    await checked.ask('schedule', { id }, { body: { inMs: 9e6, reason: 'Look.', key: 'a' } })
    await checked.ask('due')
    await checked.ask('unschedule', { id }, { body: { key: 'a' } })
    await checked.ask('rename', { id }, { body: { title: 'A title' } })
    await checkPursuit(checked)
    const file = await one.ask('GET', `/v1/sessions/${fork}/export?format=json`)
    await checked.ask('remove', { id: fork })
    await checked.ask('import', {}, { raw: file.text })
    await checked.ask('close', { id }, { body: {} })
    for (const name of ['sessions', 'usage', 'openapi'] as const) await checked.ask(name)
    const job = { name: 'nightly', line: '0 3 * * *', prompt: 'Go.', limits: { modelRequests: 1 }, on: false }
    await checked.ask('changeCron', {}, { body: { action: 'add', job } })
    await checked.ask('cron')
    await checked.ask('makeToken', {}, { body: { name: 'ann', role: 'viewer', expiresMs: 60_000 } })
    await checked.ask('tokens')
    await checked.ask('dropToken', { name: 'ann' })
    await checkDeadTriggers(one, checked)
    await checkLetters(one, checked)
    await checkEvals(one, checked, id)
    // Signed deliveries are asked for in webhooks.test.ts.
    const json = Object.entries(ROUTES).flatMap(([name, { answer, role }]) =>
      ['stream', 'text', 'bytes'].includes(answer) || role === 'signed' ? [] : [name],
    )
    expect([...checked.asked].toSorted()).toEqual(json.toSorted())
    await checkSeesMore(one, checked, id)
  })

  it('B-OPENAPI-3: a known path with another method answers 405 with the methods that it takes; an unknown one is 404', async () => {
    const one = await served([])
    const wrong = async (method: string, path: string) => {
      const { status, headers, text } = await one.ask(method, path)
      const { error } = JSON.parse(text) as WireError
      return [status, headers['allow'], error.code]
    }
    expect(await wrong('PUT', '/v1/sessions')).toEqual([405, 'GET, POST', 'method'])
    expect(await wrong('PATCH', '/v1/sessions/some')).toEqual([405, 'GET, DELETE', 'method'])
    expect(await wrong('DELETE', '/v1/health')).toEqual([405, 'GET', 'method'])
    expect(await wrong('POST', '/metrics')).toEqual([405, 'GET', 'method'])
    expect(await wrong('PUT', '/mcp')).toEqual([405, 'GET, POST, DELETE', 'method'])
    expect(await wrong('PUT', '/v1/nothing')).toEqual([404, undefined, 'not_found'])
    const { paths } = await documentOf(one)
    for (const operation of Object.values(paths).flatMap((methods) => Object.values(methods)))
      expect(operation.responses['405']).toEqual({ $ref: '#/components/responses/WrongMethod' })
  })

  it('B-OPENAPI-4: says where its routes begin: the address on this machine, and under another name the path that it is mounted at', async () => {
    const one = await served([])
    expect((await documentOf(one)).servers).toEqual([{ url: `http://127.0.0.1:${one.server.port}` }])
    const harness = new Harness({ model: scripted([]), store: memory() })
    const mounted = await serve({ harness, base: '/terret', names: ['agents.example'], inspector: false })
    onTestFinished(async () => {
      await mounted.close()
      await harness.close()
    })
    const read = async (origin: string): Promise<Document> => {
      const headers = { authorization: `Bearer ${mounted.token}` }
      const answer = await mounted.fetch(new Request(`${origin}/terret/v1/openapi.json`, { headers }))
      return (await answer.json()) as Document
    }
    expect((await read('http://localhost:3000')).servers).toEqual([{ url: 'http://localhost:3000/terret' }])
    expect((await read('https://agents.example')).servers).toEqual([{ url: '/terret' }])
  })
})

it('B-SERVE-101: the document and the guide say which orders of sessions are safe while sessions grow', async () => {
  const one = await served([])
  const said = JSON.stringify((await documentOf(one)).paths['/v1/sessions']?.['get'])
  const guide = readFileSync(new URL('../../docs/guide/server.md', import.meta.url), 'utf8')
  for (const text of [said, guide]) expect(text).toMatch(/`newest` \(.*`made`.*`id`/)
  expect(guide).toContain('use `made` or `id`')
})
