// Worker processes on one file: killed again and again by what they drive, started again while a provider is busy, told of what
// another process sent, and two of them over a thousand sessions. The script they run is child-wake.ts.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { type Event, scripted, type CompleteStore } from '../../src/index.ts'
import { makeFolder, open } from '../stores/folder.ts'
import { make } from './scene.ts'
import { asleep, say } from './wake-stage.ts'
import { until } from '../until.ts'

type Wishes = { readonly provider?: 'well' | 'busy'; readonly leaseMs?: number; readonly idleMs?: number }
type Child = ChildProcessByStdio<null, Readable, null>

/** A worker that is only slow must not lose its lease: that would count as a try too. */
const PATIENT: Wishes = { leaseMs: 1_500, idleMs: 3_500 }

type Place = {
  readonly store: CompleteStore
  readonly journal: () => readonly string[]
  readonly start: (wishes?: Wishes) => Child
}

function place(): Place {
  const folder = makeFolder()
  const [file, journal] = [join(folder, 'terret.db'), join(folder, 'journal')]
  writeFileSync(journal, '')
  /** Compiled by `npm run build:all`, which the tests begin with. */
  const script = fileURLToPath(new URL('../../.build/test/runtime/child-wake.js', import.meta.url))
  return {
    store: open(file),
    journal: () => readFileSync(journal, 'utf8').trim().split('\n').filter(Boolean).toSorted(),
    start: ({ provider = 'well', leaseMs = 30_000, idleMs } = {}) => {
      const args = [script, file, journal, provider, String(leaseMs), idleMs === undefined ? '' : String(idleMs)]
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
      onTestFinished(() => void child.kill('SIGKILL'))
      return child
    },
  }
}

/** What it said, to its end. */
async function lines(child: Child): Promise<readonly string[]> {
  let said = ''
  for await (const chunk of child.stdout) said += String(chunk)
  return said.trim().split('\n')
}

async function eventsOf(store: CompleteStore, session: string, type: Event['type']): Promise<readonly Event[]> {
  return (await store.read(session, 0)).events.filter((event) => event.type === type)
}

it('B-WAKE-60: a session that kills every worker is quarantined after five, by a sixth that does not touch it; the others are done once (F29)', async () => {
  const { store, journal, start } = place()
  await asleep(store, 'poison', [])
  await say(store, 'poison', 'kill')
  const said: string[] = []
  for (let i = 0; i < 6; i++) {
    await asleep(store, `good ${i}`, [])
    await say(store, `good ${i}`, 'note')
    // Until the last worker's lease has ended, only the healthy session can be found.
    said.push((await lines(start(PATIENT))).slice(1).join())
  }
  expect(said).toEqual([
    ...Array.from({ length: 5 }, () => 'killed'),
    expect.stringContaining('"type":"idle"') as string,
  ])
  const { trouble, due } = (await store.card('poison')) ?? {}
  expect({ trouble, due }).toEqual({
    trouble: { attempts: 5, reason: expect.stringContaining('lost 5 times') as string, until: null },
    due: null,
  })
  expect((await store.read('poison', 0)).events.map(({ type }) => type)).toEqual(['session.created', 'user.message'])
  // Sessions that were in the same process when it died are not blamed.
  for (let i = 0; i < 6; i++) {
    const card = await store.card(`good ${i}`)
    expect(card).toMatchObject({ outcome: 'completed' })
    expect(card).not.toHaveProperty('trouble')
  }
  expect(new Set(journal()).size).toBe(journal().length)
  // A harness that survives the session wakes it by id.
  const harness = make(scripted(['I live']), { store })
  await harness.work({ session: 'poison' })
  expect(await store.card('poison')).toMatchObject({ outcome: 'completed', due: null })
  expect(await store.card('poison')).not.toHaveProperty('trouble')
}, 60_000)

it('B-WAKE-64: a session whose tool kills every worker is quarantined too, and those that ran beside it are done', async () => {
  const { store, start } = place()
  const slow = ['slow 0', 'slow 1', 'slow 2']
  for (const id of ['poison', ...slow]) {
    await asleep(store, id, [])
    await say(store, id, id === 'poison' ? 'die' : 'slow')
  }
  const said: string[] = []
  for (let i = 0; i < 12 && said.at(-1)?.includes('idle') !== true; i++)
    said.push((await lines(start(PATIENT))).slice(1).join())
  expect(said).toEqual([
    ...Array.from({ length: 5 }, () => 'killed'),
    expect.stringContaining('"type":"idle"') as string,
  ])
  expect(await store.card('poison')).toMatchObject({
    due: null,
    trouble: { attempts: 5, reason: expect.stringContaining('lost 5 times') as string, until: null },
  })
  for (const id of slow) {
    expect(await store.card(id)).toMatchObject({ outcome: 'completed' })
    expect(await store.card(id)).not.toHaveProperty('trouble')
  }
}, 60_000)

it('B-WAKE-61: a busy provider leaves the input pending and the session sleeping; the time is kept when the process is killed (S4-16, AC-116)', async () => {
  const { store, journal, start } = place()
  await asleep(store, 's', [])
  await say(store, 's', 'note')
  const first = start({ provider: 'busy' })
  await until(async () => expect(await store.card('s')).toMatchObject({ status: 'rescheduling' }))
  first.kill('SIGKILL')
  await once(first, 'exit')
  const [failed] = await eventsOf(store, 's', 'model.failed')
  const retryAt = failed?.type === 'model.failed' ? failed.retryAt : undefined
  expect(failed).toMatchObject({ class: 'rate_limit', retryable: true })
  expect(await store.card('s')).toMatchObject({ due: retryAt, outcome: null })
  expect(await eventsOf(store, 's', 'run.settled')).toEqual([])
  // A caller is told that the session sleeps, and until when.
  const harness = make(scripted(['never asked']), { store, worker: { lingerMs: 0 } })
  if (store.now() < (retryAt ?? 0))
    expect(await harness.session('s').run(undefined, { patienceMs: 0 })).toMatchObject({
      status: 'sleeping',
      until: retryAt,
    })
  await harness.close()
  const second = await lines(start({ idleMs: 2_500 }))
  expect(second.at(-1)).toContain('"type":"idle"')
  expect(await store.card('s')).toMatchObject({ status: 'idle', outcome: 'completed', due: null })
  expect(journal()).toEqual(['s'])
  const [asked, again] = await eventsOf(store, 's', 'model.started')
  const [said] = await eventsOf(store, 's', 'user.message')
  expect(asked).toMatchObject({ shows: [said?.seq] })
  expect(again?.at).toBeGreaterThanOrEqual(retryAt ?? 0)
  expect(await eventsOf(store, 's', 'run.started')).toHaveLength(1)
}, 60_000)

it('B-WAKE-62: a worker with nothing to do stays, and drives what another process sends; a wake comes when it is due', async () => {
  const { store, journal, start } = place()
  const child = start()
  await once(child.stdout, 'data')
  await asleep(store, 'woken', [{ due: store.now() + 700 }])
  await asleep(store, 'told', [])
  await say(store, 'told', 'note')
  await until(async () => expect(await store.card('told')).toMatchObject({ outcome: 'completed' }))
  await until(async () => expect(await store.card('woken')).toMatchObject({ outcome: 'completed' }))
  expect(journal()).toEqual(['told'])
  const [scheduled] = await eventsOf(store, 'woken', 'wake.scheduled')
  const [started] = await eventsOf(store, 'woken', 'run.started')
  expect(started).toMatchObject({ wakes: ['w'], inputs: [] })
  expect(started?.at).toBeGreaterThanOrEqual(scheduled?.type === 'wake.scheduled' ? scheduled.due : 0)
  expect(child.exitCode).toBeNull()
}, 60_000)

it('B-WAKE-63: a thousand sessions due at once all run, none twice, by two processes on one file (F23, F30)', async () => {
  const { store, journal, start } = place()
  const sessions = Array.from({ length: 1_000 }, (_, i) => `session ${String(i).padStart(4, '0')}`)
  await Promise.all(sessions.map((session) => asleep(store, session, [])))
  await Promise.all(sessions.map((session) => say(store, session, 'note')))
  const said = await Promise.all([start({ idleMs: 500 }), start({ idleMs: 500 })].map(lines))
  const looks = said.map(([, worked = '{}']) => (JSON.parse(worked) as { looks: number }).looks)
  expect(Math.min(...looks)).toBeGreaterThan(0)
  expect(journal()).toEqual(sessions)
  expect((await store.due(0)).next).toBeNull()
  const cards = await store.list({ limit: 2_000 })
  expect(cards.filter(({ outcome }) => outcome === 'completed')).toHaveLength(1_000)
  expect(cards.filter(({ trouble }) => trouble !== undefined)).toEqual([])
}, 120_000)

it('B-SCHED-1, B-SCHED-7: a wake and a message for later of a process that was killed come at their time in another one', async () => {
  const { store, start } = place()
  await asleep(store, 's', [])
  const first = start()
  await once(first.stdout, 'data')
  const session = make(scripted([]), { store, worker: { drives: false } }).session('s')
  const at = store.now() + 2_000
  const { seq } = await session.send('note', { at })
  await session.schedule({ at: at + 1_000, reason: 'Look.', key: 'a' })
  first.kill('SIGKILL')
  await once(first, 'exit')
  const second = start({ idleMs: 3_500 })
  await lines(second)
  // On a slow machine both may be due when the second process looks: then they are one run.
  const starts = (await eventsOf(store, 's', 'run.started')).flatMap((e) => (e.type === 'run.started' ? [e] : []))
  expect(starts.flatMap(({ inputs }) => inputs)).toEqual([seq])
  expect(starts.flatMap(({ wakes }) => wakes)).toEqual(['a'])
  for (const { at: began, inputs, wakes } of starts)
    expect(began).toBeGreaterThanOrEqual(wakes.length > 0 ? at + 1_000 : inputs.length > 0 ? at : Infinity)
})
