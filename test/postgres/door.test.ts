// The door to the Postgres store: its options, and the clock that its users read.
import { describe, expect, it } from 'vitest'
import { DatabaseClock } from '../../src/stores/postgres/database-clock.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { create, outcome, seqs } from '../contract/fixture.ts'
import { newSchema } from './opened.ts'
import { noPostgres } from './server.ts'
import { sharedServer } from './stage.ts'

describe('postgres()', () => {
  it('B-PG-18: refuses options that it cannot use, with one sentence and without the password', () => {
    for (const [options, text] of [
      ['', 'url'],
      ['mysql://u:secret@h/d', 'postgres://'],
      [{ url: 5 }, 'url'],
      [{}, 'Give the database'],
      [{ url: 'postgres://u:secret@h/d', schem: 'x' }, 'did you mean "schema"'],
      [{ url: 'postgres://u:secret@h/d', schema: 'Ünsafe"; drop' }, 'small letters'],
      [{ url: 'postgres://u:secret@h/d', schema: 'pg_own' }, 'pg_'],
    ] as const) {
      const made = (): unknown => postgres(options as string)
      expect(made).toThrow(
        expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining(text) as string }),
      )
      expect(made).not.toThrow('secret')
    }
  })

  it('B-PG-18: connects to nothing until it is used, and then says plainly that no server answers', async () => {
    const store = postgres({ url: 'postgres://u:secret@127.0.0.1:1/d', patienceMs: 200 })
    expect(store.reach).toBe('network')
    expect(await outcome(store.open())).toBe('store_busy')
    await expect(store.card('s')).rejects.not.toThrow('secret')
    await store.close()
    expect(await outcome(store.card('s'))).toBe('store_closed')
  })

  it.skipIf(noPostgres)('B-PG-18: is a store', async () => {
    const store = postgres({ url: (await sharedServer()).url(), schema: newSchema() })
    await store.open()
    await create(store, 's')
    expect(await seqs(store, 's')).toEqual([1])
    expect((await store.health()).durability).toMatch(/^postgres \d+.*synchronous_commit on/)
    // As much as two clocks of one machine may differ.
    expect(Math.abs(store.now() - Date.now())).toBeLessThan(5_000)
    await store.close()
  })
})

describe('the clock of a Postgres store', () => {
  it('B-PG-15: follows the quickest answer of the database, and never goes back', () => {
    const clock = new DatabaseClock()
    const asked = clock.asked
    clock.heard(1_000_000, asked - 500)
    const slow = clock.now()
    // It answered late: that it is 250 ms later there than it said is a guess.
    expect(slow).toBeGreaterThanOrEqual(1_000_250)
    clock.heard(5_000_000, clock.asked - 600)
    expect(clock.now()).toBeLessThan(2_000_000)
    clock.heard(2_000_000, clock.asked)
    const exact = clock.now()
    expect(exact).toBeGreaterThanOrEqual(2_000_000)
    expect(exact).toBeLessThan(3_000_000)
    clock.heard(1_500_000, clock.asked)
    expect(clock.now()).toBeGreaterThanOrEqual(exact)
    expect(Number.isInteger(clock.now())).toBe(true)
  })
})
