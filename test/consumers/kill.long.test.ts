// Processes that are killed between the end of a run and its consumer, and inside the consumer. Real processes on an SQLite file.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { deadLetters } from '../../src/consumers/index.ts'
import { type Event, Harness, scripted, sqlite } from '../../src/index.ts'
import { laneId } from '../../src/view/lanes.ts'
import { makeFolder } from '../stores/folder.ts'
import type { ConsumeOrder } from './child-consume.ts'
import type { TitleOrder } from './child-title.ts'

type Line = { readonly session: string; readonly prompt: string; readonly key: string; readonly repeated: boolean }

/** Runs the process until it says where it is, and kills it; one that ends says so. */
async function play(order: ConsumeOrder | TitleOrder): Promise<string> {
  const name = 'has' in order ? 'child-consume' : 'child-title'
  // Compiled by `npm run build:all`, which the tests begin with.
  const script = fileURLToPath(new URL(`../../.build/test/consumers/${name}.js`, import.meta.url))
  const child = spawn(process.execPath, [script, JSON.stringify(order)])
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.stderr.pipe(process.stderr)
  let said = ''
  for await (const line of createInterface({ input: child.stdout })) {
    said = line
    break
  }
  child.kill('SIGKILL')
  await gone
  return said
}

function stage() {
  const folder = makeFolder()
  const lines = join(folder, 'lines.jsonl')
  const order = { file: join(folder, 'terret.db'), lines, stop: 'nowhere', has: true, runs: 0 } as const
  const read = (): readonly Line[] =>
    existsSync(lines)
      ? readFileSync(lines, 'utf8')
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as Line)
      : []
  return { order, read }
}

async function logOf(file: string, session: string): Promise<readonly Event[]> {
  const store = sqlite(file)
  try {
    return (await store.read(session, 0)).events
  } finally {
    await store.close()
  }
}

it('B-CONSUME-19: a kill before the commit that settles a run, and one right after it: the run is told once', async () => {
  for (const stop of ['before the end', 'after the end'] as const) {
    const { order, read } = stage()
    expect(await play({ ...order, stop, runs: 1 })).toBe('here')
    expect(read()).toEqual([])
    const settled = (await logOf(order.file, 's')).some(({ type }) => type === 'run.settled')
    expect(settled).toBe(stop === 'after the end')
    expect(await play(order)).toBe('ended')
    expect(read()).toEqual([
      { session: 's', prompt: 'run 0', key: expect.stringMatching(/^settled:s:\d+$/) as string, repeated: false },
    ])
    expect(await play(order)).toBe('ended')
    expect(read().length).toBe(1)
  }
})

it('B-CONSUME-20: a kill inside the consumer: it is told again under the same key, and knows it', async () => {
  const { order, read } = stage()
  expect(await play({ ...order, stop: 'inside', runs: 1 })).toBe('here')
  expect(await play(order)).toBe('ended')
  const [first, second, ...others] = read()
  expect(others).toEqual([])
  expect(second).toEqual({ ...first, repeated: true })
  expect(first?.repeated).toBe(false)
})

it('B-CONSUME-21: a process without the consumer leaves its lanes alone, and one that has it drives them', async () => {
  const { order, read } = stage()
  expect(await play({ ...order, stop: 'after the end', runs: 1 })).toBe('here')
  expect(await play({ ...order, has: false, runs: 1 })).toBe('ended')
  expect(read()).toEqual([])
  const lane = laneId('notes', 's', null)
  expect((await logOf(order.file, lane)).map(({ type }) => type)).toEqual(['session.created', 'user.message'])
  expect(await play(order)).toBe('ended')
  // The run of the process without the consumer was told to nobody.
  expect(read().map(({ prompt }) => prompt)).toEqual(['run 0'])
})

it('B-CONSUME-22: a run whose consumer ends its process again and again is a dead letter, and the next run is told', async () => {
  const { order, read } = stage()
  for (let n = 0; n < 5; n++) expect(await play({ ...order, stop: 'inside', runs: n === 0 ? 1 : 0 })).toBe('here')
  expect(await play({ ...order, runs: 1 })).toBe('ended')
  expect(read().map(({ prompt }) => prompt)).toEqual([...Array.from({ length: 5 }, () => 'run 0'), 'run 0'])
  const store = sqlite(order.file)
  const harness = new Harness({ model: scripted([]), store, worker: { drives: false } })
  expect((await deadLetters(harness)).map(({ reason }) => reason)).toEqual([
    'The process ended 5 times during the work on it.',
  ])
  await harness.close()
  await store.close()
})

it('B-TITLE-23: a process that is killed while the model is asked, before the title is written, or after it: there is one title', async () => {
  const asks = { 'while it asks': 2, 'before the title': 2, 'after the title': 1 } as const
  for (const stop of Object.keys(asks) as (keyof typeof asks)[]) {
    const folder = makeFolder()
    const order = { file: join(folder, 'terret.db'), lines: join(folder, 'lines'), stop: 'nowhere', runs: 0 } as const
    expect(await play({ ...order, stop, runs: 1 })).toBe('here')
    expect(await play(order)).toBe('ended')
    expect(await play({ ...order, runs: 1 })).toBe('ended')
    const titles = (await logOf(order.file, 's')).filter(({ type }) => type === 'user.rename')
    expect(titles).toMatchObject([{ title: expect.stringMatching(/^Title by \d+$/) as string }])
    expect([stop, readFileSync(order.lines, 'utf8').trim().split('\n').length]).toEqual([stop, asks[stop]])
  }
})
