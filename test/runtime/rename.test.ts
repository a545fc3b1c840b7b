// The title of a session that is given by hand: when it is admitted, where it goes along, and what is refused.
import { describe, expect, it } from 'vitest'
import { type CompleteStore, Fault } from '../../src/index.ts'
import {
  archiveOf,
  checkArchive,
  exportSession,
  importSession,
  readLog,
  recordingOf,
  redecide,
  removeArchived,
  restoreArchive,
} from '../../src/replay.ts'
import { laneId } from '../../src/view/lanes.ts'
import { makeFile, open } from '../stores/folder.ts'
import { move } from '../stores/moving.ts'
import { keeper, told } from '../consumers/stage.ts'
import { until } from '../until.ts'
import { calls, lines, make, STORAGES, storeOf, typesIn, waiting } from './scene.ts'

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'taken',
    (error: unknown) => (error instanceof Fault ? error.code : error),
  )

async function titleOf(store: CompleteStore, session: string): Promise<string | undefined> {
  return (await store.card(session))?.title
}

describe.each(STORAGES)('a title given to a session, on %s', (storage) => {
  it('B-TITLE-5: while another harness drives its run, which goes on, and whose model never reads it', async () => {
    const store = storeOf(storage)
    const slow = waiting('slow')
    const harness = make([calls('slow'), 'Done.'], { store, tools: [slow.tool] })
    const other = make([], { store, worker: { drives: false } })
    const session = await harness.open({ id: 's' })
    const run = session.run('Go.')
    await slow.runs.here
    const given = await other.session('s').rename('A long dig', { by: 'ann', id: 'mine' })
    expect(given).toEqual({ title: 'A long dig', seq: expect.any(Number) as number, duplicate: false })
    expect(await titleOf(store, 's')).toBe('A long dig')
    slow.go()
    expect(await run).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(await other.session('s').rename('A long dig', { by: 'ann', id: 'mine' })).toEqual({
      ...given,
      duplicate: true,
    })
    expect(await titleOf(store, 's')).toBe('A long dig')
    expect(lines(await session.messages()).join('\n')).not.toContain('A long dig')
    expect((await typesIn(session)).filter((type) => type === 'run.started')).toHaveLength(1)
    expect(redecide(await readLog(store, 's'))).toEqual([])
  })

  it('B-TITLE-5: of a session that rests, nothing happens but the title: no worker looks, and its status stays', async () => {
    const store = storeOf(storage)
    const harness = make(['One.'], { store })
    const session = await harness.open({ id: 's' })
    await session.rename('Before the first message')
    expect(await harness.work({ idleMs: 0 })).toMatchObject({ looks: 0 })
    expect(await titleOf(store, 's')).toBe('Before the first message')
    await session.run('First words.')
    expect(await titleOf(store, 's')).toBe('Before the first message')
    const before = await session.status()
    await session.rename('After it')
    const after = await session.status()
    expect(after).toEqual({ ...before, seq: before.seq + 1, at: after.at })
    expect(await harness.work({ idleMs: 0 })).toMatchObject({ looks: 0 })
  })

  it('B-TITLE-6: goes along with a fork, an export, an archive and a recording, and is gone with its session', async () => {
    const store = storeOf(storage)
    const harness = make(['One.', 'Two.'], { store })
    const session = await harness.open({ id: 's', metadata: { title: 'The host' } })
    await session.run('First words.')
    await session.rename('Given by hand')
    const fork = await session.fork({ id: 'f' })
    expect(await titleOf(store, 'f')).toBe('Given by hand')
    await fork.rename('Another way')
    expect([await titleOf(store, 's'), await titleOf(store, 'f')]).toEqual(['Given by hand', 'Another way'])
    await harness.remove('f')
    expect(await codeOf(harness.session('f').rename('Too late'))).toBe('session_missing')
    const there = storeOf(storage)
    const taken = await importSession(there, await exportSession(store, 's'))
    expect(taken.title).toBe('Given by hand')
    const recording = recordingOf(await readLog(store, 's'))
    const copy = storeOf(storage)
    const again = make(recording.model, { store: copy, tools: recording.tools })
    expect(await recording.run(await again.open(), copy)).toMatchObject({ divergence: null, sameTypes: true })
  })

  it('B-TITLE-6: an archived session and an archived fork come back with the titles they had', async () => {
    const store = storeOf(storage)
    const harness = make(['One.', 'Two.', 'Three.'], { store })
    const session = await harness.open({ id: 's' })
    await session.run('First words.')
    await session.rename('Given by hand')
    const fork = await session.fork({ id: 'f' })
    await fork.run('Words of its own.')
    await harness.open({ id: 'o' })
    await harness.session('o').run('Other words.')
    await harness.session('o').rename('Given too')
    for (const [id, title] of [
      ['f', 'Given by hand'],
      ['o', 'Given too'],
    ] as const) {
      expect(await titleOf(store, id)).toBe(title)
      const kept = await archiveOf(store, id)
      const [{ by } = { by: null }] = await removeArchived(store, kept, 'ann')
      await restoreArchive(store, await checkArchive(kept.records), by ?? null)
      expect(await titleOf(store, id)).toBe(title)
    }
  })

  it('B-TITLE-7: of a session that came from a file and is held, or that another program drives, and not of a lane', async () => {
    const store = storeOf(storage)
    const log = keeper('log')
    const harness = make(['One.', 'Two.'], {
      store,
      program: 'billing',
      plugins: [{ name: 'p', consumers: [{ name: log.name, run: log.run }] }],
    })
    const session = await harness.open({ id: 's' })
    await session.run('First words.')
    await told(log, 1)
    await session.schedule({ inMs: 3_600_000, reason: 'Look.' })
    await until(async () => expect(await store.card('s')).toMatchObject({ status: 'rescheduling' }))
    const other = make([], { store, program: 'other' })
    await other.session('s').rename('From outside', { by: 'ann' })
    expect(await titleOf(store, 's')).toBe('From outside')
    expect(await store.card('s')).toMatchObject({ status: 'rescheduling' })
    expect(await codeOf(harness.session(laneId('log', 's', 'billing'), { stored: true }).rename('Mine'))).toBe(
      'invalid_input',
    )
    const there = storeOf(storage)
    const { session: id } = await importSession(there, await exportSession(store, 's'))
    const held = make(['Three.'], { store: there }).session(id)
    await held.rename('Held')
    expect((await held.status({ at: (await held.status()).seq })).session).toMatchObject({ held: true })
    expect(await titleOf(there, id)).toBe('Held')
  })

  it('B-TITLE-8: what is no title is refused in one sentence, a long one is cut, and a closed session keeps its own', async () => {
    const store = storeOf(storage)
    const harness = make([], { store })
    const session = await harness.open({ id: 's' })
    for (const bad of [
      '',
      '  \n',
      '\u200b\u2060\u202e',
      '\u0000\u0007',
      5 as unknown as string,
      null as unknown as string,
    ])
      await expect(session.rename(bad)).rejects.toMatchObject({
        code: 'invalid_input',
        message: 'A title is a text with something visible in it. Give one.',
      })
    for (const options of [{ by: '' }, { id: '' }, { to: 'x' } as object])
      expect(['invalid_input', 'invalid_config']).toContain(await codeOf(session.rename('A title', options)))
    expect(await codeOf(harness.session('nobody').rename('A title'))).toBe('session_missing')
    expect(await typesIn(session)).toEqual(['session.created'])
    const { title } = await session.rename(`\u001b[31m\u202eone\ntwo ${'long '.repeat(200_000)}`)
    expect(title).toMatch(/^\[31mone two (long ){10,}long…$/)
    expect(await titleOf(store, 's')).toBe(title)
    expect(JSON.stringify((await session.events()).events).length).toBeLessThan(1_000)
    await session.rename('First', { id: 'mine' })
    expect(await codeOf(session.rename('Second', { id: 'mine' }))).toBe('id_reused')
    await session.close()
    expect(await codeOf(session.rename('Third'))).toBe('session_closed')
    expect(await titleOf(store, 's')).toBe('First')
    await harness.close()
    expect(await codeOf(session.rename('Fourth'))).toBe('harness_closed')
  })

  it('B-TITLE-9: a known secret in it is replaced before it is cut, also where invisible characters stand in it', async () => {
    const store = storeOf(storage)
    const harness = make([], { store, secrets: { TOKEN: 'sk-very-secret-token' } })
    const session = await harness.open({ id: 's' })
    const titles = [
      'Use sk-very-secret-token',
      'Use sk-very\u200b-secret\u2060-token',
      `${'x'.repeat(70)} sk-very-secret-token`,
    ]
    const given: string[] = []
    for (const title of titles) given.push((await session.rename(title)).title)
    expect(given).toEqual(['Use ⟦secret:TOKEN⟧', 'Use ⟦secret:TOKEN⟧', expect.stringMatching(/^x{70}…$/)])
    expect(JSON.stringify([(await session.events()).events, await store.card('s')])).not.toContain('very')
  })
})

it('B-TITLE-6: goes along with a store that is moved', async () => {
  const [from, to] = [makeFile(), makeFile()]
  const harness = make(['One.'], { store: open(from) })
  const session = await harness.open({ id: 's' })
  await session.run('First words.')
  await session.rename('Given by hand')
  await session.fork({ id: 'f' })
  await session.rename('Given later')
  await harness.close()
  await move(from, to)
  const moved = open(to)
  expect([await titleOf(moved, 's'), await titleOf(moved, 'f')]).toEqual(['Given later', 'Given by hand'])
  const page = await moved.page({ q: 'later', order: 'newest', limit: 5 })
  expect(page.cards.map(({ session: id }) => id)).toEqual(['s'])
})
