// What a run added to its conversation, as its result has it, and the whole conversation. The rest of a result is results.test.ts.
import { describe, expect, it } from 'vitest'
import { memory, type Result, type Script, type SessionHandle } from '../../src/index.ts'
import { calls, lines, make, tool, users, waiting } from './scene.ts'

const look = tool('look')
const message = (text: string) =>
  ({ type: 'user.message', id: text, parts: [{ type: 'text', text }], when: 'next' }) as const

/** The message is in the log. */
async function admitted(session: SessionHandle, text: string): Promise<void> {
  for (;;) {
    const { events } = await session.events()
    if (JSON.stringify(events.filter(({ type }) => type === 'user.message')).includes(`"${text}"`)) return
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('what a run added', () => {
  const texts = (result: Result): readonly string[] => lines(result.messages)

  it('B-VERB-4: is in its result, whole: what was said, every call and every result, of this run alone (AC-69)', async () => {
    const session = await make([calls('look 1', 'look 2'), 'One.', 'Two.'], { tools: [look] }).open()
    const first = ['user: Go.', 'assistant:  look() look()', 'tool: look 1', 'tool: look 2', 'assistant: One.']
    expect(texts(await session.run('Go.'))).toEqual(first)
    expect(texts(await session.run('And?'))).toEqual(['user: And?', 'assistant: Two.'])
    expect(texts(await session.run())).toEqual(['user: And?', 'assistant: Two.'])
  })

  it('B-VERB-4: is whole also for a run that was limited, failed or parked: results no request has shown come last, in model order (AC-11, AC-69)', async () => {
    const slow = tool('slow', { execute: () => new Promise((resolve) => setTimeout(resolve, 20, 'slow')) })
    const limited = await make([calls('slow', 'look 2'), 'never'], {
      tools: [slow, look],
      limits: { modelRequests: 1 },
    }).run('Go.')
    expect(limited.status).toBe('limit')
    expect(texts(limited).filter((text) => !text.includes('harness_notice'))).toEqual([
      'user: Go.',
      'assistant:  slow() look()',
      'tool: slow',
      'tool: look 2',
    ])
    const failed = await make([calls('look 1'), { error: 'auth', message: 'No.' }], { tools: [look] }).run('Go.')
    expect(failed.status).toBe('failed')
    expect(texts(failed)).toEqual(['user: Go.', 'assistant:  look()', 'tool: look 1'])
    const parked = await make([calls('pay')], { tools: [tool('pay', { approval: 'ask' })] }).run('Go.')
    expect(texts(parked)).toEqual(['user: Go.', 'assistant:  pay()'])
  })

  it('B-VERB-4: has all that opened the run, also for a caller that only continues it, and for a run that never began', async () => {
    const store = memory()
    const host = make(['Both.', 'Next.'], { store })
    const session = await host.open()
    await store.commit([{ session: session.id, lane: 'inbox', events: [message('one'), message('two')] }])
    expect(texts(await session.run())).toEqual(['user: one', 'user: two', 'assistant: Both.'])
    expect(await session.run('three')).toMatchObject({ status: 'completed' })
    const held = make(['never'], { store, hooks: [{ type: 'user_prompt_submit', run: () => ({ cancel: 'no' }) }] })
    await held.session(session.id).send('four')
    const result = await held.session(session.id).run()
    expect(result).toMatchObject({ status: 'interrupted', stopReason: 'cancelled_by_hook', reason: 'no', text: '' })
    expect(texts(result)).toEqual(['user: four'])
  })

  it('B-VERB-4: has nothing of the run before, also where that one was open when the input came and nothing began after it', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const session = await make([{ text: 'Of one.', ...calls('slow') }], {
      tools: [slow],
      limits: { modelRequests: 1 },
      hooks: [
        { type: 'user_prompt_submit', run: ({ prompt }) => (prompt.includes('three') ? { cancel: 'no' } : undefined) },
      ],
    }).open()
    await session.send([
      { type: 'message', input: 'one' },
      { type: 'message', input: 'two', when: 'after' },
    ])
    await runs.here
    const third = session.run('three')
    await admitted(session, 'three')
    go()
    const result = await third
    expect(result).toMatchObject({ stopReason: 'cancelled_by_hook', text: '', usage: { modelRequests: 0 }, calls: [] })
    expect(texts(result)).toEqual(['user: two', 'user: three'])
  })

  it('B-VERB-11: a caller that steers an open run gets the result of that run, whole', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const script: Script = [
      { ...calls('look 1'), usage: { inputTokens: 3, outputTokens: 1 } },
      calls('slow 2'),
      (request) => users(request).join(' + '),
    ]
    const session = await make(script, { tools: [slow, look] }).open()
    const first = session.run('one')
    await runs.here
    const second = session.run('two')
    await admitted(session, 'two')
    go()
    const [one, two] = await Promise.all([first, second])
    expect(one).toMatchObject({ status: 'completed', text: 'one + two', usage: { modelRequests: 3, toolCalls: 2 } })
    expect(two).toEqual(one)
  })

  it('B-VERB-5: the whole conversation is there after several runs: what was shown, and what will be shown next (AC-69)', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const seen: (readonly string[])[] = []
    const session = await make(
      (request, n) => {
        seen.push(lines(request.messages))
        return n === 1 ? calls('slow 7') : `answer ${n}`
      },
      { tools: [slow] },
    ).open()
    await session.run('one')
    const running = session.run('two')
    await runs.here
    await session.send('three')
    expect(lines(await session.messages())).toEqual([
      'user: one',
      'assistant: answer 0',
      'user: two',
      'assistant:  slow()',
      'user: three',
    ])
    go()
    await running
    const all = lines(await session.messages())
    expect(all).toEqual([...(seen.at(-1) ?? []), 'assistant: answer 2'])
    expect(all).toContain('tool: slow 7')
  })

  it('B-VERB-5: a fork has the conversation up to its event, also what no request had shown; what still waits stays behind', async () => {
    const harness = make([calls('look 1', 'look 2'), (request) => lines(request.messages).join(' | ')], {
      tools: [look],
      limits: { modelRequests: 1 },
      breaker: false,
    })
    const session = await harness.open()
    expect(await session.run('one')).toMatchObject({ status: 'limit' })
    const fork = await session.fork()
    const before = ['user: one', 'assistant:  look() look()', 'tool: look 1', 'tool: look 2']
    const plain = async (of: SessionHandle) => lines(await of.messages()).filter((text) => !text.includes('notice'))
    expect(await plain(session)).toEqual(before)
    expect(await plain(fork)).toEqual(before)
    const { text } = await fork.run('two')
    expect(text.split(' | ').filter((line) => !line.includes('notice'))).toEqual([...before, 'user: two'])
    expect(await plain(session)).toEqual(before)
  })

  it('B-VERB-5: a fork has a message that an interrupt swallowed, and none that is still to come', async () => {
    const { tool: slow, runs, go } = waiting('slow')
    const session = await make([calls('slow'), 'Later.', 'Forked.'], { tools: [slow] }).open()
    const running = session.run('one')
    await runs.here
    await session.send('two')
    await session.interrupt()
    await session.send('three', { when: 'after' })
    go()
    await running
    const settled = (await session.events()).events.find(({ type }) => type === 'run.settled')
    const fork = await session.fork({ at: settled?.seq ?? 0 })
    const texts = lines(await fork.messages()).filter((line) => line.startsWith('user'))
    expect(texts).toEqual(['user: one', 'user: two'])
  })
})
