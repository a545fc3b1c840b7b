// Processes killed in the middle of a superstep: the next process does only what is left, with the same arguments and keys, and
// repeats nothing. The script they run is child-graph.ts.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { eventsOf, ofType } from '../models/hosted-stage.ts'
import { makeFile, open } from '../stores/folder.ts'

const SESSION = 'killed'
const DRAFT = 'planned, left, fetched 0, fetched 1, fetched 2'

type Child = ChildProcessByStdio<null, Readable, null>

/** Compiled by `npm run build:all`, which the tests begin with. */
function start(file: string, place = '', word = ''): Child {
  const script = fileURLToPath(new URL('../../.build/test/graphs/child-graph.js', import.meta.url))
  const child = spawn(process.execPath, [script, file, `${file}.journal`, SESSION, place, word], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** The first line it says. */
async function line(child: Child): Promise<string> {
  let said = ''
  for await (const chunk of child.stdout) {
    said += String(chunk)
    if (said.includes('\n')) break
  }
  return said.trim()
}

async function killedAt(place: string) {
  const file = makeFile()
  writeFileSync(`${file}.journal`, '')
  const first = start(file, place)
  expect(await line(first)).toBe(place)
  first.kill('SIGKILL')
  if (first.exitCode === null && first.signalCode === null) await once(first, 'exit')
  const said = JSON.parse(await line(start(file))) as {
    status: string
    output: { draft: string } | null
    failure: string
  }
  const journal = (): readonly string[] => readFileSync(`${file}.journal`, 'utf8').trim().split('\n').sort()
  return { file, said, journal, log: () => eventsOf(open(file), SESSION) }
}

it('B-GRAPH-49: killed between two branches, the branch that was lost runs again under its key with what it was sent, the others do not, and the join still knows which branches arrived (AC-91)', async () => {
  const { said, journal, log } = await killedAt('fetch-2')
  expect(said).toMatchObject({ status: 'completed', output: { draft: DRAFT } })
  const names = journal().map((entry) => entry.split(' ')[0])
  expect(names).toEqual(['fetch-0', 'fetch-1', 'fetch-2', 'fetch-2', 'left', 'plan', 'write'])
  expect(new Set(journal()).size).toBe(6)
  const events = await log()
  expect(ofType(events, 'run.started')).toHaveLength(1)
  expect(ofType(events, 'agent.message').map(({ calls }) => calls.length)).toEqual([2, 3, 1, 0])
})

it('B-GRAPH-50: killed right after a superstep was written down, it begins from there, and nothing before it runs again', async () => {
  const { said, journal } = await killedAt('reply')
  expect(said).toMatchObject({ status: 'completed', output: { draft: DRAFT } })
  expect(journal().map((entry) => entry.split(' ')[0])).toEqual([
    'fetch-0',
    'fetch-1',
    'fetch-2',
    'left',
    'plan',
    'write',
  ])
})

it('B-GRAPH-51: killed while a node ran that may run once only, it is not run again by itself: the run says so, and a retry decides', async () => {
  const { file, said, journal } = await killedAt('write')
  expect(said.status).toBe('failed')
  expect(said.failure).toMatch(/Node "write" failed.*lost/)
  expect(journal().filter((entry) => entry.startsWith('write'))).toHaveLength(1)
  const again = JSON.parse(await line(start(file, '', '{"retry":true}'))) as { status: string; output: unknown }
  expect(again).toMatchObject({ status: 'completed', output: { draft: DRAFT } })
  expect(journal().filter((entry) => entry.startsWith('write'))).toHaveLength(2)
})
