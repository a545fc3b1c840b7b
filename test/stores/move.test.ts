// A store that is moved to another one: all of it, proven, and the source says where it went.
import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Fault } from '../../src/kernel/failure.ts'
import { moveStore } from '../../src/stores/move/move-store.ts'
import type { MoveRow, MoveTarget } from '../../src/stores/move/move-rows.ts'
import { sqliteSource, sqliteTarget } from '../../src/stores/sqlite/sqlite-move.ts'
import { admit, begin, create, message, note, outcome, write } from '../contract/fixture.ts'
import { makeFile, makeFolder, meddle, open } from './folder.ts'
import { contentOf, furnish, move } from './moving.ts'

async function furnished(): Promise<string> {
  const file = makeFile()
  const store = open(file)
  await furnish(store)
  await store.close()
  expireAll(file)
  return file
}

/** The leases of killed workers end now. */
function expireAll(file: string): void {
  meddle(file, (db) => db.exec('UPDATE workers SET until = 1000; PRAGMA wal_checkpoint(TRUNCATE)'))
}

/** Its code, and what it says. */
async function refusal(promise: Promise<unknown>): Promise<readonly [string, string]> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof Fault)) throw new Error('it was not refused', { cause: error })
  return [error.code, error.message]
}

const target = (): string => join(makeFolder(), 'moved.db')

describe('a move', () => {
  it('B-MOVE-1: takes every session, account, hold, blob and removal along, and what can be asked is answered as before', async () => {
    const from = await furnished()
    const before = open(from)
    const content = await contentOf(before)
    await before.close()
    const to = target()
    const { counts, digest } = await move(from, to)
    expect(counts).toEqual({
      session: 6,
      inbox: 2,
      ref: 1,
      event: 11,
      worker: 1,
      hold: 1,
      account: 2,
      blob: 1,
      removal: 1,
    })
    expect(digest).toMatch(/^[0-9a-f]{64}$/)
    expect(await contentOf(open(to))).toEqual(content)
  })

  it('B-MOVE-2: the moved store goes on: epochs, inbox ids, holds and numbers continue', async () => {
    const from = await furnished()
    const to = target()
    await move(from, to)
    const store = open(to)
    expect((await admit(store, 'alpha', message('m1'))).duplicate).toBe(true)
    expect((await admit(store, 'alpha', message('m3'))).seqs).toEqual([6])
    const claimed = await store.claim('lost', 'w2', 30_000)
    expect(claimed).toMatchObject({ epoch: 2, failed: 1 })
    await create(store, 'gone')
    // The id of a removed session begins a new life.
    expect((await store.claim('gone', 'w2', 30_000))?.epoch).toBeGreaterThan(2 ** 32)
    await store.commit([
      { session: 'alpha', lane: 'inbox', events: [], charges: [{ type: 'settle', key: 'alpha:4', amount: 1 }] },
    ])
    expect(await store.account('session:alpha')).toMatchObject({ held: 0, spent: 1 })
    expect((await store.read('alpha', 0)).damaged).toBeUndefined()
    await store.remove('fork', 'me')
    expect((await store.page({ order: 'made', limit: 1 })).cards[0]?.session).toBe('gone')
  })

  it('B-MOVE-3: after it the source is read as before and refuses every write, also of a process that has it open, and says where it went', async () => {
    const from = await furnished()
    const earlier = open(from)
    const content = await contentOf(earlier)
    const to = target()
    await move(from, to)
    const said = `${from} was moved to ${to} on `
    for (const store of [earlier, open(from)]) {
      for (const writing of [
        () => admit(store, 'alpha', message('m9')),
        () => create(store, 'new'),
        () => store.claim('beta', 'w', 30_000),
        () => store.remove('beta', 'me'),
      ]) {
        expect(await refusal(writing())).toEqual(['store_replaced', expect.stringContaining(said)])
      }
      expect(await contentOf(store)).toEqual(content)
      expect(await store.moved()).toContain(said)
    }
    expect(await open(to).moved()).toBeNull()
    expect(await outcome(move(from, target()))).toBe('store_replaced')
    expect(await outcome(move(from, to))).toBe('store_replaced')
  })

  it('B-MOVE-4: is refused while a session is driven, and nothing is changed', async () => {
    const from = makeFile()
    const store = open(from)
    const owner = await begin(store, 's')
    const to = target()
    expect(await refusal(move(from, to))).toEqual([
      'session_busy',
      expect.stringMatching(/^Session s is driven now\. /),
    ])
    await write(store, owner, [note('on')], { release: true })
    await move(from, to)
    expect(await outcome(admit(store, 's', message('late')))).toBe('store_replaced')
  })

  it('B-MOVE-5: is refused to a store that has anything in it, to itself, and from a file that is not there', async () => {
    const from = await furnished()
    const used = makeFile()
    await create(open(used), 's')
    expect(await outcome(move(from, used))).toBe('conflict')
    expect(await outcome(move(from, from))).not.toBe('ok')
    expect(await outcome(move(join(makeFolder(), 'none.db'), target()))).toBe('invalid_input')
    await create(open(from), 'still writable')
  })

  it('B-MOVE-6: a writer that comes while it moves waits, and is then refused: nothing is lost between the two', async () => {
    const from = await furnished()
    const to = target()
    const store = open(from)
    await store.open()
    const late: Promise<string>[] = []
    await move(from, to, () => {
      if (late.length === 0) late.push(outcome(admit(store, 'alpha', message('late'))))
    })
    expect(await Promise.all(late)).toEqual(['store_replaced'])
    expect((await open(to).card('alpha'))?.seq).toBe(5)
  })
})

describe('the proof of a move', () => {
  /** As if the target kept something else than it was sent. */
  function meddling(real: MoveTarget, change: (row: MoveRow) => MoveRow | null): MoveTarget {
    const altered = async function* (rows: AsyncIterable<readonly MoveRow[]>): AsyncGenerator<readonly MoveRow[]> {
      for await (const piece of rows) yield piece.flatMap((row) => change(row) ?? [])
    }
    return {
      id: real.id,
      name: real.name,
      state: () => real.state(),
      counts: () => real.counts(),
      rows: () => real.rows(),
      shared: (damaged) => real.shared(damaged),
      fill: (from, rows) => real.fill(from, altered(rows)),
      clear: () => real.clear(),
      finish: () => real.finish(),
      close: () => real.close(),
    }
  }

  const changes: readonly [string, (row: MoveRow) => MoveRow | null][] = [
    [
      'a byte of an event',
      (row) => (row.type === 'event' ? { ...row, body: row.body.replace('hello', 'hallo') } : row),
    ],
    ['a byte of a blob', (row) => (row.type === 'blob' ? { ...row, data: Buffer.from(row.data).fill(0, 0, 1) } : row)],
    ['an amount', (row) => (row.type === 'account' ? { ...row, held: row.held + 1 } : row)],
    ['a field of a card', (row) => (row.type === 'session' ? { ...row, card: { ...row.card, wakes: 7 } } : row)],
    ['a due time', (row) => (row.type === 'session' && row.due !== null ? { ...row, due: row.due + 1 } : row)],
    ['an epoch', (row) => (row.type === 'session' ? { ...row, epoch: row.epoch + 1 } : row)],
    ['an id of the inbox', (row) => (row.type === 'inbox' ? { ...row, id: `${row.id}x` } : row)],
    ['a missing hold', (row) => (row.type === 'hold' ? null : row)],
    ['a missing removal', (row) => (row.type === 'removal' ? null : row)],
    ['a missing reference', (row) => (row.type === 'ref' ? null : row)],
  ]

  it.each(changes)(
    'B-MOVE-7: finds %s that differs; the target is emptied, and the source goes on',
    async (_name, change) => {
      const from = await furnished()
      const to = target()
      const source = await sqliteSource(from)
      const other = await sqliteTarget(to)
      const moving = moveStore(source, meddling(other, change), Date.now(), () => {})
      expect(await refusal(moving)).toEqual(['store_damaged', expect.stringContaining('does not hold what was sent')])
      expect(await other.state()).toEqual({ type: 'empty' })
      await Promise.all([source.close(), other.close()])
      await create(open(from), 'goes on')
      expect(await open(from).moved()).toBeNull()
      await move(from, to)
    },
  )

  it('B-MOVE-8: a damaged session, account or blob of the source is named, and nothing is moved', async () => {
    const damages = [
      [
        `DROP TRIGGER events_keep; UPDATE events SET body = replace(body, 'hello', 'hallo')`,
        'session_damaged',
        'Session alpha',
      ],
      [`UPDATE sessions SET due = 5 WHERE id = 'beta'`, 'session_damaged', 'Session beta'],
      [
        `UPDATE sessions SET card = replace(card, '"wakes":0', '"wakes":1') WHERE id = 'beta'`,
        'session_damaged',
        'Session beta',
      ],
      [`DELETE FROM heads WHERE n = 1`, 'session_damaged', 'Session alpha'],
      [`UPDATE accounts SET spent = 5 WHERE id = 'day:a'`, 'store_damaged', 'The account day:a'],
      [`UPDATE holds SET amount = 5`, 'store_damaged', 'The hold alpha:4'],
      [`UPDATE blobs SET data = x'00'`, 'store_damaged', 'The blob'],
      [
        `INSERT INTO events (session, sum, body) VALUES (99, 0, '{}')`,
        'store_damaged',
        'rows (event) that belong to no session',
      ],
    ] as const
    const whole = await furnished()
    for (const [sql, code, text] of damages) {
      const from = makeFile()
      copyFileSync(whole, from)
      meddle(from, (db) => db.exec(sql))
      const to = target()
      expect([sql, ...(await refusal(move(from, to)))]).toEqual([sql, code, expect.stringContaining(text)])
      expect(await open(from).moved()).toBeNull()
      expect(await open(to).list({ limit: 1 })).toEqual([])
    }
  })
})

describe('a move that was cut off', () => {
  /** Fails at one of the steps, as a killed process would. */
  async function cutOff(from: string, to: string, at: 'fill' | 'rows' | 'leave' | 'finish'): Promise<void> {
    const source = await sqliteSource(from)
    const other = await sqliteTarget(to)
    const dies = (): never => {
      throw new Fault('io_error', 'killed')
    }
    const wrapped: MoveTarget = {
      id: other.id,
      name: other.name,
      state: () => other.state(),
      counts: () => other.counts(),
      rows: () => (at === 'rows' ? dies() : other.rows()),
      shared: (damaged) => other.shared(damaged),
      fill: (mark, rows) => (at === 'fill' ? dies() : other.fill(mark, rows)),
      // A killed process empties nothing.
      clear: () => Promise.reject(new Fault('io_error', 'killed')),
      finish: () => (at === 'finish' ? dies() : other.finish()),
      close: () => other.close(),
    }
    const leaving = at === 'leave' ? { ...bound(source), leave: async () => dies() } : source
    expect(await outcome(moveStore(leaving, wrapped, Date.now(), () => {}))).toBe('io_error')
    await Promise.all([source.close(), other.close()])
  }

  function bound(source: Awaited<ReturnType<typeof sqliteSource>>): typeof source {
    return {
      id: source.id,
      name: source.name,
      rows: () => source.rows(),
      shared: (damaged) => source.shared(damaged),
      counts: () => source.counts(),
      driven: () => source.driven(),
      movedTo: () => source.movedTo(),
      leave: (to) => source.leave(to),
      close: () => source.close(),
    }
  }

  it.each(['fill', 'rows', 'leave'] as const)(
    'B-MOVE-9: before its last step (%s): the source goes on as it was, the target takes no writes, and the same move again comes to its end',
    async (at) => {
      const from = await furnished()
      const to = target()
      await cutOff(from, to, at)
      await create(open(from), 'since')
      if (at !== 'fill') expect(await outcome(create(open(to), 'early'))).toBe('store_replaced')
      const { counts, finished } = await move(from, to)
      expect([counts.session, finished]).toEqual([7, false])
      expect((await open(to).card('since'))?.session).toBe('since')
      await create(open(to), 'goes on')
    },
  )

  it('B-MOVE-10: after the source was left: neither takes writes, and the same move again comes to its end', async () => {
    const from = await furnished()
    const to = target()
    await cutOff(from, to, 'finish')
    for (const file of [from, to]) expect(await outcome(create(open(file), 'x'))).toBe('store_replaced')
    expect(await outcome(move(from, target()))).toBe('store_replaced')
    expect(await move(from, to)).toMatchObject({ finished: true })
    await create(open(to), 'goes on')
    expect(await outcome(create(open(from), 'x'))).toBe('store_replaced')
  })

  it('B-MOVE-11: what another store began to move there is not touched', async () => {
    const [one, other] = [await furnished(), await furnished()]
    const to = target()
    await cutOff(one, to, 'leave')
    const said = `an unfinished move from ${one}`
    expect(await refusal(move(other, to))).toEqual(['conflict', expect.stringContaining(said)])
    expect(existsSync(to)).toBe(true)
    expect(await move(one, to)).toMatchObject({ finished: false })
  })

  it('B-MOVE-13: of two moves to one empty file at once the second is refused, and what the first has brought stays', async () => {
    const [one, other] = [await furnished(), await furnished()]
    const to = target()
    const [first, second] = [await sqliteTarget(to), await sqliteTarget(to)]
    expect([await first.state(), await second.state()]).toEqual([{ type: 'empty' }, { type: 'empty' }])
    const [source, late] = [await sqliteSource(one), await sqliteSource(other)]
    const mark = { id: source.id, name: source.name, at: 1, text: 'A move is not finished.' }
    await first.fill(mark, source.rows())
    // The second has seen an empty file, and comes to write when the first has filled it, or has come to its end.
    const refused = ['conflict', expect.stringContaining('Another process has begun to use')]
    const comesLate = async (): Promise<void> => {
      expect(await refusal(second.fill({ ...mark, id: late.id }, late.rows()))).toEqual(refused)
      await second.clear()
    }
    await comesLate()
    expect(await first.state()).toEqual({ type: 'arriving', from: mark })
    await first.finish()
    await comesLate()
    await Promise.all([first.close(), second.close(), source.close(), late.close()])
    expect((await open(to).list({ limit: 9 })).length).toBe(6)
    await create(open(to), 'goes on')
    await create(open(other), 'goes on too')
  })
})
