// The crash test as part of the suite: a few rounds of real kills, and the proof that its comparison can fail. The long run is
// `npm run crash -- --rounds 100`.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Event, InboxBody } from '../../src/kernel/event.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import { Worker } from '../../src/runtime/loop/worker.ts'
import { memory } from '../../src/stores/memory/memory-store.ts'
import { checkEffects } from './effect-check.ts'
import { Appender, digestOf, type JournalLine, type OracleLine, readLines } from './evidence.ts'
import { callsOf, checkEnvelopes, checkRequests, checkRest, checkShown, refoldSession } from './log-check.ts'
import { CREATED, creation, message, servicesOf } from './stage.ts'
import { type Evidence, verify } from './verify.ts'
import { agentOf } from './workload.ts'

const program = fileURLToPath(new URL('../../.build/test/crash/main.js', import.meta.url))

describe('workers killed with SIGKILL, one after another', () => {
  it('B-CRASH-1, B-CRASH-2, B-CRASH-3, B-CRASH-4, B-CRASH-5: lose, double and rewrite nothing, and all settles', () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, '--rounds', '4', '--seed', '7'], {
      encoding: 'utf8',
      timeout: 110_000,
    })
    expect(`${stdout}${stderr}`).toMatch(/lost +0 .*\n +duplicated +0\n[^]*once twice +0\n[^]*violations 0;/)
    expect(status).toBe(0)
  }, 120_000)
})

it('B-TRIGGER-50, B-TRIGGER-51: servers that take deliveries in are killed, and each 202 has one session and one effect', () => {
  const args = [program, '--triggers', '--rounds', '4', '--seed', '7']
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 170_000 })
  expect(`${stdout}${stderr}`).toMatch(/kills +4 [^]*\n +lost +0\n +twice +0\nviolations 0;/)
  expect(status).toBe(0)
}, 180_000)

describe('the comparison', () => {
  let folder = ''
  let store: CompleteStore
  let evidence: Evidence
  let events: readonly Event[]

  /** One session that ran to its end without any kill: a once call, an idempotent one, and a second message. */
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'terret-crash-'))
    store = memory()
    const oracle = join(folder, 'oracle.jsonl')
    const agent = agentOf(new Appender<OracleLine>(oracle), oracle)
    const turn = { thinkMs: 0, flaky: false, calls: ['pay', 'put'].map((tool) => ({ tool, ms: 0, bytes: 9 })) }
    const sent = [message('c1', { turns: [turn] }), message('c2', { turns: [] })]
    await store.commit([creation('s', store.now())])
    const worker = new Worker(servicesOf(store, agent), { id: 'w' })
    for (const body of sent) {
      await store.commit([{ session: 's', lane: 'inbox', events: [body] }])
      await worker.wake('s')
    }
    await worker.close()
    events = (await store.read('s', 0)).events
    const reads = new Map([['s', { digests: events.map(digestOf) }]])
    evidence = { journal: journalOf(events, sent), oracle: readLines(oracle), errors: [], reads }
  })

  afterAll(() => rmSync(folder, { recursive: true }))

  it('finds nothing wrong where nothing is', async () => {
    const verdict = await verify(store, evidence)
    expect(verdict.violations).toEqual([])
    expect(verdict).toMatchObject({ sessions: 1, calls: 2, outcomes: { completed: 2 } })
    expect(verdict.journal).toMatchObject({ acknowledged: 3, lost: 0, duplicated: 0 })
    expect(verdict.effects).toMatchObject({ ran: { read: 0, idempotent: 1, once: 1 }, onceTwice: 0, repeated: 0 })
  })

  it('B-CRASH-1: finds an acknowledged event that is not there, or not in its place, or not as it was sent', async () => {
    const line = evidence.journal.find((entry) => entry.type === 'ack' && entry.id === 'c2')
    for (const change of [{ id: 'c3' }, { seq: 999 }, { seq: 3 }]) {
      const journal = [...evidence.journal.filter((entry) => entry !== line), { ...line, ...change } as JournalLine]
      expect((await verify(store, { ...evidence, journal })).journal.lost).toBe(1)
    }
    const other = evidence.journal.map((entry) => (entry.type === 'try' ? { ...entry, digest: 'x' } : entry))
    expect((await verify(store, { ...evidence, journal: other })).journal.lost).toBe(3)
    const twice = [...evidence.journal, { ...line, seq: 2 } as JournalLine]
    expect((await verify(store, { ...evidence, journal: twice })).violations).toHaveLength(1)
  })

  it('B-CRASH-1: finds an event that was never sent, and one that is there twice', async () => {
    const unsent = evidence.journal.filter((entry) => entry.id !== 'c2')
    expect((await verify(store, { ...evidence, journal: unsent })).violations).toHaveLength(1)
    const double = [...events, { ...events[1], seq: events.length + 1 } as Event]
    expect(checkEnvelopes(double)).toContain(`duplicated: c1 is there again at event ${double.length}`)
  })

  it('B-CRASH-2: finds a once effect that ran twice, and one that ran without an intent', () => {
    const calls = callsOf('s', events)
    const again = checkEffects(calls, [...evidence.oracle, ...evidence.oracle])
    expect(again).toMatchObject({ onceTwice: 1, repeated: 1 })
    expect(again.wrong).toContainEqual(expect.stringContaining('a once effect ran 2 times'))
    const unintended = calls.map((call) => ({ ...call, intents: [] }))
    expect(checkEffects(unintended, evidence.oracle).wrong).toHaveLength(2)
    expect(checkEffects([], evidence.oracle).wrong).toHaveLength(2)
    expect(checkEffects(calls, []).wrong).toHaveLength(2)
  })

  it('B-CRASH-2: finds a call that ran without being allowed, or although it was denied', () => {
    const [pay] = callsOf('s', events)
    if (!pay) throw new Error('no call')
    expect(checkEffects([{ ...pay, gate: 'ask' }], evidence.oracle).wrong).toContainEqual(
      expect.stringContaining('without being allowed'),
    )
    const results = pay.results.map((result) => ({ ...result, status: 'denied' as const }))
    expect(checkEffects([{ ...pay, results }], evidence.oracle).wrong).toContainEqual(
      expect.stringContaining('it was denied and ran'),
    )
  })

  it('B-CRASH-3: finds a call without a result, an open run, and an input that was shown twice or never', () => {
    const answered = events.findIndex((event) => event.type === 'agent.tool_result')
    const cut = events.slice(0, answered)
    expect(checkRest(refoldSession(cut).end)).toHaveLength(1)
    expect(checkEffects(callsOf('s', cut), evidence.oracle).wrong).toHaveLength(2)
    const { end } = refoldSession(events)
    const reshown = events.map((event) => (event.type === 'model.started' ? { ...event, shows: [2] } : event))
    expect(checkShown(reshown, end)).toContainEqual('user.message 2 was shown 3 times')
    const late = { ...events[1], id: 'late', seq: events.length + 1, at: end.at } as Event
    const closed = [
      ...events,
      late,
      { type: 'session.closed', seq: late.seq + 1, at: end.at, epoch: end.epoch } as Event,
    ]
    expect(checkShown(closed, refoldSession(closed).end)).toEqual([])
    const unanswered = events.filter((event) => event.type !== 'agent.tool_result')
    expect(checkRequests(unanswered)).not.toEqual([])
  })

  it('B-CRASH-4: finds a once call that was lost with its worker and is not unknown', () => {
    const [pay] = callsOf('s', events)
    if (!pay) throw new Error('no call')
    const lost = { ...pay, results: pay.results.map((result) => ({ ...result, epoch: result.epoch + 1 })) }
    expect(checkEffects([lost], evidence.oracle).wrong).toContainEqual(expect.stringContaining('its worker was lost'))
    const unknown = { ...lost, results: lost.results.map((result) => ({ ...result, status: 'unknown' as const })) }
    expect(checkEffects([unknown], evidence.oracle.slice(0, 1))).toMatchObject({ wrong: [], unknown: 1 })
  })

  it('B-CRASH-5: finds an event that changed after it was read, a gap, and an attempt that broke an invariant', async () => {
    const reads = new Map([['s', { digests: ['x'] }]])
    expect((await verify(store, { ...evidence, reads })).violations).toHaveLength(1)
    expect(checkEnvelopes(events.slice(1))).not.toEqual([])
    const bug = { kind: 'Bug', code: '', session: 's', text: 'invariant broken' }
    expect((await verify(store, { ...evidence, errors: [bug] })).violations).toHaveLength(1)
    const busy = { kind: 'Fault', code: 'store_busy', session: 's', text: 'busy' }
    const tolerated = await verify(store, { ...evidence, errors: [busy] })
    expect(tolerated).toMatchObject({ violations: [], faults: { store_busy: 1 } })
  })
})

function journalOf(events: readonly Event[], sent: readonly InboxBody[]): readonly JournalLine[] {
  const entries = [{ id: 'created', body: CREATED }, ...sent.map((body) => ({ id: body.id, body }))]
  return entries.flatMap(({ id, body }): readonly JournalLine[] => {
    const seq = id === 'created' ? 1 : (events.find((event) => 'id' in event && event.id === id)?.seq ?? 0)
    return [
      { type: 'try', session: 's', id, digest: digestOf(body) },
      { type: 'ack', session: 's', id, seq, verb: 'send' },
    ]
  })
}
