// What each hook may do to a run, and nothing more: prompts, calls, results and subagents. What watches a run's end is in
// hooks-end.test.ts, what goes wrong in hooks-fail.test.ts, and processes that are killed in hooks-kill.test.ts.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Harness, type Hook, type HookEvents, ModelRetry, output, scripted } from '../../src/index.ts'
import { call, calls, eventsOf, noting, resultIn, resultsIn, saidIn, stage, storages } from './hooks-stage.ts'

/** A hook without compiler checks, as plain JavaScript can pass it. */
const unchecked = (hook: unknown): Hook => hook as Hook

describe.each(Object.entries(storages))('hooks on %s', (_name, storage) => {
  it('B-HOOK-1: run_start is told of every run before anything else, and can only watch', async () => {
    const told: string[] = []
    const start: Hook = unchecked({
      type: 'run_start',
      run: (event: { prompt: string; agent: string }) => {
        told.push(`start ${event.agent} ${event.prompt}`)
        event.prompt = 'changed'
        return { cancel: 'no' }
      },
    })
    const submit: Hook = { type: 'user_prompt_submit', run: ({ prompt }) => void told.push(`submit ${prompt}`) }
    const { harness, requests } = stage(['One.', 'Two.'], [submit, start], { storage })
    const first = await harness.run('Hello.')
    expect(first).toMatchObject({ status: 'completed', text: 'One.' })
    expect(await harness.session(first.sessionId).run('Again.')).toMatchObject({ status: 'completed', text: 'Two.' })
    expect(told).toEqual(['start default Hello.', 'submit Hello.', 'start default Again.', 'submit Again.'])
    expect(saidIn(requests[1])).toEqual(['Hello.', 'Again.'])
  })

  it('B-HOOK-2: user_prompt_submit can cancel: no model and no later hook is asked, and the session goes on', async () => {
    const asked: string[] = []
    const guard: Hook = {
      type: 'user_prompt_submit',
      run: ({ prompt }) => (prompt.includes('attack') ? { cancel: 'We do not do this.' } : undefined),
    }
    const later: Hook = { type: 'user_prompt_submit', run: ({ prompt }) => void asked.push(prompt) }
    const ended: string[] = []
    const end: Hook = { type: 'run_end', run: ({ result }) => void ended.push(result.stopReason) }
    const staged = stage(['Fine.'], [guard, later, end], { storage })
    const { harness, requests } = staged
    const result = await harness.run('Plan an attack.')
    expect(result).toMatchObject({
      status: 'interrupted',
      stopReason: 'cancelled_by_hook',
      reason: 'We do not do this.',
      usage: { modelRequests: 0 },
    })
    expect([requests.length, asked, ended]).toEqual([0, [], ['cancelled_by_hook']])
    expect(await eventsOf(staged, result.sessionId, 'run.started')).toEqual([])
    const [settled] = await eventsOf(staged, result.sessionId, 'run.settled')
    expect(settled?.outcome).toEqual({ type: 'interrupted', hook: 'We do not do this.' })
    expect(await harness.session(result.sessionId).run('Be kind.')).toMatchObject({ status: 'completed' })
    expect(ended).toEqual(['cancelled_by_hook', 'end_turn'])
    expect(JSON.stringify(requests)).not.toContain('attack')
    expect(JSON.stringify(await harness.session(result.sessionId).messages())).not.toContain('attack')
  })

  it.each([true, false])(
    'B-HOOK-50: strictly (%s), a prompt that a hook could not be asked about is not shown with the next one',
    async (strict) => {
      const guard: Hook = {
        type: 'user_prompt_submit',
        run: ({ prompt }) => {
          if (prompt.includes('attack')) throw new Error('The scanner is down.')
        },
      }
      const { harness, requests } = stage(['Fine.', 'Fine.'], [guard], { storage, strict })
      const session = await harness.open()
      await session.run('Plan an attack.')
      await session.run('Be kind.')
      expect(JSON.stringify(requests).includes('attack')).toBe(!strict)
    },
  )

  it('B-HOOK-3: user_prompt_submit can add context: it is recorded, and the model reads it in a block of its own', async () => {
    const adds = (context: string): Hook => ({ type: 'user_prompt_submit', run: () => ({ context }) })
    const staged = stage([calls(call('look')), 'Done.'], [adds('It is Monday.'), adds(''), adds('It rains.')], {
      storage,
      tools: [noting()('look')],
    })
    const result = await staged.harness.run('What now?')
    expect(result.status).toBe('completed')
    for (const request of staged.requests) {
      expect(saidIn(request)).toEqual([
        '<hook_context>\nIt is Monday.\n</hook_context>',
        '<hook_context>\nIt rains.\n</hook_context>',
        'What now?',
      ])
    }
    const notes = await eventsOf(staged, result.sessionId, 'note.added')
    expect(notes).toMatchObject([
      { kind: 'context', text: 'It is Monday.' },
      { kind: 'context', text: 'It rains.' },
    ])
  })

  it('B-HOOK-4: before_tool_call can cancel: a denied result and no intent, no retry used, and the slot is given back (AC-20)', async () => {
    const ran: string[] = []
    const hold: Hook = {
      type: 'before_tool_call',
      run: ({ args }) => ((args as { n: number }).n < 3 ? { cancel: 'too small' } : undefined),
    }
    const staged = stage([calls(call('look', 1)), calls(call('look', 2)), calls(call('look', 3)), 'Done.'], [hold], {
      storage,
      tools: [noting(ran)('look', { retries: 0 })],
      limits: { toolCalls: 1, toolRetries: 0 },
    })
    const result = await staged.harness.run('Look.')
    expect(result).toMatchObject({
      status: 'completed',
      usage: { toolCalls: 1, cancelledToolCalls: 2, toolRetries: {} },
      calls: [{ status: 'denied' }, { status: 'denied' }, { status: 'ok' }],
    })
    expect(ran).toEqual(['look 3'])
    expect(resultsIn(staged.requests[1])).toEqual(['Not run: a hook held it back: too small'])
    const results = await eventsOf(staged, result.sessionId, 'agent.tool_result')
    expect(results[0]).toMatchObject({ status: 'denied', metadata: { error_type: 'CancelledByHook' } })
    const intents = await eventsOf(staged, result.sessionId, 'agent.tool_use')
    expect(intents.map((intent) => intent.call)).toEqual([results[2]?.call])
  })

  it('B-HOOK-5: an asked call meets no hook before the decision, and after an approval a hook can still cancel it (AC-30, AC-34)', async () => {
    const ran: string[] = []
    const asked: string[] = []
    const tool = noting(ran)
    const hold: Hook = {
      type: 'before_tool_call',
      run: ({ tool: name }) => {
        asked.push(name)
        return name === 'publish' ? { cancel: 'frozen' } : undefined
      },
    }
    const after: Hook = { type: 'after_tool_call', run: ({ tool: name }) => void asked.push(`after ${name}`) }
    const staged = stage([calls(call('publish'), call('look')), 'Done.'], [hold, after], {
      storage,
      tools: [tool('publish', { approval: 'ask', effect: 'once' }), tool('look')],
    })
    const parked = await staged.harness.run('Publish.')
    expect(parked).toMatchObject({ status: 'requires_action', usage: { toolCalls: 2 } })
    expect([asked, ran]).toEqual([[], []])
    const session = staged.harness.session(parked.sessionId)
    await session.decide({ callId: parked.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    expect(await session.run()).toMatchObject({
      status: 'completed',
      usage: { toolCalls: 1, cancelledToolCalls: 1 },
      calls: [{ tool: 'publish', status: 'denied', approved: { allow: true, by: 'ana' } }, { status: 'ok' }],
    })
    expect(ran).toEqual(['look 1'])
    expect(asked.toSorted()).toEqual(['after look', 'look', 'publish'])
  })

  it('B-HOOK-6: after_tool_call can change the result in place, return another, or return the JSON of one (AC-23)', async () => {
    const inPlace: Hook = {
      type: 'after_tool_call',
      tools: ['a'],
      run: ({ output: envelope }) => {
        envelope.content = `${envelope.content}, in place`
        envelope.metadata['seen'] = true
      },
    }
    const other: Hook = { type: 'after_tool_call', tools: ['b'], run: () => output({ ok: false, content: 'another' }) }
    const text: Hook = {
      type: 'after_tool_call',
      tools: ['c'],
      run: () => JSON.stringify({ ok: true, content: 'as text', metadata: { n: 1 } }),
    }
    const last: Hook = { type: 'after_tool_call', run: ({ output: envelope }) => void (envelope.content += '!') }
    const tool = noting()
    const staged = stage([calls(call('a'), call('b'), call('c')), 'Done.'], [inPlace, other, text, last], {
      storage,
      tools: ['a', 'b', 'c'].map((name) => tool(name)),
    })
    const result = await staged.harness.run('Go.')
    expect(resultsIn(staged.requests[1])).toEqual(['a 1 done, in place!', 'another!', 'as text!'])
    expect(result.calls.map(({ status }) => status)).toEqual(['ok', 'error', 'ok'])
    const results = await eventsOf(staged, result.sessionId, 'agent.tool_result')
    const metadataOf = (content: string) => results.find((event) => event.content === content)?.metadata
    expect(metadataOf('a 1 done, in place!')).toEqual({ seen: true })
    expect(metadataOf('another!')).toBeUndefined()
    expect(metadataOf('as text!')).toEqual({ n: 1 })
  })

  it('B-HOOK-7: what after_tool_call makes of a result must still be one, or the model reads that it is none (AC-23)', async () => {
    const returned: readonly unknown[] = [
      'no JSON',
      '{"ok": true}',
      7,
      { ok: 'yes', content: 'x', metadata: {} },
      { ok: true, content: 'x', metadata: { big: 1n } },
    ]
    const tool = noting()
    const hooks = returned.map((value, n) => unchecked({ type: 'after_tool_call', tools: [`t${n}`], run: () => value }))
    const spoils = unchecked({
      type: 'after_tool_call',
      tools: ['spoiled'],
      run: ({ output: envelope }: { output: { content: unknown } }) => {
        envelope.content = 7
      },
    })
    const names = [...returned.map((_, n) => `t${n}`), 'spoiled']
    const staged = stage([calls(...names.map((name) => call(name))), 'Done.'], [...hooks, spoils], {
      storage,
      tools: names.map((name) => tool(name)),
    })
    const result = await staged.harness.run('Go.')
    expect(result.status).toBe('completed')
    const results = await eventsOf(staged, result.sessionId, 'agent.tool_result')
    expect(results).toHaveLength(names.length)
    for (const event of results) {
      expect(event).toMatchObject({ status: 'error', metadata: { error_type: 'InvalidToolOutput' } })
    }
  })

  it('B-HOOK-8: after_tool_call sees a result that asks for a correction, and cannot change that it counts (AC-22)', async () => {
    const seen: unknown[] = []
    const pardon: Hook = {
      type: 'after_tool_call',
      run: ({ output: envelope, refused = false }) => {
        seen.push({ ...envelope.metadata, refused })
        envelope.ok = true
        envelope.content = 'All is well.'
        envelope.metadata = {}
      },
    }
    const picky = noting()('picky', {
      execute: () => {
        throw new ModelRetry('Say it better.')
      },
    })
    const wrong = { calls: [{ tool: 'picky', args: { n: 'one' } }] }
    const staged = stage([wrong, calls(call('picky')), 'Done.'], [pardon], {
      storage,
      tools: [picky],
      limits: { toolRetries: 1 },
    })
    const result = await staged.harness.run('Go.')
    expect(result).toMatchObject({
      status: 'failed',
      stopReason: 'tool_retries_exceeded',
      usage: { toolRetries: { picky: 2 } },
    })
    expect(seen).toMatchObject([
      { retry: true, error_type: 'ValidationError', refused: true },
      { retry: true, error_type: 'ModelRetry', refused: false },
    ])
    expect(resultsIn(staged.requests[1])).toEqual(['All is well.'])
  })

  it('B-HOOK-9: before_subagent_run can cancel: no child is made, and before_tool_call is asked about such a call first', async () => {
    const asked: string[] = []
    const before: Hook = { type: 'before_tool_call', run: ({ tool }) => void asked.push(`before ${tool}`) }
    const hold: Hook = {
      type: 'before_subagent_run',
      run: ({ child }) => {
        asked.push(`child ${child}`)
        return { cancel: 'nobody is free' }
      },
    }
    const staged = stage([{ calls: [{ tool: 'subagent', args: { task: 'Count.' } }] }, 'Done.'], [hold, before], {
      storage,
      subagents: true,
    })
    const result = await staged.harness.run('Go.')
    expect(result).toMatchObject({ status: 'completed', usage: { toolCalls: 0, cancelledToolCalls: 1 } })
    expect(asked).toEqual(['before subagent', 'child subagent'])
    expect(await resultIn(staged, result.sessionId)).toMatchObject({
      status: 'denied',
      metadata: { error_type: 'SubAgentCancelled' },
    })
    expect((await staged.harness.list({ order: 'id', limit: 500 })).cards.map(({ session }) => session)).toEqual([
      result.sessionId,
    ])
    expect(await eventsOf(staged, result.sessionId, 'agent.custom_tool_use')).toEqual([])
  })

  it('B-HOOK-10: after_subagent_run is told what a child answered, and changes nothing of it', async () => {
    const told: HookEvents['after_subagent_run'][] = []
    const watch: Hook = {
      type: 'after_subagent_run',
      run: (event) => {
        told.push(structuredClone(event))
        event.output.content = 'changed'
      },
    }
    const script = { parent: [{ calls: [{ tool: 'subagent', args: { task: 'Count.' } }] }, 'Done.'] }
    const staged = stage(
      (request) => (saidIn(request)[0] === 'Count.' ? '42' : (script.parent.shift() ?? '')),
      [watch],
      {
        storage,
        subagents: true,
      },
    )
    const result = await staged.harness.run('Go.')
    expect(result).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(told).toMatchObject([
      { session: result.sessionId, agent: 'default', child: 'subagent', output: { ok: true, content: '42' } },
    ])
    expect(resultsIn(staged.requests.at(-1))).toEqual(['42'])
  })
})

describe('the order of hooks', () => {
  it('B-HOOK-11: hooks of one kind are asked in their order, each with a copy of its own, and a no stops the later ones', async () => {
    const asked: string[] = []
    const meddles = (name: string): Hook =>
      unchecked({
        type: 'before_tool_call',
        run: (event: { tool: string; args: { n: number } }) => {
          asked.push(`${name} ${event.tool} ${event.args.n}`)
          event.args.n += 100
          event.tool = 'gone'
        },
      })
    const after = (name: string): Hook =>
      unchecked({
        type: 'after_tool_call',
        run: (event: { args: { n: number } }) => {
          asked.push(`${name} ${event.args.n}`)
          event.args.n += 100
        },
      })
    const no: Hook = { type: 'before_tool_call', tools: ['held'], run: () => ({ cancel: '' }) }
    const ran: string[] = []
    const tool = noting(ran)
    const hooks = [meddles('first'), after('then'), no, meddles('last'), after('and then')]
    const { harness, requests } = stage([calls(call('look', 1)), calls(call('held', 2)), 'Done.'], hooks, {
      tools: [tool('look'), tool('held')],
    })
    await harness.run('Go.')
    expect(asked).toEqual(['first look 1', 'last look 1', 'then 1', 'and then 1', 'first held 2'])
    expect(ran).toEqual(['look 1'])
    expect(resultsIn(requests[2])).toEqual(['look 1 done', 'Not run: a hook held it back: No reason was given.'])
  })

  it('B-HOOK-12: a hook that is asked sees the arguments as they will be used', async () => {
    const seen: unknown[] = []
    const watch: Hook = { type: 'before_tool_call', run: ({ args, call: key }) => void seen.push([key, args]) }
    const { harness } = stage([{ calls: [{ tool: 'look', args: { n: '1' } }] }, 'Done.'], [watch], {
      tools: [noting()('look')],
    })
    const result = await harness.run('Go.')
    expect(seen).toEqual([[result.calls[0]?.callId, { n: 1 }]])
  })

  it('B-HOOK-13: hooks can be for some tools and agents: an unknown tool never fires, what cannot be meant is refused', async () => {
    const fired: string[] = []
    const watch = (name: string, only: Pick<Hook, 'tools' | 'agents'>): Hook => ({
      type: 'before_tool_call',
      ...only,
      run: ({ tool }) => void fired.push(`${name} ${tool}`),
    })
    const tool = noting()
    const { harness } = stage(
      [calls(call('a'), call('b')), 'Done.'],
      [
        watch('all', {}),
        watch('a', { tools: ['a'] }),
        watch('nothing', { tools: ['c'] }),
        watch('mine', { agents: ['default'] }),
        watch('child', { agents: ['subagent'] }),
      ],
      { tools: [tool('a'), tool('b')], subagents: true },
    )
    expect((await harness.run('Go.')).status).toBe('completed')
    expect(fired.toSorted()).toEqual(['a a', 'all a', 'all b', 'mine a', 'mine b'])

    const make = (hook: object) => () => new Harness({ model: scripted([]), hooks: [unchecked(hook)] })
    const run = (): void => {}
    const refused: readonly object[] = [
      { type: 'before_tool_call', tools: [], run },
      { type: 'run_end', agents: [], run },
      { type: 'run_end', agents: ['nobody'], run },
      { type: 'run_end', tools: ['a'], run },
      { type: 'before_tool_cal', run },
      { type: 'toString', run },
      { type: 'run_end' },
    ]
    for (const hook of refused) expect(make(hook)).toThrow(expect.objectContaining({ code: 'invalid_config' }))
  })

  it('B-HOOK-14: whatever a hook says that may hold something back is a no, also when it says it badly', async () => {
    const says = (type: string, word: unknown): Hook => unchecked({ type, run: () => word })
    const ran: string[] = []
    for (const word of [{ cancelled: 'typo' }, true, { cancel: 7 }, 'no']) {
      const { harness, requests } = stage(['Done.'], [says('user_prompt_submit', word)])
      expect(await harness.run('Go.')).toMatchObject({
        stopReason: 'cancelled_by_hook',
        reason: 'No reason was given.',
      })
      expect(requests).toEqual([])
      const other = stage([calls(call('look')), 'Done.'], [says('before_tool_call', word)], {
        tools: [noting(ran)('look')],
      })
      expect((await other.harness.run('Go.')).calls).toMatchObject([{ status: 'denied' }])
    }
    expect(ran).toEqual([])
  })

  it('B-HOOK-15: final_result meets no hook, neither when it is taken nor when it must be corrected (S0-43)', async () => {
    const fired: string[] = []
    const types = ['before_tool_call', 'after_tool_call'] as const
    const hooks = types.map(
      (type): Hook => ({ type, run: ({ tool }: { readonly tool: string }) => void fired.push(`${type} ${tool}`) }),
    )
    const give = (answer: unknown) => ({ calls: [{ tool: 'final_result', args: answer as { n: number } }] })
    const { harness } = stage([calls(call('look')), give({ n: 'one' }), give({ n: 1 })], hooks, {
      tools: [noting()('look')],
      output: { schema: z.object({ n: z.number() }), mode: 'tool' },
    })
    expect(await harness.run('Go.')).toMatchObject({ status: 'completed', output: { n: 1 }, usage: { toolCalls: 1 } })
    expect(fired).toEqual(['before_tool_call look', 'after_tool_call look'])
  })

  it('B-HOOK-60: the agents of a hook about subagents name the child, of other hooks the agent of the run (S0-86)', async () => {
    const fired: string[] = []
    const types = ['before_subagent_run', 'after_subagent_run', 'before_tool_call', 'run_end'] as const
    const hooks = types.flatMap((type) =>
      ['default', 'reader'].map((agent): Hook => {
        return unchecked({ type, agents: [agent], run: () => void fired.push(`${type} for ${agent}`) })
      }),
    )
    const ask = { calls: [{ tool: 'subagent', args: { agent: 'reader', task: 'Count.' } }] }
    const parent = [ask, 'Done.']
    const { harness } = stage((request) => (saidIn(request)[0] === 'Count.' ? '42' : (parent.shift() ?? '')), hooks, {
      subagents: { reader: { description: 'It reads.' } },
    })
    expect(await harness.run('Go.')).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(fired).toEqual([
      'before_tool_call for default',
      'before_subagent_run for reader',
      'run_end for reader',
      'after_subagent_run for reader',
      'run_end for default',
    ])
  })

  it('B-HOOK-61: before_tool_call is asked before arguments count: it sees what was written, and a call held back uses no retry (S0-90)', async () => {
    const seen: unknown[] = []
    const holds = (word: string | null): Hook => ({
      type: 'before_tool_call',
      run: ({ tool, raw, args }) => {
        seen.push([tool, raw, args])
        return word === null ? undefined : { cancel: word }
      },
    })
    const script = [{ calls: [{ tool: 'look', args: { n: 'one' }, id: 'a' }] }, 'Done.']
    const given = { tools: [noting()('look', { retries: 0 })], limits: { toolCalls: 1 } }
    const held = stage(script, [holds('not today')], given)
    const result = await held.harness.run('Look.')
    const usage = { toolCalls: 0, cancelledToolCalls: 1, toolRetries: {} }
    expect(result).toMatchObject({ status: 'completed', usage, calls: [{ status: 'denied' }] })
    expect(result.calls[0]?.content).toBe('Not run: a hook held it back: not today')
    expect(seen).toEqual([['look', '{"n":"one"}', { n: 'one' }]])
    // A hook that says nothing does not make them fit.
    const free = stage(script, [holds(null)], given)
    expect(await free.harness.run('Look.')).toMatchObject({ stopReason: 'tool_retries_exceeded' })
    const strict = stage(
      script,
      [unchecked({ type: 'before_tool_call', run: () => Promise.reject(new Error('Down.')) })],
      {
        ...given,
        strict: true,
      },
    )
    expect(await strict.harness.run('Look.')).toMatchObject({ stopReason: 'hook_error' })
  })

  it('B-HOOK-62: a call that the policy takes back before it starts counts as one that a hook held back (S0-88)', async () => {
    const store = storages.memory()
    const given = { store, tools: [noting()('look', { approval: 'ask' })], limits: { toolCalls: 1 } }
    const asking = stage([calls(call('look'))], [], given)
    const { sessionId, pending } = await asking.harness.run('Look.')
    const stricter = stage(['Done.'], [], {
      ...given,
      approvals: { policy: { rules: [{ effect: 'deny', tool: 'look' }] } },
    })
    const session = stricter.harness.session(sessionId)
    await session.decide({ callId: pending[0]?.callId ?? '', allow: true, by: 'ada' })
    expect(await session.run()).toMatchObject({
      status: 'completed',
      usage: { toolCalls: 0, cancelledToolCalls: 1 },
      calls: [{ status: 'denied' }],
    })
  })
})
