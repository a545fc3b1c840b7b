// Approvals through the harness: what waits, what a decision may be, and what is counted before and after it. Which calls are
// asked about is the policy's matter (test/tools/policy.test.ts), and the state machine is the kernel's (test/kernel/approval.test.ts).
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Harness,
  type HarnessOptions,
  memory,
  ModelRetry,
  type Policy,
  rememberedRule,
  type Result,
  type Script,
  scripted,
  type SessionHandle,
  type CompleteStore,
  type Tool,
  type ToolSource,
} from '../../src/index.ts'
import type { Json } from '../../src/kernel/content.ts'
import type { Request } from '../../src/ports/model.ts'
import { STORAGES, storeOf } from '../models/hosted-stage.ts'
import { storeWith } from '../../sim/store-with.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

function make(script: Script, tools: HarnessOptions['tools'], more: Partial<HarnessOptions> = {}): Harness {
  const harness = new Harness({ model: scripted(script), ...(tools === undefined ? {} : { tools }), ...more })
  open.push(harness)
  return harness
}

type Extra = Partial<Parameters<typeof defineTool<{ n: number }>>[0]>
const input = z.object({ n: z.number() })

function noting(ran: string[]): (name: string, extra?: Extra) => Tool {
  return (name, extra = {}) =>
    defineTool({
      name,
      description: name,
      input,
      effect: 'once',
      execute: ({ n }) => {
        ran.push(`${name} ${n}`)
        return `${name} ${n}`
      },
      ...extra,
    })
}

const call = (name: string, n: number) => ({ tool: name, args: { n }, id: `${name}-${n}` })
const callIds = (parked: Result): readonly string[] => parked.pending.map(({ callId }) => callId)
const allow = (session: SessionHandle, callId = '') => session.decide({ callId, allow: true, by: 'ana' })
const results = (request: Request) =>
  request.messages.flatMap((m) => (m.role === 'tool' && typeof m.content === 'string' ? [m.content] : []))
const told: Script = (request) => results(request).join(' | ')

describe('a turn with a call that is asked about', () => {
  it.each([
    ['its tool', { tool: true }],
    ['a rule', { tool: false }],
  ] as const)(
    'B-APPROVE-30: %s may want a person by the time its batch goes on: then one is asked, and nothing runs unasked (AC-33, S0-48)',
    async (_who, { tool: byTool }) => {
      const ran: string[] = []
      const store = memory()
      let strict = false
      const note = noting(ran)('note', { approval: () => (strict && byTool ? 'ask' : 'auto') })
      const tools = [noting(ran)('pay', { approval: 'ask' }), note]
      const parked = await make([{ calls: [call('pay', 1), call('note', 2)] }], tools, { store }).run('Go.')
      expect(parked.pending).toMatchObject([{ tool: 'pay' }])
      strict = true
      const policy: Policy = { rules: byTool ? [] : [{ effect: 'ask', tool: 'note' }] }
      const session = make(['Done.'], tools, { store, approvals: { policy } }).session(parked.sessionId)
      await allow(session, callIds(parked)[0])
      const again = await session.run()
      expect(again).toMatchObject({ stopReason: 'approval_required', pending: [{ tool: 'note', args: { n: 2 } }] })
      expect(ran).toEqual(['pay 1'])
      await allow(session, callIds(again)[0])
      expect(await session.run()).toMatchObject({ status: 'completed', text: 'Done.' })
      expect(ran).toEqual(['pay 1', 'note 2'])
    },
  )

  it('B-KERNEL-6: runs nothing of itself before every question is decided, and then in model order (AC-30, AC-31)', async () => {
    const ran: string[] = []
    const tool = noting(ran)
    const store = memory()
    const calls = [call('look', 1), call('pay', 2), call('look', 3), call('pay', 4)]
    const tools = [tool('look'), tool('pay', { approval: 'ask' })]
    const parked = await make([{ calls }], tools, { store }).run('Go.')
    expect(parked).toMatchObject({ status: 'requires_action', pending: [{ args: { n: 2 } }, { args: { n: 4 } }] })
    const session = make(told, tools, { store }).session(parked.sessionId)
    await allow(session, callIds(parked)[1])
    expect(await session.run()).toMatchObject({ status: 'requires_action', pending: [{ args: { n: 2 } }] })
    expect(ran).toEqual([])
    await session.decide({ callId: callIds(parked)[0] ?? '', allow: false, by: 'ana', why: 'too dear' })
    const refused = 'Tool call was rejected by a human reviewer.\nReason: too dear'
    expect(await session.run()).toMatchObject({ text: `look 1 | ${refused} | look 3 | pay 4` })
    const { events } = await session.events()
    expect(events.find((event) => event.type === 'agent.tool_result' && event.status === 'denied')).toMatchObject({
      metadata: { error_type: 'ApprovalRejected' },
    })
    expect(ran.toSorted()).toEqual(['look 1', 'look 3', 'pay 4'])
  })

  it('B-APPROVE-3: a decision on a call that is unknown, was not asked about or is decided is refused, and nothing runs by it (AC-32, AC-33)', async () => {
    const ran: string[] = []
    const tool = noting(ran)
    const tools = [tool('look'), tool('pay', { approval: 'ask' })]
    const harness = make([{ calls: [call('look', 1), call('pay', 2), call('pay', 3)] }, told], tools)
    const parked = await harness.run('Go.')
    const session = harness.session(parked.sessionId)
    const [first = '', second = ''] = callIds(parked)
    const sibling = first.replace(/\d+$/, '0')
    const no = (callId: string, more = {}) =>
      expect(session.decide({ callId, allow: true, by: 'eve', ...more })).rejects.toMatchObject({
        code: expect.stringMatching(/decision_stale|call_unknown/) as string,
      })
    await no('99.0')
    await no('nonsense')
    await no(sibling)
    await no(first, { digest: 'of something else' })
    await allow(session, first)
    await no(first)
    expect(await session.run()).toMatchObject({ status: 'requires_action', pending: [{ callId: second }] })
    expect(ran).toEqual([])
  })

  it('B-APPROVE-2: of decisions that come at once the first in the log stands, and of answers only one is taken (AC-113)', async () => {
    const ran: string[] = []
    const host = defineTool({ name: 'host', description: 'host', input, effect: 'once' })
    const store = memory()
    const tools = [noting(ran)('pay', { approval: 'ask' }), host]
    const [here, there] = [1, 2].map(() => make(told, tools, { store })) as [Harness, Harness]
    const parked = await make([{ calls: [call('pay', 1)] }], tools, { store }).run('Go.')
    const session = here.session(parked.sessionId)
    const other = there.session(parked.sessionId)
    const [callId = ''] = callIds(parked)
    await Promise.allSettled([
      session.decide({ callId, allow: false, by: 'ana' }),
      ...['bob', 'eve', 'bob'].map((by) => other.decide({ callId, allow: true, by })),
    ])
    expect(await session.run()).toMatchObject({ status: 'completed' })
    const decisions = (await session.events()).events.filter((event) => event.type === 'user.tool_confirmation')
    expect(ran).toEqual(decisions[0]?.allow ? ['pay 1'] : [])
    const asked = await make([{ calls: [call('host', 1)] }], tools, { store }).run('Go.')
    const answers = await Promise.allSettled(
      [here, there, here].map((harness, i) =>
        harness.session(asked.sessionId).answer({ callId: callIds(asked)[0] ?? '', content: `answer ${i}` }),
      ),
    )
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const { events } = await here.session(asked.sessionId).events()
    expect(events.filter((event) => event.type === 'user.custom_tool_result')).toHaveLength(1)
  })

  it('B-KERNEL-10: an interrupt takes the question back: a decision after it is stale and runs nothing (AC-115)', async () => {
    const ran: string[] = []
    const harness = make([{ calls: [call('pay', 1)] }, 'Fine.'], [noting(ran)('pay', { approval: 'ask' })])
    const parked = await harness.run('Go.')
    const session = harness.session(parked.sessionId)
    await session.interrupt()
    expect(await session.run()).toMatchObject({ status: 'interrupted', pending: [] })
    await expect(allow(session, callIds(parked)[0])).rejects.toMatchObject({ code: 'decision_stale' })
    expect(await session.run('Something else.')).toMatchObject({ status: 'completed', text: 'Fine.' })
    expect(ran).toEqual([])
  })

  it('B-APPROVE-1: what is changed in a result that was handed out changes nothing of what runs (AC-42)', async () => {
    const ran: string[] = []
    const harness = make([{ calls: [call('pay', 1)] }, 'Paid.'], [noting(ran)('pay', { approval: 'ask' })])
    const parked = await harness.run('Go.')
    const session = harness.session(parked.sessionId)
    for (const pending of [parked.pending, (await session.run()).pending]) {
      const args = pending[0]?.args as { n: number }
      Reflect.set(args, 'n', 1_000_000)
    }
    for (const event of (await session.events()).events) Reflect.set(event, 'calls', [])
    await allow(session, callIds(parked)[0])
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'Paid.' })
    expect(ran).toEqual(['pay 1'])
  })
})

describe.each(STORAGES)('what was handed out on %s', (storage) => {
  const evil = (calls: readonly { readonly args: Json }[] | undefined): void => {
    for (const { args } of calls ?? []) Reflect.set(args as object, 'n', 1_000_000)
  }
  const doors: readonly (readonly [string, (result: Result) => void])[] = [
    ['pending', ({ pending }) => evil(pending)],
    ['calls', ({ calls }) => evil(calls)],
    ['messages', ({ messages }) => messages.forEach((m) => m.role === 'assistant' && evil(m.calls))],
    ['responses', ({ responses }) => responses?.forEach(({ calls }) => evil(calls))],
  ]

  it.each(doors)('B-APPROVE-1: a change of its %s changes nothing of what runs', async (_door, change) => {
    const ran: string[] = []
    const tools = [noting(ran)('pay', { approval: 'ask' })]
    const session = await make([{ calls: [call('pay', 1)] }, 'Paid.'], tools, { store: storeOf(storage) }).open()
    const parked = await session.run('Go.', { raw: true })
    change(parked)
    await allow(session, callIds(parked)[0])
    const result = await session.run()
    expect(result).toMatchObject({ status: 'completed', calls: [{ args: { n: 1 } }] })
    expect(ran).toEqual(['pay 1'])
  })

  it('B-APPROVE-1: a change of a streamed event changes nothing of what runs, nor of what others read', async () => {
    const ran: string[] = []
    const tools = [noting(ran)('pay', { approval: 'ask' })]
    const session = await make([{ calls: [call('pay', 1)] }, 'Paid.'], tools, { store: storeOf(storage) }).open()
    const stream = session.stream('Go.')
    for await (const event of stream) if (event.type === 'agent.message') evil(event.calls)
    const parked = await stream.result
    expect(parked.calls).toMatchObject([{ args: { n: 1 } }])
    await allow(session, callIds(parked)[0])
    expect(await session.run()).toMatchObject({ status: 'completed' })
    expect(ran).toEqual(['pay 1'])
  })

  it('B-APPROVE-1: a change of what was said changes nothing of what the model reads next', async () => {
    const seen: string[] = []
    const script: Script = (request, n) => {
      seen.push(JSON.stringify(request.messages.map((m) => (m.role === 'tool' ? m.content : m.parts))))
      return `Answer ${n}.`
    }
    const session = await make(script, [], { store: storeOf(storage) }).open()
    const input = [{ type: 'text' as const, text: 'Question 0.' }]
    const { messages } = await session.run(input)
    for (const part of [...input, ...messages.flatMap((m) => (m.role === 'tool' ? [] : m.parts))])
      Reflect.set(part, 'text', 'EVIL')
    await session.run('Question 1.')
    expect(seen[1]).toContain('Question 0.')
    expect(seen[1]).toContain('Answer 0.')
    expect(seen[1]).not.toContain('EVIL')
  })

  it('B-APPROVE-13: a call whose arguments are not those that were approved is refused, whatever changed them', async () => {
    const ran: string[] = []
    const store = storeOf(storage)
    const tools = [noting(ran)('pay', { approval: 'ask' })]
    const parked = await make([{ calls: [call('pay', 1)] }], tools, { store }).run('Go.')
    const forging = storeWith(store, {
      read: async (...at) => {
        const page = await store.read(...at)
        for (const event of page.events) if (event.type === 'agent.message') evil(event.calls)
        return page
      },
    })
    const session = make(['I see.'], tools, { store: forging }).session(parked.sessionId)
    await allow(session, callIds(parked)[0])
    const refused = { status: 'error', content: expect.stringContaining('approved') as string }
    expect(await session.run()).toMatchObject({ status: 'completed', calls: [refused] })
    expect(ran).toEqual([])
  })
})

describe('what is counted around an approval', () => {
  it('B-TOOL-3: an approved call that asks for a correction uses up retries, and the corrected one is asked about again (AC-35)', async () => {
    let ran = 0
    const picky = noting([])('pay', {
      approval: 'ask',
      retries: 1,
      execute: () => {
        ran += 1
        throw new ModelRetry('Give an amount in euros.')
      },
    })
    const harness = make([{ calls: [call('pay', 1)] }, { calls: [call('pay', 2)] }, 'never'], [picky])
    let result = await harness.run('Go.')
    const session = harness.session(result.sessionId)
    for (const n of [1, 2]) {
      expect(result).toMatchObject({ status: 'requires_action', pending: [{ args: { n } }] })
      expect(ran).toBe(n - 1)
      await allow(session, callIds(result)[0])
      result = await session.run()
    }
    expect(result).toMatchObject({ status: 'failed', stopReason: 'tool_retries_exceeded' })
    expect(ran).toBe(2)
  })

  it('B-LIMIT-2: a call counts once however long it waited and whichever worker goes on, and the limit holds across the pause (AC-36)', async () => {
    const ran: string[] = []
    const store: CompleteStore = memory()
    const tools = [noting(ran)('pay', { approval: 'ask' }), noting(ran)('look')]
    const limits = { toolCalls: 2 }
    const parked = await make([{ calls: [call('pay', 1)] }], tools, { store, limits }).run('Go.')
    expect(parked.usage).toMatchObject({ modelRequests: 1, toolCalls: 1 })
    const script = [{ calls: [call('look', 2)] }, { calls: [call('look', 3)] }, 'never']
    const session = make(script, tools, { store, limits }).session(parked.sessionId)
    await allow(session, callIds(parked)[0])
    expect(await session.run()).toMatchObject({ status: 'limit', limit: 'tool_calls', usage: { modelRequests: 3 } })
    expect(ran).toEqual(['pay 1', 'look 2'])
  })

  it('B-LIMIT-2: a batch over the limit fails before a person is asked (AC-37)', async () => {
    const ran: string[] = []
    const tools = [noting(ran)('pay', { approval: 'ask' })]
    const harness = make([{ calls: [call('pay', 1), call('pay', 2)] }, 'never'], tools, { limits: { toolCalls: 1 } })
    expect(await harness.run('Go.')).toMatchObject({ status: 'limit', limit: 'tool_calls', pending: [] })
    expect(ran).toEqual([])
  })
})

describe('who decides', () => {
  const asks = { rules: [{ effect: 'ask', tool: 'pay', class: 'money', n: 2, roles: ['lead'] }] } as const

  it('B-APPROVE-10: what waits says its class, people, roles, and who said yes so far', async () => {
    const ran: string[] = []
    const harness = make([{ calls: [call('pay', 1)] }, told], [noting(ran)('pay')], { approvals: { policy: asks } })
    const parked = await harness.run('Go.')
    expect(parked.pending).toMatchObject([{ class: 'money', n: 2, roles: ['lead'], votes: [] }])
    const session = harness.session(parked.sessionId)
    const [callId = ''] = callIds(parked)
    await session.decide({ callId, allow: true, by: 'ana', role: 'lead' })
    expect((await session.run()).pending).toMatchObject([{ votes: ['ana'] }])
    await session.decide({ callId, allow: true, by: 'bob', role: 'lead' })
    expect(await session.run()).toMatchObject({ status: 'completed', pending: [] })
    expect(ran).toEqual(['pay 1'])
  })

  it('B-APPROVE-11: a decision without a name is refused, and a name with spaces is the same person', async () => {
    const ran: string[] = []
    const harness = make([{ calls: [call('pay', 1)] }, told], [noting(ran)('pay')], { approvals: { policy: asks } })
    const parked = await harness.run('Go.')
    const session = harness.session(parked.sessionId)
    const [callId = ''] = callIds(parked)
    await session.decide({ callId, allow: true, by: 'ana', role: 'lead' })
    for (const by of ['', '  ', undefined, null, 5]) {
      const decision = { callId, allow: true, by: by as string, role: 'lead' }
      await expect(session.decide(decision)).rejects.toMatchObject({ code: 'invalid_input' })
    }
    expect(await session.decide({ callId, allow: true, by: ' ana ', role: 'lead' })).toMatchObject({ duplicate: true })
    expect((await session.run()).pending).toMatchObject([{ votes: ['ana'] }])
    expect(ran).toEqual([])
  })

  it('B-POLICY-25: a rule that is kept with a decision is recorded with it', async () => {
    const harness = make([{ calls: [call('pay', 1)] }, told], [noting([])('pay', { approval: 'ask' })])
    const parked = await harness.run('Go.')
    const remember = rememberedRule({ tool: 'pay', args: { n: 1 }, approval: 'ask' })
    const session = harness.session(parked.sessionId)
    await session.decide({ callId: callIds(parked)[0] ?? '', allow: true, by: 'ana', remember })
    const { events } = await session.events()
    expect(events.find(({ type }) => type === 'user.tool_confirmation')).toMatchObject({ remember })
  })
})

describe('the second look', () => {
  /** Parked under one policy, approved and gone on with under another. */
  async function later(before: Policy, after: Policy, calls: readonly { readonly tool: string }[]) {
    const ran: string[] = []
    const store = memory()
    const path = z.object({ path: z.string().optional(), n: z.number() })
    const put = defineTool({
      name: 'put',
      description: 'd',
      input: path,
      approval: 'ask',
      execute: () => ran.push('put'),
    })
    const tools = [put, noting(ran)('look')]
    const parked = await make([{ calls }], tools, { store, approvals: { policy: before } }).run('Go.')
    expect(parked.status).toBe('requires_action')
    const session = make(told, tools, { store, approvals: { policy: after } }).session(parked.sessionId)
    await allow(session, callIds(parked)[0])
    expect((await session.run()).status).toBe('completed')
    return ran
  }
  const put = { tool: 'put', args: { path: '/srv/a', n: 1 } }

  it('B-POLICY-20: a rule that denies since the call waits holds, also where there was none, and for the others of its reply', async () => {
    const deny = (tool: string): Policy => ({ rules: [{ effect: 'deny', tool }] })
    expect(await later({ rules: [] }, { rules: [] }, [put])).toEqual(['put'])
    expect(await later({ rules: [] }, deny('put'), [put])).toEqual([])
    expect(await later({ rules: [] }, deny('look'), [put, call('look', 1)])).toEqual(['put'])
    expect(await later({ rules: [] }, { rules: [], writeRoots: ['/out'], base: '/out' }, [put])).toEqual([])
  })

  it('B-POLICY-20: an approved call is not refused because no person can be asked any more', async () => {
    const ask: Policy = { rules: [{ effect: 'ask', tool: 'put' }] }
    expect(await later(ask, { ...ask, onAsk: 'deny' }, [put])).toEqual(['put'])
    expect(await later({ rules: [] }, { rules: [], onAsk: 'deny' }, [put])).toEqual(['put'])
  })
})

describe('after an approval', () => {
  it('B-OUTPUT-14: a run gives its value of the schema, also in another harness (AC-39)', async () => {
    const ran: string[] = []
    const store = memory()
    const options = { store, output: { schema: z.object({ paid: z.boolean() }) } }
    const tools = [noting(ran)('pay', { approval: 'ask' })]
    const parked = await make([{ calls: [call('pay', 1)] }], tools, options).run('Go.')
    const final = { calls: [{ tool: 'final_result', args: { paid: true } }] }
    const session = make([final], tools, options).session(parked.sessionId)
    await allow(session, callIds(parked)[0])
    expect(await session.run()).toMatchObject({ status: 'completed', output: { paid: true } })
    expect(ran).toEqual(['pay 1'])
  })

  it('B-TOOLBOX-1: a source is asked for its tools before the approved call runs, and an unknown sibling stays unknown (AC-40)', async () => {
    const ran: string[] = []
    const store = memory()
    const asked: string[] = []
    const source = (name: string): ToolSource => ({
      type: 'source',
      name,
      tools: () => {
        asked.push(name)
        return Promise.resolve([noting(ran)('far', { approval: 'ask' })])
      },
      close: () => Promise.resolve(),
    })
    const calls = [call('far', 1), call('nowhere', 2)]
    const parked = await make([{ calls }], [source('first')], { store }).run('Go.')
    expect(parked).toMatchObject({ status: 'requires_action', pending: [{ tool: 'far' }] })
    const session = make(told, [source('second')], { store }).session(parked.sessionId)
    await allow(session, callIds(parked)[0])
    expect(await session.run()).toMatchObject({
      status: 'completed',
      text: expect.stringMatching(/^far 1 \| unknown tool "nowhere"/) as string,
    })
    expect(ran).toEqual(['far 1'])
    expect(asked).toEqual(['first', 'second'])
  })
})
