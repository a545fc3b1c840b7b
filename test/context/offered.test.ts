// When a model is offered the tool that reads again: from the first result or message on that its context does not show whole, decided
// by the log. Sessions in which nothing was left out are offered nothing more.
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { CONTEXT_SUMMARY_PROMPT } from '../../src/context/summary.ts'
import { defineTool, Harness, type HarnessOptions, type Json, memory, scripted, type Session } from '../../src/index.ts'
import { CLEARED } from '../../src/kernel/transcript.ts'
import type { Priced } from '../../src/models/http/hosted-model.ts'
import type { Request } from '../../src/ports/model.ts'
import { countRequestChars } from '../../src/runtime/money/usage-estimate.ts'
import { textOf } from '../../src/view/shown-text.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

const RETRIEVE = 'retrieve_original'
const textOfReport = (n: number): string => `REPORT ${n}. ${`words of report ${n}. `.repeat(600)}`

const report = defineTool({
  name: 'report',
  description: 'a report',
  input: z.object({ n: z.number() }),
  effect: 'read',
  execute: ({ n }) => textOfReport(n),
})
const big = defineTool({
  name: 'big',
  description: 'more than 16 KiB',
  input: z.object({}),
  effect: 'read',
  execute: () => 'Plain words here. '.repeat(3_000),
})

type Called = { readonly tool: string; readonly args: Json }

/** A model of which a table says how much it takes, so no option is needed for compaction. */
function make(options: Partial<HarnessOptions> = {}, windowTokens = 32_000) {
  const plan: Called[] = []
  const asked: Request[] = []
  const store = options.store ?? memory()
  const script = scripted((request: Request) => {
    const usage = { inputTokens: Math.ceil(countRequestChars(request) / 4), outputTokens: 10 }
    if (request.instructions === CONTEXT_SUMMARY_PROMPT) return { text: 'Nothing comes to mind.', usage }
    asked.push({ ...request, messages: [...request.messages] })
    const next = plan.shift()
    return next === undefined ? { text: 'Fine.', usage } : { calls: [next], usage }
  })
  const price = { input: 0, output: 0 }
  const profile = async () => ({ price, known: true, contextTokens: windowTokens, cost: () => 0 })
  const able = { name: 'm', native: 'no' } as const
  const model: Priced = { ...script, name: 'm', able, outputTokensMax: 100, secrets: {}, profile }
  const limits = { modelRequests: 100 }
  const harness = new Harness({ model, tools: [report, big], breaker: false, limits, ...options, store })
  open.push(harness)
  return { harness, plan, asked, store }
}
type Stage = ReturnType<typeof make>

const reports = (to: number): readonly Called[] =>
  Array.from({ length: to }, (_, i) => ({ tool: 'report', args: { n: 1 + i } }))

const namesIn = ({ tools }: Request): readonly string[] => tools.map(({ name }) => name)
const isCleared = ({ messages }: Request): boolean =>
  messages.some((m) => m.role === 'tool' && typeof m.content === 'string' && m.content.startsWith(CLEARED))

async function retrieve({ plan }: Stage, session: Session, token: string): Promise<unknown> {
  plan.push({ tool: RETRIEVE, args: { token } })
  await session.run('Go on.')
  return (await session.events()).events.findLast((event) => event.type === 'agent.tool_result')
}

describe('retrieve_original', () => {
  it('B-REACH-24: without any option it is offered from the request on that shows a cleared result, and not before', async () => {
    const stage = make()
    const session = await stage.harness.open()
    stage.plan.push(...reports(12))
    await session.run('Read 1 to 12.')
    expect(stage.asked.some(isCleared)).toBe(true)
    for (const request of stage.asked)
      expect(namesIn(request)).toEqual(isCleared(request) ? ['report', 'big', RETRIEVE] : ['report', 'big'])
    expect(await retrieve(stage, session, 'call:5.0')).toMatchObject({ status: 'ok', content: textOfReport(1) })
    // Another process, and a fork, decide the same by the log.
    const other = make({ store: stage.store })
    await other.harness.session(session.id).run('Hello.')
    await (await other.harness.session(session.id).fork()).run('Hello.')
    for (const request of other.asked) expect(namesIn(request)).toContain(RETRIEVE)
  })

  it('B-REACH-24: it is offered after a cut, whose summary names it, and where a new text was shortened to fit', async () => {
    const cut = make()
    const session = await cut.harness.open()
    for (let i = 0; i < 6; i++) await session.run(`Story part ${i}. ${'words of the user '.repeat(200)}`)
    await session.compact()
    await session.run('Hello.')
    const last = cut.asked.at(-1) as Request
    expect(namesIn(last)).toContain(RETRIEVE)
    const [, token = ''] = /(msg:\d+) Story part 0/.exec(JSON.stringify(last.messages)) ?? []
    expect(JSON.stringify(await retrieve(cut, session, token))).toContain('Story part 0. words')
    const fitted = make({}, 8_000)
    const other = await fitted.harness.open()
    await other.run(`Begin. ${'words of the user '.repeat(2_500)}`)
    const shown = fitted.asked.at(-1) as Request
    expect(shown.messages.map((m) => (m.role === 'user' ? textOf(m.parts) : '')).join('')).toMatch(/whole is msg:\d/)
    expect(namesIn(shown)).toContain(RETRIEVE)
  })

  it('B-REACH-24: an agent that denies it, or has no tools, is not offered it, and its summaries do not name it', async () => {
    for (const options of [{ toolAccess: { deny: [RETRIEVE] } }, { tools: [] }]) {
      const stage = make(options)
      const session = await stage.harness.open()
      for (let i = 0; i < 6; i++) await session.run(`Story part ${i}. ${'words of the user '.repeat(200)}`)
      await session.compact()
      await session.run('Hello.')
      for (const request of stage.asked) expect(namesIn(request)).not.toContain(RETRIEVE)
      expect(JSON.stringify(stage.asked.at(-1)?.messages)).not.toMatch(/msg:\d|retrieve_original/)
    }
  })

  it('B-REACH-25: a session whose context names it keeps it, with whatever options the next harness has', async () => {
    const first = make({}, 1_000_000)
    const session = await first.harness.open()
    first.plan.push({ tool: 'big', args: {} })
    await session.run('Go.')
    expect(namesIn(first.asked.at(-1) as Request)).toContain(RETRIEVE)
    for (const options of [{ compression: 'off' }, { compression: 'light' }, { bytes: 16_384 }] as const) {
      const next = make({ results: options, store: first.store }, 1_000_000)
      const same = next.harness.session(session.id)
      await same.run('More.')
      const request = next.asked.at(-1) as Request
      expect(namesIn(request).filter((name) => name === RETRIEVE)).toHaveLength(1)
      const [token = ''] = /⟦tj:\w+⟧/.exec(JSON.stringify(request.messages)) ?? []
      expect(await retrieve(next, same, token)).toMatchObject({ status: 'ok' })
    }
    const off = make({ results: { compression: 'off' } }, 1_000_000)
    off.plan.push({ tool: 'big', args: {} })
    await off.harness.run('Go.')
    for (const request of off.asked) expect(namesIn(request)).toEqual(['report', 'big'])
  })
})
