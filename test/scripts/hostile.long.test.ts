// Programs that do not stop, or take all there is. They end with a named error, and the process goes on.
import { expect, it } from 'vitest'
import { runCell, startThread } from './engine-stage.ts'

const HOSTILE: readonly (readonly [code: string, kind: string, computeMs: number])[] = [
  ['for (;;) {}', 'timeout', 200],
  ['for (;;) await null', 'timeout', 200],
  ['/(a+)+$/.test("a".repeat(40) + "b")', 'timeout', 200],
  ['function f() { f() }\nf()', 'script_error', 200],
  ['JSON.parse("[".repeat(200_000))', 'script_error', 200],
  ['const a = []; for (;;) a.push("x".repeat(1_000) + a.length)', 'timeout', 200],
  ['const a = []; for (;;) a.push(new ArrayBuffer(1_000_000))', 'timeout', 200],
  ['"x".repeat(2 ** 30)', 'script_error', 200],
  ['for (;;) try { await tool_call("nope") } catch {}', 'limit_exceeded', 20_000],
  ['new Array(2 ** 31).fill(0)', 'timeout', 200],
  ['let x = 3n; for (;;) x = x * x', 'timeout', 200],
  ['return { toJSON() { for (;;) {} } }', 'timeout', 200],
  ['Promise.resolve().then(function again() { return Promise.resolve().then(again) }); return 1', 'timeout', 200],
]

it.each(HOSTILE)('B-CELL-5: %s ends as %s', async (code, kind, computeMs) => {
  expect((await runCell(await startThread(), code, { computeMs })).error).toMatchObject({ kind })
})
