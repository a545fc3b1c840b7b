// Processes killed while they have children: the next process finds the same children, repeats nothing, and the parent gets
// one result from each. The script they run is child-family.ts.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import type { Event, CompleteStore } from '../../src/index.ts'
import { makeFile, open } from '../stores/folder.ts'
import { childrenOf, eventsOf, ofType, toldTo } from './children-stage.ts'

const ROOT = 'family'

type Child = ChildProcessByStdio<null, Readable, null>

/** Compiled by `npm run build:all`, which the tests begin with. */
function start(file: string, place = ''): Child {
  const script = fileURLToPath(new URL('../../.build/test/runtime/child-family.js', import.meta.url))
  const child = spawn(process.execPath, [script, file, `${file}.journal`, ROOT, place], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** What it said before it ended, or up to so many lines. */
async function lines(child: Child, most = Number.POSITIVE_INFINITY): Promise<readonly string[]> {
  let said = ''
  for await (const chunk of child.stdout) {
    said += String(chunk)
    if (said.split('\n').length > most) break
  }
  return said.trim().split('\n')
}

type Left = {
  readonly children: readonly string[]
  readonly root: readonly Event[]
  readonly logs: readonly (readonly Event[])[]
}

async function left(store: CompleteStore): Promise<Left> {
  const children = await childrenOf(store, ROOT)
  const logs = await Promise.all(children.map((child) => eventsOf(store, child)))
  return { children, root: await eventsOf(store, ROOT), logs }
}

/** Kills a process at a place, lets another one finish, and says what both left. */
async function killedAt(place: string, times: number): Promise<{ readonly before: Left; readonly after: Left }> {
  const file = makeFile()
  writeFileSync(`${file}.journal`, '')
  const first = start(file, place)
  expect(await lines(first, times)).toEqual(Array.from({ length: times }, () => place))
  first.kill('SIGKILL')
  if (first.exitCode === null && first.signalCode === null) await once(first, 'exit')
  const store = open(file)
  const before = await left(store)
  const second = start(file)
  const [said = ''] = await lines(second)
  const after = await left(store)
  expect(JSON.parse(said)).toEqual({
    status: 'completed',
    text: after.children.map((id) => `${id} is done`).join(', '),
  })
  // The same two sessions, each began once, ended once, and did its work once.
  expect(after.children).toEqual(before.children)
  expect(after.children).toHaveLength(2)
  expect(readFileSync(`${file}.journal`, 'utf8').trim().split('\n').sort()).toEqual([...after.children].sort())
  for (const log of after.logs) {
    expect(ofType(log, 'session.created')).toHaveLength(1)
    expect(ofType(log, 'run.started')).toHaveLength(1)
    expect(ofType(log, 'run.settled')).toMatchObject([{ outcome: { type: 'completed' } }])
  }
  const told = await toldTo(store, ROOT)
  const results = ofType(after.root, 'agent.tool_result')
  expect(results.map(({ status }) => status)).toEqual(['ok', 'ok'])
  expect(new Set(results.map(({ from }) => from))).toEqual(new Set(told.map(({ seq }) => seq)))
  expect(told).toHaveLength(2)
  expect(ofType(after.root, 'agent.custom_tool_use')).toHaveLength(2)
  return { before, after }
}

it('B-CHILD-49: killed while children work, they go on where they were: what they did is not done again', async () => {
  const { before, after } = await killedAt('work', 2)
  for (const log of before.logs) expect(ofType(log, 'agent.tool_result')).toMatchObject([{ status: 'ok' }])
  for (const log of after.logs) expect(ofType(log, 'model.failed')).toMatchObject([{ class: 'lost' }])
})

it('B-CHILD-50: killed right after the commit that made them, they are there, and begin', async () => {
  const { before } = await killedAt('birth', 1)
  expect(ofType(before.root, 'agent.custom_tool_use')).toHaveLength(2)
  for (const log of before.logs) expect(log.map(({ type }) => type)).toEqual(['session.created', 'user.message'])
})

it('B-CHILD-51: killed after they settled and before the parent looked, their answers are there, and they are not asked again', async () => {
  const { before, after } = await killedAt('end', 2)
  expect(ofType(before.root, 'user.custom_tool_result')).toHaveLength(2)
  expect(ofType(before.root, 'agent.tool_result')).toEqual([])
  expect(after.logs).toEqual(before.logs)
})
