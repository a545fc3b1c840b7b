// A policy beyond its rules: actions an hour, folders to write, policy files, and approvals no rule can wave through.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  type Approval,
  type Clock,
  defineTool,
  Harness,
  loadPolicy,
  memory,
  type Policy,
  scripted,
  sqlite,
  type CompleteStore,
} from '../../src/index.ts'
import { runtimeClock } from '../../src/runtime/state/machine.ts'

const folder = mkdtempSync(join(tmpdir(), 'terret-budget-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const input = z.object({})
let files = 0

function counting(ran: string[], store: CompleteStore, policy: Policy): Harness {
  const tools = (['read', 'once'] as const).map((effect) =>
    defineTool({ name: effect, description: effect, input, effect, execute: () => ran.push(effect) }),
  )
  const calls = ['once', 'read', 'once', 'once'].map((tool) => ({ tool }))
  const model = scripted((_request, n) => (n % 2 === 0 ? { calls } : 'done'))
  return new Harness({ model, tools, store, approvals: { policy } })
}

/** Another process that runs so many sessions at once, and how many of them acted. */
async function acting(path: string, runs: number, actionsPerHour: number): Promise<number> {
  const child = fileURLToPath(new URL('../../.build/test/tools/child-actions.js', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [child, path, `${runs}`, `${actionsPerHour}`])
  return Number(stdout)
}

describe('actions an hour', () => {
  it('B-POLICY-15: calls that change something are counted over sessions and harnesses; those over the budget are refused', async () => {
    const path = join(folder, 'a.db')
    const ran: string[] = []
    for (let round = 0; round < 2; round++) {
      const store = sqlite(path)
      const harness = counting(ran, store, { rules: [], actionsPerHour: 4 })
      expect((await harness.run('go')).status).toBe('completed')
      await harness.close()
      await store.close()
    }
    expect(ran.filter((each) => each === 'once')).toHaveLength(4)
    expect(ran.filter((each) => each === 'read')).toHaveLength(2)
  })

  it('B-POLICY-15: no hour has more than its budget, wherever it begins, and a budget of none refuses every action', async () => {
    // As if it were a minute before a full hour.
    const start = 3_540_000 - (runtimeClock.now() % 3_600_000)
    let ahead = start
    const clock: Clock = { now: () => runtimeClock.now() + ahead, timer: (ms, fire) => runtimeClock.timer(ms, fire) }
    const ran: string[] = []
    const harness = counting(ran, memory({ clock }), { rules: [], actionsPerHour: 3 })
    await harness.run('go')
    await harness.run('go')
    expect(ran.filter((each) => each === 'once')).toHaveLength(3)
    for (const minutes of [2, 30, 58]) {
      ahead = start + minutes * 60_000
      await harness.run('go')
      expect(ran.filter((each) => each === 'once')).toHaveLength(3)
    }
    ahead = start + 65 * 60_000
    await harness.run('go')
    expect(ran.filter((each) => each === 'once')).toHaveLength(6)
    await harness.close()
    const none = counting(ran, memory(), { rules: [], actionsPerHour: 0 })
    await none.run('go')
    expect(ran.filter((each) => each === 'once')).toHaveLength(6)
    await none.close()
  })

  it('B-POLICY-15: of twenty that act at the same moment only as many do as may', async () => {
    for (const store of [memory(), sqlite(join(folder, 'many.db'))]) {
      const ran: string[] = []
      const tool = defineTool({ name: 'once', description: 'd', input, execute: () => ran.push('once') })
      const model = scripted((request) => (request.messages.length > 1 ? 'done' : { calls: [{ tool: 'once' }] }))
      const policy = { rules: [], actionsPerHour: 2 }
      const harnesses = [0, 1].map(() => new Harness({ model, tools: [tool], store, approvals: { policy } }))
      const runs = harnesses.flatMap((harness) => Array.from({ length: 10 }, () => harness.run('go')))
      const ends = await Promise.all(runs)
      expect([ends.filter(({ status }) => status === 'completed').length, ran.length]).toEqual([20, 2])
      for (const harness of harnesses) await harness.close()
      await store.close()
    }
  })

  it('B-POLICY-15: of several processes on one file only as many act as may', async () => {
    const path = join(folder, 'processes.db')
    const ran = await Promise.all([0, 1, 2].map(() => acting(path, 6, 4)))
    expect(ran.reduce((sum, count) => sum + count, 0)).toBe(4)
  })

  it('B-POLICY-15: children count as their root does, whatever they are called, and a budget of money is another one', async () => {
    const ran: string[] = []
    const tool = defineTool({ name: 'once', description: 'd', input, execute: () => ran.push('once') })
    const start = (agent: string) => ({ tool: 'subagent', args: { agent, task: 'act' } })
    const model = scripted((request) => {
      if (request.messages.some(({ role }) => role === 'tool')) return 'done'
      const isRoot = JSON.stringify(request.messages).includes('begin')
      return { calls: isRoot ? [start('one'), start('two'), start('one'), start('two')] : [{ tool: 'once' }] }
    })
    const harness = new Harness({
      model,
      tools: [tool],
      approvals: { policy: { rules: [], actionsPerHour: 2 } },
      budget: { dayUsd: 5 },
      subagents: { one: { description: 'one' }, two: { description: 'two' } },
    })
    const end = await harness.run('begin')
    expect(end.calls.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok', 'ok'])
    expect([end.status, ran.length]).toEqual(['completed', 2])
    await harness.close()
  })

  it('B-POLICY-15: a budget that is no whole number is refused', () => {
    for (const actionsPerHour of [-1, 1.5, Number.NaN]) {
      expect(() => counting([], memory(), { rules: [], actionsPerHour })).toThrow('actionsPerHour')
    }
  })
})

describe('a policy from a file', () => {
  const policyFile = (value: unknown): string => {
    const file = join(folder, `${files++}.json`)
    writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value))
    return file
  }
  const writes = async (policy: Policy, path: string, effect: 'read' | 'once' = 'once'): Promise<boolean> => {
    let ran = false
    const tool = defineTool({
      name: 'put',
      description: 'd',
      input: z.object({ path: z.string() }),
      effect,
      execute: () => {
        ran = true
      },
    })
    const model = scripted([{ calls: [{ tool: 'put', args: { path } }] }, 'done'])
    const harness = new Harness({ model, tools: [tool], approvals: { policy } })
    const { sessionId } = await harness.run('go')
    const { events } = await harness.session(sessionId).events()
    expect(events.find((event) => event.type === 'run.started')).toHaveProperty('policy')
    await harness.close()
    return ran
  }

  it('B-POLICY-17: relative roots start from the file; a write outside of them is denied, a read is not, and the run keeps the policy', async () => {
    const policy = loadPolicy(policyFile({ rules: [], writeRoots: ['./out', '/srv/data'] }))
    expect(policy).toMatchObject({ writeRoots: [join(folder, 'out'), '/srv/data'], base: folder })
    expect(await writes(policy, 'out/a.txt')).toBe(true)
    expect(await writes(policy, '/srv/data/deep/a.txt')).toBe(true)
    expect(await writes(policy, join(folder, 'out', 'a.txt'))).toBe(true)
    for (const path of ['a.txt', 'out/../a.txt', '/srv/data-evil/a', '/etc/passwd', '../../x', join(folder, 'outer')]) {
      expect(await writes(policy, path)).toBe(false)
    }
    expect(await writes(policy, '/etc/passwd', 'read')).toBe(true)
  })

  it('B-POLICY-18: a file that is missing, no JSON or not understood is refused with its name or its fault', () => {
    expect(() => loadPolicy(join(folder, 'nowhere.json'))).toThrow('nowhere.json')
    expect(() => loadPolicy(policyFile('{ rules'))).toThrow('cannot be used')
    expect(() => loadPolicy(policyFile({ rules: [], writeRoots: 'out' }))).toThrow('"writeRoots"')
    expect(() => loadPolicy(policyFile({ rules: [{ effect: 'perhaps' }] }))).toThrow('rule 1')
    expect(() => loadPolicy(policyFile([]))).toThrow('must be an object')
  })
})

describe('what a tool itself demands', () => {
  const runs = async (approval: Approval, policy: Policy): Promise<string> => {
    let ran = false
    const execute = () => {
      ran = true
    }
    const tool = defineTool({
      name: 'act',
      description: 'd',
      input,
      approval: () => Promise.resolve(approval),
      execute,
    })
    const harness = new Harness({
      model: scripted([{ calls: [{ tool: 'act' }] }, 'done']),
      tools: [tool],
      approvals: { policy },
    })
    const { status } = await harness.run('go')
    await harness.close()
    return ran ? 'ran' : status
  }
  const allowAll: Policy = { rules: [{ effect: 'allow' }] }

  it('B-POLICY-16: "always" is asked whatever rules allow, "ask" only if none does, "never" is refused; a tool may take its time to say', async () => {
    expect(await runs('auto', { rules: [] })).toBe('ran')
    expect(await runs('ask', { rules: [] })).toBe('requires_action')
    expect(await runs('ask', allowAll)).toBe('ran')
    expect(await runs('always', allowAll)).toBe('requires_action')
    expect(await runs('always', { ...allowAll, onAsk: 'deny' })).toBe('completed')
    expect(await runs('never', allowAll)).toBe('completed')
  })
})
