// An agent that hands the conversation over: the other one reads it, and its answer is the answer of the run.
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Harness,
  type HarnessOptions,
  memory,
  type Request,
  scripted,
  type CompleteStore,
} from '../../src/index.ts'

const HAND = { calls: [{ tool: 'handoff_to_billing', args: { task: 'Refund the order.' } }] }
const refund = defineTool({
  name: 'refund',
  description: 'Refunds an order.',
  input: z.object({}),
  approval: 'ask',
  execute: () => 'refunded',
})

type Said = Parameters<typeof scripted>[0]

/** `desk` answers for the agent that the user meets, `billing` for the one that it hands over to. Both are asked through one list. */
function staged(desk: Said, billing: Said, options: Partial<HarnessOptions> = {}, store: CompleteStore = memory()) {
  const asked: { readonly by: string; readonly request: Request }[] = []
  const noting = (by: string, script: Said) => {
    const inner = scripted(script, by)
    const call: typeof inner.call = (request, context) => {
      asked.push({ by, request: { ...request, messages: request.messages.slice() } })
      return inner.call(request, context)
    }
    return { ...inner, call }
  }
  const harness = new Harness({
    model: noting('desk', desk),
    store,
    instructions: 'You are the desk.',
    ...options,
    subagents: {
      billing: {
        description: 'Questions about money.',
        model: noting('billing', billing),
        instructions: 'You are billing.',
        tools: [refund],
        handoff: true,
        ...(options.output ? { output: options.output } : {}),
      },
    },
  })
  onTestFinished(() => harness.close())
  return { harness, asked }
}

const textsOf = ({ messages }: Request): string => JSON.stringify(messages)

describe('a handoff', () => {
  it('B-HANDOFF-1: the other agent reads the conversation, and its answer is the answer of the run: the first is not asked again', async () => {
    const { harness, asked } = staged(['Hello.', HAND, 'You are welcome.'], ['It is refunded.'])
    const session = await harness.open()
    await session.run('Hi, I am Ana.')
    const result = await session.run('Give me my money back.')
    expect(result).toMatchObject({ status: 'completed', text: 'It is refunded.', output: 'It is refunded.' })
    expect(asked.map(({ by }) => by)).toEqual(['desk', 'desk', 'billing'])
    const { request } = asked[2] ?? {}
    expect(request?.instructions).toContain('You are billing.')
    expect(request?.tools.map(({ name }) => name)).toContain('refund')
    for (const words of ['Hi, I am Ana.', 'Hello.', 'Give me my money back.', 'Refund the order.'])
      expect(textsOf(request as Request)).toContain(words)
    // The next message is the first agent's again, which reads what was answered.
    await session.run('Thanks.')
    expect(asked.at(-1)?.by).toBe('desk')
    expect(textsOf(asked.at(-1)?.request as Request)).toContain('It is refunded.')
    const fork = await session.fork()
    expect(JSON.stringify(await fork.messages())).toContain('It is refunded.')
  })

  it('B-HANDOFF-2: another worker ends the run with the answer, also after a person was asked below it', async () => {
    const store = memory()
    const first = staged([HAND], [{ calls: [{ tool: 'refund', args: {} }] }], {}, store)
    const parked = await first.harness.run('Give me my money back.')
    expect(parked).toMatchObject({ status: 'requires_action' })
    await first.harness.close()
    const second = staged([], ['It is refunded.'], {}, store)
    const session = second.harness.session(parked.sessionId)
    const [pending] = (await session.status()).pending
    if (!pending) throw new Error('Nothing waits.')
    await session.decide({ ...pending, allow: true, by: 'ana' })
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'It is refunded.' })
    expect(second.asked.map(({ by }) => by)).toEqual(['billing'])
  })

  it('B-HANDOFF-3: an agent that cannot answer leaves the word to the first, and so does a message that comes meanwhile', async () => {
    const failing = staged([HAND, 'Sorry, later.'], [{ error: 'bad_request', message: 'no' }])
    expect(await failing.harness.run('Money!')).toMatchObject({ status: 'completed', text: 'Sorry, later.' })
    expect(failing.asked.map(({ by }) => by)).toEqual(['desk', 'billing', 'desk'])
    const told = staged([HAND, 'Understood.'], [{ text: 'It is refunded.', delayMs: 300 }])
    const session = await told.harness.open()
    const running = session.run('Money!')
    while (told.asked.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
    await session.send('Never mind.')
    expect(await running).toMatchObject({ status: 'completed', text: 'Understood.' })
  })

  const schema = z.object({ amount: z.number() })
  it.each(['tool', 'prompted'] as const)(
    'B-HANDOFF-4: with output mode %s the answer of the other agent is checked as the answer of the run',
    async (mode) => {
      const output = { schema, mode }
      const said = mode === 'tool' ? { calls: [{ tool: 'final_result', args: { amount: 5 } }] } : '{"amount":5}'
      const { harness } = staged([HAND], [said], { output })
      expect(await harness.run('How much?')).toMatchObject({ status: 'completed', output: { amount: 5 } })
    },
  )

  it.each([
    ['block', { block: 'It tells a secret.' }, 'I cannot say.'],
    ['replace', { replace: 'MASKED' }, 'MASKED'],
    ['retry', { retry: 'Without the secret.' }, 'It is refunded.'],
  ])(
    'B-OUTGUARD-9: what the first agent may not answer is not kept either when another one says it: %s',
    async (how, word, text) => {
      const run = ({ text: said }: { readonly text: string }) => (said.includes('hunter2') ? word : undefined)
      const { harness, asked } = staged([HAND, 'I cannot say.', 'Next.'], ['It is hunter2.', 'It is refunded.'], {
        hooks: [{ type: 'before_answer', agents: ['default'], run }],
      })
      const session = await harness.open()
      const result = await session.run('Money!')
      expect(result).toMatchObject({ status: 'completed', text })
      await session.run('And now?')
      const [child] = (await session.status({ include: ['children'] })).children
      // What a model is to correct stays in its own conversation.
      const ids = how === 'retry' ? [session.id] : [session.id, child?.sessionId ?? '']
      const logs = ids.map(async (id) => (await harness.session(id).events()).events)
      const later = asked.filter(({ by }) => by === 'desk').map(({ request }) => request.messages)
      expect(JSON.stringify([result, later, ...(await Promise.all(logs))])).not.toContain('hunter2')
    },
  )

  it('B-HANDOFF-5: hooks, narrowing and budgets hold: a guard sees the answer, and a run without the tool hands nothing over', async () => {
    const block = { type: 'before_answer', agents: ['default'], run: () => ({ block: 'Not today.' }) } as const
    const guarded = staged([HAND, 'It is refunded.'], ['It is refunded.'], { hooks: [block] })
    expect(await guarded.harness.run('Money!')).toMatchObject({ status: 'halted', reason: 'Not today.' })
    const narrow = staged([HAND, 'I cannot.'], [])
    expect(await narrow.harness.run('Money!', { tools: [] })).toMatchObject({ text: 'I cannot.' })
    expect(narrow.asked.map(({ by }) => by)).toEqual(['desk', 'desk'])
    const { harness } = staged([HAND], [{ text: 'It is refunded.', cost: 1_000 }], { budget: { treeUsd: 1 } })
    expect(await harness.run('Money!')).toMatchObject({ status: 'completed', cost: { ownUsd: 0, usd: 0.001 } })
  })

  it.each([
    ['the last request is announced', { modelRequests: 2 }],
    ['one request more is left', { modelRequests: 3 }],
    ['the last tool call is announced', { toolCalls: 1 }],
  ])('B-HANDOFF-6: notices of limits do not give the word back to the first agent: %s', async (_when, limits) => {
    const { harness, asked } = staged([HAND, 'I answer myself.'], ['It is refunded.'])
    const result = await harness.run('Money!', { limits })
    expect(result).toMatchObject({ status: 'completed', text: 'It is refunded.' })
    expect(asked.map(({ by }) => by)).toEqual(['desk', 'billing'])
  })

  it('B-HANDOFF-7: a handoff whose answer would have no request left is refused before the other agent is asked', async () => {
    const { harness, asked } = staged([HAND, 'I answer myself.'], ['It is refunded.'])
    const result = await harness.run('Money!', { limits: { modelRequests: 1 } })
    expect(result).toMatchObject({ status: 'limit', text: '' })
    expect(result.calls[0]).toMatchObject({ status: 'denied' })
    expect(result.calls[0]?.content).toContain('no model request of this run is left')
    expect(asked.map(({ by }) => by)).toEqual(['desk'])
  })

  const slow = { deltas: ['It is ', 'refunded.'], delayMs: 30 }
  const textsIn = async (harness: Harness): Promise<readonly string[]> => {
    const stream = harness.stream('Money!')
    const texts: string[] = []
    for await (const text of stream.text) texts.push(text)
    await stream.result
    return texts
  }

  it('B-HANDOFF-8: the text of a stream is what the other agent says while it says it, once', async () => {
    expect(await textsIn(staged([HAND], [slow]).harness)).toEqual(['It is ', 'refunded.'])
    const before = { text: 'One moment.', calls: HAND.calls }
    expect(await textsIn(staged([before], [slow]).harness)).toEqual(['One moment.', '\n\nIt is ', 'refunded.'])
    const late = staged([HAND], ['It is refunded.'])
    expect(await textsIn(late.harness)).toEqual(['It is refunded.'])
  })
})
