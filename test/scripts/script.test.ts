// Cells of a model: what they call, what they may not, and what the model is told.
import { expect, it } from 'vitest'
import { Harness, memory, type Priced, scripted } from '../../src/index.ts'
import { FREE_PROFILE } from '../../src/models/price.ts'
import { createScripts } from '../../src/scripts/index.ts'
import { type CellAnswer, type CellArgs, decideAll, eventsOf, ofType, runCells, withScripts } from './stage.ts'

const next =
  (script: string) =>
  ([first]: readonly CellAnswer[]) => ({ script, session_id: first?.session_id ?? '' })

it('B-CELL-1: a variable of one cell is there in the next, and the model gets the final answer (C1)', async () => {
  const { answers, result } = await runCells([{ script: 'x = 2' }, next('answer(x * 21)')])
  expect(answers[0]).toMatchObject({
    value: 2,
    variables_changed: ['x'],
    limits_remaining: { cells: 15, tool_calls: 128 },
  })
  expect(answers[1]).toMatchObject({
    final_answer: 42,
    session_id: answers[0]?.session_id,
    limits_remaining: { cells: 14 },
  })
  expect(result).toMatchObject({ status: 'completed', output: 'done' })
})

it('B-CELL-2: forty reads at once are one batch, run four at a time, and keep their order (C2)', async () => {
  const script = 'return await Promise.all(Array.from({ length: 40 }, (_, n) => tool_call("read", { path: `p${n}` })))'
  const { harness, answers, seen, session } = await runCells([{ script }], { waitMs: 2 })
  expect(answers[0]?.value).toEqual(Array.from({ length: 40 }, (_, n) => `read p${n}`))
  expect(seen.most).toBe(4)
  const replies = ofType(await eventsOf(harness, `${session}~5.0`), 'agent.message')
  expect(replies.map(({ calls }) => calls.length)).toEqual([40, 0])
})

it('B-CELL-2: a batch of more calls than one reply may hold is made in several, and given back together', async () => {
  const script =
    'return (await Promise.all(Array.from({ length: 120 }, (_, n) => tool_call("read", { path: `p${n}` })))).length'
  const { harness, answers, session } = await runCells([{ script }])
  expect(answers[0]).toMatchObject({ value: 120, limits_remaining: { tool_calls: 8 } })
  const replies = ofType(await eventsOf(harness, `${session}~5.0`), 'agent.message')
  expect(replies.map(({ calls }) => calls.length)).toEqual([50, 50, 20, 0])
})

it('B-CELL-4: a denied call is an error that a program can catch; otherwise the cell ends as denied, and the run goes on (C4)', async () => {
  const caught = 'try { await tool_call("send", { to: "ann" }) } catch (error) { return [error.kind, error.message] }'
  const { harness, told } = withScripts([{ script: caught }, { script: '\nawait tool_call("send", {})' }])
  const { sessionId, status } = await harness.run('go')
  expect(status).toBe('requires_action')
  expect(await harness.pending()).toMatchObject([{ tool: 'send', args: { to: 'ann' }, sessionId: `${sessionId}~5.0` }])
  expect(await decideAll(harness, sessionId, false)).toEqual(['send {"to":"ann"}', 'send {}'])
  expect(await harness.session(sessionId).result()).toMatchObject({ status: 'completed', output: 'done' })
  expect(JSON.parse(told[0] ?? '')).toMatchObject({ value: ['denied', expect.stringContaining('not now')] })
  expect(told[1]).toContain('denied (cell 1, line 2): ')
})

it('B-CELL-6: after the last call the next one is refused before it is made, and none remain (C6, AC-95)', async () => {
  const script = 'let made = 0\nfor (;;) { await tool_call("read", { path: "p" }); made += 1 }'
  const { answers, texts, seen } = await runCells([{ script }, next('return made')], {
    scripts: { mode: 'on', limits: { toolCalls: 9 } },
  })
  expect(answers[0]).toMatchObject({ error: { kind: 'limit_exceeded', line: 2 }, limits_remaining: { tool_calls: 0 } })
  expect(texts[0]).toContain('limit_exceeded (cell 1, line 2): No more tool calls are left')
  expect(answers[1]).toMatchObject({ value: 9, limits_remaining: { tool_calls: 0 } })
  expect(seen.made).toHaveLength(9)
})

it('B-CELL-7: a batch of questions under a budget asks those that fit, and the others are errors (C7)', async () => {
  const usage = { inputTokens: 10, outputTokens: 100 }
  let asked = 0
  const own = scripted(({ tools }, taken) => {
    if (tools.length === 0) asked += 1
    const script =
      'const all = await model_query_batched(Array.from({ length: 50 }, (_, n) => `q${n}`))\nreturn all.filter(({ ok }) => ok).length'
    const calls = taken === 0 ? [{ tool: 'script', args: { script } }] : []
    return { ...(tools.length === 0 || taken > 0 ? { text: 'yes' } : { calls }), usage, cost: 1_020 }
  })
  const price = { input: 2, output: 10 }
  const profile = () => Promise.resolve({ ...FREE_PROFILE, price })
  const model: Priced = { ...own, able: { name: 'priced', native: 'no' }, outputTokensMax: 100, secrets: {}, profile }
  const { harness, store } = withScripts([], { model, budget: { treeUsd: 0.02 } })
  const { sessionId } = await harness.run('go')
  const spent = await store.account(`tree:${sessionId}`)
  expect(spent?.spent).toBeLessThanOrEqual(20_000)
  expect(asked).toBeGreaterThan(5)
  expect(asked).toBeLessThan(20)
})

it('B-CELL-8: a script calls no script and nothing that starts sessions, and the names are listed (C8)', async () => {
  const script = `const said = []
for (const name of ['script', 'subagent', 'nope', 'model_query', '__proto__', 'constructor'])
  try { await tool_call(name, {}) } catch (error) { said.push(error.kind) }
try { await tool_call('subagent', {}) } catch (error) { said.push(error.message) }
return said`
  const { answers } = await runCells([{ script }], { subagents: true })
  const list = 'A script cannot call the tool "subagent". It can call: read, send, rows, fail.'
  expect(answers[0]?.value).toEqual([...Array<string>(6).fill('unknown_capability'), list])
})

it('B-CELL-10: of two cells of one script session in one reply, the second is busy (C10)', async () => {
  const both = ([first]: readonly CellAnswer[]) => {
    const session_id = first?.session_id ?? ''
    return ['await tool_call("read", { path: "a" }); n += 1', 'n += 10'].map((script) => ({ script, session_id }))
  }
  const { answers, texts } = await runCells([{ script: 'n = 0' }, both, next('n')])
  expect(texts[2]).toContain('session_busy: ')
  expect(answers[3]).toMatchObject({ value: 1 })
})

it('B-CELL-12: no script runs in the mode off, in plan mode, and with the kill switch (C12)', async () => {
  const { texts, seen } = await runCells([{ script: 'await tool_call("read", { path: "p" })' }], {
    scripts: { mode: 'off' },
  })
  expect(texts[0]).toBe('Tool "script" refuses this call here.')
  expect(seen.made).toEqual([])
  const { tool, planner } = createScripts({ mode: 'on' })
  const offered: string[] = []
  const model = scripted(({ tools }) => {
    offered.push(...tools.map(({ name }) => name))
    return 'done'
  })
  const harness = new Harness({ model, store: memory(), secrets: {}, plan: true, tools: [tool], graphs: [planner] })
  await harness.run('go')
  await harness.close()
  expect(offered).not.toContain('script')
  process.env['TERRET_SCRIPTS'] = '0'
  const killed = await runCells([{ script: 'await tool_call("read", { path: "p" })' }]).finally(
    () => delete process.env['TERRET_SCRIPTS'],
  )
  expect(killed.seen.made).toEqual([])
  expect(killed.answers).toHaveLength(1)
})

it('B-CELL-12: in the mode ask a call only lowers the limits, in the mode on it raises them to twice (C12)', async () => {
  const limits = { tool_calls: 1_000, cells: 2 }
  const { answers } = await runCells([{ script: '1', limits }])
  expect(answers[0]?.limits_remaining).toEqual({ cells: 1, model_calls: 64, tool_calls: 256 })
  const { harness, told } = withScripts([{ script: '1', limits }], { scripts: {} })
  const { sessionId } = await harness.run('go')
  expect(await decideAll(harness, sessionId)).toEqual(['script {"script":"1","limits":{"cells":2,"tool_calls":1000}}'])
  expect(JSON.parse(told[0] ?? '')).toMatchObject({ limits_remaining: { cells: 1, tool_calls: 128 } })
})

it('B-CELL-21: a script asks an agent, which works in a session below its cell, and not too deep', async () => {
  const script = 'return [await agent_query("what?"), await agent_query("helper", "do it").catch((e) => e.kind)]'
  const subagents = { helper: { description: 'Helps.', tools: [] } }
  const deep = await runCells([{ script: 'return await agent_query("what?").catch((e) => e.kind)' }], {
    subagents,
    limits: { depth: 1 },
  })
  expect(deep.answers[0]).toMatchObject({ value: 'recursion_depth' })
  const { answers, harness, session } = await runCells([{ script }], { subagents })
  expect(answers[0]).toMatchObject({ value: ['done', 'done'] })
  const { children } = await harness.session(`${session}~5.0`).status({ include: ['children'] })
  expect(children?.map(({ agent }) => agent).toSorted()).toEqual(['helper', 'subagent'])
})

it('B-CELL-23: a result that is too large is an error, and the variables stay', async () => {
  const { answers } = await runCells([{ script: 'big = "x".repeat(300_000); return big' }, next('big.length')])
  expect(answers[0]?.error).toMatchObject({ kind: 'limit_exceeded' })
  expect(answers[1]).toMatchObject({ value: 300_000 })
})

it.each([
  [{ script: 'x'.repeat(65 * 1024) }, '65536'],
  [{ script: 'é'.repeat(40 * 1024) }, '65536 bytes'],
  [{ script: '1', timeout_secs: 0 }, 'timeout_secs'],
  [{ script: '1', timeout_secs: 1e9 }, 'timeout_secs'],
  [{ script: '1', session_id: '999.0' }, 'no script session "999.0"'],
  [{}, 'Give "script"'],
  [{ name: '../secret' }, 'no saved script'],
])('B-CELL-25: %j is refused with a reason', async (args, reason) => {
  const { texts, result } = await runCells([args])
  expect(texts[0]).toContain(reason)
  expect(result.status).toBe('completed')
})

it('B-CELL-27: only the tool starts a script: it is no subagent, and subagents do not get the tool', async () => {
  const { tool, planner } = createScripts({ mode: 'on' })
  const offered: (readonly string[])[] = []
  const task = JSON.stringify({ script: 'answer(1)' })
  const model = scripted(({ messages, tools }) => {
    offered.push(tools.map(({ name }) => name))
    if (messages.some(({ role }) => role === 'tool')) return 'done'
    if (JSON.stringify(messages).includes('go'))
      return {
        calls: [
          { tool: 'subagent', args: { agent: 'script', task } },
          { tool: 'subagent', args: { task: 'x' } },
        ],
      }
    return 'done'
  })
  const harness = new Harness({ model, secrets: {}, subagents: true, tools: [tool], graphs: [planner] })
  const { sessionId } = await harness.run('go')
  const results = ofType(await eventsOf(harness, sessionId), 'agent.tool_result')
  await harness.close()
  expect(results[0]?.content).toContain('There is no agent "script"')
  expect(offered.some((names) => names.includes('subagent') && !names.includes('script'))).toBe(true)
})

it('B-CELL-29: each call is recorded with its cell and its line', async () => {
  const script =
    'const a = tool_call("read", { path: "a" })\n\nawait Promise.all([a, tool_call("read", { path: "b" })])'
  const { harness, session, answers } = await runCells([{ script }])
  expect(answers[0]?.calls).toEqual([
    { n: 0, tool: 'read', line: 1, ok: true },
    { n: 1, tool: 'read', line: 3, ok: true },
  ])
  const [reply] = ofType(await eventsOf(harness, `${session}~5.0`), 'agent.message')
  const [part] = reply?.parts ?? []
  const { calls } = JSON.parse(part?.type === 'text' ? part.text : '{}') as { calls: readonly object[] }
  expect(calls).toMatchObject([
    { n: 0, at: { cell: 1, line: 1 } },
    { n: 1, at: { cell: 1, line: 3 } },
  ])
})

it('B-CELL-38: a model can lower the depth and cannot raise it, and more calls at once only in the mode on', async () => {
  const script =
    'await Promise.all(Array.from({ length: 12 }, (_, n) => tool_call("read", { path: `p${n}` })))\nreturn await agent_query("x").catch((e) => e.kind)'
  const mostOf = async (mode: 'ask' | 'on', limits: CellArgs, own: object = {}) => {
    const { harness, seen, told } = withScripts([{ script, limits }], {
      scripts: { mode },
      waitMs: 20,
      subagents: true,
      ...own,
    })
    const { sessionId } = await harness.run('go')
    await decideAll(harness, sessionId)
    return [seen.most, (JSON.parse(told[0] ?? '') as CellAnswer).value]
  }
  expect(await mostOf('ask', { concurrency: 8 })).toEqual([4, 'done'])
  expect(await mostOf('on', { concurrency: 8, depth: 9 }, { limits: { depth: 1 } })).toEqual([8, 'recursion_depth'])
  expect(await mostOf('ask', { concurrency: 2, depth: 1 })).toEqual([2, 'recursion_depth'])
})

it('B-CELL-39: a cell whose time is over is a timeout with its line, and the run that wrote it goes on', async () => {
  const script = 'const a = 1\nawait tool_call("read", { path: "p" })\nawait tool_call("read", { path: "q" })'
  const { texts, answers, result } = await runCells([{ script, timeout_secs: 1 }], { waitMs: 1_500 })
  expect(result.status).toBe('completed')
  expect(answers[0]).toEqual({
    error: { kind: 'timeout', message: 'The time of the cell was over before it had a result.', line: 2 },
  })
  expect(texts[0]).not.toContain('hash')
})

it('B-CELL-39: a cell that failed tells its result, and nothing of the records of its planner', async () => {
  const { answers, texts } = await runCells([
    { script: 'await tool_call("read", { path: "p" })\nthrow new Error("no")' },
  ])
  expect(answers[0]).toMatchObject({ error: { kind: 'script_error', line: 2 }, calls: [{ tool: 'read', line: 1 }] })
  expect(texts[0]).not.toContain('hash')
})
