// Script sessions: which of them a cell may go on with, saved scripts, and what holds inside of a cell as outside of it.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { memory } from '../../src/index.ts'
import { until } from '../until.ts'
import { type CellAnswer, decideAll, ofType, runCells, withScripts, type Step } from './stage.ts'

const next =
  (script: string) =>
  ([first]: readonly CellAnswer[]) => ({ script, session_id: first?.session_id ?? '' })

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'terret-scripts-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

it('B-CELL-11: a script session is dropped when sixteen others were used after it (C11, AC-102)', async () => {
  const others: Step = Array.from({ length: 15 }, () => ({ script: '1' }))
  const { texts, answers } = await runCells([
    { script: 'x = 1' },
    others,
    next('x'),
    others,
    { script: '2' },
    next('x'),
  ])
  expect(answers[16]).toMatchObject({ value: 1 })
  expect(texts.at(-1)).toContain('was dropped: 16 others were used since')
})

it('B-CELL-11: a script session is dropped when it was not used for half an hour, and approvals do not count (C11)', async () => {
  const machine = { ms: Date.now() }
  const clock = {
    now: () => machine.ms,
    timer: (ms: number, fire: () => void) => {
      const timer = setTimeout(fire, ms)
      return () => clearTimeout(timer)
    },
  }
  const later = (minutes: number): void => void (machine.ms += minutes * 60_000)
  const store = memory({ clock })
  // After each cell the run ends.
  const steps = ['x = 1', 'x += 1; await tool_call("send", {}); return x', 'x', 'x'].flatMap((script, i) => [
    i === 0 ? { script } : next(script),
    null,
  ])
  const { harness, told } = withScripts(steps, { store, system: { clock } })
  const { sessionId } = await harness.run('go')
  const session = harness.session(sessionId)
  later(29)
  await session.run('on')
  later(24 * 60)
  await decideAll(harness, sessionId)
  later(29)
  await session.run('on')
  expect(told.slice(1, 3).map((text) => JSON.parse(text) as object)).toMatchObject([{ value: 2 }, { value: 2 }])
  later(31)
  await session.run('on')
  expect(told[3]).toContain('was dropped: it was not used for 30 minutes')
})

it('B-CELL-11: a script session of another session is not there, and a closed one says so', async () => {
  const store = memory()
  const one = await runCells([{ script: 'x = 1', close_session: true }, next('x')], { store })
  expect(one.texts[1]).toContain('was closed')
  const two = await runCells(
    [
      { script: 'x', session_id: `${one.session}~5.0`.slice(0, 64) },
      { script: 'y', session_id: '4.0' },
    ],
    { store },
  )
  expect(two.texts[0]).toContain('no script session')
  expect(two.texts[1]).toContain('no script session')
})

it('B-CELL-6: a script session has so many cells, and the counts are those of all of them', async () => {
  const read = 'await tool_call("read", { path: "p" })'
  const stage = { scripts: { mode: 'on', limits: { cells: 2 } } } as const
  const { texts, answers } = await runCells([{ script: read }, next(read), next(read)], stage)
  expect(answers[1]?.limits_remaining).toEqual({ cells: 0, model_calls: 64, tool_calls: 126 })
  expect(texts[2]).toContain('limit_exceeded: A script session has at most 2 cells')
})

it('B-CELL-13: a saved script is read when it is called, and runs as it was then (C13)', async () => {
  const path = folder()
  writeFileSync(join(path, 'greet.js'), 'return await tool_call("send", { to: "ann" })')
  const scripts = { mode: 'on', folders: [join(path, 'missing'), path] } as const
  const { harness, told, seen } = withScripts([{ name: 'greet' }, { name: 'nope' }], { scripts })
  const { sessionId } = await harness.run('go')
  writeFileSync(join(path, 'greet.js'), 'return await tool_call("send", { to: "eve" })')
  await decideAll(harness, sessionId)
  expect(seen.made).toEqual(['sent to ann'])
  expect(told[1]).toContain('There is no saved script "nope". There are: greet.')
})

it('B-CELL-42: a saved script is a plain file of its folder: no link out of it, no pipe, and nothing endless', async () => {
  const [path, outside] = [folder(), folder()]
  writeFileSync(join(outside, 'key.js'), 'the key of the user')
  symlinkSync(join(outside, 'key.js'), join(path, 'key.js'))
  symlinkSync('/dev/zero', join(path, 'zero.js'))
  execFileSync('/bin/sh', ['-c', 'mkfifo "$0"', join(path, 'pipe.js')])
  writeFileSync(join(path, 'long.js'), ' '.repeat(300_000))
  const scripts = { mode: 'on', folders: [path] } as const
  const names = ['key', 'zero', 'pipe', 'long']
  const { harness, told } = withScripts(
    names.map((name) => ({ name })),
    { scripts },
  )
  await harness.run('go')
  expect(told).toEqual([
    expect.stringContaining('leads out of its folder'),
    expect.stringContaining('leads out of its folder'),
    expect.stringContaining('is no regular file'),
    expect.stringContaining('has 300000 bytes'),
  ])
})

it('B-CELL-28: a person sees the whole program, and the difference of an edited saved one; another text needs another approval', async () => {
  const path = folder()
  writeFileSync(join(path, 'sum.js'), 'let sum = 0\nfor (const n of [1, 2]) sum += n\nreturn sum\n')
  const edited = 'let sum = 0\nfor (const n of [1, 2, 3]) sum += n\nreturn sum\n'
  const scripts = { folders: [path] }
  const { harness, told } = withScripts(
    [
      { name: 'sum', diff: 'harmless' },
      { name: 'sum', script: edited },
    ],
    { scripts },
  )
  const { sessionId } = await harness.run('go')
  const [first] = await harness.pending()
  expect(first?.args).toEqual({ name: 'sum', script: 'let sum = 0\nfor (const n of [1, 2]) sum += n\nreturn sum\n' })
  await harness.session(sessionId).decide({ callId: first?.callId ?? '', allow: true, by: 'ann' })
  await harness.session(sessionId).run()
  const [second] = await harness.pending()
  const { diff = '' } = (second?.args ?? {}) as { readonly diff?: string }
  expect(diff.split('\n')).toEqual(
    expect.arrayContaining(['-for (const n of [1, 2]) sum += n', '+for (const n of [1, 2, 3]) sum += n']),
  )
  expect('digest' in (first ?? {}) && first?.digest !== second?.digest).toBe(true)
  await decideAll(harness, sessionId)
  expect(told.map((text) => JSON.parse(text) as object)).toMatchObject([{ value: 3 }, { value: 6 }])
})

it('B-CELL-26: a narrowed run, a rule and secrets hold inside of a script', async () => {
  const script = `const said = []
for (const [name, args] of [['rows', {}], ['read', { path: 'key' }], ['read', { path: 'a' }]])
  try { said.push(await tool_call(name, args)) } catch (error) { said.push(error.kind) }
emit('the key is ' + ['hunter', '2hunter2'].join(''))
return said`
  const rules = [{ effect: 'deny', tool: 'read', args: { path: 'key' }, reason: 'no keys' }] as never
  const { harness, told } = withScripts([{ script }], {
    approvals: { policy: { rules } },
    secrets: { KEY: 'hunter2hunter2' },
  })
  await harness.run('go', { tools: ['read', 'script'] })
  const answer = JSON.parse(told[0] ?? '') as CellAnswer
  expect(answer).toMatchObject({ value: ['unknown_capability', 'denied', 'read a'] })
  expect(answer.stdout).toBe('the key is ⟦secret:KEY⟧\n')
})

it('B-CELL-26: the limit of a narrowed run bounds the calls of a script', async () => {
  const script = 'for (let n = 0; n < 5; n++) await tool_call("read", { path: `p${n}` })'
  const { harness, seen } = withScripts([{ script }])
  const { sessionId } = await harness.run('go', { limits: { toolCalls: 2 } })
  expect(seen.made).toEqual(['read p0', 'read p1'])
  const ends = ofType((await harness.session(`${sessionId}~5.0`).events()).events, 'run.settled')
  expect(ends[0]?.outcome).toMatchObject({ type: 'limit', limit: 'tool_calls' })
})

it('B-CELL-40: a session of a cell runs one program: a second one is an error, and a message to a waiting cell changes nothing', async () => {
  const { harness } = withScripts([])
  const first = await harness.run('return 1', { agent: 'script' })
  const again = await harness.session(first.sessionId).run('return 2')
  expect(again).toMatchObject({
    status: 'failed',
    failure: { message: expect.stringContaining('one program') as string },
  })
  const waits = await harness.run('await tool_call("send", {})\nreturn 3', { agent: 'script' })
  await harness.session(waits.sessionId).send('return 99')
  await decideAll(harness, waits.sessionId)
  const events = (await harness.session(waits.sessionId).events()).events
  expect(ofType(events, 'run.settled')[0]).toMatchObject({ outcome: { type: 'completed' } })
  expect(JSON.stringify(ofType(events, 'agent.message').at(1))).toContain('\\"value\\":3')
})

it('B-CELL-11: a fork has no script session of its origin, and says so', async () => {
  const store = memory()
  const one = withScripts([{ script: 'x = 1' }], { store })
  const { sessionId } = await one.harness.run('go')
  await one.harness.close()
  const two = withScripts([null, null, { script: 'x', session_id: '5.0' }], { store })
  const fork = await two.harness.session(sessionId).fork()
  await fork.run('on')
  expect(two.told.at(-1)).toContain('This session has no script session "5.0"')
})

it('B-CELL-5: a cell that computes ends when its run is stopped, and the harness can close', async () => {
  const { harness } = withScripts([{ script: 'for (;;) {}' }])
  const session = await harness.open()
  const run = session.run('go')
  await until(async () => {
    const { events } = await harness.session(`${session.id}~5.0`).events()
    if (!events.some(({ type }) => type === 'model.started')) throw new Error('no cell computes')
  })
  await session.interrupt()
  expect(await run).toMatchObject({ status: 'interrupted' })
})
