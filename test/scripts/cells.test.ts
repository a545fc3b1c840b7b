// The engine alone: a thread that runs one cell after the other, and is given what they ask for.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { systemClock } from '../../src/stores/plan/system-clock.ts'
import { type CellRunner, startCellThread } from '../../src/scripts/sandbox.ts'
import { giveResults, runCell, startCell, startThread } from './engine-stage.ts'

/** A thread takes a moment to start, so most of these tests share one. */
let thread: CellRunner
beforeAll(async () => {
  thread = await startCellThread(systemClock)
})
afterAll(() => thread.close())

it('B-CELL-1: variables, functions and classes of one cell are those of the next: the same bindings', async () => {
  const first =
    'const list = [1]; let n = 0\nfunction inc() { n += 1; list.push(n) }\nclass Box { v = 7 }\nvar old = 1; loose = 2'
  expect((await runCell(thread, first)).changed).toEqual(
    expect.arrayContaining(['loose', 'list', 'n', 'inc', 'Box', 'old']),
  )
  const second = 'inc(); inc(); n += 10\nreturn [n, list, new Box().v, old + loose]'
  expect(await runCell(thread, second, { cell: 2 })).toMatchObject({ value: [12, [1, 1, 2], 7, 3] })
  // A later cell may declare a name again, and an earlier function goes on with its own.
  const third = 'const list = "new"; inc(); return [list, n, show_vars().list]'
  expect(await runCell(thread, third, { cell: 3 })).toMatchObject({ value: ['new', 13, 'object'] })
  expect(await runCell(thread, 'list', { cell: 4 })).toMatchObject({ value: 'new', changed: [] })
})

it('B-CELL-23: reserved names and functions are restored before each cell (AC-95)', async () => {
  const code = 'globalThis.answer = 1; emit = 2; run = 3; context = 4; tool_call = null; delete globalThis.show_vars'
  await runCell(thread, code)
  const after = 'emit(typeof answer, typeof tool_call, typeof run.now, context, typeof show_vars); answer({ a: [1] })'
  const done = await runCell(thread, after, { cell: 2 })
  expect(done).toMatchObject({ stdout: 'function function function undefined function\n', final: { a: [1] } })
})

it('B-CELL-2: what was asked when nothing moves is one batch, and its results come together in order', async () => {
  const code = `const got = []
for (const n of [1, 2, 3]) tool_call('read', { n }).then(async (v) => { got.push(v); await tool_call('send', { v }) })
await tool_call('read', { n: 4 }); await tool_call('read', { n: 5 })
return got`
  const first = await startCell(thread, code)
  expect(first).toMatchObject({ type: 'rest', calls: [1, 2, 3, 4].map((n) => ({ tool: 'read', args: { n } })) })
  const given = [3, 2, 1, 0].map((n) => [n, true, `r${n}`] as const)
  const second = await giveResults(thread, given.toReversed())
  expect(second).toMatchObject({
    calls: [0, 1, 2]
      .map((n) => ({ tool: 'send', args: { v: `r${n}` } }))
      .concat({ tool: 'read', args: { n: 5 } } as never),
  })
})

it('B-CELL-15: a call that nothing waits for when the cell ends is not made', async () => {
  expect(await startCell(thread, 'tool_call("send", {}); return 4')).toMatchObject({ calls: [], done: { value: 4 } })
  // What it would have done afterwards is not done in the next cell either.
  const code = 'tool_call("send", {}).then(() => tool_call("send", { again: 1 })); return 1'
  await startCell(thread, code, { cell: 2 })
  expect(await startCell(thread, 'await tool_call("read", {})', { cell: 3 })).toMatchObject({
    calls: [{ tool: 'read', n: 0 }],
  })
})

it('B-CELL-22: a batch gives a value or an error for each item, and needs a list', async () => {
  const code =
    'return [await tool_call_batched([["read", { a: 1 }], { name: "nope" }]), await model_query_batched(["q", { prompt: "p", system: "s" }]), await agent_query_batched(["t", ["a", "u"], { agent: "b", prompt: "v" }])]'
  expect((await runCell(thread, code)).value).toMatchObject([
    [
      { ok: true, value: { a: 1 } },
      { ok: false, error: { kind: 'unknown_capability' } },
    ],
    [{ value: { prompt: 'q' } }, { value: { prompt: 'p', system: 's' } }],
    [{ value: { task: 't' } }, { value: { agent: 'a', task: 'u' } }, { value: { agent: 'b', task: 'v' } }],
  ])
  expect((await runCell(thread, 'await tool_call_batched("read")', { cell: 2 })).error).toMatchObject({
    kind: 'script_error',
  })
})

it.each([
  ['Date.now()', 'run.now()'],
  ['new Date()', 'run.now()'],
  ['Math.random()', 'run.random()'],
  ['fetch("http://x")', 'tool_call'],
  ['require("fs")', 'tool_call'],
  ['process.exit(1)', 'tool_call'],
  ['setTimeout(() => {}, 1)', 'tool_call'],
  ['await import("node:fs")', ''],
  ['new SharedArrayBuffer(8)', 'SharedArrayBuffer'],
  ['new WeakRef({})', 'WeakRef'],
])('B-CELL-9: %s is a sentence, and reaches nothing', async (code, hint) => {
  const { error } = await runCell(thread, code)
  expect(error).toMatchObject({ kind: 'script_error' })
  expect(error?.message).toContain(hint)
})

it('B-CELL-9: constructors lead to the globals of the engine and no further', async () => {
  const code = `const out = []
for (const make of [(async () => {}).constructor, Function, (function* () {}).constructor, tool_call.constructor])
  out.push(String(make('return typeof globalThis.process + typeof globalThis.require + typeof globalThis.host')))
out.push(Function('return typeof process + typeof require + typeof host')())
return out.at(-1)`
  expect((await runCell(thread, code)).value).toBe('undefinedundefinedundefined')
})

it('B-CELL-24: the time and the randomness of a part are those that were recorded', async () => {
  const code = 'return [run.now(), run.random(), run.random()]'
  const other = await startThread()
  const { value } = await runCell(thread, code)
  expect(value).toEqual([1_000, expect.any(Number), expect.any(Number)])
  expect((await runCell(other, code)).value).toEqual(value)
})

it.each([
  ['let x = 1\nlet y = ;', 'SyntaxError: ', 2],
  ['\n\nthrow new TypeError("no")', 'TypeError: no', 3],
  ['function f() {\n  nope()\n}\nf()', "ReferenceError: 'nope' is not defined", 2],
  ['await tool_call("fail_here", {})', 'unknown', null],
  ['throw { a: 1 }', 'It threw {"a":1}', null],
  ['throw undefined', 'It threw undefined', null],
  ['const a = {}; a.a = a; return a', 'The value of the cell cannot be JSON', null],
  ['return 1n', 'The value of the cell cannot be JSON', null],
  ['return new Proxy({}, { ownKeys() { throw new Error("mine") } })', 'mine', null],
  ['await new Promise(() => {})', 'nothing left to wait for', null],
  ['tool_call("read", { a: 1n })\nawait tool_call("read", { a: 1n })', 'BigInt', null],
])('B-CELL-25: %j is an error with its reason and its place', async (code, message, line) => {
  const { error } = await runCell(thread, code, { names: [] })
  const said = message === 'unknown' ? 'A script cannot call the tool' : message === 'BigInt' ? '' : message
  expect(error?.message).toContain(said)
  if (line !== null) expect(error?.at).toMatchObject({ cell: 1, line })
})

it('B-CELL-25: a thread goes on after an error, with the variables that were there', async () => {
  await runCell(thread, 'keep = 1; const also = 2; throw new Error("late")')
  expect(await runCell(thread, '[keep, also]', { cell: 2 })).toMatchObject({ value: [1, 2] })
})

it('B-CELL-23: what a cell prints is cut, and much more than that ends it', async () => {
  const some = await runCell(thread, 'for (let i = 0; i < 100; i++) emit("x".repeat(999))')
  expect(some).toMatchObject({ value: null })
  expect(some.stdout).toHaveLength(24_000)
  const much = await runCell(thread, 'for (let i = 0; i < 10_000; i++) emit("x".repeat(1_000))', { cell: 2 })
  expect(much.error).toMatchObject({ kind: 'limit_exceeded', at: { cell: 2, line: 1 } })
})

it('B-CELL-29: each call has the cell and the line that made it, also of a function of an earlier cell', async () => {
  await runCell(thread, '\nasync function ask(n) {\n  return tool_call("read", { n })\n}')
  const rest = await startCell(thread, 'await Promise.all([\n  ask(1),\n  tool_call("read", {}),\n])', { cell: 2 })
  expect(rest).toMatchObject({ calls: [{ at: { cell: 1, line: 3 } }, { at: { cell: 2, line: 3 } }] })
})

it.each([
  ['for (;;) {}', 'timeout', 100],
  ['function f() { f() }\nf()', 'script_error', 20_000],
])('B-CELL-5: %s ends as %s', async (code, kind, computeMs) => {
  expect((await runCell(await startThread(), code, { computeMs })).error).toMatchObject({ kind })
})

it('B-CELL-1: names that the global object inherits are no variables of a cell, and can be', async () => {
  const used = await runCell(
    thread,
    'const list = [1]; return list.toString() + list.hasOwnProperty(0) + list.constructor.name',
  )
  expect(used).toMatchObject({ value: '1trueArray', changed: ['list'] })
  const again = await runCell(thread, 'return [typeof toString, typeof constructor, show_vars().toString]', { cell: 2 })
  expect(again).toMatchObject({ value: ['function', 'function', null] })
  await runCell(thread, 'const valueOf = 3', { cell: 3 })
  expect(await runCell(thread, 'return valueOf', { cell: 4 })).toMatchObject({ value: 3 })
})

it('B-CELL-23: a cell that locks a name of a script ends the session with a sentence', async () => {
  const other = await startThread()
  await runCell(
    other,
    'Object.defineProperty(globalThis, "tool_call", { value: 1, configurable: false, writable: false })',
  )
  const { error } = await runCell(other, 'return 1', { cell: 2 })
  expect(error).toMatchObject({ kind: 'script_error' })
  expect(error?.message).toContain('has locked "tool_call"')
})

it('B-CELL-34: what crosses from a thread is bounded, whatever a program does', async () => {
  const other = await startThread()
  const large = await runCell(other, 'return "x".repeat(2_000_000)')
  expect(large.error?.message).toContain('What the cell gives back has more than 1048576 characters or 200 levels.')
  const args = await runCell(other, 'await tool_call("read", { a: "x".repeat(2_000_000) })', { cell: 2 })
  expect(args.error).toMatchObject({
    kind: 'limit_exceeded',
    message: expect.stringContaining('The arguments of a call') as string,
  })
  const deep = 'let a = []; for (let i = 0; i < 300; i++) a = [a]\nawait tool_call("read", a)'
  expect((await runCell(other, deep, { cell: 3 })).error).toMatchObject({ kind: 'limit_exceeded', at: { line: 2 } })
})

it('B-CELL-41: the next script session gets an engine of its own in a thread that is free, and finds nothing of the last', async () => {
  for (let n = 0; n < 3; n++) {
    const one = await startThread()
    const code =
      'const seen = [typeof left, typeof [].at, "p" in {}]; left = 1; delete Array.prototype.at; Object.prototype.p = 1'
    expect(await runCell(one, `${code}\nreturn seen`)).toMatchObject({ value: ['undefined', 'function', false] })
    one.close()
    expect(await one.run([])).toEqual([{ type: 'lost', message: 'it was ended' }])
  }
})

it('B-CELL-41: a thread that computes when it is closed, or did not come to rest, is not used again', async () => {
  const [busy, late] = [await startThread(), await startThread()]
  const looping = startCell(busy, 'for (;;) {}', { computeMs: 30_000 })
  busy.close()
  expect(await looping).toMatchObject({ type: 'lost' })
  expect(await startCell(late, 'for (;;) {}', { computeMs: 50 })).toMatchObject({ type: 'ended' })
  late.close()
  for (const next of [await startThread(), await startThread()])
    expect(await runCell(next, '6 * 7')).toMatchObject({ value: 42 })
})
