// A process that pursues an outcome ends before and after each of its commits, on one store in memory. Some of them are
// real processes on an SQLite file, which are killed.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { deadLetters } from '../../src/consumers/index.ts'
import { Harness, memory, scripted, sqlite } from '../../src/index.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import { makeFolder } from '../stores/folder.ts'
import { withoutTake } from '../../sim/store-with.ts'
import type { PursueOrder } from './child-pursue.ts'
import { look, poet, TASK } from './scripts.ts'
import { gradings, roundsIn } from './stage.ts'

/** Runs the process until it says where it is, and kills it. */
async function play(order: PursueOrder): Promise<string> {
  // Compiled by `npm run build:all`, which the tests begin with.
  const script = fileURLToPath(new URL('../../.build/test/outcomes/child-pursue.js', import.meta.url))
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

async function checkEnd(store: CompleteStore, where: string): Promise<void> {
  const harness = new Harness({ model: scripted([]), store, worker: { drives: false } })
  const { end, round, trend, history, fingerprint } = await look(harness.session('s'))
  const counts = await Promise.all([1, 2, 3].map((each) => gradings(harness, fingerprint, each)))
  const graders = (await harness.list({ where: { 'outcome.of': 's' } })).cards.length
  const rounds = await roundsIn(harness, 's')
  expect({ where, end, round, trend, met: history.map(({ met }) => met), rounds, counts, graders }).toEqual({
    where,
    end: 'satisfied',
    round: 3,
    trend: 'improving',
    met: [0, 1, 2],
    rounds: [1, 2, 3].map((n) => `terret:outcome:${fingerprint}.${n}`),
    counts: [1, 1, 1],
    graders: 3,
  })
  expect(await deadLetters(harness)).toEqual([])
  await harness.close()
}

/** A process on this store that is gone before or after its commit number `stop`: nothing it asks for is answered then. */
function mortalStore(inner: CompleteStore, stop: number, when: PursueOrder['when']) {
  const life = { commits: 0, dead: false, gone: (): void => {} }
  const died = new Promise<void>((resolve) => {
    life.gone = resolve
  })
  const never = new Promise<never>(() => {})
  const leases = new Map<string, number>()
  /** The leases of a process that is gone are ended by the next one, which here lives in the same process. */
  const die = async (): Promise<never> => {
    life.dead = true
    for (const [session, epoch] of leases) await inner.release(session, epoch).catch(() => {})
    life.gone()
    return never
  }
  const commit: CompleteStore['commit'] = async (writes) => {
    life.commits += 1
    const isLast = life.commits === stop
    if (isLast && when === 'before') return die()
    const receipts = await inner.commit(writes)
    return isLast ? die() : receipts
  }
  const claim: CompleteStore['claim'] = async (session, ...args) => {
    const given = await inner.claim(session, ...args)
    if (given) leases.set(session, given.epoch)
    return life.dead ? never : given
  }
  const own = { commit, claim }
  const store = new Proxy(withoutTake(inner), {
    get: (target, name, outer: unknown) => {
      const member: unknown = name in own ? Reflect.get(own, name) : Reflect.get(target, name)
      if (member === inner) return outer
      if (typeof member !== 'function' || name === 'now' || String(name).startsWith('watch')) return member
      return (...args: readonly unknown[]): unknown => (life.dead ? never : Reflect.apply(member, undefined, args))
    },
  })
  return { store, life, died }
}

/** One process: it asks for the outcome, and works until that has ended or the process is gone. */
async function live(store: CompleteStore, died: Promise<void>): Promise<void> {
  const harness = new Harness({ model: poet(), store })
  const pursue = async (): Promise<void> => {
    await harness.open({ id: 's', reuse: true })
    const session = harness.session('s')
    await session.pursue({ ...TASK, id: 'mine', roundsMax: 5 })
    const worked = harness.work()
    while ((await look(session)).end === null) await new Promise((resolve) => setTimeout(resolve, 2))
    await harness.close()
    await worked
  }
  await Promise.race([pursue(), died])
}

it('B-OUTCOME-21: gone before or after any commit, it has the same rounds in the end, each graded once', async () => {
  const whole = mortalStore(memory(), 0, 'before')
  await live(whole.store, whole.died)
  const { commits } = whole.life
  expect(commits).toBeGreaterThan(20)
  for (let stop = 1; stop <= commits; stop++)
    for (const when of ['before', 'after'] as const) {
      const inner = memory()
      const { store, died } = mortalStore(inner, stop, when)
      await live(store, died)
      await live(inner, new Promise(() => {}))
      await checkEnd(inner, `${when} commit ${stop} of ${commits}`)
    }
}, 300_000)

it('B-OUTCOME-22: a process that is killed at some of its commits leaves the rest to the next one', async () => {
  for (const [stop, when] of KILLS) {
    const order = { file: join(makeFolder(), 'terret.db'), stop, when }
    expect(await play(order)).toBe('here')
    expect(await play({ ...order, stop: 0 })).toMatch(/^ended/)
    const store = sqlite(order.file)
    await checkEnd(store, `${when} ${stop}`)
    await store.close()
  }
}, 300_000)

/** The first round, its grading, the second round, and the last grading. */
const KILLS = [
  [2, 'after'],
  [5, 'before'],
  [7, 'after'],
  [12, 'before'],
  [17, 'after'],
  [23, 'after'],
] as const
