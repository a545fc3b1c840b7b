// Runs that end without success: each has its own reason, everything is in the log, and the session goes on.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, type HarnessOptions, ModelRetry, type Script, scripted } from '../../src/index.ts'
import { stage } from './stage.ts'

const act = (execute: () => unknown, retries = 0) =>
  defineTool({ name: 'act', description: 'acts', input: z.object({}), effect: 'read', retries, execute })
const calls = [{ tool: 'act' }]
const pair = [{ tool: 'act' }, { tool: 'final_result', args: { city: 'Oslo' } }]
const output = { schema: z.object({ city: z.string() }) }
const picky = act(() => {
  throw new ModelRetry('Once more.')
})

type Ending = readonly [what: string, script: Script, end: object, options: Partial<HarnessOptions>, events: object[]]
const asked = { type: 'agent.message' }
const ENDINGS: readonly Ending[] = [
  ['provider_error', [{ error: 'auth', message: 'No.' }, 'On.'], { stopReason: 'provider_error' }, {}, []],
  ['empty_answer', ['', 'On.'], { stopReason: 'empty_answer' }, {}, [asked]],
  ['tool_retries_exceeded', [{ calls }, 'On.'], { stopReason: 'tool_retries_exceeded' }, { tools: [picky] }, [asked]],
  [
    'output_validation_failed',
    ['Oslo.', { calls: [{ tool: 'final_result', args: { city: 'Oslo' } }] }],
    { stopReason: 'output_validation_failed' },
    { output, limits: { outputRetries: 0 } },
    [asked],
  ],
  [
    'output_validation_failed after a mixed reply',
    [{ calls: pair }, { calls: [{ tool: 'final_result', args: { city: 'Oslo' } }] }],
    { stopReason: 'output_validation_failed' },
    { output, tools: [act(() => 1)], limits: { outputRetries: 0 } },
    [{ ...asked, calls: [{ tool: 'act' }, { tool: 'final_result' }] }],
  ],
  [
    'limit_reached',
    [{ calls: [...calls, ...calls] }, 'On.'],
    { stopReason: 'limit_reached', limit: 'tool_calls' },
    { tools: [act(() => 1)], limits: { toolCalls: 1 } },
    [{ ...asked, calls: [{ tool: 'act' }, { tool: 'act' }] }],
  ],
]

describe('a run that did not end well', () => {
  it.each(ENDINGS)(
    'B-SETTLE-1: keeps its reason, %s, and its last reply in the log; each call has a result, and the session goes on (AC-9, AC-11, AC-45)',
    async (_what, script, end, options, said) => {
      const harness = new Harness({ model: scripted(script), ...options })
      const session = await harness.open()
      expect(await session.run('Go.')).toMatchObject(end)
      const { events } = await session.events()
      expect(events.at(-1)?.type).toBe('run.settled')
      const replies = events.filter((event) => event.type === 'agent.message')
      expect(replies).toMatchObject(said)
      const results = events.filter((event) => event.type === 'agent.tool_result')
      expect(results).toHaveLength(replies.flatMap((reply) => reply.calls).length)
      expect(await session.run('Go on.')).toMatchObject({ status: 'completed' })
      await harness.close()
    },
  )

  it('B-SETTLE-3: it still has what was said last, if its last replies only called tools', async () => {
    const script = [{ text: 'I found two pages.', calls }, { text: ' ', calls }, { calls }]
    const { session, harness } = await stage(script, { tools: [act(() => 1)], limits: { modelRequests: 3 } })
    expect(await session.run('Go.')).toMatchObject({ status: 'limit', text: 'I found two pages.' })
    await harness.close()
  })

  it('B-SETTLE-4: halted it has the cause as its text, what the model said last beside it, and the cause on its card', async () => {
    const broken = act(() => {
      throw new Error('There is no file news.html.')
    })
    const script = [{ text: 'I look.', calls }, { calls }, { calls }, 'On.']
    const { session, harness } = await stage(script, { tools: [broken] })
    const result = await session.run('Go.')
    const reason = expect.stringContaining('There is no file news.html.') as string
    expect(result).toMatchObject({ status: 'halted', text: reason, reason, said: 'I look.' })
    expect(await session.status()).toMatchObject({ text: reason })
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toMatchObject([
      { outcome: 'halted', cause: reason },
    ])
    expect(await session.run('Go on.')).toMatchObject({ status: 'completed', text: 'On.' })
    expect((await harness.list({ order: 'id', limit: 500 })).cards[0]).not.toHaveProperty('cause')
    await harness.close()
  })

  it('B-SETTLE-2: cancelled in the middle of a tool it is interrupted, the tool is told, and the harness goes on (AC-8, AC-45)', async () => {
    let begun = (): void => {}
    const running = new Promise<void>((resolve) => {
      begun = resolve
    })
    let told = false
    const slow = defineTool({
      name: 'slow',
      description: 'slow',
      input: z.object({}),
      effect: 'read',
      execute: (_args, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            told = true
            reject(new Error('stopped'))
          })
          begun()
        }),
    })
    const { session, harness } = await stage([{ calls: [{ tool: 'slow' }] }, 'Back.', 'And another.'], {
      tools: [slow],
    })
    const run = session.run('Go.')
    await running
    await session.interrupt()
    expect(await run).toMatchObject({ status: 'interrupted', stopReason: 'cancelled' })
    expect(told).toBe(true)
    expect(await session.run('Again.')).toMatchObject({ status: 'completed', text: 'Back.' })
    expect(await harness.run('Somebody else.')).toMatchObject({ status: 'completed', text: 'And another.' })
    await harness.close()
  })

  it('B-KERNEL-13: a paused run is told apart from an empty answer, and goes on with the next message (AC-83)', async () => {
    let begun = (): void => {}
    const running = new Promise<void>((resolve) => {
      begun = resolve
    })
    let go = (): void => {}
    const paused = new Promise<void>((resolve) => {
      go = resolve
    })
    const slow = act(async () => {
      begun()
      await paused
    })
    const { session, harness } = await stage([{ calls }, 'Done.'], { tools: [slow] })
    const run = session.run('Go.')
    await running
    await session.interrupt('pause')
    go()
    expect(await run).toMatchObject({ status: 'requires_action', stopReason: 'paused', pending: [] })
    expect(await session.run('Go on.')).toMatchObject({ status: 'completed', text: 'Done.' })
    await harness.close()
  })
})
