// What /metrics says of runs, beside a recount of the logs.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { defineTool, Harness, memory, scripted, sqlite } from '../../src/index.ts'
import type { CompleteStore } from '../../src/kernel/index.ts'
import { exportSession, importSession } from '../../src/replay.ts'
import { serve } from '../../src/server/index.ts'
import { RunMetrics } from '../../src/server/metrics.ts'
import { COUNTERS, labelText } from '../../src/server/run-counts.ts'
import { completeStore } from '../../src/stores/plan/complete-store.ts'
import { ApprovalReader } from '../../src/server/waiting-approvals.ts'
import { create } from '../contract/fixture.ts'
import { counted, type Counted, recounted, seriesOf, told } from './recount.ts'

const tool = (name: string) =>
  defineTool({ name, description: 'Looks.', input: z.object({}), effect: 'read', execute: () => 'seen' })
const look = tool('look')
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({}),
  approval: 'ask',
  execute: () => 'paid',
})
const USAGE = { inputTokens: 100, outputTokens: 7, cachedTokens: 60 }

describe('the counts of /metrics', () => {
  it('B-METRIC-1: equal a recount of the logs: runs, tokens, money, calls, failures, compactions, of children too', async () => {
    const helper = { description: 'Helps.', model: scripted(() => ({ text: 'Helped.', usage: USAGE, cost: 9 })) }
    const { harness, store, metrics } = counted({
      tools: [look, pay],
      model: scripted((request) => {
        const said = JSON.stringify(request.messages.at(-1))
        if (/Summar|summar/.test(JSON.stringify(request.messages)) && request.tools.length === 0) return 'A summary.'
        if (said.includes('break')) return { error: 'auth' }
        if (said.includes('go ahead')) return { calls: [{ tool: 'look' }, { tool: 'made_up' }], usage: USAGE, cost: 5 }
        if (said.includes('pay it')) return { calls: [{ tool: 'pay' }], cost: 11 }
        if (said.includes('get help'))
          return { calls: [{ tool: 'subagent', args: { agent: 'helper', task: 'Help.' } }] }
        return { text: 'Done. '.repeat(200), usage: USAGE, cost: 3 }
      }),
      subagents: { helper },
      limits: { modelRequests: 3 },
    })
    const session = await harness.open()
    await session.run('go ahead')
    await session.run('get help')
    await session.run('pay it')
    const [asked] = await harness.pending()
    if (asked) await harness.session(asked.sessionId).decide({ ...asked, allow: false, by: 'ann' })
    await session.run()
    await session.compact()
    expect((await harness.run('break')).status).toBe('failed')
    const loops = await harness.run('go ahead and go ahead', { limits: { modelRequests: 1 } })
    expect(loops.status).toBe('limit')
    const counts = await told(metrics)
    expect(counts).toEqual(await recounted(store))
    expect(counts).toMatchObject({
      'runs_total{agent="default",end="completed"}': 3,
      'runs_total{agent="default",end="limit"}': 1,
      'runs_total{agent="helper",end="completed"}': 1,
      'input_tokens_total{agent="helper"}': 100,
      'cost_usd_total{agent="helper"}': 0.000009,
      'runs_total{agent="default",end="failed"}': 1,
      'model_failures_total{agent="default",class="auth"}': 1,
      'tool_calls_total{agent="default",tool="pay",status="denied"}': 1,
      'tool_calls_total{agent="default",tool="(unknown)",status="error"}': 2,
      'compactions_total{agent="default",result="ok"}': 1,
    })
  })
})

describe('what is counted', () => {
  it('B-METRIC-2: is what this process did: not what was imported, nor what a fork copied, nor what another process did', async () => {
    const script = [
      { calls: [{ tool: 'look' }], usage: USAGE },
      { calls: [{ tool: 'pay' }] },
      'Paid.',
      'More.',
      'And more.',
    ]
    const folder = mkdtempSync(join(tmpdir(), 'terret-metrics-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const stores = [sqlite(join(folder, 'a.db')), sqlite(join(folder, 'a.db')), sqlite(join(folder, 'b.db'))] as const
    onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))))
    const one = counted({ tools: [look, pay], model: scripted(script), store: stores[0] })
    const session = await one.harness.open()
    await session.run('Pay.')
    const file = await exportSession(one.store, session.id)
    await one.harness.close()
    const first = await told(one.metrics)
    expect(first).toMatchObject({ 'tool_calls_total{agent="default",tool="look",status="ok"}': 1 })

    // Its process is gone. The next one has not seen the reply with the call, and begins at 0.
    const two = counted({ tools: [look, pay], model: scripted(script.slice(2)), store: stores[1] })
    expect(await told(two.metrics)).toEqual({})
    const [asked] = await two.harness.pending()
    if (asked) await two.harness.session(session.id).decide({ ...asked, allow: true, by: 'ann' })
    await two.harness.session(session.id).run()
    expect(await told(two.metrics)).toMatchObject({
      'tool_calls_total{agent="default",tool="pay",status="ok"}': 1,
      'runs_total{agent="default",end="completed"}': 1,
    })
    const fork = await two.harness.session(session.id).fork()
    await fork.run('Go on.')
    const before = await two.harness.session(session.id).fork({ at: 9 })
    await before.run()
    expect((await two.harness.pending()).map(({ sessionId }) => sessionId)).toEqual([before.id])
    expect(await two.metrics.text()).toContain('terret_approvals_waiting{agent="default"} 1\n')
    for (const each of await two.harness.pending()) await before.decide({ ...each, allow: false, by: 'bob' })
    await before.run()
    const second = await told(two.metrics)
    expect(added(first, second)).toEqual(await recounted(two.store))
    expect(second['runs_total{agent="default",end="completed"}']).toBe(3)
    expect(second['tool_calls_total{agent="default",tool="pay",status="denied"}']).toBe(1)

    const three = counted({ tools: [look, pay], model: scripted(script.slice(2)), store: stores[2] })
    await importSession(three.store, file)
    expect(await told(three.metrics)).toEqual({})
    expect(await three.metrics.text()).not.toContain('terret_approvals_waiting{')
    await three.harness.session(session.id).send([{ type: 'resume' }])
    await three.harness.session(session.id).run()
    expect(await three.metrics.text()).toContain('terret_approvals_waiting{agent="default"} 1\n')
    await three.harness.session(session.id).interrupt('stop', { by: 'ann' })
    await three.harness.session(session.id).run()
    expect(await told(three.metrics)).toEqual(await recounted(three.store))
    expect(await told(three.metrics)).toMatchObject({ 'runs_total{agent="default",end="interrupted"}': 1 })
  })

  it('B-METRIC-3: names a call whose outcome is unknown, whatever its tool; each counter is there from 0 on', async () => {
    const lost = defineTool({
      name: 'lost',
      description: 'Never comes back.',
      input: z.object({}),
      effect: 'once',
      timeoutMs: 20,
      execute: () => new Promise<string>(() => {}),
    })
    const tools = [lost]
    const one = counted({ model: scripted([{ calls: [{ tool: 'lost' }] }, 'Done.']), tools, worker: { graceMs: 20 } })
    await one.harness.run('Go.')
    const text = await one.metrics.text()
    expect(text).toContain('terret_unknown_calls_total{agent="default"} 1\n')
    expect(text).toContain('terret_tool_calls_total{agent="default",tool="lost",status="unknown"} 1\n')
    expect(text).toContain('terret_runs_total{agent="default",end="halted"} 0\n')
    expect(text).toContain('terret_cache_misses_total{agent="default"} 0\n')
    expect(await told(one.metrics)).toEqual(await recounted(one.store))
  })

  it('B-METRIC-4: has at most 1,000 series; the rest is in one that is named so', async () => {
    const agents = Array.from({ length: 80 }, (_, n) => `agent-${n}`)
    const tools = Array.from({ length: 12 }, (_, n) => tool(`tool_${n}`))
    const model = scripted((request) =>
      request.messages.length > 1
        ? { text: 'Done.', usage: USAGE }
        : { calls: [...tools.map(({ name }) => ({ tool: name })), { tool: 'x"\n'.repeat(1_000) }], usage: USAGE },
    )
    const subagents = Object.fromEntries(agents.map((name) => [name, { description: 'One of many.', tools, model }]))
    const { harness, metrics } = counted({ model, tools, subagents })
    for (const agent of agents) await harness.run('Go.', { agent })
    const text = await metrics.text()
    const series = seriesOf(text)
    expect(series.size).toBeLessThan(900)
    const sum = (name: string): number =>
      [...series].reduce((n, [key, value]) => n + (key.startsWith(`terret_${name}{`) ? value : 0), 0)
    expect([sum('runs_total'), sum('tool_calls_total')]).toEqual([80, 80 * 13])
    expect(text).toContain('terret_runs_total{agent="agent-29",end="completed"} 1\n')
    expect(text).toContain('terret_runs_total{agent="(other)",end="completed"} 50\n')
    expect(text).toContain('terret_tool_calls_total{agent="agent-0",tool="(unknown)",status="error"} 1\n')
    expect(text).toMatch(/terret_tool_calls_total\{agent="\(other\)",tool="\(other\)",status="ok"\} \d{3}\n/)
  })
})

const added = (one: Counted, other: Counted): Counted =>
  Object.fromEntries(
    [...new Set([...Object.keys(one), ...Object.keys(other)])].map((name) => [
      name,
      (one[name] ?? 0) + (other[name] ?? 0),
    ]),
  )

it('B-METRIC-4: a name that a model made up is in no label, also if its reply was cut off or it failed a check', async () => {
  const script = [
    { calls: [{ tool: 'sk-secret-1' }, { tool: 'look', args: { why: 1 } as never }] },
    { calls: [{ tool: 'sk-secret-2', args: '{"a": "b' }], finish: 'length' as const },
    'Done.',
  ]
  const { harness, metrics } = counted({ model: scripted(script), tools: [look] })
  await harness.run('Go.')
  const counts = await told(metrics)
  expect(JSON.stringify(counts)).not.toContain('sk-secret')
  expect(counts).toMatchObject({ 'tool_calls_total{agent="default",tool="(unknown)",status="error"}': 2 })
})

describe('what waits in the store', () => {
  it('B-METRIC-6: is the same from each process: calls that wait for a decision, by agent, and how long the first has waited', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'terret-metrics-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const clock = { at: 1_700_000_000_000, now: () => clock.at, timer: () => () => {} }
    const store = sqlite(join(folder, 'a.db'), { clock })
    const other = sqlite(join(folder, 'a.db'), { clock })
    onTestFinished(async () => void (await Promise.all([store.close(), other.close()])))
    const asks = scripted((request) =>
      request.messages.length === 1 ? { calls: [{ tool: 'pay' }, { tool: 'pay' }] } : 'Done.',
    )
    const clerk = { description: 'Pays.', model: asks, tools: [pay] }
    const one = counted({ tools: [look, pay], model: asks, store, subagents: { clerk } })
    const two = new RunMetrics(completeStore(other))
    await other.open()
    await one.harness.run('Pay.')
    clock.at += 60_000
    await one.harness.run('Pay.')
    await one.harness.run('Pay.', { agent: 'clerk' })
    clock.at += 5_000
    for (const metrics of [one.metrics, two]) {
      const text = await metrics.text()
      expect(text).toContain('terret_approvals_waiting{agent="default"} 4\nterret_approvals_waiting{agent="clerk"} 2\n')
      const series = seriesOf(text)
      // The clock of a store may fall behind by the time that its commits take.
      expect(series.get('terret_approvals_oldest_seconds{agent="default"}')).toBeCloseTo(65, 0)
      expect(series.get('terret_approvals_oldest_seconds{agent="clerk"}')).toBeCloseTo(5, 0)
    }
    expect(await one.harness.pending()).toHaveLength(6)
    const [asked, next] = await one.harness.pending()
    for (const each of [asked, next])
      if (each) await one.harness.session(each.sessionId).decide({ ...each, allow: true, by: 'ann' })
    if (asked) await one.harness.session(asked.sessionId).run()
    const left = [...seriesOf(await two.text())].filter(([name]) => name.startsWith('terret_approvals_waiting'))
    expect(left.reduce((sum, [, calls]) => sum + calls, 0)).toBe(4)
  })

  it('B-METRIC-7: has the names of agents as Prometheus reads them, and those that no line can hold among the rest', async () => {
    const store = completeStore(memory())
    const odd = ['line\nbreak', 'x'.repeat(1_000_000), 'say "hi" \\ there', 'caf\u00e9 au lait', '\u202eevil', '\ud800']
    for (const [n, agent] of odd.entries())
      await create(store, `s${n}`, { agent, asks: ['1.0'], status: 'requires_action' })
    for (let n = 0; n < 80; n++)
      await create(store, `t${n}`, { agent: `a${n}`, asks: ['1.0', '1.1'], status: 'requires_action' })
    const text = await new RunMetrics(store).text()
    const series = seriesOf(text)
    expect(series.size).toBe(62)
    expect(series.get('terret_approvals_waiting{agent="(other)"}')).toBe(6 + 100)
    expect(text).not.toMatch(/xxx|evil|break/)
    expect([odd[2] ?? '', odd[3] ?? ''].map((name) => labelText('agent', name))).toEqual([
      'agent="say \\"hi\\" \\\\ there"',
      'agent="caf\u00e9 au lait"',
    ])
  })

  it('B-METRIC-8: is the time of the first question, also if something came since, and is read from a log once', async () => {
    const clock = { at: 1_700_000_000_000, now: () => clock.at, timer: () => () => {} }
    const { store, harness } = counted(
      { tools: [look, pay], model: scripted(() => ({ calls: [{ tool: 'pay' }] })) },
      memory({ clock }),
    )
    const session = await harness.open()
    await session.run('Pay.')
    await harness.run('Pay.')
    clock.at += 30_000
    await session.send('And hurry.')
    let reads = 0
    const counting = {
      list: (filter: Parameters<CompleteStore['list']>[0]) => store.list(filter),
      read: (...asked: Parameters<CompleteStore['read']>) => ((reads += 1), store.read(...asked)),
      now: () => store.now(),
    }
    const reader = new ApprovalReader(counting)
    for (let n = 0; n < 4; n++) {
      const { waiting, oldestSeconds } = await reader.read()
      expect([...waiting]).toEqual([['agent="default"', 2]])
      expect(oldestSeconds.get('agent="default"')).toBeCloseTo(30, 0)
    }
    expect(reads).toBe(1)
  })
})

it('B-METRIC-11: if the store cannot be read, the counts are told and what waits is left out', async () => {
  const store = completeStore(memory())
  const away = { ...store, list: () => Promise.reject(new Error('away')) }
  const text = await new RunMetrics(away).text()
  expect(text).toContain('# TYPE terret_runs_total counter\n')
  expect(text).not.toContain('approvals')
})

it('B-METRIC-12: the program of the guide runs as it stands there, and prints what the guide says', () => {
  const file = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
  const guide = file('../../docs/guide/metrics.md')
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(guide) ?? []
  const [, printed = ''] = /It prints:\n\n```\n([\s\S]*?)```/.exec(guide) ?? []
  const imported = code
    .replace("'terret'", "'../../src/index.ts'")
    .replace("'terret/server'", "'../../src/server/index.ts'")
  const example = file('./guide-metrics.ts')
  expect(imported).toBe(example.slice(example.indexOf('\n') + 1))
  // Compiled by `npm run build:all`, which the tests begin with.
  const script = fileURLToPath(new URL('../../.build/test/server/guide-metrics.js', import.meta.url))
  expect(execFileSync(process.execPath, [script], { encoding: 'utf8' })).toBe(printed)
})

describe('the dashboard and the alert rules', () => {
  const text = (name: string): string =>
    readFileSync(new URL(`../../examples/operations/${name}`, import.meta.url), 'utf8')
  type Panel = { readonly targets: readonly { readonly expr: string }[]; readonly gridPos: { readonly y: number } }
  type Rule = { readonly alert: string; readonly expr: string; readonly annotations: { readonly summary: string } }

  it('B-METRIC-9: use numbers and labels that /metrics gives, and no others', async () => {
    const harness = new Harness({
      model: scripted([{ calls: [{ tool: 'look' }] }, { error: 'auth' }, { calls: [{ tool: 'pay' }] }]),
      tools: [look, pay],
      secrets: {},
    })
    const server = await serve({ harness, token: 'a'.repeat(43), inspector: false })
    onTestFinished(async () => {
      await server.close()
      await harness.close()
    })
    for (let n = 0; n < 2; n++) await harness.run('Go.')
    const ask = new Request('http://localhost/metrics', { headers: { authorization: `Bearer ${'a'.repeat(43)}` } })
    const page = await (await server.fetch(ask)).text()
    const given = new Map([...page.matchAll(/^# TYPE (\w+) /gm)].map(([, name = '']) => [name, new Set(['instance'])]))
    for (const [, name = '', labels = ''] of page.matchAll(/^(\w+)\{(.*)\} /gm))
      for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) given.get(name)?.add(label)
    expect(given.get('terret_tool_calls_total')).toEqual(new Set(['instance', 'agent', 'tool', 'status']))

    const { panels } = JSON.parse(text('dashboard.json')) as { readonly panels: readonly Panel[] }
    const { groups } = parse(text('alerts.yaml')) as { readonly groups: readonly { readonly rules: readonly Rule[] }[] }
    const rules = groups.flatMap((group) => group.rules)
    const queries = [
      ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
      ...rules.map(({ expr }) => expr),
    ]
    expect([panels.length, rules.length]).toEqual([16, 11])
    const used = new Set<string>()
    for (const query of queries) {
      const names = [...query.matchAll(/terret_\w+/g)].map(([name]) => name)
      for (const name of names) used.add(name)
      const labels = [
        ...[...query.matchAll(/by \(([^)]+)\)/g)].flatMap(([, list = '']) => list.split(', ')),
        ...[...query.matchAll(/[{,](\w+)(?:=|!)/g)].map(([, label = '']) => label),
      ]
      for (const name of names)
        for (const label of labels)
          expect([name, [...(given.get(name) ?? [])]]).toEqual([name, expect.arrayContaining([label])])
    }
    const own = Object.keys(COUNTERS).map((name) => `terret_${name}`)
    expect([...used]).toEqual(expect.arrayContaining(own))
  })
})
