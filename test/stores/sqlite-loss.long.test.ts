// Loss and damage that SQLite itself does not report: rows beside the logs, the write-ahead log, and files that go away.
import { copyFileSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { SCHEMA_VERSION } from '../../src/stores/sqlite/sqlite-schema.ts'
import type { Card } from '../../src/ports/store.ts'
import { admit, begin, card, claim, create, message, note, outcome, seqs, write } from '../contract/fixture.ts'
import { makeFile, makeFolder, meddle, open } from './folder.ts'
import { until } from '../until.ts'

const ACCOUNT = 'day:a:1'

/** Sessions with events, cards, money that is held and spent. Closed, so that all is in the file. */
async function filled(): Promise<string> {
  const file = makeFile()
  const store = open(file)
  for (const name of ['a', 'b', 'c']) {
    const owner = await begin(store, name)
    const charges = [
      { type: 'limit', account: ACCOUNT, limit: 1_000 },
      { type: 'hold', key: `${name}:2`, accounts: [ACCOUNT], amount: 10 },
      { type: 'hold', key: `${name}:3`, accounts: [ACCOUNT], amount: 7 },
      { type: 'settle', key: `${name}:2`, amount: 4 },
    ] as const
    await write(store, owner, [note('x'), note('y')], {
      charges,
      card: card(name, { cost: 44, wakes: 1 }),
      release: true,
    })
  }
  await store.close()
  return file
}

type Seen = Readonly<Record<string, unknown>>

/** All that can be asked of the store, each with what it said or that it complained. */
async function ask(file: string): Promise<Seen | 'refused'> {
  const store = open(file)
  const said: Record<string, unknown> = {}
  const told = async (name: string, act: () => Promise<unknown>): Promise<void> => {
    said[name] = await act().catch(() => 'refused')
  }
  try {
    await told('account', () => store.account(ACCOUNT))
    for (const name of ['a', 'b', 'c']) {
      await told(`${name} card`, async () => complains(await store.card(name)))
      await told(`${name} log`, async () => {
        const { events, damaged } = await store.read(name, 0)
        return damaged ? 'refused' : events
      })
    }
    return said
  } finally {
    await store.close().catch(() => {})
  }
}

function complains(shown: Card | null): unknown {
  return shown?.trouble?.reason.includes('damaged') ? 'refused' : shown
}

describe('rows beside the logs', () => {
  it('B-STORE-160: a bit that flips anywhere in the file changes no account, card or log in silence', async () => {
    const file = await filled()
    const truth = await ask(file)
    const bytes = readFileSync(file)
    let found = 0
    // Every place in turn would take minutes; these are spread over all pages, and the same each time.
    for (let i = 0, at = 101; i < 500; i++, at = (at + 7_919) % bytes.length) {
      const copy = makeFile()
      const flipped = Buffer.from(bytes)
      flipped[at] = (flipped[at] ?? 0) ^ (1 << (i % 8))
      writeFileSync(copy, flipped)
      const said = await ask(copy).catch(() => 'refused' as const)
      if (said === 'refused') continue
      for (const [name, answer] of Object.entries(said)) {
        if (answer === 'refused') found += 1
        else expect([at, name, answer]).toEqual([at, name, (truth as Seen)[name]])
      }
    }
    expect(found).toBeGreaterThan(20)
  }, 60_000)

  it.each([
    ['an account', `UPDATE accounts SET spent = 1`, 'store_damaged'],
    ['a hold', `UPDATE holds SET amount = 1`, 'store_damaged'],
    ['a card', `UPDATE sessions SET card = replace(card, '44', '45')`, 'ok'],
    ['a due time', `UPDATE sessions SET due = 5`, 'session_damaged'],
    ['a folder', `UPDATE sessions SET folder = '/elsewhere'`, 'session_damaged'],
    ['the end of a log', `UPDATE heads SET at = at + 1`, 'session_damaged'],
  ])('B-STORE-160: %s that was changed is refused, or said on the card', async (_, sql, code) => {
    const file = await filled()
    meddle(file, (db) => db.exec(sql))
    const store = open(file)
    const charges = [{ type: 'settle', key: 'a:3', amount: 1 }] as const
    expect(await outcome(store.commit([{ session: 'a', lane: 'inbox', events: [message('m')], charges }]))).toBe(code)
    const [first] = await store.list({ limit: 1 })
    if (code === 'store_damaged') return
    expect(first).toMatchObject({ session: 'a', trouble: { until: null } })
    expect(first?.trouble?.reason).toContain('damaged')
  })

  it('B-STORE-161: a file of the third schema gets its sums as its rows are written', async () => {
    const file = makeFile()
    const dump = readFileSync(new URL('../golden/store-schema-3.sql', import.meta.url), 'utf8')
    meddle(file, (db) => db.exec(dump))
    const store = open(file)
    expect(await seqs(store, 'plain')).toHaveLength(23)
    expect(await store.card('plain')).not.toHaveProperty('trouble')
    expect(await store.account(ACCOUNT_OF_OLD)).toMatchObject({ limit: 1_000, held: 40 })
    await admit(store, 'plain', message('fourth'))
    await claim(store, 'plain', 'w')
    expect(meddle(file, (db) => db.prepare('SELECT version FROM meta').get())).toEqual({ version: SCHEMA_VERSION })
    const summed = `SELECT id, s.sum IS NOT NULL AS turn, h.sum IS NOT NULL AS head FROM sessions s JOIN heads h ON h.n = s.n WHERE id IN ('plain', 'root') ORDER BY id`
    expect(meddle(file, (db) => db.prepare(summed).all())).toEqual([
      { id: 'plain', turn: 1, head: 1 },
      { id: 'root', turn: 0, head: 0 },
    ])
    expect((await store.removals(9)).map(({ session }) => session)).toEqual(['fork-short'])
  })
})
const ACCOUNT_OF_OLD = 'day:a:19675'

describe('what was acknowledged', () => {
  /** A store that was killed: what it wrote is in its write-ahead log. */
  async function killed(): Promise<string> {
    const file = makeFile()
    const store = open(file)
    await create(store, 's')
    for (let i = 0; i < 20; i++) await admit(store, 's', message(`m${i}`))
    const left = `${makeFolder()}/terret.db`
    for (const end of ['', '-wal', '-mark']) copyFileSync(`${file}${end}`, `${left}${end}`)
    return left
  }

  const harms: readonly (readonly [string, (file: string) => void])[] = [
    ['cut', (file) => truncateSync(`${file}-wal`, Math.floor(statSync(`${file}-wal`).size / 2))],
    ['gone', (file) => rmSync(`${file}-wal`)],
    [
      'damaged in the middle',
      (file) => {
        const bytes = readFileSync(`${file}-wal`)
        const at = Math.floor(bytes.length / 2)
        bytes[at] = (bytes[at] ?? 0) ^ 1
        writeFileSync(`${file}-wal`, bytes)
      },
    ],
  ]
  it.each(harms)(
    'B-STORE-162, B-WALCUT-1: a write-ahead log that is %s is noticed: the store can be read and not written, and says so to readers too',
    async (_, harm) => {
      const file = await killed()
      harm(file)
      const store = open(file)
      expect([await store.moved(), (await store.health()).problem]).toEqual(
        Array(2).fill(expect.stringContaining(`remove ${file}-mark`)),
      )
      const told = await create(store, 'new').catch((error: unknown) => error)
      expect(told).toMatchObject({ code: 'store_replaced' })
      expect(String(told)).toContain(`remove ${file}-mark`)
      expect(await outcome(store.list({ limit: 9 }))).toBe('ok')
      await store.close()
      rmSync(`${file}-mark`)
      expect(await outcome(create(open(file), 'new'))).toBe('ok')
    },
  )

  it('B-STORE-162: one that is whole goes on, and so does one whose mark is older or torn', async () => {
    const file = await killed()
    const mark = readFileSync(`${file}-mark`)
    expect((await open(file).health()).problem).toBeUndefined()
    expect(await outcome(admit(open(file), 's', message('more')))).toBe('ok')
    for (const bytes of [mark, mark.subarray(0, 40), Buffer.from('x')]) {
      writeFileSync(`${file}-mark`, bytes)
      expect(await outcome(admit(open(file), 's', message(`after ${bytes.length}`)))).toBe('ok')
    }
    const store = open(file)
    await store.remove('s', 'ann')
    await create(store, 'next')
    await store.close()
    expect(await outcome(admit(open(file), 'next', message('m')))).toBe('ok')
  })

  it.each(['', '-wal'])(
    'B-STORE-163: when terret.db%s is deleted under an open store the next commit is refused',
    async (end) => {
      const file = makeFile()
      const store = open(file)
      const owner = await begin(store, 's')
      await write(store, owner, [note('x')])
      rmSync(`${file}${end}`)
      const told = await admit(store, 's', message('m')).catch((error: unknown) => error)
      expect(told).toMatchObject({ code: 'store_replaced' })
      expect(String(told)).toContain('open the store again')
      expect(await outcome(claim(store, 's', 'w2'))).toBe('store_replaced')
    },
  )

  it('B-STORE-177: whoever only waits for news is told when the files are deleted, and then learns it', async () => {
    const file = makeFile()
    const store = open(file)
    const owner = await begin(store, 's')
    await write(store, owner, [note('x')])
    const dues: unknown[] = []
    const news: unknown[] = []
    store.watchDue(() => dues.push('due'))
    store.watch('s', (told) => news.push(told))
    // Until the watcher rests, and the file was not looked at for a second.
    await new Promise((done) => setTimeout(done, 1_500))
    const [before, told] = [dues.length, news.length]
    for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`)
    await until(() => expect([dues.length > before, news.length > told]).toEqual([true, true]))
    expect(await outcome(store.due(0))).toBe('store_replaced')
  })
})
