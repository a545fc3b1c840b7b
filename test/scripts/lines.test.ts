// A cell as the lines of its program: what people see of it while it works, and afterwards.
import { expect, it } from 'vitest'
import { childLine, ChildWatcher } from '../../src/cli/chat/child-watcher.ts'
import { createPaint } from '../../src/cli/present/terminal-text.ts'
import { memory } from '../../src/index.ts'
import { childCosts, drawScriptCell, scriptCellOf } from '../../src/view/script-cell.ts'
import { timelineOf } from '../../src/view/timeline.ts'
import { type CellAnswer, decideAll, eventsOf, ofType, withScripts } from './stage.ts'

const SCRIPT = `const paths = ['a', 'b', 'c']
const texts = await Promise.all(paths.map((path) => tool_call('read', { path })))
try { await tool_call('fail', {}) } catch {}
await tool_call('send', { to: 'ann' })
return texts.length`

it('B-CELL-35: a cell is read as its lines: what each has called, how that ended, which line waits', async () => {
  const { harness } = withScripts([{ script: SCRIPT }])
  const { sessionId } = await harness.run('go')
  const cellOf = async () => scriptCellOf(timelineOf(await eventsOf(harness, `${sessionId}~5.0`)))
  const waits = await cellOf()
  expect(waits).toMatchObject({ cell: 1, now: 4, error: null, others: [] })
  expect(waits.lines.map(({ calls }) => calls.map(({ tool, state, count }) => `${count} ${tool} ${state}`))).toEqual([
    [],
    ['3 read ok'],
    ['1 fail error'],
    ['1 send asked'],
    [],
  ])
  expect(drawScriptCell(waits, (text) => text)).toEqual([
    "  1 const paths = ['a', 'b', 'c']",
    "  2 const texts = await Promise.all(paths.map((path) => tool_call('read', { path })))",
    '    └ 3 × read ok',
    "  3 try { await tool_call('fail', {}) } catch {}",
    '    └ 1 × fail error',
    "› 4 await tool_call('send', { to: 'ann' })",
    '    └ 1 × send waiting for a person',
    '  5 return texts.length',
  ])
  await decideAll(harness, sessionId, false)
  const ended = await cellOf()
  expect(ended).toMatchObject({ now: null, error: { kind: 'denied', line: 4 } })
  expect(drawScriptCell(ended, (text) => text).join('\n')).toContain('└ denied: ')
})

it('B-CELL-35: calls of functions of earlier cells stand apart, and a cell counts what its agents and questions cost', async () => {
  const later = ([first]: readonly CellAnswer[]) => ({
    script: 'await ask("a")\nreturn await agent_query("what?")',
    session_id: first?.session_id ?? '',
  })
  const ask = 'async function ask(path) {\n  return tool_call("read", { path })\n}'
  const { harness } = withScripts([{ script: ask }, later], { subagents: true })
  const { sessionId } = await harness.run('go')
  const replies = ofType(await eventsOf(harness, sessionId), 'agent.message')
  const cell = `${sessionId}~${replies[1]?.seq}.0`
  const costs = childCosts(cell, [
    { session: `${cell}~9.0`, cost: 1_000 },
    { session: `${cell}~9.0~3.0`, cost: 500 },
    { session: `${sessionId}~5.0~9.0`, cost: 7 },
  ])
  expect([...costs]).toEqual([['9.0', 1_500]])
  const read = scriptCellOf(timelineOf(await eventsOf(harness, cell)), costs)
  expect(read).toMatchObject({ cell: 2, others: [{ tool: 'read', state: 'ok', count: 1 }], now: null })
  expect(read.lines[1]?.calls).toMatchObject([{ tool: 'agent_query', state: 'ok' }])
  expect(drawScriptCell(read, (text) => text).join('\n')).toContain('1 call of functions of earlier cells')
})

it('B-CELL-35: a log that is no cell, or a damaged one, is read as far as it goes', () => {
  expect(scriptCellOf([])).toEqual({
    cell: 1,
    lines: [{ line: 1, text: '', calls: [] }],
    others: [],
    now: null,
    error: null,
  })
  const at = { seq: 1, at: 0 }
  const turn = { n: 1, run: 1, endedAt: 0, state: 'replied', route: null, usage: null, cost: 0, cached: false } as const
  const rest = { missed: null, reply: 1, verdict: null, calls: ['3.0', '3.1'] } as const
  for (const text of ['', '[]', '{"calls":7}', '{"calls":[null,{"at":{"line":"x"}}],"begun":3,"end":{"error":"x"}}'])
    expect(
      scriptCellOf([
        { type: 'message', ...at, parts: [{ type: 'text', text: '1\n2' }], by: null, when: 'next' },
        { type: 'turn', ...at, ...turn, ...rest, parts: [{ type: 'text', text }] },
      ]).lines.map((line) => line.text),
    ).toEqual(['1', '2'])
})

it('B-CELL-37: the line of a cell in a chat says which line of its program works or waits', async () => {
  const store = memory()
  const { harness } = withScripts([{ script: SCRIPT }], { store })
  const { sessionId } = await harness.run('go')
  const watcher = new ChildWatcher(store, 0)
  const card = await store.card(sessionId)
  if (card === null) throw new Error('The session has no card.')
  await watcher.look(card)
  const [cell] = watcher.all
  if (!cell) throw new Error('The cell is not there.')
  expect(childLine(cell, createPaint(false), 100)).toContain('script · asks: line 4: send {"to":"ann"}')
})
