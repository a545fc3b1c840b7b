// What agents learned: taken from the logs, shared by the sessions of an agent, made again when the file is gone or damaged.
import { execFile } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import type { CompleteStore } from '../../src/ports/store.ts'
import { openMemory } from '../../src/memory/index.ts'
import { learningText } from '../../src/tools/core/directive.ts'
import { begin, write } from '../contract/fixture.ts'
import { saidIn } from '../runtime/hooks-stage.ts'
import { meddle } from '../stores/folder.ts'
import { closing, learns, place, staged } from './stage.ts'
import { storeWith } from '../../sim/store-with.ts'

const vpn = { kind: 'lesson', title: 'Deploys need the VPN', detail: 'Staging deploys fail without it.' } as const

/** A session of agent `a` whose log holds these learnings. */
async function teach(
  store: CompleteStore,
  session: string,
  learnings: readonly Parameters<typeof learningText>[0][],
): Promise<void> {
  const owner = await begin(store, session)
  await write(
    store,
    owner,
    learnings.map((one) => ({ type: 'note.added', kind: 'learning', text: learningText(one) })),
  )
  await store.release(session, owner.epoch)
}

/** Overwrites the first page of these tables. */
function scribble(file: string, tables: readonly string[]): void {
  const pages = meddle(file, (db) =>
    tables.map(
      (name) => db.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').get(name) as { rootpage: number },
    ),
  )
  const bytes = readFileSync(file)
  for (const { rootpage } of pages) bytes.fill(0xff, (rootpage - 1) * 4_096, rootpage * 4_096)
  const to = openSync(file, 'r+')
  writeSync(to, bytes, 0, bytes.length, 0)
  closeSync(to)
}

describe('learnings', () => {
  it('B-MEMORY-20: what one session learned, later sessions of its agent recall; what it is doing stays its own (AC-120, S4-25)', async () => {
    const here = place()
    const first = staged(here, [learns(vpn), 'Deployed.'])
    const one = await first.harness.run('Deploy to staging.')
    const second = staged(here, ['With the VPN on, then.'])
    const two = await second.harness.run('Please deploy the staging server.')
    const recalled = saidIn(second.requests[0]).find((text) => text.includes('Deploys need the VPN'))
    const [learned] = await here.memory.list('default')
    expect(recalled).toContain(`[${learned?.id}]`)
    expect(learned?.id).toMatch(new RegExp(`^${one.sessionId}:\\d+$`))
    // The state of the first is in no file of the second.
    const [mine, theirs] = [one, two].map(({ sessionId }) =>
      readFileSync(join(here.dir, sessionId, 'checkpoint.json'), 'utf8'),
    )
    expect(JSON.parse(mine ?? '')).toMatchObject({ lastSummary: 'learned', responseMessage: 'Deployed.' })
    expect(JSON.parse(theirs ?? '')).toMatchObject({ lastSummary: null, responseMessage: 'With the VPN on, then.' })
    expect(readFileSync(join(here.dir, two.sessionId, 'session-state.md'), 'utf8')).not.toContain(one.sessionId)
  })

  it('B-MEMORY-21: agents do not recall what others learned (TRAP-19)', async () => {
    const here = place()
    const agents = { subagents: { other: { description: 'Another agent', instructions: '' } } }
    await staged(here, [learns(vpn), 'Deployed.'], agents).harness.run('Deploy to staging.')
    const other = staged(here, ['No idea.'], agents)
    await other.harness.run('Deploy to staging.', { agent: 'other' })
    expect(saidIn(other.requests[0]).join('\n')).not.toContain('VPN')
    expect(await here.memory.list('other')).toEqual([])
  })

  it('B-MEMORY-22: the same learning is kept once: by its key, else by its kind, title and detail; the earliest stands (S4-25)', async () => {
    const { store, memory } = place()
    const keyed = { ...vpn, key: 'vpn' }
    await teach(store, 's1', [vpn, keyed])
    await teach(store, 's2', [vpn, { ...keyed, detail: 'Said otherwise.' }, { ...vpn, kind: 'error' }])
    for (const session of ['s2', 's1', 's2']) await memory.learn(session)
    const kept = await memory.list('a')
    expect(kept.map(({ id, kind, detail }) => [id, kind, detail])).toEqual([
      ['s1:2', 'lesson', vpn.detail],
      ['s1:3', 'lesson', vpn.detail],
      ['s2:4', 'error', vpn.detail],
    ])
  })

  it('B-MEMORY-23: a deleted file is made again from the logs, with the same learnings', async () => {
    const { store, memory, file } = place()
    for (let n = 0; n < 5; n++) await teach(store, `s${n}`, [{ ...vpn, title: `Title ${n}` }, vpn])
    const before = await memory.list('a')
    expect(before).toHaveLength(6)
    await memory.close()
    for (const part of ['', '-wal', '-shm']) rmSync(`${file}${part}`, { force: true })
    const again = closing(openMemory({ file, store }))
    expect(await again.list('a')).toEqual(before)
    expect(await again.recall('a', 'Title 3')).toEqual(await again.recall('a', 'Title 3'))
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('B-MEMORY-24: a damaged file is made again, said in one line, and put aside', async () => {
    const { store, memory, file } = place()
    await teach(store, 's', [vpn])
    const before = await memory.list('a')
    await memory.close()
    const damage: readonly (() => void)[] = [
      () => writeFileSync(file, 'this is not a database, and long enough to be read as one '.repeat(200)),
      () => scribble(file, ['learnings', 'words_data']),
    ]
    for (const harm of damage) {
      harm()
      const said: string[] = []
      const again = closing(openMemory({ file, store, report: (line) => void said.push(line) }))
      expect(await again.recall('a', 'deploys and the VPN', { timeoutMs: 20_000 })).toMatchObject([
        { title: vpn.title },
      ])
      expect(await again.list('a')).toEqual(before)
      expect(said).toHaveLength(1)
      expect(said[0]).toMatch(/damaged; they have been taken from the logs again\.$/)
      expect(existsSync(`${file}.damaged`)).toBe(true)
      await again.close()
    }
  })

  it('B-MEMORY-25: damage that shows while it is open is mended there and then', async () => {
    const { store, memory, file } = place()
    await teach(store, 's', [vpn])
    await memory.learn('s')
    await memory.close()
    const said: string[] = []
    const again = closing(openMemory({ file, store, report: (line) => void said.push(line) }))
    await again.learn('s')
    scribble(file, ['learnings', 'words_data', 'words_idx'])
    const found = await Promise.all([1, 2, 3].map(() => again.recall('a', 'VPN', { timeoutMs: 20_000 })))
    for (const citations of found) expect(citations).toHaveLength(1)
    expect(said).toHaveLength(1)
  })

  it('B-MEMORY-26: a database of another program is left alone', async () => {
    const { store, file } = place()
    meddle(file, (db) => db.exec('CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)'))
    const memory = closing(openMemory({ file, store }))
    await expect(memory.list('a')).rejects.toMatchObject({ code: 'store_unsupported' })
    expect(meddle(file, (db) => db.prepare('SELECT x FROM theirs').all())).toHaveLength(1)
  })

  it('B-MEMORY-27: a log that cannot be read is named, and the others are learned from', async () => {
    const { store, memory, file, reports } = place()
    await teach(store, 's1', [vpn])
    await teach(store, 's2', [{ ...vpn, title: 'Another' }])
    const read: CompleteStore['read'] = async (session, after, limit) =>
      session === 's1' ? { events: [], damaged: { seq: 1, reason: 'a bad sum' } } : store.read(session, after, limit)
    const broken = storeWith(store, { read })
    await memory.close()
    const other = closing(
      openMemory({ file: `${file}.other`, store: broken, report: (line) => void reports.push(line) }),
    )
    expect(await other.list('a')).toMatchObject([{ title: 'Another' }])
    expect(reports).toEqual([expect.stringContaining('s1')])
  })

  it('B-MEMORY-28: several processes take in and promote at once: nothing is lost, nothing is there twice', async () => {
    const { store, memory, file, dir } = place()
    const sessions = Array.from({ length: 12 }, (_, i) => `s${i}`)
    for (const [i, session] of sessions.entries())
      await teach(store, session, [
        { ...vpn, title: `Own ${i}`, promote: true },
        { ...vpn, title: `Shared ${i % 3}`, promote: true },
      ])
    const promoted = `${dir}-MEMORY.md`
    const script = fileURLToPath(new URL('../../.build/test/memory/child-learn.js', import.meta.url))
    const database = join(file, '..', 'terret.db')
    const run = (order: readonly string[]) =>
      promisify(execFile)(process.execPath, [script, database, file, promoted, ...order], { timeout: 60_000 })
    await Promise.all([run(sessions), run(sessions.toReversed()), run(sessions.slice(6))])
    const titles = (await memory.list('a')).map(({ title }) => title)
    const expected = [...sessions.map((_, i) => `Own ${i}`), 'Shared 0', 'Shared 1', 'Shared 2']
    expect(titles.toSorted()).toEqual(expected.toSorted())
    const lines = readFileSync(promoted, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('- '))
    expect(lines.map((line) => line.split('**')[1] ?? '').toSorted()).toEqual(expected.toSorted())
  }, 90_000)

  it('B-MEMORY-29: promotion adds to MEMORY.md what asks for it or is named, once, and leaves the rest as it is (S4-25)', async () => {
    const { store, memory, dir } = place()
    await teach(store, 's', [
      { ...vpn, promote: true },
      { ...vpn, title: 'Not asked for' },
    ])
    const file = `${dir}-MEMORY.md`
    writeFileSync(file, '# Mine\n\nWritten by hand.')
    expect(await memory.promote('a', { file })).toMatchObject([{ id: 's:2' }])
    expect(await memory.promote('a', { file })).toEqual([])
    expect(await memory.promote('a', { file, ids: ['s:3'] })).toMatchObject([{ title: 'Not asked for' }])
    expect(readFileSync(file, 'utf8')).toBe(
      '# Mine\n\nWritten by hand.\n' +
        '- **Deploys need the VPN** (lesson): Staging deploys fail without it. <!-- s%3A2 -->\n' +
        '- **Not asked for** (lesson): Staging deploys fail without it. <!-- s%3A3 -->\n',
    )
    // One that begins as another does is not the same.
    await teach(store, 't', [
      { ...vpn, title: 'x', detail: 'Use it only on Mondays', promote: true },
      { ...vpn, title: 'x', detail: 'Use it', promote: true },
    ])
    await memory.learn('t')
    expect(await memory.promote('a', { file, ids: ['t:2'] })).toHaveLength(1)
    expect(await memory.promote('a', { file, ids: ['t:3'] })).toHaveLength(1)
    await expect(memory.promote('a', { file, ids: ['s:9'] })).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(memory.promote('a', { file: join(file, 'x') })).rejects.toMatchObject({ code: 'io_error' })
  })
  it('B-MEMORY-30: what is forgotten is gone for good: from MEMORY.md too, when another session learns it, and when the file is made again', async () => {
    const { store, memory, file, dir } = place()
    await teach(store, 's1', [vpn, { ...vpn, title: 'Another' }])
    const promoted = `${dir}-MEMORY.md`
    writeFileSync(promoted, '# Mine\n\nWritten by hand.\n')
    await memory.promote('a', { file: promoted, ids: ['s1:2', 's1:3'] })
    expect(await memory.forget('a', 's1:2', { file: promoted })).toMatchObject({ id: 's1:2', title: vpn.title })
    expect(readFileSync(promoted, 'utf8')).toMatch(/^# Mine\n\nWritten by hand\.\n- \*\*Another\*\* [^\n]*\n$/)
    expect(await memory.recall('a', 'deploys and the VPN', { timeoutMs: 20_000 })).toMatchObject([{ title: 'Another' }])
    await teach(store, 's2', [vpn])
    await memory.learn('s2')
    await memory.close()
    for (const part of ['', '-wal', '-shm']) rmSync(`${file}${part}`, { force: true })
    const again = closing(openMemory({ file, store }))
    expect(await again.list('a')).toMatchObject([{ title: 'Another' }])
    await expect(again.forget('a', 's1:2')).rejects.toMatchObject({ code: 'invalid_input' })
    // Nothing of the text is kept in order to remember that it is forgotten.
    expect(readFileSync(`${file}.forgotten`, 'utf8')).toMatch(/^[0-9a-f]{64}\n$/)
  })

  it('B-MEMORY-31: with `sessions` only those are taken in, and of many known ones only the newest are looked at', async () => {
    const { store, memory, file } = place()
    await memory.close()
    const own = Array.from({ length: 150 }, (_, i) => `s${i}`)
    for (const session of [...own, 'theirs']) await teach(store, session, [{ ...vpn, title: session }])
    let asked = 0
    const list: CompleteStore['list'] = (query) => {
      asked += 1
      return store.list(query)
    }
    const counting = storeWith(store, { list })
    const titles = async (sessions: readonly string[]): Promise<readonly string[]> => {
      asked = 0
      const some = closing(openMemory({ file, store: counting, sessions: () => sessions }))
      const found = (await some.list('a')).map(({ title }) => title)
      await some.close()
      return found
    }
    expect((await titles(own)).toSorted()).toEqual(own.toSorted())
    expect(asked).toBe(own.length)
    // A process that was lost before it had learned from its session leaves that to the next.
    await teach(store, 'lost', [{ ...vpn, title: 'lost' }])
    expect(await titles([...own, 'lost'])).toContain('lost')
    expect(asked).toBe(101)
  })
})
