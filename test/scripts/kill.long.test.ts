// Processes that are killed in the middle of a cell. The next one runs the cell again over its results, and repeats no call.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { Harness, scripted } from '../../src/index.ts'
import { createScripts } from '../../src/scripts/index.ts'
import { makeFile, open } from '../stores/folder.ts'
import { answerIn } from './stage.ts'

const SESSION = 'killed'
/** What a question costs, and at most holds, in micros. */
const PRICE = 100
const HOLD_MAX = 1_000
type Child = ChildProcessByStdio<null, Readable, null>

/** Compiled by `npm run build:all`, which the tests begin with. */
function start(file: string, script: string, stopAfter = 0): Child {
  const program = fileURLToPath(new URL('../../.build/test/scripts/child-script.js', import.meta.url))
  const args = [program, file, `${file}.journal`, SESSION, script, String(stopAfter)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

async function firstLine(child: Child): Promise<string> {
  let said = ''
  for await (const chunk of child.stdout) {
    said += String(chunk)
    if (said.includes('\n')) break
  }
  return said.trim()
}

async function kill(child: Child): Promise<void> {
  child.kill('SIGKILL')
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

function journalOf(file: string): readonly string[] {
  return readFileSync(`${file}.journal`, 'utf8').trim().split('\n')
}

type Ended = { readonly status: string; readonly text: string }

it('B-CELL-3: killed while a call waits for a person, another process goes on after the decision (C3)', async () => {
  const file = makeFile()
  writeFileSync(`${file}.journal`, '')
  const script = 'const a = await tool_call("post", { to: "bob" })\nreturn [a, await tool_call("send", { to: "ann" })]'
  expect(JSON.parse(await firstLine(start(file, script)))).toMatchObject({ status: 'requires_action' })
  const store = open(file)
  const { tool, planner } = createScripts()
  const harness = new Harness({
    model: scripted([]),
    store,
    secrets: {},
    tools: [tool],
    graphs: [planner],
    worker: { drives: false },
  })
  const [asked] = await harness.pending()
  expect(asked).toMatchObject({ tool: 'send', args: { to: 'ann' } })
  await harness.session(asked?.sessionId ?? '').decide({ callId: asked?.callId ?? '', allow: true, by: 'ann' })
  await harness.close()
  const ended = JSON.parse(await firstLine(start(file, script))) as Ended
  expect(ended.status).toBe('completed')
  expect(answerIn(ended.text)).toMatchObject({ value: ['sent to bob', 'sent to ann'] })
  expect(journalOf(file)).toEqual(['send bob', 'send ann'])
})

it('B-CELL-14, B-CELL-18: killed after hundreds of calls, a cell is run again over their results and none is made twice (C14, C18)', async () => {
  const file = makeFile()
  writeFileSync(`${file}.journal`, '')
  const script =
    'let n = 0\nfor (; n < 300; n++) await tool_call("post", { to: `${n}` }).catch((error) => lost.push(error.kind))\nreturn n'
  const kept = `const lost = []\n${script}, lost`.replace('return n, lost', 'return [n, lost]')
  for (const at of [120, 90]) {
    const child = start(file, kept, at)
    expect(await firstLine(child)).toBe('here')
    await kill(child)
  }
  const ended = JSON.parse(await firstLine(start(file, kept))) as Ended
  // The call that ran when its process was killed may have happened, so it is not made again.
  expect(answerIn(ended.text)).toMatchObject({ value: [300, ['capability_error', 'capability_error']] })
  expect(journalOf(file)).toEqual(Array.from({ length: 300 }, (_, n) => `send ${n}`))
})

it('B-CELL-17: five hundred calls one after the other', async () => {
  const file = makeFile()
  writeFileSync(`${file}.journal`, '')
  const script = 'let n = 0\nwhile (n < 500) { await tool_call("post", { to: `${n}` }); n += 1 }\nreturn n'
  const ended = JSON.parse(await firstLine(start(file, script))) as Ended
  expect(answerIn(ended.text)).toMatchObject({ value: 500 })
  expect(journalOf(file)).toHaveLength(500)
})

it('B-CELL-19: a batch of a thousand questions whose process is killed five times asks none twice (C19)', async () => {
  const file = makeFile()
  writeFileSync(`${file}.journal`, '')
  const script = `const all = await model_query_batched(Array.from({ length: 1_000 }, (_, n) => 'question ' + n))
return [all.filter(({ ok }) => ok).length, all.filter(({ ok }) => !ok).map(({ error }) => error.kind)]`
  for (const at of [40, 111, 7, 230, 150]) {
    const child = start(file, script, at)
    expect(await firstLine(child)).toBe('here')
    await kill(child)
  }
  const ended = JSON.parse(await firstLine(start(file, script))) as Ended
  const [answered, errors] = answerIn(ended.text).value as [number, readonly string[]]
  expect(answered + errors.length).toBe(1_000)
  expect(errors.length).toBeLessThanOrEqual(5 * 4)
  expect(new Set(errors)).toEqual(new Set(['capability_error']))
  const asked = journalOf(file)
  expect(new Set(asked).size).toBe(asked.length)
  expect(asked.length).toBeGreaterThanOrEqual(answered)
  // Each answer was paid once. A question that was lost may have been answered, so it is taken to have cost its hold.
  const store = open(file)
  const { spent = 0, held = 0, limit = 0 } = (await store.account(`tree:${SESSION}`)) ?? {}
  await store.close()
  expect(spent).toBeGreaterThanOrEqual(answered * PRICE)
  expect(spent).toBeLessThanOrEqual(asked.length * PRICE + errors.length * HOLD_MAX)
  expect([held, limit]).toEqual([0, 1_000_000])
})
