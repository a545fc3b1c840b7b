// What becomes of a tool's failure, of a call of a tool that is not there, and what a host may know of a tool beside its model.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, type Hook, memory, ModelRetry, output, scripted, ToolFailure } from '../../src/index.ts'
import type { ToolAccess } from '../../src/runtime/state/toolbox.ts'
import { eventsOf, stage } from './hooks-stage.ts'

type Extra = Partial<Parameters<typeof defineTool<{ n?: number | undefined }>>[0]>
const tool = (name: string, execute: () => unknown, extra: Extra = {}) =>
  defineTool({
    name,
    description: name,
    input: z.object({ n: z.number().optional() }),
    effect: 'read',
    execute,
    ...extra,
  })
const boom = (): never => {
  throw new Error('No paper.')
}
const ask = (...names: readonly string[]) => ({ calls: names.map((name) => ({ tool: name })) })

describe('a tool that fails', () => {
  it('B-TOOL-30: ends the run as tool_error where that is asked for, of the tool or of the agent; otherwise the model reads it (TA-14, D-9)', async () => {
    const failed = {
      status: 'failed',
      stopReason: 'tool_error',
      failure: { message: 'Tool "print" failed: Error: No paper.' },
    }
    const own = stage([ask('print', 'look')], [], {
      tools: [tool('print', boom, { onError: 'fail' }), tool('look', () => 'ok')],
    })
    const result = await own.harness.run('Print.')
    expect(result).toMatchObject(failed)
    expect(result.calls[0]).toMatchObject({ tool: 'print', status: 'error', content: 'Error: No paper.' })
    expect(own.requests).toHaveLength(1)
    // The session takes new input after it.
    const all = stage([ask('print'), 'Again.'], [], { tools: [tool('print', boom)], results: { toolErrors: 'fail' } })
    const first = await all.harness.run('Print.')
    expect(first).toMatchObject(failed)
    expect(await all.harness.session(first.sessionId).run('Go on.')).toMatchObject({ text: 'Again.' })
    // What the tool says of itself comes first.
    const kept = stage([ask('print'), 'Sorry.'], [], {
      tools: [tool('print', boom, { onError: 'return' })],
      results: { toolErrors: 'fail' },
    })
    expect(await kept.harness.run('Print.')).toMatchObject({ status: 'completed', text: 'Sorry.' })
    expect(() => tool('print', boom, { onError: 'abort' as 'fail' })).toThrow('"onError"')
  })

  it('B-VERB-33: a result names the tool that ended its run early, by its failure, its retries, or by not being there; any other result names none', async () => {
    const again = (): never => {
      throw new ModelRetry('Say it again.')
    }
    const ended = async (script: Parameters<typeof stage>[0], extra: Parameters<typeof stage>[2]) => {
      const { status, endedBy } = await stage(script, [], extra).harness.run('Go.')
      return [status, endedBy]
    }
    const look = tool('look', () => 'ok')
    const broken = [look, tool('print', boom, { onError: 'fail' })]
    expect(await ended([ask('look', 'print')], { tools: broken })).toEqual(['failed', 'print'])
    const limits = { toolRetries: 1 }
    const asks = [ask('again'), ask('look', 'again')]
    expect(await ended(asks, { tools: [look, tool('again', again)], limits })).toEqual(['failed', 'again'])
    expect(await ended([ask('away')], { tools: [look], results: { unknownTool: 'fail' } })).toEqual(['failed', 'away'])
    expect(await ended([ask('look'), 'Done.'], { tools: [look] })).toEqual(['completed', undefined])
    expect(await ended([{ error: 'bad_request' }], { tools: [look] })).toEqual(['failed', undefined])
  })

  it('B-TOOL-30: a call to correct, a denial, and a wrong argument are no failures', async () => {
    let tries = 0
    const retry = tool('retry', () => {
      tries += 1
      if (tries === 1) throw new ModelRetry('Say it again.')
      return 'done'
    })
    const script = [ask('retry'), { calls: [{ tool: 'retry', args: { n: 'x' } }] }, ask('never'), ask('retry'), 'Done.']
    const { harness } = stage(script, [], {
      tools: [retry, tool('never', boom, { approval: 'never' })],
      results: { toolErrors: 'fail' },
    })
    const result = await harness.run('Go.')
    expect(result).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(result.calls.map(({ status }) => status)).toEqual(['error', 'error', 'denied', 'ok'])
  })

  it('B-TOOL-30: a timeout is a failure, and so is a bad answer from outside, in another harness too', async () => {
    const slow = tool('slow', () => new Promise(() => {}), { timeoutMs: 20, onError: 'fail' })
    const late = stage([ask('slow')], [], { tools: [slow], worker: { graceMs: 50 } })
    expect(await late.harness.run('Go.')).toMatchObject({ stopReason: 'tool_error' })
    const store = memory()
    const person = defineTool({ name: 'person', description: 'A person.', input: z.object({}), onError: 'fail' })
    const asking = stage([ask('person')], [], { store, tools: [person] })
    const { sessionId, pending } = await asking.harness.run('Go.')
    const other = stage([], [], { store, tools: [person] })
    const session = other.harness.session(sessionId)
    await session.answer({ callId: pending[0]?.callId ?? '', content: 'I am away.', ok: false })
    expect(await session.run()).toMatchObject({ stopReason: 'tool_error' })
  })

  it('B-TOOL-31: a tool may tell its failure in its own words, and one that cannot is told as it is (TA-14)', async () => {
    const seen: unknown[] = []
    const says = tool('says', () => Promise.reject(new ToolFailure('Unavailable', 'ECONNREFUSED 10.0.0.1')), {
      onError: ({ kind, message }) => {
        seen.push([kind, message])
        return 'The archive is closed. Use the index.'
      },
    })
    const broken = tool('broken', boom, { onError: () => boom() })
    const { harness } = stage([ask('says', 'broken'), 'Done.'], [], { tools: [says, broken] })
    const { calls } = await harness.run('Go.')
    expect(calls.map(({ content }) => content)).toEqual(['The archive is closed. Use the index.', 'Error: No paper.'])
    expect(calls[0]?.failure).toMatchObject({ kind: 'Unavailable' })
    expect(seen).toEqual([['Unavailable', 'ECONNREFUSED 10.0.0.1']])
  })

  it('B-TOOL-32: an envelope with retry and a text as error_type asks for a correction; with one of them it does not (S0-26)', async () => {
    const says = (metadata: { readonly [key: string]: string | boolean | number }) =>
      tool('says', () => output({ ok: false, content: 'No.', metadata }), { retries: 0 })
    const run = async (metadata: { readonly [key: string]: string | boolean | number }) => {
      const { harness } = stage([ask('says'), 'Done.'], [], { tools: [says(metadata)] })
      return (await harness.run('Go.')).stopReason
    }
    expect(await run({ retry: true, error_type: 'Busy' })).toBe('tool_retries_exceeded')
    expect(await run({ retry: true })).toBe('end_turn')
    expect(await run({ retry: 'true', error_type: 'Busy' })).toBe('end_turn')
    expect(await run({ retry: true, error_type: 7 })).toBe('end_turn')
  })

  it('B-ADMIT-20: what is wrong with arguments is in the metadata of the result, field by field (S0-26)', async () => {
    const staged = stage([{ calls: [{ tool: 'look', args: { n: 'one' } }] }, 'Done.'], [], {
      tools: [tool('look', () => 'ok')],
    })
    const { sessionId } = await staged.harness.run('Go.')
    const [result] = await eventsOf(staged, sessionId, 'agent.tool_result')
    expect(result?.metadata).toMatchObject({
      retry: true,
      error_type: 'ValidationError',
      errors: [{ path: 'n', message: expect.stringContaining('number') as string }],
    })
  })
})

describe('a call of a tool that is not there', () => {
  const look = tool('look', () => 'found')
  const script = [{ calls: [{ tool: 'see', args: { n: 1, city: 'Bern' } }] }, 'Done.']

  it('B-ADMIT-21: names the tool, what it was given and the tools there are (TA-11)', async () => {
    const { harness } = stage(script, [], { tools: [look] })
    const { calls, status } = await harness.run('Go.')
    expect([status, calls[0]?.content]).toEqual([
      'completed',
      'unknown tool "see"; Received: n (number: 1), city (string, 4 characters: "Bern"); choose one of: look',
    ])
  })

  it('B-ADMIT-21: says so where there are no tools', async () => {
    const { harness } = stage(script, [], { tools: [] })
    expect((await harness.run('Go.')).calls[0]?.content).toMatch(/; there are no tools here$/)
  })

  it('B-ADMIT-21: may end the run, or be a call of another tool in its place (TA-11)', async () => {
    const ending = stage(script, [], { tools: [look], results: { unknownTool: 'fail' } })
    expect(await ending.harness.run('Go.')).toMatchObject({ status: 'failed', stopReason: 'tool_error' })
    const other = stage([{ calls: [{ tool: 'see', args: { n: 1 } }] }, 'Done.'], [], {
      tools: [look],
      results: { unknownTool: { rewrite: 'look' } },
    })
    expect((await other.harness.run('Go.')).calls).toMatchObject([{ tool: 'look', args: { n: 1 }, content: 'found' }])
    const missing = (unknownTool: object) => () =>
      stage([], [], { tools: [look], results: { unknownTool: unknownTool as { rewrite: string } } })
    expect(missing({ rewrite: 'nowhere' })).toThrow('names the tool "nowhere", which it does not have')
    expect(missing({ rewirte: 'look' })).toThrow('did you mean "results.unknownTool.rewrite"?')
  })
})

describe('what a host knows of its harness', () => {
  it('B-HARNESS-30: its setup is plain JSON, the same for the same setup, without secrets and code (S0-1)', async () => {
    const make = (n: number) => {
      const look = tool('look', () => 'ok', { metadata: { team: 'a' } })
      const harness = stage([], [], {
        tools: [look],
        instructions: 'Use the key HUSH-HUSH-HUSH.',
        secrets: { KEY: 'HUSH-HUSH-HUSH' },
        limits: { modelRequests: n },
        approvals: { policy: { rules: [{ effect: 'ask', tool: 'look' }] } },
        subagents: { reader: { description: 'It reads.', limits: { toolCalls: 1 } } },
        output: { schema: { type: 'object', properties: { n: { type: 'number' } } } },
      })
      return harness.harness.agents()
    }
    const setup = await make(3)
    expect(setup).toEqual(JSON.parse(JSON.stringify(setup)))
    const byName = Object.fromEntries(setup.map((row) => [row.name, row.setup]))
    expect(byName).toMatchObject({
      default: {
        instructions: 'Use the key ⟦secret:KEY⟧.',
        limits: { modelRequests: 3 },
        policy: { rules: [{ effect: 'ask', tool: 'look' }] },
        tools: [
          { name: 'look', effect: 'read', metadata: { team: 'a' } },
          { name: 'subagent', kind: 'subagent' },
        ],
      },
      reader: { limits: { modelRequests: 3, toolCalls: 1 }, output: null },
    })
    expect(await make(3)).toEqual(setup)
    expect(await make(4)).not.toEqual(setup)
  })
})

describe('what a host knows of a tool', () => {
  it('B-TOOL-33: hooks get the kind of a tool and the metadata of its definition, and no model reads them (S0-24)', async () => {
    const seen: unknown[] = []
    const watch: Hook = { type: 'before_tool_call', run: ({ tool: name, about }) => void seen.push([name, about]) }
    const after: Hook = { type: 'after_tool_call', run: ({ about }) => void seen.push(about.metadata) }
    const metadata = { team: 'billing', tier: 2 }
    const staged = stage(
      [ask('pay'), { calls: [{ tool: 'subagent', args: { task: 'x' } }] }, 'Child.', 'Done.'],
      [watch, after],
      {
        tools: [tool('pay', () => 'paid', { metadata })],
        subagents: true,
      },
    )
    expect(await staged.harness.run('Go.')).toMatchObject({ text: 'Done.' })
    expect(seen).toEqual([['pay', { kind: 'user', metadata }], metadata, ['subagent', { kind: 'subagent' }]])
    expect(JSON.stringify(staged.requests)).not.toContain('billing')
    expect(() => tool('pay', boom, { metadata: { at: new Date() as unknown as string } })).toThrow('must be plain JSON')
  })

  it('B-TOOLBOX-7: a profile is what an agent starts from, alsoAllow adds to it, alone it leaves nothing out, and a denial wins (S4-29)', async () => {
    const write = tool('write', () => 'ok', { effect: 'once' })
    const offered = async (toolAccess: ToolAccess, child: ToolAccess = {}): Promise<readonly (readonly string[])[]> => {
      const names: (readonly string[])[] = []
      const model = scripted(({ tools }, n) => {
        names.push(tools.map(({ name }) => name).filter((name) => name !== 'subagent'))
        return n === 0 ? { calls: [{ tool: 'subagent', args: { agent: 'sub', task: 'x' } }] } : 'done'
      })
      const tools = [tool('look', () => 'ok'), tool('find', () => 'ok'), write]
      const subagents = { sub: { description: 'It helps.', toolAccess: child } }
      const harness = new Harness({ model, tools, toolAccess, subagents })
      await harness.run('go')
      await harness.close()
      return names
    }
    const [all] = await offered({ alsoAllow: ['write'] })
    expect(all).toEqual(['look', 'find', 'write'])
    expect((await offered({ profile: 'read' }))[0]).toEqual(['look', 'find'])
    expect((await offered({ profile: 'read', alsoAllow: ['write'], deny: ['find'] }))[0]).toEqual(['look', 'write'])
    expect((await offered({ profile: 'none', alsoAllow: ['look', 'subagent'] }))[0]).toEqual(['look'])
    expect((await offered({ allow: ['find'], alsoAllow: ['write', 'subagent'] }))[0]).toEqual(['find', 'write'])
    // A child never has more than its parent, whatever it is also allowed.
    const lists = { allow: ['look', 'subagent'] }
    expect(await offered(lists, { alsoAllow: ['write'] })).toEqual([['look'], ['look'], ['look']])
    expect(() => new Harness({ model: scripted([]), toolAccess: { profile: 'reed' as 'read' } })).toThrow(
      'did you mean "read"?',
    )
  })
})
