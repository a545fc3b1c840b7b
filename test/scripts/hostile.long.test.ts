// Programs that do not stop, or take all there is. They end with a named error, and the process goes on.
import { expect, it } from 'vitest'
import { runCell, startThread } from './engine-stage.ts'

const HOSTILE: readonly (readonly [code: string, kind: string, computeMs?: number])[] = [
  ['for (;;) {}', 'timeout'],
  ['for (;;) await null', 'timeout'],
  ['/(a+)+$/.test("a".repeat(40) + "b")', 'timeout'],
  ['function f() { f() }\nf()', 'script_error'],
  ['JSON.parse("[".repeat(200_000))', 'script_error'],
  ['const a = []; for (;;) a.push("x".repeat(1_000) + a.length)', 'timeout'],
  ['const a = []; for (;;) a.push(new ArrayBuffer(1_000_000))', 'timeout'],
  ['"x".repeat(2 ** 30)', 'script_error'],
  ['for (;;) try { await tool_call("nope") } catch {}', 'limit_exceeded', 20_000],
  ['new Array(2 ** 31).fill(0)', 'timeout'],
  ['let x = 3n; for (;;) x = x * x', 'timeout'],
  ['return { toJSON() { for (;;) {} } }', 'timeout'],
  ['Promise.resolve().then(function again() { return Promise.resolve().then(again) }); return 1', 'timeout'],
]

it.each(HOSTILE)('B-SCRIPT-5: %s ends as %s', async (code, kind, computeMs = 200) => {
  expect((await runCell(await startThread(), code, { computeMs })).error).toMatchObject({ kind })
})
