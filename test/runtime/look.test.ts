// Looking at sessions without driving them: the state of one, what waits in all, and streams whose events of calls need no join.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Harness,
  type HarnessOptions,
  memory,
  type Script,
  scripted,
  type SessionState,
  type CompleteStore,
  type StreamEvent,
} from '../../src/index.ts'
import { fileTools } from '../../src/tools/index.ts'
import { previewOf } from '../../src/tools/files/preview-call.ts'
import { makeFile, open as openFile } from '../stores/folder.ts'
import { stage } from '../models/hosted-stage.ts'
import { outcome } from '../contract/fixture.ts'

const pay = defineTool({
  name: 'pay',
  description: 'pays',
  input: z.object({ amount: z.number() }),
  approval: 'ask',
  execute: ({ amount }) => `paid ${amount}`,
})
const look = defineTool({
  name: 'look',
  description: 'looks',
  input: z.object({ at: z.string() }),
  effect: 'read',
  execute: ({ at }) => `seen ${at}`,
})
const USED = { inputTokens: 10, outputTokens: 5 }
const PAYS: Script = (request) =>
  request.messages.at(-1)?.role === 'tool'
    ? { text: 'Paid.', usage: USED, cost: 500_000 }
    : { text: 'I will pay.', calls: [{ tool: 'pay', args: { amount: 5 } }], usage: USED, cost: 250_000 }

function harnessWith(options: Partial<HarnessOptions>): Harness {
  const harness = new Harness({ model: scripted(PAYS), tools: [pay, look], ...options })
  onTestFinished(() => harness.close())
  return harness
}

/** Everything that a session is and was, to see that a look changes none of it. */
async function allOf(store: CompleteStore, id: string): Promise<unknown> {
  return [await store.card(id), (await store.read(id, 0, 1_000)).events]
}

describe('the state of a session', () => {
  it('B-LOOK-1: says what it does, what it waits for, what it used, cost and said, and what is pending', async () => {
    const store = memory()
    const harness = harnessWith({ store })
    const session = await harness.open({ id: 's', labels: { tenant: 'a' }, metadata: { user: 7 } })
    const fresh = await session.status()
    expect(fresh).toMatchObject({
      status: 'idle',
      phase: 'idle',
      waitsFor: 'input',
      text: '',
      cost: { usd: 0 },
      pending: [],
    })
    await session.run('Pay 5.')
    const asked = await session.status()
    expect(asked).toMatchObject({
      sessionId: 's',
      status: 'requires_action',
      phase: 'waiting',
      waitsFor: 'approval',
      text: 'I will pay.',
      cost: { usd: 0.25, ownUsd: 0.25, micros: 250_000 },
      metadata: { user: 7 },
      labels: { tenant: 'a' },
    })
    expect(asked.usage).toMatchObject({ ...USED, modelRequests: 1, toolCalls: 1 })
    const preview = { files: null, trouble: null, warnings: [] }
    const [pending] = asked.pending
    expect(pending).toMatchObject({ tool: 'pay', args: { amount: 5 }, sessionId: 's', costUsd: 0.25, preview })
    if (!pending) throw new Error('nothing is asked')
    await session.decide({ ...pending, allow: true, by: 'me' })
    expect((await session.run()).text).toBe('Paid.')
    const done = await session.status()
    expect(done).toMatchObject({ status: 'idle', phase: 'idle', text: 'Paid.', cost: { ownUsd: 0.75 }, pending: [] })
    expect(done.outcome).toEqual({ type: 'completed' })
  })

  it('B-LOOK-1: of a model that is asked, a call that runs, and a child that works', async () => {
    const phases: SessionState[] = []
    const harness: Harness = harnessWith({
      subagents: { helper: { description: 'helps', model: scripted(async () => (await note(), 'helped')) } },
      model: scripted(async ({ messages }) => {
        await note()
        if (messages.at(-1)?.role !== 'tool') return { calls: [{ tool: 'look', args: { at: 'x' } }] }
        const spawned = messages.filter(({ role }) => role === 'tool').length > 1
        return spawned ? 'done' : { calls: [{ tool: 'subagent', args: { agent: 'helper', task: 'help' } }] }
      }),
      tools: [
        defineTool({
          name: 'look',
          description: 'looks',
          input: z.object({ at: z.string() }),
          effect: 'read',
          execute: async () => (await note(), 'seen'),
        }),
      ],
    })
    const note = async (): Promise<void> => void phases.push(await harness.session('s').status())
    const session = await harness.open({ id: 's' })
    await session.run('Go.')
    expect(phases.map(({ phase }) => phase)).toEqual(['model', 'tools', 'model', 'children', 'model'])
    expect(phases[0]).toMatchObject({ status: 'running', waitsFor: null })
  })

  it('B-LOOK-2: a look drives nothing and writes nothing, also where work is due', async () => {
    const store = openFile(makeFile())
    const writer = harnessWith({ store, worker: { drives: false } })
    const session = await writer.open({ id: 's' })
    await session.send('Pay 5.')
    const before = await allOf(store, 's')
    const harness = harnessWith({ store })
    expect(await harness.session('s').status()).toMatchObject({ status: 'running', phase: 'queued', inputs: 1 })
    expect(await harness.pending()).toEqual([])
    expect(await allOf(store, 's')).toEqual(before)
  })

  it('B-LOOK-2: of a session that does not exist it is refused, and of a closed harness', async () => {
    const harness = harnessWith({})
    expect(await outcome(harness.session('nobody').status())).toBe('session_missing')
    await harness.close()
    expect(await outcome(harness.pending())).toBe('harness_closed')
  })
})

describe('what waits in all sessions', () => {
  it('B-LOOK-3: pending has every question of all sessions, children too, or of those with these labels', async () => {
    const harness = harnessWith({
      store: openFile(makeFile()),
      subagents: { helper: { description: 'helps', model: scripted(PAYS), tools: [pay] } },
      model: scripted((request, taken) => {
        const [first] = request.messages
        const text = first?.role === 'user' && first.parts[0]?.type === 'text' ? first.parts[0].text : ''
        if (request.messages.at(-1)?.role === 'tool' || text === 'Say.') return 'Done.'
        const spawn = { calls: [{ tool: 'subagent', args: { agent: 'helper', task: 'pay' } }] }
        return text === 'Spawn.' ? spawn : { calls: [{ tool: 'pay', args: { amount: taken } }] }
      }),
    })
    for (const [id, tenant, text] of [
      ['a', 'x', 'Pay.'],
      ['b', 'y', 'Spawn.'],
      ['c', 'x', 'Say.'],
    ] as const)
      await (await harness.open({ id, labels: { tenant } })).run(text)
    const all = await harness.pending()
    expect(all.map(({ path, tool }) => [path[0], path.length, tool])).toEqual([
      ['a', 1, 'pay'],
      ['b', 2, 'pay'],
    ])
    const [, below] = all
    expect(below).toMatchObject({ agent: 'helper', labels: { tenant: 'y' }, costUsd: 0.25, needs: 'approval' })
    expect((await harness.pending({ where: { tenant: 'x' } })).map(({ sessionId }) => sessionId)).toEqual(['a'])
    expect(await harness.pending({ where: { tenant: 'z' } })).toEqual([])
    if (!below) throw new Error('nothing is asked')
    await harness.session('b').decide({ ...below, allow: true, by: 'me' })
    expect((await harness.pending()).map(({ sessionId }) => sessionId)).toEqual(['a'])
  })

  it('B-LOOK-3: a filter that there is not is refused with a sentence', async () => {
    const harness = harnessWith({})
    // @ts-expect-error: a misspelled option
    await expect(harness.pending({ were: { a: 'b' } })).rejects.toThrow('did you mean "where"?')
    await expect(harness.pending({ where: { a: '' } })).rejects.toThrow('one line of 1 to 128 characters')
  })

  it('B-LOOK-4: a write has the preview that the command line shows: the difference in the folder of its session', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'terret-look-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'a.txt'), 'one\ntwo\n')
    const args = { path: 'a.txt', content: 'one\nthree\n' }
    const harness = harnessWith({
      model: scripted([{ calls: [{ tool: 'write', args }] }]),
      tools: fileTools({ root: folder }),
      approvals: { policy: { rules: [{ tool: 'write', effect: 'ask' }] } },
    })
    const session = await harness.open({ folder })
    await session.run('Write.')
    const [pending] = await harness.pending()
    expect(pending?.preview).toEqual(await previewOf(folder, { tool: 'write', args }))
    expect(pending?.preview.files).toMatchObject([{ path: 'a.txt', state: 'changed', added: 1, removed: 1 }])
    expect((await session.status()).pending).toEqual([pending])
  })

  it('B-LOOK-5: a session without money is pending with its amounts in dollars', async () => {
    const hosted = { prices: { 'anthropic:*': { input: 2, output: 10 } }, outputTokensMax: 1_000 }
    const { harness } = await stage([{ text: 'Hello.' }], { storage: 'sqlite', hosted, budget: { sessionUsd: 0.001 } })
    const session = await harness.open({ id: 's' })
    const result = await session.run('Hello.')
    expect(result).toMatchObject({ status: 'limit', cost: { usd: 0, ownUsd: 0 } })
    const [pending] = await harness.pending()
    expect(pending).toMatchObject({ callId: 'budget', sessionId: 's', costUsd: 0, treeCostUsd: 0 })
    expect(pending?.amounts).toMatchObject({ limitUsd: 0.001, spentUsd: 0, heldUsd: 0 })
    // A thousand tokens of output, and some of input.
    expect(pending?.amounts?.neededUsd).toBeGreaterThan(0.01)
    expect(pending?.amounts?.neededUsd).toBeLessThan(0.02)
    expect(result.pending).toMatchObject([{ amounts: pending?.amounts }])
  })
})

describe('events of calls in a stream', () => {
  const WIDE: Script = [
    { calls: ['a', 'b', 'c'].map((at) => ({ tool: 'look', args: { at } })) },
    { calls: [{ tool: 'look', args: { at: 'd' } }] },
    'done',
    { calls: [{ tool: 'look', args: { at: 'e' } }] },
    'again',
  ]
  const ofCalls = (events: readonly StreamEvent[]) =>
    events.flatMap((event) =>
      event.type === 'agent.tool_use' || event.type === 'agent.tool_result'
        ? [{ seq: event.seq, type: event.type, callId: event.callId, tool: event.tool, args: event.args }]
        : [],
    )

  it('B-STREAM-21: each has the tool, the arguments and the id of its call, wherever its reader comes in', async () => {
    const harness = harnessWith({ model: scripted(WIDE) })
    const session = await harness.open()
    const all: StreamEvent[] = []
    for (const text of ['Look.', 'Again.']) for await (const event of session.stream(text)) all.push(event)
    const whole = ofCalls(all)
    expect(whole).toHaveLength(10)
    expect(whole[0]).toMatchObject({ tool: 'look', args: { at: 'a' }, type: 'agent.tool_use' })
    expect(
      whole
        .map(({ args }) => (args as { at: string }).at)
        .toSorted()
        .join(''),
    ).toBe('aabbccddee')
    const { seq } = await session.status()
    for (const subagents of [true, false])
      for (let after = 0; after <= seq; after++) {
        const late: StreamEvent[] = []
        for await (const event of session.stream(undefined, { after, subagents })) late.push(event)
        expect(late.map((event) => event.seq)).toEqual(Array.from({ length: seq - after }, (_, i) => after + 1 + i))
        expect(ofCalls(late)).toEqual(whole.filter((event) => event.seq > after))
      }
  })
})
