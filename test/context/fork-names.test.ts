// Names of results and messages in a fork: every name that a request shows leads to the text that it stands for, at every depth.
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { CONTEXT_SUMMARY_PROMPT } from '../../src/context/summary.ts'
import {
  defineTool,
  type Event,
  Harness,
  type HarnessOptions,
  type Json,
  memory,
  scripted,
  type Session,
} from '../../src/index.ts'
import { CLEARED } from '../../src/kernel/transcript.ts'
import type { Request } from '../../src/ports/model.ts'
import { exportSession, importSession } from '../../src/replay.ts'
import { countRequestChars } from '../../src/runtime/money/usage-estimate.ts'
import { chatHandler } from '../../src/ui/index.ts'
import { textOf } from '../../src/view/shown-text.ts'
import { completeStore } from '../../src/stores/plan/complete-store.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

const textOfReport = (n: number): string => `REPORT ${n}. ${`words of report ${n}. `.repeat(600)}`

const report = defineTool({
  name: 'report',
  description: 'a report',
  input: z.object({ n: z.number() }),
  effect: 'read',
  execute: ({ n }) => textOfReport(n),
})

type Called = { readonly tool: string; readonly args: Json }

function make(options: Partial<HarnessOptions> = {}) {
  const plan: Called[] = []
  const asked: Request[] = []
  const store = completeStore(options.store ?? memory())
  const model = scripted((request: Request) => {
    const usage = { inputTokens: Math.ceil(countRequestChars(request) / 4), outputTokens: 10 }
    if (request.instructions === CONTEXT_SUMMARY_PROMPT) return { text: 'Nothing comes to mind.', usage }
    asked.push({ ...request, messages: [...request.messages] })
    const next = plan.shift()
    return next === undefined ? { text: 'Fine.', usage } : { calls: [next], usage }
  })
  const compaction = { windowTokens: 32_000 }
  const limits = { modelRequests: 100 }
  const harness = new Harness({
    model,
    tools: [report],
    breaker: false,
    context: { compaction },
    limits,
    ...options,
    store,
  })
  open.push(harness)
  return { harness, plan, asked, store }
}
type Stage = ReturnType<typeof make>

const reports = (from: number, to: number): readonly Called[] =>
  Array.from({ length: to - from + 1 }, (_, i) => ({ tool: 'report', args: { n: from + i } }))

async function readReports({ harness, plan }: Stage): Promise<Session> {
  const session = await harness.open()
  plan.push(...reports(1, 12))
  await session.run('Read 1 to 12.')
  return session
}

async function retrieve({ plan }: Stage, session: Session, args: Json) {
  plan.push({ tool: 'retrieve_original', args })
  await session.run('Go on.')
  const found = (await session.events()).events.findLast((event) => event.type === 'agent.tool_result')
  if (found?.type !== 'agent.tool_result') throw new Error('no result')
  return found
}

/** Every cleared result of the last request: which report it was, and its name there. */
function clearedIn({ asked }: Stage): readonly (readonly [number, string])[] {
  const { messages } = asked.at(-1) as Request
  const reportOf = new Map<string, number>()
  return messages.flatMap((message) => {
    if (message.role === 'assistant')
      for (const { id, args } of message.calls) reportOf.set(id, (args as { n?: number }).n ?? 0)
    if (
      message.role !== 'tool' ||
      message.tool !== 'report' ||
      typeof message.content !== 'string' ||
      !message.content.startsWith(CLEARED)
    )
      return []
    return [[reportOf.get(message.id) ?? 0, message.content.slice(CLEARED.length + 1)] as const]
  })
}

async function expectReachable(stage: Stage, session: Session, prefix: string): Promise<void> {
  const cleared = clearedIn(stage)
  expect(cleared.length).toBeGreaterThan(3)
  for (const [n, name] of cleared.slice(0, 3)) {
    expect(name).toMatch(new RegExp(`^call:${prefix.replaceAll('^', '\\^')}\\d+\\.\\d$`))
    expect((await retrieve(stage, session, { token: name })).content).toBe(textOfReport(n))
  }
}

describe('names in a fork', () => {
  it('B-REACH-20: a result that was cleared before the fork has a name that is valid in the fork, and in a fork of it', async () => {
    const stage = make()
    const source = await readReports(stage)
    const fork = await source.fork()
    stage.plan.push(...reports(99, 99))
    await fork.run('Read 99.')
    await expectReachable(stage, fork, '^')
    const second = await fork.fork()
    await second.run('Hello.')
    await expectReachable(stage, second, '^^')
    // What the fork clears itself has its own names, beside those from before it.
    stage.plan.push(...reports(101, 112))
    await second.run('Read 101 to 112.')
    const names = clearedIn(stage).map(([, name]) => name)
    expect(names.some((name) => /^call:\d/.test(name))).toBe(true)
    for (const [n, name] of clearedIn(stage)
      .filter(([n]) => n > 100)
      .slice(0, 2))
      expect((await retrieve(stage, second, { token: name })).content).toBe(textOfReport(n))
  })

  it('B-REACH-20: another process and an imported copy show the same names', async () => {
    const stage = make()
    const source = await readReports(stage)
    const fork = await (await source.fork()).fork()
    await fork.run('Hello.')
    const elsewhere = make({ store: stage.store })
    await elsewhere.harness.session(fork.id).run('Hello again.')
    await expectReachable(elsewhere, elsewhere.harness.session(fork.id), '^^')
    const away = make()
    const { session } = await importSession(away.store, await exportSession(stage.store, fork.id))
    const came = away.harness.session(session)
    await came.run('Hello there.')
    await expectReachable(away, came, '^^')
  })

  it('B-REACH-21: a summary from before the fork names messages and results as the fork finds them, at every depth', async () => {
    const stage = make()
    const source = await readReports(stage)
    for (let i = 0; i < 4; i++) await source.run(`Story part ${i}. ${'words of the user '.repeat(20)}`)
    await source.compact()
    let session = await source.fork()
    for (const prefix of ['^', '^^']) {
      await session.run('Hello.')
      const texts = (stage.asked.at(-1) as Request).messages.map((m) => (m.role === 'user' ? textOf(m.parts) : ''))
      const summary = texts.find((text) => text.startsWith('<conversation-summary>')) ?? ''
      const names = summary.match(/\b(?:msg|call):\^*\d+(?:\.\d+)?/g) ?? []
      expect(names.length).toBeGreaterThan(3)
      for (const name of names) expect(name).toMatch(new RegExp(`^(?:msg|call):${prefix.replaceAll('^', '\\^')}\\d`))
      const [, told = '', part = ''] = /(msg:\S+) (Read 1 to 12|Story part \d)/.exec(summary) ?? []
      expect((await retrieve(stage, session, { token: told })).content).toMatch(new RegExp(`^${part}\\.`))
      const [, call = '', n = ''] = /(call:\S+) report {"n":(\d+)}/.exec(summary) ?? []
      expect((await retrieve(stage, session, { token: call })).content).toBe(textOfReport(Number(n)))
      session = await session.fork()
    }
  })

  it('B-REACH-21: a summary that is read again from before the fork names what the fork finds', async () => {
    const stage = make()
    const source = await stage.harness.open()
    for (let i = 0; i < 4; i++) await source.run(`Story part ${i}. ${'words of the user '.repeat(20)}`)
    await source.compact()
    const seq = (await source.events()).events.find((event) => event.type === 'context.compacted')?.seq ?? 0
    const fork = await source.fork()
    expect((await retrieve(stage, fork, { token: `msg:^${seq}` })).content).toMatch(/msg:\^\d+ Story part/)
  })

  it('B-REACH-22: lists, findings and calls of retrieve_original from before the fork have names of the fork', async () => {
    const stage = make({ context: { compaction: { windowTokens: 1_000_000 } } })
    const source = await stage.harness.open()
    stage.plan.push(...reports(1, 2))
    await source.run('Read 1 and 2 call:7.0.')
    for (const args of [{ token: 'call:index' }, { token: 'msg:index' }, { search: 'REPORT' }])
      await retrieve(stage, source, args)
    const own = clearNames(await retrieve(stage, source, { token: 'call:index' }))
    await retrieve(stage, source, { token: own[0] ?? '' })
    const before = stage.asked.at(-1) as Request
    const fork = await source.fork()
    stage.plan.push(...reports(50, 50))
    await fork.run('Read 50.')
    const { messages } = stage.asked.at(-1) as Request
    const lists = messages.flatMap((m) => (m.role === 'tool' && m.tool === 'retrieve_original' ? [m.content] : []))
    for (const list of lists.slice(0, 4)) {
      expect(list).toMatch(/^(?:call|msg):\^\d/)
      expect(list).not.toMatch(/^(?:call|msg):\d/m)
    }
    // What a person and a tool said stays as it was, byte for byte.
    expect(lists[4]).toBe(textOfReport(1))
    expect(JSON.stringify(messages)).toContain('Read 1 and 2 call:7.0.')
    const tokens = messages.flatMap((m) => (m.role === 'assistant' ? m.calls : [])).map(({ args }) => args)
    expect(tokens).toContainEqual({ token: (own[0] ?? '').replace(':', ':^') })
    expect(before.messages.length).toBeLessThan(messages.length)
  })

  it('B-REACH-20: a text that was shortened to fit before the fork names the whole as the fork finds it', async () => {
    const stage = make({ context: { compaction: { windowTokens: 8_000 } } })
    const source = await stage.harness.open()
    const long = `Begin. ${'words of the user '.repeat(2_500)}End.`
    await source.run(long)
    expect(JSON.stringify(stage.asked.at(-1))).toMatch(/the whole is msg:\d/)
    const fork = await source.fork()
    await fork.run('Hello.')
    const [, name = ''] = /the whole is (msg:\^\d+)/.exec(JSON.stringify(stage.asked.at(-1))) ?? []
    expect((await retrieve(stage, fork, { token: name })).content).toMatch(/^Begin\. words/)
  })

  it('B-REACH-23: a name that the fork itself does not have is refused with the name from before the fork', async () => {
    const stage = make()
    const source = await readReports(stage)
    const fork = await source.fork()
    const results = (await source.events()).events.filter((event) => event.type === 'agent.tool_result')
    const { call } = results.at(-1) as Extract<Event, { type: 'agent.tool_result' }>
    const refused = await retrieve(stage, fork, { token: `call:${call}` })
    expect(refused).toMatchObject({ status: 'error', failure: { kind: 'NotFound' } })
    expect(refused.content).toContain(`"call:^${call}"`)
  })

  it('B-REACH-20: a chat that regenerates its last answer shows names of its branch', async () => {
    const stage = make()
    const chat = chatHandler(stage.harness, { by: () => 'ana' })
    const post = async (body: Json): Promise<string> => {
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
      return (await chat(new Request('http://x/api/chat', init))).text()
    }
    const said = (id: string, text: string) => ({ id, role: 'user', parts: [{ type: 'text', text }] })
    stage.plan.push(...reports(1, 12))
    await post({ id: 'c', messages: [said('m1', 'Read 1 to 12.')], trigger: 'submit-message' })
    await post({ id: 'c', messages: [said('m2', 'And 50.')], trigger: 'submit-message' })
    const listed = await (await chat(new Request('http://x/api/chat/c/messages'))).json()
    const { messages } = listed as { readonly messages: readonly { readonly id: string }[] }
    stage.plan.push(...reports(50, 50))
    const last = messages.at(-1)?.id ?? ''
    await post({ id: 'c', messages: messages.slice(0, -1), trigger: 'regenerate-message', messageId: last })
    const cleared = clearedIn(stage)
    expect(cleared.length).toBeGreaterThan(3)
    for (const [, name] of cleared) expect(name).toMatch(/^call:\^\d/)
  })
})

function clearNames({ content }: { readonly content: unknown }): readonly string[] {
  return String(content).match(/^call:\d+\.\d/gm) ?? []
}
