// Several processes on one file: nothing lost, nothing twice, and news of each other. The children are the compiled child-*.ts.
import { type ChildProcess, execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import type { Event } from '../../src/kernel/event.ts'
import { admit, begin, create, message, note, outcome, seqs, StillClock, write } from '../contract/fixture.ts'
import type { Hammered } from './child-hammer.ts'
import { makeFile, open } from './folder.ts'

const children: ChildProcess[] = []

afterEach(() => {
  for (const child of children.splice(0)) if (child.connected) child.disconnect()
})

const script = (name: string) => fileURLToPath(new URL(`../../.build/test/stores/${name}.js`, import.meta.url))

function start(name: string, ...args: string[]): ChildProcess {
  const child = fork(script(name), args)
  children.push(child)
  return child
}

async function hear<T>(child: ChildProcess): Promise<T> {
  const [answer] = (await once(child, 'message')) as [T]
  return answer
}

describe('several processes on one file', () => {
  it('B-STORE-110: four processes hammering one file lose nothing, duplicate nothing, and are never refused as busy', async () => {
    const file = makeFile()
    const store = open(file)
    for (let i = 0; i < 3; i++) await create(store, `shared-${i}`)
    const names = ['p1', 'p2', 'p3', 'p4']
    const reports = await Promise.all(names.map((name) => hear<Hammered>(start('child-hammer', file, name, '120'))))
    const logs = new Map<string, readonly Event[]>()
    for (let i = 0; i < 3; i++) {
      const page = await store.read(`shared-${i}`, 0)
      expect(page.damaged).toBeUndefined()
      expect(page.events.map((event) => event.seq)).toEqual(page.events.map((_, at) => at + 1))
      logs.set(`shared-${i}`, page.events)
    }
    const stored = new Map<string, string>()
    for (const [session, events] of logs) {
      for (const event of events) stored.set(`${session}:${event.seq}`, nameOf(event))
      const ids = events.flatMap((event) => ('id' in event ? [event.id] : []))
      expect(new Set(ids).size).toBe(ids.length)
      expect(ids).toHaveLength(5 * 40)
    }
    for (const { acked, refusals } of reports) {
      for (const [place, name] of acked) expect(stored.get(place)).toBe(name)
      expect(Object.keys(refusals).filter((code) => code !== 'conflict' && code !== 'lease_lost')).toEqual([])
    }
    const notes = [...logs.values()].flat().filter((event) => event.type === 'note.added').length
    expect(reports.flatMap(({ acked }) => acked.filter(([, name]) => name.includes(' ')))).toHaveLength(notes)
    expect(notes).toBeGreaterThan(0)
  }, 60_000)

  it("B-STORE-111: a watcher is told of another process's append, with null, and soon", async () => {
    const file = makeFile()
    const store = open(file)
    await create(store, 's')
    await create(store, 'unwatched')
    const child = start('child-append', file)
    await hear(child)
    let heard: (news: readonly Event[] | null) => void = () => {}
    let due = 0
    const leave = [store.watch('s', (news) => heard(news)), store.watchDue(() => void (due += 1))]
    for (let i = 0; i < 5; i++) {
      await sleep(20 * i)
      const news = new Promise<readonly Event[] | null>((resolve) => {
        heard = resolve
      })
      const before = due
      const begun = performance.now()
      child.send('s')
      expect(await news).toBeNull()
      // The promise is 50 ms; a machine under load must not fail the suite.
      expect(performance.now() - begun).toBeLessThan(2_000)
      expect(await seqs(store, 's')).toHaveLength(2 + i)
      expect(due).toBeGreaterThanOrEqual(before)
    }
    expect(due).toBeGreaterThan(0)
    const quiet: unknown[] = []
    heard = (news) => quiet.push(news)
    const appended = hear(child)
    child.send('unwatched')
    await appended
    await sleep(100)
    expect(quiet).toEqual([])
    for (const go of leave) go()
  })

  it('B-STORE-111: an append that falls among our own commits is not missed', async () => {
    const file = makeFile()
    const store = open(file)
    await create(store, 's')
    const owner = await begin(store, 'busy')
    const child = start('child-append', file)
    await hear(child)
    let told = 0
    store.watch('s', (news) => {
      if (news === null) told += 1
    })
    let running = true
    const burst = (async () => {
      while (running) await write(store, owner, [note('x')])
    })()
    for (let i = 1; i <= 5; i++) {
      await sleep(30)
      const appended = hear(child)
      child.send('s')
      await appended
      await until(() => told === i)
    }
    running = false
    await burst
  })

  it('B-STORE-112: a listener that misses events of other processes is told to read, and never gets a gap', async () => {
    const file = makeFile()
    const [here, there] = [open(file, { clock: new StillClock() }), open(file)]
    await create(here, 's')
    const heard: (readonly number[] | null)[] = []
    here.watch('s', (news) => heard.push(news && news.map((event) => event.seq)))
    await admit(there, 's', message('from there'))
    await admit(here, 's', message('from here'))
    await admit(here, 's', message('and again'))
    expect(heard).toEqual([null, [4]])
  })

  it('B-STORE-113: a watcher that hears nothing for a while keeps no timer', async () => {
    const clock = new StillClock()
    const store = open(makeFile(), { clock })
    await create(store, 's')
    store.watch('s', () => {})
    await admit(store, 's', message('m'))
    await until(() => clock.waiting === 1)
    for (let i = 0; i < 20; i++) clock.advance(1_000)
    expect(clock.waiting).toBe(0)
    await sleep(50)
    expect(clock.waiting).toBe(0)
  })

  it('B-STORE-113: after a burst of our own commits the watcher sleeps again, and still hears others', async () => {
    const file = makeFile()
    const clock = new StillClock()
    const [here, there] = [open(file, { clock }), open(file)]
    const owner = await begin(here, 's')
    let told = 0
    here.watch('s', (news) => {
      if (news === null) told += 1
    })
    for (let i = 0; i < 10; i++) await write(here, owner, [note('x')])
    await until(() => clock.waiting === 1)
    for (let i = 0; i < 20; i++) clock.advance(1_000)
    expect([told, clock.waiting]).toEqual([0, 0])
    await admit(there, 's', message('from there'))
    await until(() => clock.waiting === 1)
    clock.advance(10)
    expect(told).toBe(1)
  })

  it('B-STORE-114: watching keeps no process alive', async () => {
    const file = makeFile()
    await create(open(file), 's')
    const { stdout } = await promisify(execFile)(process.execPath, [script('child-watch'), file], { timeout: 15_000 })
    expect(stdout).toBe('watching\n')
  })

  it('B-STORE-115: what another process claimed, took over or wrote is what this one sees', async () => {
    const file = makeFile()
    const clock = new StillClock()
    const [here, there] = [open(file, { clock }), open(file, { clock })]
    const owner = await begin(here, 's', 'here')
    await write(here, owner, [note('1')])
    expect(await there.claim('s', 'there', 1_000)).toBeNull()
    clock.advance(60_000)
    expect(await there.claim('s', 'there', 1_000)).toMatchObject({ epoch: owner.epoch + 1 })
    expect(await outcome(write(here, owner, [note('2')]))).toBe('lease_lost')
    expect(await admit(there, 's', message('m'))).toEqual({ seqs: [3], duplicate: false })
    expect(await admit(here, 's', message('m'))).toEqual({ seqs: [3], duplicate: true })
    expect(await here.extend('here', 1_000)).toEqual(new Map())
  })
})

/** The machine may be slow; what is awaited here comes within milliseconds. */
async function until(met: () => boolean): Promise<void> {
  for (let waited = 0; !met() && waited < 5_000; waited += 10) await sleep(10)
  expect(met()).toBe(true)
}

function nameOf(event: Event): string {
  if ('id' in event) return event.id
  return event.type === 'note.added' ? event.text : ''
}
