// Running a tool: envelopes, failures the model can read, retries of the model and attempts of the harness.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, ModelRetry, output, ToolFailure, type Tool } from '../../src/index.ts'
import { askUserTool } from '../../src/tools/index.ts'
import { stage } from '../runtime/stage.ts'

const input = z.object({})
/** Some code rejects with what is no error at all. */
const refuse = (): Promise<never> => new Promise((_resolve, reject) => Reflect.apply(reject, undefined, []))

function tool(
  name: string,
  execute: () => unknown,
  extra: Partial<Parameters<typeof defineTool<object>>[0]> = {},
): Tool {
  return defineTool({ name, description: name, input, effect: 'read', execute, ...extra })
}

async function resultOf(made: Tool): Promise<unknown> {
  const { session, harness } = await stage([{ calls: [{ tool: made.name }] }, 'done'], { tools: [made] })
  await session.run('go')
  const { events } = await session.events()
  await harness.close()
  return events.find((event) => event.type === 'agent.tool_result')
}

describe('running a tool', () => {
  it('B-TOOL-1: text is content as it is, any other value is JSON with sorted keys, an envelope speaks for itself', async () => {
    expect(await resultOf(tool('text', () => 'hello'))).toMatchObject({ status: 'ok', content: 'hello' })
    expect(await resultOf(tool('json', () => ({ b: 1, a: { d: 2, c: 3 } })))).toMatchObject({
      content: '{\n  "a": {\n    "c": 3,\n    "d": 2\n  },\n  "b": 1\n}',
    })
    const envelope = tool('envelope', () => output({ ok: false, content: 'no', metadata: { rows: 3 } }))
    expect(await resultOf(envelope)).toMatchObject({ status: 'error', content: 'no', metadata: { rows: 3 } })
    expect(await resultOf(tool('nothing', () => undefined))).toMatchObject({ status: 'ok', content: '' })
  })

  it('B-TOOL-2: a failure carries its kind for the model and its details as metadata; an ordinary exception its class', async () => {
    const missing = tool('missing', () => {
      throw new ToolFailure('NotFound', 'There is no report.md.', { path: 'report.md' })
    })
    expect(await resultOf(missing)).toMatchObject({
      status: 'error',
      content: 'There is no report.md.',
      failure: { kind: 'NotFound' },
      metadata: { error_type: 'NotFound', path: 'report.md' },
    })
    const broken = tool('broken', () => Promise.reject(new RangeError('too far')))
    expect(await resultOf(broken)).toMatchObject({
      content: 'RangeError: too far',
      metadata: { error_type: 'RangeError' },
    })
    const strange = tool('strange', refuse)
    expect(await resultOf(strange)).toMatchObject({ status: 'error', content: expect.stringMatching(/\S/) as string })
  })

  it('B-TOOL-3: ModelRetry asks the model to correct its call and counts against the retries of the tool', async () => {
    const picky = tool(
      'picky',
      () => {
        throw new ModelRetry('Give a city, not a country.')
      },
      { retries: 1 },
    )
    const script = [{ calls: [{ tool: 'picky' }] }, { calls: [{ tool: 'picky' }] }, 'never asked']
    const { session, harness } = await stage(script, { tools: [picky] })
    expect(await session.run('go')).toMatchObject({ status: 'failed', stopReason: 'tool_retries_exceeded' })
    const { events } = await session.events()
    expect(events.filter((event) => event.type === 'agent.tool_result')).toMatchObject([
      { retryKind: 'ModelRetry' },
      { retryKind: 'ModelRetry' },
    ])
    await harness.close()
  })

  it('B-TOOL-4: the harness itself repeats a failed read or idempotent handler as often as it may, and records how often (AC-108)', async () => {
    let tries = 0
    const flaky = tool(
      'flaky',
      () => {
        tries += 1
        if (tries < 3) throw new Error('not yet')
        return 'at last'
      },
      { attempts: 3 },
    )
    expect(await resultOf(flaky)).toMatchObject({ status: 'ok', content: 'at last', metadata: { attempts: 3 } })
    expect(() => tool('pay', () => 1, { effect: 'once', attempts: 2 })).toThrow('runs at most once')
  })

  it('B-TOOL-5: a tool says its own instructions, and one that is not there says nothing (S0-8)', async () => {
    let seen = ''
    const script = (request: { readonly instructions: string }) => {
      seen = request.instructions
      return 'done'
    }
    const { session, harness } = await stage(script, {
      tools: [tool('a', () => 1, { instructions: 'Use a sparingly.' }), tool('b', () => 1)],
    })
    await session.run('go')
    expect(seen).toBe('Use a sparingly.')
    await harness.close()
  })

  it('B-TOOL-6: a handler keeps a large text beside the log and reads it back in a later call', async () => {
    let hash = ''
    const keep = defineTool({
      name: 'keep',
      description: 'keep',
      input,
      effect: 'read',
      execute: (_args, { keep: put }) => {
        hash = put('a long story').hash
        return 'kept'
      },
    })
    const recall = defineTool({
      name: 'recall',
      description: 'recall',
      input,
      effect: 'read',
      execute: (_args, context) => context.recall(hash),
    })
    const { session, harness } = await stage([{ calls: [{ tool: 'keep' }] }, { calls: [{ tool: 'recall' }] }, 'done'], {
      tools: [keep, recall],
    })
    await session.run('go')
    const { events } = await session.events()
    expect(events.filter((event) => event.type === 'agent.tool_result')[1]).toMatchObject({ content: 'a long story' })
    await harness.close()
  })

  it('B-TOOL-7: a question to the user is a call that parks the run until it is answered', async () => {
    const script = [
      { calls: [{ tool: 'ask_user', args: { question: 'Which city?', choices: ['Oslo', 'Bergen'] } }] },
      (request: { readonly messages: readonly { readonly role: string; readonly content?: unknown }[] }) =>
        `Then ${request.messages.find((m) => m.role === 'tool')?.content === 'Bergen' ? 'Bergen' : 'elsewhere'}.`,
    ]
    const { session, harness } = await stage(script, { tools: [askUserTool()] })
    const parked = await session.run('Plan a trip.')
    expect(parked).toMatchObject({
      status: 'requires_action',
      pending: [{ tool: 'ask_user', args: { question: 'Which city?' } }],
    })
    await session.answer({ callId: parked.pending[0]?.callId ?? '', content: 'Bergen', by: 'ana' })
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'Then Bergen.' })
    await harness.close()
  })
})
