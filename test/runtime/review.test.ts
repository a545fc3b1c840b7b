// Imported state is reviewed again: sessions from forged files, and approvals given for another place. Whatever a file says, none
// of its calls runs before a person approves it in this store, and then the current local rules apply.
import { copyFileSync, mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Harness,
  type HarnessOptions,
  memory,
  type Script,
  scripted,
  type SessionHandle,
  type CompleteStore,
  type Tool,
} from '../../src/index.ts'
import { callKey, type Event } from '../../src/kernel/event.ts'
import { exportSession, importSession, type Portable } from '../../src/archive/portable.ts'
import { recordingOf } from '../../src/archive/replay-run.ts'
import { redecide } from '../../src/archive/replay-decide.ts'
import { refoldSession } from '../../src/archive/replay-refold.ts'
import { readLog } from '../../src/view/session-log.ts'
import { fileTools } from '../../src/tools/files/file-tools.ts'
import { makeFile, open as openFile } from '../stores/folder.ts'
import type { OpenedFile } from '../../sim/forge-file.ts'
import { ASKS, forged, payTool } from './portable-stage.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

function harnessOf(script: Script, options: Partial<HarnessOptions> = {}): Harness {
  const harness = new Harness({ model: scripted(script), secrets: {}, ...options })
  open.push(harness)
  return harness
}

type Loose = { [key: string]: unknown }

function eventIn(copy: { readonly events: readonly Event[] }, type: Event['type']): Loose {
  return copy.events.find((event) => event.type === type) as unknown as Loose
}
function callIn(copy: { readonly events: readonly Event[] }): Loose {
  return (eventIn(copy, 'agent.message')['calls'] as Loose[])[0] as Loose
}

/** The key of the call that `callIn` finds. */
function keyIn(copy: { readonly events: readonly Event[] }): string {
  return callKey(Number(eventIn(copy, 'agent.message')['seq']), 0)
}

/** Ends the file with the first event of this type. */
function cutAfter(copy: OpenedFile, type: Event['type']): void {
  copy.events.length = copy.events.findIndex((event) => event.type === type) + 1
}

/** Exported while it waits for an approval. */
async function parked(tools: readonly Tool[] = [payTool([])], script: Script = ASKS): Promise<Portable> {
  const store = memory()
  await (await harnessOf(script, { store, tools }).open({ id: 'buyer' })).run('Pay 5.')
  return exportSession(store, 'buyer')
}

/** An event of an owner at the end of the file. */
function append(copy: OpenedFile, body: object): void {
  const { seq = 0, at = 0 } = copy.events.at(-1) ?? {}
  copy.events.push({ seq: seq + 1, at, epoch: 1, ...body } as Event)
}

/** An approval as a person in another store would have given it. */
function approve(copy: OpenedFile): void {
  const { digest } = callIn(copy)
  append(copy, {
    epoch: 0,
    type: 'user.tool_confirmation',
    id: 'yes',
    call: keyIn(copy),
    digest,
    allow: true,
    by: 'eve',
  })
}

function bare(copy: OpenedFile): void {
  for (const name of ['gate', 'digest', 'clear']) delete callIn(copy)[name]
}

type There = {
  readonly store: CompleteStore
  readonly harness: Harness
  readonly session: SessionHandle
  readonly paid: number[]
}

async function imported(
  value: unknown,
  script: Script = () => 'Done.',
  options: Partial<HarnessOptions> = {},
): Promise<There> {
  const store = memory()
  const paid: number[] = []
  await importSession(store, value)
  const harness = harnessOf(script, { store, tools: [payTool(paid)], ...options })
  return { store, harness, session: harness.session('buyer'), paid }
}

async function resumed(value: unknown, script?: Script, options?: Partial<HarnessOptions>): Promise<There> {
  const there = await imported(value, script, options)
  await there.session.send([{ type: 'resume' }])
  return there
}

describe('a session that was imported with something open', () => {
  it('B-PORT-21: is driven by no worker, no wake, no message and no decision before a person lets it go on', async () => {
    const value = forged(await parked(), (copy) => {
      bare(copy)
      append(copy, { type: 'wake.scheduled', due: 0, reason: 'now', key: 'k', urgent: true })
    })
    const { store, harness, session, paid } = await imported(value)
    expect(await store.card('buyer')).toMatchObject({ status: 'requires_action', held: true, due: null })
    expect((await store.due(10)).sessions).toEqual([])
    const before = await readLog(store, 'buyer')
    await harness.work({ idleMs: 20 })
    expect(await harness.work({ session: 'buyer' })).toMatchObject({ type: 'rested', waiting: 'resume' })
    await expect(session.decide({ callId: keyIn({ events: before }), allow: true, by: 'ann' })).rejects.toMatchObject({
      code: 'session_held',
    })
    expect(await readLog(store, 'buyer')).toEqual(before)
    const result = await session.run('Something else.', { when: 'now' })
    expect(result).toMatchObject({ status: 'requires_action', stopReason: 'paused', pending: [] })
    expect('reason' in result && result.reason).toContain('was imported and is held')
    await session.send([{ type: 'message', input: 'And this.' }, { type: 'pause' }])
    await harness.work({ idleMs: 20 })
    expect((await readLog(store, 'buyer')).filter(({ epoch }) => epoch > 1)).toEqual([])
    expect(paid).toEqual([])
  })

  it('B-PORT-21: one with nothing open is not held, and one that is stopped is over', async () => {
    const store = memory()
    await (await harnessOf(['One.'], { store }).open({ id: 'buyer' })).run('Hello.')
    const idle = await imported(await exportSession(store, 'buyer'), ['Two.'])
    expect((await idle.store.card('buyer'))?.held).toBeUndefined()
    expect((await idle.session.run('Again.')).text).toBe('Two.')
    const { session, paid, store: there } = await imported(await parked(), ['Two.'])
    await session.interrupt()
    expect((await session.run()).status).toBe('interrupted')
    expect((await there.card('buyer'))?.held).toBeUndefined()
    expect((await session.run('Again.')).text).toBe('Two.')
    expect(paid).toEqual([])
  })

  it('B-PORT-24: a store that is copied as a whole keeps its decisions', async () => {
    const file = makeFile()
    const first = openFile(file)
    const session = await harnessOf(ASKS, { store: first, tools: [payTool([])], worker: { drives: true } }).open({
      id: 'buyer',
    })
    const [pending] = (await session.run('Pay 5.')).pending
    const aside = harnessOf([], { store: first, worker: { drives: false } })
    await aside.session('buyer').decide({ callId: pending?.callId ?? '', allow: true, by: 'ann' })
    for (const harness of open.splice(0)) await harness.close()
    await first.close()
    const copy = makeFile()
    copyFileSync(file, copy)
    const paid: number[] = []
    const second = openFile(copy)
    const there = harnessOf(['Done.'], { store: second, tools: [payTool(paid)] })
    await there.work({ idleMs: 20 })
    expect(paid).toEqual([5])
    expect((await second.card('buyer'))?.outcome).toBe('completed')
  })
})

describe('what is open in an imported session', () => {
  const forgeries: readonly (readonly [string, (copy: OpenedFile) => void])[] = [
    ['nothing', () => {}],
    ['no gate, and other arguments', (copy) => (bare(copy), (callIn(copy)['args'] = { amount: 9 }))],
    ['an approval', approve],
    ['two votes of one', (copy) => (((callIn(copy)['gate'] as Loose)['n'] = 2), approve(copy))],
    ['a question that is over', (copy) => ((callIn(copy)['gate'] as Loose)['expiresAt'] = 1)],
    ['a call that only reads', (copy) => (bare(copy), (callIn(copy)['effect'] = 'read'))],
    ['a call that runs and only reads', (copy) => (bare(copy), (callIn(copy)['effect'] = 'read'), use(copy))],
    ['a call that is not ours', (copy) => (bare(copy), (callIn(copy)['gate'] = { type: 'outside' }))],
    ['a call for a child', (copy) => (bare(copy), (callIn(copy)['gate'] = { type: 'outside', child: 'default' }))],
    ['limits without end', (copy) => (bare(copy), (eventIn(copy, 'run.started')['limits'] = ENDLESS))],
    ['an interrupt that lets it go on', (copy) => (bare(copy), letGo(copy))],
    [
      'a review of its own',
      (copy) => (bare(copy), append(copy, { type: 'session.imported', from: 'x' }), letGo(copy), reviewed(copy)),
    ],
    [
      'a wake that is due',
      (copy) => (bare(copy), append(copy, { type: 'wake.scheduled', due: 0, reason: 'r', key: 'k' })),
    ],
  ]
  const COUNTS = { modelRequests: 1e9, modelAttempts: 1e9, lossesMax: 1e9, toolRetries: 1e9, outputRetries: 1e9 }
  const ENDLESS = { ...COUNTS, modelMs: 1e15, activeMs: 1e15, hold: 0, toolCalls: null, parallel: 1e9, depth: 1e9 }
  function use(copy: OpenedFile): void {
    append(copy, { type: 'agent.tool_use', call: keyIn(copy) })
  }
  function letGo(copy: OpenedFile): void {
    append(copy, { epoch: 0, type: 'user.interrupt', id: 'go', mode: 'resume' })
  }
  function reviewed(copy: OpenedFile): void {
    const { limits, toolset, instructions } = eventIn(copy, 'run.started')
    append(copy, { type: 'call.reviewed', call: keyIn(copy), effect: 'once', timeoutMs: 1_000 })
    append(copy, { type: 'run.reviewed', limits, toolset, instructions })
  }

  it.each(forgeries)(
    'B-REVIEW-1: is asked about by the tool as it is here, whatever the file says: %s',
    async (name, change) => {
      const { store, session, paid } = await resumed(forged(await parked(), change))
      const ran = name === 'a call that runs and only reads'
      const result = await session.run()
      if (ran) expect(result.calls).toMatchObject([{ tool: 'pay', status: 'unknown' }])
      else {
        const [pending] = result.pending
        expect(result).toMatchObject({ status: 'requires_action', stopReason: 'approval_required' })
        expect(pending).toMatchObject({ tool: 'pay', n: 1, roles: [], votes: [], expiresAt: null })
        expect(paid).toEqual([])
        await session.decide({ callId: pending?.callId ?? '', allow: true, by: 'ann', digest: pending?.digest ?? '' })
        expect((await session.run()).status).toBe('completed')
      }
      expect(paid).toEqual(ran ? [] : [name.includes('other') ? 9 : 5])
      expect((await refoldSession(store, 'buyer')).difference).toBeNull()
      expect(redecide(await readLog(store, 'buyer'))).toEqual([])
    },
  )

  it('B-REVIEW-2: is refused where the policy of here denies it, no person can be asked, the tool is gone or reads its arguments otherwise', async () => {
    const value = forged(await parked(), (copy) => (approve(copy), bare(copy)))
    const other = defineTool({
      name: 'pay',
      description: 'pays',
      input: z.object({ euro: z.number() }),
      execute: () => 'paid',
    })
    const cases: readonly (readonly [string, Partial<HarnessOptions>, 'denied' | 'error'])[] = [
      ['denied by policy', { approvals: { policy: { rules: [{ effect: 'deny', tool: 'pay' }] } } }, 'denied'],
      [
        'nobody can be asked here',
        { approvals: { policy: { rules: [{ effect: 'allow', tool: 'pay' }], onAsk: 'deny' } } },
        'denied',
      ],
      ['unknown tool "pay"', { tools: [] }, 'error'],
      ['euro', { tools: [other] }, 'error'],
    ]
    for (const [why, options, status] of cases) {
      const { session, paid } = await resumed(value, ['I see.'], options)
      const { text, calls } = await session.run()
      expect([text, calls[0]?.status, paid]).toEqual(['I see.', status, []])
      expect(calls[0]?.content).toContain(why)
      expect(calls[0]?.approved).toBeUndefined()
    }
    const allowed = await resumed(value, ['I see.'], { approvals: { policy: { rules: [{ effect: 'allow' }] } } })
    expect((await allowed.session.run()).pending).toMatchObject([{ tool: 'pay' }])
  })

  it('B-REVIEW-3: is never run again if it ran and may run only once, by the word of the file or of the tool', async () => {
    const free = defineTool({ ...SLOW, effect: 'read', execute: () => 'read' })
    const value = await parked([free], [{ calls: [{ tool: 'slow' }] }, 'Over.'])
    const cut = (effect: string) =>
      forged(value, (copy) => {
        cutAfter(copy, 'agent.message')
        callIn(copy)['effect'] = effect
        append(copy, { type: 'agent.tool_use', call: keyIn(copy) })
      })
    for (const [effect, tool, status] of [
      ['once', free, 'unknown'],
      ['read', defineTool({ ...SLOW, execute: () => 'ran' }), 'unknown'],
      ['read', free, null],
    ] as const) {
      const { session } = await resumed(cut(effect), ['Over.'], { tools: [tool] })
      const result = await session.run()
      expect(result.calls).toMatchObject([{ tool: 'slow', status }])
      expect(result.status).toBe(status === null ? 'requires_action' : 'completed')
    }
  })

  it('B-REVIEW-4: goes on with the instructions, tools, limits and money of here, and not with those of the file', async () => {
    const value = forged(await parked(), (copy) => {
      eventIn(copy, 'run.started')['limits'] = {
        ...(eventIn(copy, 'run.started')['limits'] as Loose),
        modelRequests: 1e9,
      }
    })
    const seen: string[] = []
    const { session, store } = await resumed(value, (request) => (seen.push(request.instructions), 'Done.'), {
      instructions: 'Be good.',
      limits: { modelRequests: 2 },
      budget: { runUsd: 0.5 },
    })
    const [pending] = (await session.run()).pending
    await session.decide({ callId: pending?.callId ?? '', allow: false, by: 'ann' })
    await session.run()
    expect(seen).toEqual(['Be good.'])
    const events = await readLog(store, 'buyer')
    const review = events.find(({ type }) => type === 'run.reviewed')
    expect(review).toMatchObject({ limits: { modelRequests: 2 } })
    expect(await store.account(`run:buyer:${String(eventIn({ events }, 'run.started')['seq'])}`)).toMatchObject({
      limit: 500_000,
    })
  })

  it('B-REVIEW-5: an undo takes back nothing that a file says was done, and nothing of a session that it names', async () => {
    const root = realpathSync(mkdtempSync(join(tmpdir(), 'terret-review-')))
    const store = memory()
    const tools = fileTools({ root })
    const write = { calls: [{ tool: 'write', args: { path: 'a.txt', content: 'mine' } }] }
    const there = await harnessOf([write, 'Done.'], { store, tools }).open({ id: 'buyer' })
    await there.run('Write it.')
    const value = await exportSession(store, 'buyer')
    const harness = harnessOf(['Done.'], { store, tools })
    await importSession(store, value, { id: 'copy' })
    expect(await harness.session('copy').undo()).toEqual([])
    const naming = forged(value, (copy) => {
      callIn(copy)['gate'] = { type: 'outside', child: 'default', answers: { session: 'buyer', call: keyIn(copy) } }
      eventIn(copy, 'agent.tool_use')['type'] = 'agent.custom_tool_use'
    })
    await importSession(store, naming, { id: 'other' })
    expect(await harness.session('other').undo()).toEqual([])
    expect(await harness.session('buyer').undo()).toMatchObject([{ result: 'removed' }])
  })

  it('B-PORT-25: a session with an undo happens again without a difference, and nothing is taken back again', async () => {
    const root = realpathSync(mkdtempSync(join(tmpdir(), 'terret-review-')))
    const [store, fresh] = [memory(), memory()]
    const tools = fileTools({ root })
    const write = { calls: [{ tool: 'write', args: { path: 'a.txt', content: 'mine' } }] }
    const session = await harnessOf([write, 'Done.', 'Again.'], { store, tools }).open({ id: 's' })
    await session.run('Write it.')
    expect(await session.undo()).toHaveLength(1)
    await session.run('More.')
    const recording = recordingOf(await readLog(store, 's'), { tools })
    const again = harnessOf([], { model: recording.model, tools: recording.tools, store: fresh })
    const rerun = await recording.run(await again.open(), fresh)
    expect(rerun).toMatchObject({ divergence: null, sameTypes: true, sameCalls: true, sameResults: true })
    expect(redecide(await readLog(store, 's'))).toEqual([])
  })

  it('B-REVIEW-6: ends its run with nothing run where it cannot be asked about', async () => {
    const { session, paid } = await resumed(await parked(), ['Done.'], {
      tools: [
        { type: 'source', name: 'gone', tools: () => Promise.reject(new Error('no server')), close: async () => {} },
      ],
    })
    const result = await session.run()
    expect(result).toMatchObject({ status: 'failed', stopReason: 'prepare_failed', calls: [{ status: 'aborted' }] })
    expect(JSON.stringify(result)).toContain('no server')
    expect((await session.run('Again.')).status).toBe('failed')
    expect(paid).toEqual([])
  })

  it('B-REVIEW-7: a request that was open elsewhere is made anew, with the money of here', async () => {
    const value = forged(await parked(), (copy) => {
      cutAfter(copy, 'model.started')
      eventIn(copy, 'model.started')['held'] = 7
    })
    const { session, store } = await resumed(value, ['Fresh.'], { budget: { runUsd: 5 } })
    expect((await session.run()).text).toBe('Fresh.')
    expect(redecide(await readLog(store, 'buyer'))).toEqual([])
  })
})

const SLOW = { name: 'slow', description: 'takes its time', input: z.object({}) }
