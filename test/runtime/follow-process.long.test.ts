// Following sessions, and watching cards, that other processes drive, lose and remove. The script they run is child-follow.ts.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import type { CardChange, Fault, Followed } from '../../src/index.ts'
import { makeFile, open } from '../stores/folder.ts'
import { make } from './scene.ts'

const script = fileURLToPath(new URL('../../.build/test/runtime/child-follow.js', import.meta.url))

function child(file: string, how: 'stall' | 'whole' | 'remove' | 'trouble'): ChildProcess {
  const process_ = spawn(process.execPath, [script, file, how], { stdio: ['ignore', 'ignore', 'inherit'] })
  onTestFinished(() => void process_.kill('SIGKILL'))
  return process_
}

const whole = Array.from({ length: 40 }, (_, i) => `word ${i}, `).join('')

it('B-FOLLOW-1, B-FOLLOW-8: another process is followed, and from a killed one to the next with no text doubled', async () => {
  const file = makeFile()
  const harness = make([], { store: open(file), worker: { drives: false } })
  const session = await harness.open({ id: 'one' })
  await session.send('Say it.')
  const before = (await session.events()).events.length
  const items: Followed[] = []
  const first = child(file, 'stall')
  let second: ChildProcess | null = null
  for await (const item of session.follow({ deltas: true })) {
    items.push(item)
    if (item.type === 'delta' && item.text.includes('word 20') && second === null) {
      first.kill('SIGKILL')
      await once(first, 'exit')
      second = child(file, 'whole')
    }
    if (item.type === 'event' && item.event.type === 'run.settled') break
  }
  const events = items.flatMap((item) => (item.type === 'event' ? [item.event] : []))
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1))
  expect(events.length).toBeGreaterThan(before)
  const failed = events.find(({ type }) => type === 'model.failed')
  expect(failed).toMatchObject({ class: 'lost' })
  const started = events.filter(({ type }) => type === 'model.started').map(({ seq }) => seq)
  expect(started).toHaveLength(2)
  const said = new Map<number, string>()
  for (const item of items) {
    if (item.type !== 'delta') continue
    // No gap and no overlap: each begins where the one before it ended.
    expect(item.offset).toBe((said.get(item.seq) ?? '').length)
    said.set(item.seq, (said.get(item.seq) ?? '') + item.text)
  }
  expect([...said.keys()]).toEqual(started)
  expect(whole.startsWith(said.get(started[0] ?? 0) ?? '?')).toBe(true)
  expect(whole.startsWith(said.get(started[1] ?? 0) ?? '?')).toBe(true)
  const lastOfFirst = items.findLastIndex((item) => item.type === 'delta' && item.seq === started[0])
  expect(items.findIndex((item) => item.type === 'event' && item.event === failed)).toBeGreaterThan(lastOfFirst)
})

it('B-FOLLOW-14, B-FOLLOW-4: cards that another process makes, changes, leaves in trouble and removes', async () => {
  const file = makeFile()
  const store = open(file)
  const harness = make([], { store, worker: { drives: false } })
  const cards = harness.watch()
  const sees = async (is: (change: CardChange) => boolean): Promise<CardChange> => {
    for (;;) {
      const step = await cards.next()
      if (step.done) throw new Error('it ended')
      if (is(step.value)) return step.value
    }
  }
  const theirs = await harness.open({ id: 'theirs' })
  await theirs.send('Hi.')
  child(file, 'whole')
  await sees((change) => change.type === 'card' && change.card.session === 'one' && change.card.outcome === 'completed')
  const followed = (async () => {
    const events: number[] = []
    for await (const item of harness.session('one').follow()) if (item.type === 'event') events.push(item.event.seq)
    return events
  })()
  const ended = followed.catch((error: unknown) => (error as Fault).code)
  const remover = child(file, 'remove')
  expect(await sees(({ type }) => type === 'gone')).toEqual({ type: 'gone', session: 'one' })
  expect(await ended).toBe('session_missing')
  await once(remover, 'exit')
  child(file, 'trouble')
  const troubled = await sees((change) => change.type === 'card' && change.card.trouble !== undefined)
  expect(troubled).toMatchObject({ card: { session: 'theirs', trouble: { attempts: 1 } } })
})
