// Wakes that a host schedules, and messages for later: when they are admitted, when their run begins, and what is refused.
import { describe, expect, it } from 'vitest'
import { Fault, type ScheduleOptions, scripted, type SessionHandle } from '../../src/index.ts'
import { importSession, exportSession } from '../../src/replay.ts'
import { calls, lines, make, STORAGES, storeOf, typesIn, users, waiting } from './scene.ts'
import { until } from '../until.ts'

const FAR_MS = 3_600_000

const problemOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'taken',
    (error: unknown) => (error instanceof Fault ? error.code : error),
  )

async function startsOf(session: SessionHandle) {
  return (await session.events()).events.filter(({ type }) => type === 'run.started')
}

describe.each(STORAGES)('a schedule of a session, on %s', (storage) => {
  it('B-SCHED-1: the run begins when its time has come, once, and the model reads the reason; a past time is due at once', async () => {
    const store = storeOf(storage)
    const harness = make(['Looked.', 'Again.'], { store })
    const session = await harness.open()
    const over = new AbortController()
    const worked = harness.work({ signal: over.signal })
    const due = store.now() + 300
    expect(await session.schedule({ at: due, reason: 'Is the build green?', key: 'build' })).toMatchObject({
      key: 'build',
      due,
      duplicate: false,
    })
    await until(async () => expect((await session.result())?.text).toBe('Looked.'))
    const [start] = await startsOf(session)
    expect(start).toMatchObject({ wakes: ['build'] })
    expect(start?.at).toBeGreaterThanOrEqual(due)
    expect(lines(await session.messages())[0]).toContain('It is time for what was scheduled: Is the build green?')
    await session.schedule({ at: new Date(1_000), reason: 'Late.' })
    await until(async () => expect((await session.result())?.text).toBe('Again.'))
    expect(await startsOf(session)).toHaveLength(2)
    over.abort()
    await worked
  })

  it('B-SCHED-1, B-SCHED-2: while a worker drives it too, and the first under a key stands', async () => {
    const store = storeOf(storage)
    const note = waiting('note')
    const harness = make([calls('note'), 'Done.'], { store, tools: [note.tool] })
    const session = await harness.open()
    const run = session.run('Go.')
    await note.runs.here
    const at = store.now() + FAR_MS
    const first = await session.schedule({ at: new Date(at), reason: 'First.', key: 'a' })
    expect(await session.schedule({ inMs: 5, reason: 'Second.', key: 'a' })).toEqual({ ...first, duplicate: true })
    note.go()
    expect(await run).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(await store.card(session.id)).toMatchObject({ status: 'rescheduling', due: at, wakes: 1 })
    expect((await typesIn(session)).filter((type) => type === 'user.schedule')).toHaveLength(1)
  })

  it('B-SCHED-3: unschedule drops a wake by its key and says whether one waited', async () => {
    const store = storeOf(storage)
    const harness = make([], { store })
    const session = await harness.open()
    const { key } = await session.schedule({ inMs: FAR_MS })
    const before = await typesIn(session)
    expect(await session.unschedule('nobody')).toBe(false)
    expect(await typesIn(session)).toEqual(before)
    expect(await session.unschedule(key, { by: 'ann' })).toBe(true)
    expect(await session.unschedule(key)).toBe(false)
    await until(async () => expect(await store.card(session.id)).toMatchObject({ status: 'idle', due: null, wakes: 0 }))
  })

  it('B-SCHED-4: of 150 that come at once 100 stand, the others are refused, and the log says the same', async () => {
    const store = storeOf(storage)
    const session = await make([], { store }).open()
    const all = Array.from({ length: 150 }, (_, i) => problemOf(session.schedule({ inMs: FAR_MS, key: `k${i}` })))
    const codes = await Promise.all(all)
    expect(codes.filter((code) => code === 'taken')).toHaveLength(100)
    expect(codes.filter((code) => code === 'too_many')).toHaveLength(50)
    const { seq } = await session.status()
    expect((await session.status({ at: seq })).session.wakes).toHaveLength(100)
    expect(await problemOf(session.schedule({ inMs: FAR_MS, key: 'one more' }))).toBe('too_many')
    expect(await session.schedule({ inMs: 1, key: codes.indexOf('taken') === 0 ? 'k0' : 'k1' })).toMatchObject({
      duplicate: true,
    })
  })

  it('B-SCHED-5: a stop and a pause drop the wakes, and a message for later is stopped or held', async () => {
    const store = storeOf(storage)
    const harness = make(['Said.'], { store })
    const session = await harness.open()
    await session.schedule({ inMs: FAR_MS, key: 'a' })
    await session.send('Later.', { at: store.now() + FAR_MS })
    await session.interrupt('pause')
    const state = async () => (await session.status({ at: (await session.status()).seq })).session
    expect(await state()).toMatchObject({ wakes: [], inputs: [{ when: 'after' }], paused: true })
    await session.interrupt('stop')
    await until(async () => expect((await state()).inputs).toEqual([]))
    expect(await session.run('Now.')).toMatchObject({ status: 'completed' })
    expect(lines(await session.messages())).toEqual(['user: Later.', 'user: Now.', 'assistant: Said.'])
  })

  it('B-SCHED-7, B-SCHED-8: a message for later is on disk, steers nothing, and is read in a run of its own', async () => {
    const store = storeOf(storage)
    const note = waiting('note')
    const seen: (readonly string[])[] = []
    const harness = make(
      scripted((request) => {
        seen.push(users(request))
        return request.messages.at(-1)?.role === 'user' && seen.length === 1 ? calls('note') : 'Done.'
      }),
      { store, tools: [note.tool] },
    )
    const session = await harness.open()
    const run = session.run('Go.')
    await note.runs.here
    const at = store.now() + FAR_MS
    const { seq, duplicate } = await session.send('In a while.', { at, id: 'mine' })
    expect(duplicate).toBe(false)
    expect(await session.send('In a while.', { at, id: 'mine' })).toMatchObject({ seq, duplicate: true })
    note.go()
    expect(await run).toMatchObject({ status: 'completed' })
    expect(seen).toEqual([['Go.'], ['Go.']])
    expect(await store.card(session.id)).toMatchObject({ status: 'rescheduling', due: at })
    // It waits for nobody: a message that takes only an idle session is taken.
    await session.send('Meanwhile.', { when: 'idle' })
    await until(async () => expect(seen.at(-1)).toEqual(['Go.', 'Meanwhile.']))
    const over = new AbortController()
    const worked = harness.work({ signal: over.signal })
    const soon = store.now() + 200
    const later = await session.send('Soon.', { at: new Date(soon) })
    await until(async () => expect(seen.at(-1)).toEqual(['Go.', 'Meanwhile.', 'Soon.']))
    const starts = await startsOf(session)
    expect(starts.at(-1)).toMatchObject({ inputs: [later.seq] })
    expect(starts.at(-1)?.at).toBeGreaterThanOrEqual(soon)
    over.abort()
    await worked
  })

  it('B-SCHED-9: bad input is refused with one sentence, and nothing is written', async () => {
    const store = storeOf(storage)
    const session = await make([], { store }).open()
    const before = await typesIn(session)
    const far = store.now() + 3_651 * 24 * FAR_MS
    const bad: readonly object[] = [
      {},
      { reason: 'When?' },
      { at: 1, inMs: 1 },
      { at: Number.NaN },
      { at: new Date('nonsense') },
      { at: '2027-01-31' },
      { at: -1 },
      { at: Number.POSITIVE_INFINITY },
      { at: far },
      { inMs: far },
      { inMs: -1 },
      { inMs: '5' },
      { inMs: 1, reason: '' },
      { inMs: 1, reason: '  ' },
      { inMs: 1, reason: 'x'.repeat(2_001) },
      { inMs: 1, reason: 7 },
      { inMs: 1, key: '' },
      { inMs: 1, key: 'x'.repeat(513) },
      { inMs: 1, key: '\ud800' },
      { inMs: 1, id: 'terret:mine' },
    ]
    for (const options of bad) {
      const error = await session.schedule(options as ScheduleOptions).catch((why: unknown) => why)
      expect([options, (error as Fault).code, /^[^\n]+\.$/.test((error as Fault).message)]).toEqual([
        options,
        'invalid_input',
        true,
      ])
    }
    for (const options of [
      { at: -1 },
      { at: Number.NaN },
      { at: far },
      { at: 5, when: 'now' },
      { at: 5, when: 'idle' },
    ])
      expect(await problemOf(session.send('Hi.', options as object))).toBe('invalid_input')
    expect(await problemOf(session.send('Hi.', { at: 5, signal: AbortSignal.timeout(60_000) }))).toBe('invalid_input')
    expect(await problemOf(session.run('Hi.', { at: 5 } as object))).toBe('invalid_config')
    for (const key of ['', 'x'.repeat(513), 5])
      expect(await problemOf(session.unschedule(key as string))).toBe('invalid_input')
    expect(await problemOf(session.schedule({ inMs: 1, soon: true } as ScheduleOptions))).toBe('invalid_config')
    expect(await typesIn(session)).toEqual(before)
    await session.close()
    expect(await problemOf(session.schedule({ inMs: 1 }))).toBe('session_closed')
    expect(await problemOf(session.unschedule('a'))).toBe('session_closed')
    expect(await problemOf(session.send('Hi.', { at: store.now() + FAR_MS }))).toBe('session_closed')
    expect(await problemOf(make([], { store }).session('nobody').schedule({ inMs: 1 }))).toBe('session_missing')
  })

  it('B-SCHED-10: the same id twice is one request, also after its run, and another request under it is refused', async () => {
    const store = storeOf(storage)
    const harness = make(['Looked.'], { store })
    const session = await harness.open()
    const first = await session.schedule({ inMs: 0, reason: 'Look.', id: 'mine' })
    await until(async () => expect((await session.result())?.text).toBe('Looked.'))
    expect(await session.schedule({ inMs: 0, reason: 'Look.', id: 'mine' })).toEqual({ ...first, duplicate: true })
    expect(await problemOf(session.schedule({ inMs: 0, reason: 'Else.', id: 'mine' }))).toBe('id_reused')
    await harness.work({ idleMs: 0 })
    expect(await startsOf(session)).toHaveLength(1)
  })

  it('B-SCHED-11: a fork takes neither along; an import keeps both with their times, held until it is resumed', async () => {
    const store = storeOf(storage)
    const harness = make(['One.', 'Two.', 'Three.'], { store })
    const session = await harness.open()
    await session.run('Go.')
    const at = store.now() + FAR_MS
    await session.schedule({ at, reason: 'Look.', key: 'a' })
    await session.send('Later.', { at: at + 1 })
    const state = async (one: SessionHandle) => (await one.status({ at: (await one.status()).seq })).session
    const fork = await session.fork()
    expect(await state(fork)).toMatchObject({ wakes: [], inputs: [] })
    const there = storeOf(storage)
    const other = make(['Four.'], { store: there })
    const taken = await importSession(there, await exportSession(store, session.id))
    const imported = other.session(taken.session)
    expect(await state(imported)).toMatchObject({
      held: true,
      wakes: [{ key: 'a', due: at }],
      inputs: [{ due: at + 1, when: 'after' }],
    })
    await imported.send([{ type: 'resume' }])
    await until(async () => expect(await there.card(imported.id)).toMatchObject({ status: 'rescheduling', due: at }))
  })

  it('B-SCHED-1: a known secret in a reason and a key is not written down, and the key still cancels', async () => {
    const store = storeOf(storage)
    const harness = make([], { store, secrets: { TOKEN: 'sk-very-secret-token' } })
    const session = await harness.open()
    await session.schedule({ inMs: FAR_MS, reason: 'Use sk-very-secret-token.', key: 'of sk-very-secret-token' })
    expect(JSON.stringify((await session.events()).events)).not.toContain('very-secret')
    expect(await session.schedule({ inMs: 1, key: 'of sk-very-secret-token' })).toMatchObject({ duplicate: true })
    expect(await session.unschedule('of sk-very-secret-token')).toBe(true)
  })
})
