// What a what-if meets beside tools and decisions: secrets, summaries, lost calls, children that work on, worktrees,
// money, servers of tools, hooks, people who steer and stop, and models that a run chose by name.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  type CompleteStore,
  defineTool,
  Harness,
  type HarnessOptions,
  memory,
  type Request,
  type Tool,
} from '../../src/index.ts'
import { readLog, whatIf, type WhatIfOptions } from '../../src/replay.ts'
import { END, last, START, withState } from '../../src/graphs/index.ts'
import { askUserTool } from '../../src/tools/ask-user.ts'
import { fileTools } from '../../src/tools/index.ts'
import { until } from '../until.ts'
import { recorded, saidIn, talking, type Talk, turnOf, wholeText, world } from './stage.ts'

/** From every event on, with the recorded agent: nothing may differ. */
async function sweep(
  { store, session }: { readonly store: CompleteStore; readonly session: string },
  agent: (requests: Request[]) => HarnessOptions,
  then: readonly Request[] | null = null,
  more: Partial<WhatIfOptions> = { runs: 'all' },
) {
  const before = await wholeText(store, session)
  const log = await readLog(store, session)
  for (let at = 1; at <= log.length; at++) {
    const now: Request[] = []
    const tried = await whatIf({ store, session }, { at, agent: agent(now), ...more })
    const { drift, settled, diff, changed } = tried
    expect({ at, drift, first: diff.first, changed }).toEqual({ at, drift: 0, first: null, changed: [] })
    expect(settled, `at ${at}`).not.toBe(null)
    if (then) expect(now, `at ${at}`).toEqual(then.slice(then.length - now.length))
  }
  expect(await wholeText(store, session)).toBe(before)
}

const dig = (run: (n: number) => unknown): Tool =>
  defineTool({ name: 'dig', description: 'Digs.', input: z.object({ n: z.number() }), execute: ({ n }) => run(n) })
const DIGS =
  (times: number): Talk =>
  (request) => {
    const done = request.messages.filter(({ role }) => role === 'tool').length
    return done < times ? { calls: [{ tool: 'dig', args: { n: done } }] } : 'Done.'
  }

describe('a what-if', () => {
  it('B-WHATIF-11: of a redacted recording shows the marks and no secret', async () => {
    const then: Request[] = []
    const make = (requests: Request[]): HarnessOptions => ({
      model: talking(DIGS(2), requests),
      tools: [dig((n) => `the key is sk-very-secret-${n === 0 ? '1' : '1'}`)],
      secrets: { KEY: 'sk-very-secret-1' },
    })
    const store = memory()
    const harness = new Harness({ ...make(then), store })
    const { sessionId: session } = await harness.run('Dig.')
    await harness.close()
    await sweep({ store, session }, make, then)
    const now: Request[] = []
    await whatIf({ store, session }, { at: 2, agent: { ...make(now), secrets: {}, instructions: 'New.' } })
    expect(JSON.stringify(now)).toContain('⟦secret:KEY⟧')
    expect(JSON.stringify(now)).not.toContain('sk-very-secret')
  })

  it('B-WHATIF-11: begins after, at and before a summary of the recording', async () => {
    const then: Request[] = []
    const talk = DIGS(8)
    const make = (requests: Request[]): HarnessOptions => ({
      model: talking(
        (request) =>
          request.instructions.includes('summar') || request.tools.length === 0
            ? '<summary>Dug.</summary>'
            : talk(request),
        requests,
      ),
      tools: [dig((n) => `${n} ${'earth '.repeat(700)}`)],
      breaker: false,
      secrets: {},
      context: { compaction: { windowTokens: 6_000 } },
    })
    const store = memory()
    const harness = new Harness({ ...make(then), store })
    const { sessionId: session } = await harness.run('Dig.')
    await harness.close()
    const log = await readLog(store, session)
    expect(log.filter(({ type }) => type === 'context.compacted').length).toBeGreaterThan(0)
    await sweep({ store, session }, make, then)
    // The recording alone goes on too, where a request was shorter than it would be now.
    const { model: _model, ...agent } = make([])
    await sweep({ store, session }, () => agent as HarnessOptions)
  })

  it('B-WHATIF-11: repeats a long result that is stored beside the log, which its session can read on', async () => {
    const then: Request[] = []
    const long = Array.from({ length: 9_000 }, (_, i) => `line ${i}`).join('\n')
    const make = (requests: Request[]): HarnessOptions => ({
      model: talking(DIGS(2), requests),
      tools: [dig(() => long)],
      secrets: {},
    })
    const { store, session } = await recorded(make(then), 'Dig.')
    await sweep({ store, session }, make, then)
  })

  it('B-WHATIF-11: goes on over a call whose outcome is unknown', async () => {
    const store = memory()
    let hang = true
    const make = (requests: Request[]): HarnessOptions => ({
      model: talking(DIGS(2), requests),
      tools: [dig((n) => (hang && n === 1 ? new Promise(() => {}) : `dug ${n}`))],
      secrets: {},
    })
    const first = new Harness({ ...make([]), store, worker: { graceMs: 0, leaseMs: 100 } })
    const session = await first.open()
    session.run('Dig.').catch(() => {})
    await until(async () =>
      expect((await readLog(store, session.id)).filter(({ type }) => type === 'agent.tool_use')).toHaveLength(2),
    )
    await first.close()
    hang = false
    const second = new Harness({ ...make([]), store })
    await second.session(session.id).run()
    await second.close()
    const log = await readLog(store, session.id)
    for (let at = 1; at <= log.length; at++) {
      const { settled } = await whatIf({ store, session: session.id }, { at, agent: make([]) })
      expect({ at, settled }).toEqual({ at, settled: { type: 'completed' } })
    }
  })

  it('B-WHATIF-12: lives children again that work on by themselves', async () => {
    const talk: Talk = (request) => {
      const said = saidIn(request).at(-1) ?? ''
      if (said === 'dig') return turnOf(request) === 0 ? { calls: [{ tool: 'look', args: { what: 'earth' } }] } : 'Dug.'
      if (said.startsWith('<subagent_report')) return 'Read.'
      return turnOf(request) === 0 ? { calls: [{ tool: 'spawn_subagent', args: { prompt: 'dig' } }] } : 'Started.'
    }
    const make = (requests: Request[]): HarnessOptions => ({
      model: talking(talk, requests),
      tools: [world().look],
      subagents: true,
      detached: true,
      secrets: {},
    })
    const store = memory()
    const harness = new Harness({ ...make([]), store })
    const session = await harness.open()
    await session.run('Go.')
    const settled = async () => (await readLog(store, session.id)).filter(({ type }) => type === 'run.settled').length
    await until(async () => expect((await readLog(store, session.id)).at(-1)?.type).toBe('run.settled'))
    await until(async () => expect(JSON.stringify(await readLog(store, session.id))).toContain('Read.'))
    await until(async () => expect(await settled()).toBeGreaterThan(0))
    await harness.close()
    const log = await readLog(store, session.id)
    for (let at = 1; at <= log.length; at++) {
      const tried = await whatIf({ store, session: session.id }, { at, agent: make([]), runs: 'all' })
      expect({ at, drift: tried.drift, text: tried.text }).toEqual({ at, drift: 0, text: 'Read.' })
    }
  })

  it('B-WHATIF-13: makes and sweeps no worktree, and writes no file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'what-if-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const git = (...args: readonly string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: folder, encoding: 'utf8' })
    git('init', '-q')
    writeFileSync(join(folder, 'a.txt'), 'a\n')
    git('add', '.')
    git('commit', '-qm', 'first')
    const talk: Talk = (request) => {
      const said = saidIn(request).at(-1) ?? ''
      if (said === 'write')
        return turnOf(request) === 0
          ? { calls: [{ tool: 'write', args: { path: 'b.txt', content: 'b\n' } }] }
          : 'Wrote.'
      if (turnOf(request) > 0) return 'Done.'
      return { calls: [{ tool: 'spawn_subagent', args: { prompt: 'write', blocking: true, isolation: 'worktree' } }] }
    }
    const make = (requests: Request[]): HarnessOptions => ({
      model: talking(talk, requests),
      tools: fileTools({ root: folder }),
      subagents: true,
      detached: true,
      secrets: {},
    })
    const store = memory()
    const harness = new Harness({ ...make([]), store })
    const session = await harness.open({ folder })
    await session.run('Go.')
    await harness.close()
    const look = () => [
      git('worktree', 'list'),
      git('status', '--porcelain'),
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted(),
    ]
    const before = look()
    expect(before[0]).toContain('worktrees')
    const log = await readLog(store, session.id)
    for (let at = 1; at <= log.length; at++) {
      const { settled } = await whatIf({ store, session: session.id }, { at, agent: make([]), tools: { read: 'live' } })
      expect({ at, settled }).toEqual({ at, settled: { type: 'completed' } })
    }
    expect(look()).toEqual(before)
  })

  it('B-WHATIF-14: spends from accounts of its own, and within its own limit', async () => {
    const make = (requests: Request[]): HarnessOptions => ({
      model: { ...talking(DIGS(3), requests) },
      tools: [dig((n) => `dug ${n}`)],
      secrets: {},
      budget: { sessionUsd: 1, treeUsd: 1 },
      limits: { hold: 10_000 },
    })
    const then: Request[] = []
    const { store, session } = await recorded(make(then), 'Dig.')
    await sweep({ store, session }, make, then)
    const held = (await readLog(store, session)).flatMap((event) =>
      event.type === 'model.started' ? [event.held ?? 0] : [],
    )
    const usd = Math.max(...held) / 1e6 + 0.015
    const tried = await whatIf({ store, session }, { at: 2, agent: make([]), usd })
    expect(tried.settled).toMatchObject({ type: 'limit', limit: 'usd' })
    expect(tried.cost).toBeCloseTo(0.02)
    expect(tried.parked).toMatchObject([{ tool: 'budget' }])
  })

  it('B-WHATIF-15: asks no source of tools and closes none, unless one of its tools may run', async () => {
    const seen: string[] = []
    const remote = defineTool({
      name: 'far__look',
      description: 'Looks far away.',
      input: z.object({ n: z.number() }),
      effect: 'read',
      execute: ({ n }) => {
        seen.push(`ran ${n}`)
        return `far ${n}`
      },
    })
    const source = {
      type: 'source' as const,
      name: 'far',
      tools: async () => {
        seen.push('asked')
        return [remote]
      },
      close: async () => void seen.push('closed'),
    }
    const talk: Talk = (request) =>
      turnOf(request) === 0 ? { calls: [{ tool: 'far__look', args: { n: 1 } }] } : 'Done.'
    const then: Request[] = []
    const make = (requests: Request[]): HarnessOptions => ({
      model: talking(talk, requests),
      tools: [source],
      secrets: {},
    })
    const { store, session } = await recorded(make(then), 'Look.')
    seen.length = 0
    await sweep({ store, session }, make, then)
    expect(seen).toEqual([])
    await whatIf({ store, session }, { at: 2, agent: make([]), tools: { far__look: 'live' } })
    expect(seen).toContain('ran 1')
    expect(seen).not.toContain('closed')
    await expect(
      whatIf({ store, session }, { at: 2, agent: make([]), tools: { other__look: 'live' } }),
    ).rejects.toMatchObject({ code: 'invalid_input' })
  })

  it('B-WHATIF-16: asks hooks that take part in a run, and tells none', async () => {
    const told: string[] = []
    const make = (requests: Request[]): HarnessOptions => ({
      model: talking(DIGS(1), requests),
      tools: [dig((n) => `dug ${n}`)],
      secrets: {},
      hooks: [
        { type: 'user_prompt_submit', run: () => ({ context: 'It is Monday.' }) },
        { type: 'run_end', run: () => void told.push('run_end') },
        { type: 'post_run', run: () => void told.push('post_run') },
      ],
      plugins: [{ name: 'record', consumers: [{ name: 'record', run: () => void told.push('consumer') }] }],
    })
    const then: Request[] = []
    const { store, session } = await recorded(make(then), 'Dig.')
    await until(() => expect(told).toContain('consumer'))
    told.length = 0
    await sweep({ store, session }, make, then)
    expect(told).toEqual([])
  })

  it('B-WHATIF-17: hears what people said in the middle of a run at the same place, and the answers they gave', async () => {
    const store = memory()
    let steer = async (): Promise<unknown> => null
    const make = (requests: Request[]): HarnessOptions => ({
      model: talking((request) => {
        if (turnOf(request) === 0 && saidIn(request).length === 1) return { calls: [{ tool: 'dig', args: { n: 0 } }] }
        if (saidIn(request).length === 2 && turnOf(request) === 0)
          return { calls: [{ tool: 'ask_user', args: { question: 'How deep?' } }] }
        return 'Done.'
      }, requests),
      tools: [dig(() => steer().then(() => 'dug')), askUserTool()],
      secrets: {},
    })
    const then: Request[] = []
    const harness = new Harness({ ...make(then), store })
    const session = await harness.open()
    steer = () => session.send('Dig deeper.')
    const { pending } = await session.run('Dig.')
    for (const { callId } of pending) await session.answer({ callId, content: 'Very.', by: 'ann' })
    await session.run()
    await harness.close()
    await sweep({ store, session: session.id }, make, then)
  })

  it('B-WHATIF-17: of the recording alone stops where a person stopped it', async () => {
    const store = memory()
    const make = (): HarnessOptions => ({
      model: talking(DIGS(2)),
      tools: [dig((n) => `dug ${n}`)],
      secrets: {},
    })
    let asked = 0
    const slow = talking(DIGS(2))
    const harness = new Harness({
      ...make(),
      model: {
        name: slow.name,
        call: async (request, context) => {
          asked += 1
          if (asked === 2) {
            void session.interrupt()
            await new Promise((resolve) => context.signal.addEventListener('abort', resolve, { once: true }))
          }
          return slow.call(request, context)
        },
      },
      store,
    })
    const session = await harness.open()
    const result = await session.run('Dig.')
    expect(result.status).toBe('interrupted')
    await harness.close()
    const { model: _model, ...agent } = make()
    const log = await readLog(store, session.id)
    for (let at = 1; at <= log.length; at++) {
      const tried = await whatIf({ store, session: session.id }, { at, agent })
      expect({ at, settled: tried.settled?.type, drift: tried.drift }).toEqual({ at, settled: 'interrupted', drift: 0 })
    }
  })

  it('B-WHATIF-18: never asks a model that a run of the recording chose by its name', async () => {
    const asked: string[] = []
    const named = talking(() => {
      asked.push('named')
      return 'By name.'
    })
    const make = (requests: Request[]): HarnessOptions => ({
      model: talking(DIGS(1), requests),
      tools: [dig((n) => `dug ${n}`)],
      models: { named: { special: named } },
      secrets: {},
    })
    const store = memory()
    const harness = new Harness({ ...make([]), store })
    const { sessionId: session } = await harness.run('Dig.', { model: 'special' })
    await harness.close()
    expect(asked).toHaveLength(1)
    const log = await readLog(store, session)
    const { model: _model, ...agent } = make([])
    for (let at = 1; at <= log.length; at++) {
      expect(await whatIf({ store, session }, { at, agent })).toMatchObject({ drift: 0, text: 'By name.' })
      const other = await whatIf({ store, session }, { at, agent: make([]) })
      expect(other.settled).toEqual({ type: 'completed' })
    }
    expect(asked).toHaveLength(1)
  })

  it('B-WHATIF-18: of a forked session begins with what the fork inherited', async () => {
    const make = (requests: Request[]): HarnessOptions => ({
      model: talking(DIGS(2), requests),
      tools: [dig((n) => `dug ${n}`)],
      secrets: {},
    })
    const then: Request[] = []
    const { store, session, harness } = await recorded(make([]), 'Dig.')
    const fork = await harness.session(session).fork()
    await harness.close()
    const second = new Harness({ ...make(then), store })
    await second.session(fork.id).run('Again.')
    await second.close()
    await sweep({ store, session: fork.id }, make, then)
  })

  it('B-WHATIF-18: of a session of a workflow is refused; a workflow that is a child repeats what it gave', async () => {
    const ran: string[] = []
    const { node, graph } = withState({ task: last(''), found: last('') })
    const dig = graph({
      name: 'digging',
      description: 'Digs.',
      nodes: {
        dig: node({
          effect: 'once',
          reads: ({ task }) => ({ task }),
          run: ({ task }) => {
            ran.push(task)
            return { found: `gold ${ran.length}` }
          },
        }),
      },
      edges: [
        [START, 'dig'],
        ['dig', END],
      ],
    })
    const talk: Talk = (request) =>
      turnOf(request) === 0
        ? { calls: [{ tool: 'subagent', args: { agent: 'digging', task: '{"task":"here"}' } }] }
        : 'Done.'
    const make = (requests: Request[]): HarnessOptions => ({
      model: talking(talk, requests),
      graphs: [dig],
      subagents: true,
      secrets: {},
    })
    const then: Request[] = []
    const { store, session } = await recorded(make(then), 'Go.')
    expect(ran).toHaveLength(1)
    const child = (await store.list({ root: session, limit: 9 })).find((card) => card.session !== session)
    expect(child).toMatchObject({ agent: 'digging', outcome: 'completed' })
    await sweep({ store, session }, make, then)
    expect(ran).toHaveLength(1)
    const harness = new Harness({ ...make([]), store })
    const { sessionId } = await harness.run({ task: 'there' }, { agent: 'digging' })
    await harness.close()
    await expect(whatIf({ store, session: sessionId }, { at: 2, agent: make([]) })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('is driven by graph:digging') as unknown,
    })
  })
})
