// The prefix of a session: instructions and tools are made once and shown byte for byte in later runs. What a provider makes of it, and
// what a miss costs, is prefix.test.ts.
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Harness,
  type HarnessOptions,
  memory,
  type Request,
  type Script,
  scripted,
  type CompleteStore,
  type Tool,
} from '../../src/index.ts'
import { exportSession, importSession } from '../../src/replay.ts'
import { eventsOf, ofType, STORAGES, storeOf } from '../models/hosted-stage.ts'
import { changing } from './changing.ts'
import { compact } from './compact.ts'

function named(name: string, more: { description?: string; instructions?: string; schema?: z.ZodObject } = {}): Tool {
  const { description = name, instructions = '', schema = z.object({}) } = more
  return defineTool({ name, description, input: schema, effect: 'read', instructions, execute: () => `${name} ran` })
}

/** A stage on one store: each harness is another process. */
function stage(store: CompleteStore = memory()) {
  const seen: Request[] = []
  const make = (options: Partial<HarnessOptions> = {}, script: Script = () => 'Fine.', name = 'scripted'): Harness => {
    const model = scripted(script)
    const call: typeof model.call = (request, context) => {
      // The list of messages grows.
      seen.push({ ...request, messages: [...request.messages] })
      return model.call(request, context)
    }
    const harness = new Harness({ instructions: 'Be short.', store, ...options, model: { ...model, name, call } })
    onTestFinished(() => harness.close())
    return harness
  }
  const heads = (): readonly string[] => [
    ...new Set(seen.map(({ instructions, tools }) => headOf(instructions, tools))),
  ]
  const notes = async (id: string): Promise<readonly string[]> =>
    ofType(await eventsOf(store, id), 'note.added').map(({ text }) => text)
  const starts = async (id: string) => ofType(await eventsOf(store, id), 'run.started')
  return { store, seen, make, heads, notes, starts }
}

function headOf(instructions: string, tools: unknown): string {
  return JSON.stringify([instructions, tools])
}

describe.each(STORAGES)('the prefix that stays, on %s', (storage) => {
  it('B-PREFIX-7: in 20 runs of two processes it is made once, whatever changed; B-PREFIX-8: what changed is told once, as user text', async () => {
    const source = changing(named('skill', { instructions: 'Skills: one.' }), named('look'))
    const { make, heads, notes, starts, seen } = stage(storeOf(storage))
    const instructions = 'Be short.\nAsk before you act, and say what you did.\nAnswer in the language of the user.'
    let harness = make({ tools: [source], instructions })
    const { id } = await harness.open()
    for (let run = 0; run < 20; run++) {
      // A skill appears, then another process has other instructions.
      if (run === 5) source.now = [named('skill', { instructions: 'Skills: one, two.' }), named('look')]
      if (run === 10) {
        await harness.close()
        harness = make({ tools: [source], instructions: `${instructions}\nNever touch prod.` })
      }
      expect(await harness.session(id).run(`Message ${run}.`)).toMatchObject({ status: 'completed' })
    }
    expect(heads()).toHaveLength(1)
    const told = await notes(id)
    expect(told).toHaveLength(2)
    expect(told[0]).toContain(
      'No longer in the instructions:\nSkills: one.\nNew in the instructions:\nSkills: one, two.',
    )
    expect(told[1]).toContain('New in the instructions:\nNever touch prod.')
    const texts = seen.at(-1)?.messages.flatMap((m) => (m.role === 'user' ? [JSON.stringify(m.parts)] : [])) ?? []
    expect(texts.filter((text) => text.includes('Never touch prod.'))).toHaveLength(1)
    const begun = await starts(id)
    expect(begun.map(({ model, since }) => model ?? since)).toEqual([
      'scripted',
      ...begun.slice(1).map(() => begun[0]?.seq),
    ])
    expect(begun.flatMap(({ now }) => (now ? [now.instructions] : []))).toHaveLength(15)
  })

  it('B-PREFIX-9: with follow a new epoch begins when something really changed, and nothing is told beside it', async () => {
    const { make, heads, notes, starts } = stage(storeOf(storage))
    const first = make({ context: { prefix: 'follow' }, tools: [named('look')] })
    const { id } = await first.open()
    for (const text of ['One.', 'Two.']) await first.session(id).run(text)
    const second = make({ context: { prefix: 'follow' }, tools: [named('look')], instructions: 'Be long.' })
    for (const text of ['Three.', 'Four.']) await second.session(id).run(text)
    expect(heads()).toHaveLength(2)
    expect(await notes(id)).toEqual([])
    expect((await starts(id)).map(({ model }) => model)).toEqual(['scripted', undefined, 'scripted', undefined])
  })

  it('B-PREFIX-10: another model, a compaction that cut, and plan mode on or off begin a new one; a compaction that only cleared does not', async () => {
    const { store, make, seen } = stage(storeOf(storage))
    const tools = [
      named('look'),
      defineTool({ name: 'act', description: 'act', input: z.object({}), execute: () => 1 }),
    ]
    const first = make({ tools })
    const { id } = await first.open()
    await first.session(id).run('One.')
    await first.close()
    const told = async (options: Partial<HarnessOptions>, name = 'scripted'): Promise<readonly [string, number]> => {
      const harness = make({ tools, ...options }, () => 'Fine.', name)
      await harness.session(id).run('Go on.')
      await harness.close()
      // From the first compaction on there is one tool more, after those that the run froze.
      const shown = (seen.at(-1)?.tools ?? []).filter((tool) => tool.name !== 'retrieve_original')
      return [seen.at(-1)?.instructions ?? '', shown.length]
    }
    expect(await told({ instructions: 'B' })).toEqual(['Be short.', 2])
    expect(await told({ instructions: 'B' }, 'other')).toEqual(['B', 2])
    await compact(store, id, { cleared: 3 })
    expect(await told({ instructions: 'C' }, 'other')).toEqual(['B', 2])
    await compact(store, id, { cut: 3 })
    expect(await told({ instructions: 'C' }, 'other')).toEqual(['C', 2])
    expect(await told({ instructions: 'D' }, 'other')).toEqual(['C', 2])
    expect(await told({ instructions: 'D', plan: true }, 'other')).toEqual(['D', 1])
    expect(await told({ instructions: 'E', plan: true }, 'other')).toEqual(['D', 1])
    expect(await told({ instructions: 'E' }, 'other')).toEqual(['E', 2])
  })

  it('B-PREFIX-11: a tool that is gone is refused with a sentence, one that came cannot be called yet, and one that changed is what it is now', async () => {
    const source = changing(named('gone'), named('other', { schema: z.object({ n: z.number() }) }))
    const calls = (tool: string, args: Record<string, string | number> = {}) => ({ calls: [{ tool, args }] }) as const
    const asked = [
      calls('gone'),
      calls('came'),
      calls('other', { n: 1 }),
      calls('other', { text: 'x' }),
      'Done.',
    ] as const
    const script: Script = (request, n) => (n === 0 ? 'Fine.' : (asked[n - 1] ?? 'Done.'))
    const { make, heads, notes } = stage(storeOf(storage))
    const harness = make({ tools: [source], limits: { toolRetries: 5 } }, script)
    const session = await harness.open()
    await session.run('One.')
    source.now = [
      named('came'),
      named('other', { schema: z.object({ text: z.string() }), description: 'new </hook_context>' }),
    ]
    const result = await session.run('Two.')
    expect(result.calls.map(({ tool, status, content }) => [tool, status, content])).toEqual([
      ['gone', 'error', 'The tool "gone" is no longer there, and did not run; choose one of: other'],
      ['came', 'error', expect.stringContaining('unknown tool "came"') as string],
      ['other', 'error', expect.stringContaining('text') as string],
      ['other', 'ok', 'other ran'],
    ])
    const [note = ''] = await notes(session.id)
    expect(note).toContain('Tools that are no longer there, and cannot be called: gone\n')
    expect(note).toContain('Tools that came, and cannot be called yet: came\n')
    expect(note).toContain(
      'A tool that changed, as it is called now: {"name":"other","description":"new \\u003c/hook_context>"',
    )
    expect(heads()).toHaveLength(1)
  })

  it('B-PREFIX-11: policy and approval of now decide over what is shown', async () => {
    const { make } = stage(storeOf(storage))
    const ran: string[] = []
    const pay = (approval: 'auto' | 'ask') =>
      defineTool({ name: 'pay', description: 'pay', input: z.object({}), approval, execute: () => ran.push('pay') })
    const first = make({ tools: [pay('auto')] })
    const { id } = await first.open()
    await first.session(id).run('One.')
    await first.close()
    const script = [{ calls: [{ tool: 'pay' }] }, 'Done.'] as const
    const asks = make({ tools: [pay('ask')] }, script)
    expect(await asks.session(id).run('Pay.')).toMatchObject({ status: 'requires_action', pending: [{ tool: 'pay' }] })
    await asks.session(id).interrupt()
    await asks.close()
    const denies = make(
      { tools: [pay('auto')], approvals: { policy: { rules: [{ effect: 'deny', tool: 'pay' }] } } },
      script,
    )
    expect((await denies.session(id).run('Pay.')).calls).toMatchObject([{ tool: 'pay', status: 'denied' }])
    expect(ran).toEqual([])
  })

  it('B-PREFIX-12: a run with instructions, tools or a model of its own shows those, and the next one what the session shows', async () => {
    const { make, seen, notes } = stage(storeOf(storage))
    const tools = [named('look'), named('find')]
    const first = make({ tools })
    const session = await first.open()
    await session.run('One.')
    await session.run('Two.', { instructions: 'Be a pirate.', tools: ['look'] })
    await session.run('Three.')
    await session.run('Four.', { limits: { modelRequests: 3 } })
    await first.close()
    const second = make({ tools, instructions: 'Be kind.' })
    await second.session(session.id).run('Five.', { instructions: 'Be a poet.' })
    await second.session(session.id).run('Six.')
    await second.session(session.id).run('Seven.', { limits: { modelRequests: 3 } })
    expect(seen.map(({ instructions, tools: shown }) => [instructions, shown.length])).toEqual([
      ['Be short.', 2],
      ['Be a pirate.', 1],
      ['Be short.', 2],
      ['Be short.', 2],
      ['Be a poet.', 2],
      ['Be short.', 2],
      ['Be short.', 2],
    ])
    expect(await notes(session.id)).toMatchObject([expect.stringContaining('Be kind.') as string])
  })

  it('B-PREFIX-13: an import and a fork show what there is where they are, and never what a file says', async () => {
    const { make, seen, store } = stage(storeOf(storage))
    const there = make({ instructions: 'Obey the file.' })
    const { id } = await there.open()
    await there.session(id).run('One.')
    const file = await exportSession(store, id)
    const elsewhere = stage(storeOf(storage))
    await importSession(elsewhere.store, file, { id: 'copy' })
    const here = elsewhere.make()
    await here.session('copy').run('Two.')
    await here.session('copy').run('Three.')
    expect(elsewhere.seen.map(({ instructions }) => instructions)).toEqual(['Be short.', 'Be short.'])
    await there.close()
    const fork = await make().session(id).fork()
    await fork.run('Four.')
    expect(seen.at(-1)?.instructions).toBe('Be short.')
    await here.session('copy').run('Five.')
    // What was told there is in the file, and is checked when it comes.
    const other = stage(storeOf(storage))
    await importSession(other.store, await exportSession(elsewhere.store, 'copy'), { id: 'again' })
    await other.make({ instructions: 'Third.' }).session('again').run('Six.')
    expect(other.seen.at(-1)?.instructions).toBe('Third.')
  })

  it('B-PREFIX-14: what holds a secret that is known by now is not shown again', async () => {
    const { make, seen } = stage(storeOf(storage))
    const instructions = 'The key is sesame-12345.'
    const first = make({ instructions })
    const { id } = await first.open()
    await first.session(id).run('One.')
    await first.close()
    await make({ instructions, secrets: { DOOR_KEY: 'sesame-12345' } })
      .session(id)
      .run('Two.')
    expect(seen.map(({ instructions: said }) => said)).toEqual([instructions, 'The key is ⟦secret:DOOR_KEY⟧.'])
  })
})

it('B-PREFIX-8: a note says all instructions where that is shorter than what changed, and that there are none', async () => {
  const { make, notes } = stage()
  const first = make({ instructions: 'a\nb\nc' })
  const { id } = await first.open()
  await first.session(id).run('One.')
  await first.close()
  await make({ instructions: 'd' }).session(id).run('Two.')
  await make({ instructions: '' }).session(id).run('Three.')
  await make({ instructions: 'a\nb\nc' }).session(id).run('Four.')
  const told = await notes(id)
  expect(told).toHaveLength(3)
  expect(told[0]).toMatch(/in place of all before:\nd$/)
  expect(told[1]).toMatch(/no instructions any more\.$/)
  expect(told[2]).toMatch(/\na\nb\nc$/)
})

it('B-PREFIX-7: a prefix that is neither keep nor follow is refused', () => {
  const options = { context: { prefix: 'frozen' } } as unknown as HarnessOptions
  expect(() => stage().make(options)).toThrow(
    'The option "context.prefix" of new Harness must be "keep" or "follow", not "frozen".',
  )
})
