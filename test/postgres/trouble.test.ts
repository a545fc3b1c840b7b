// What each error of the database means, as a real server says it, and as a table for those that a test cannot make it say.
import { describe, expect, it, onTestFinished } from 'vitest'
import { Fault } from '../../src/kernel/failure.ts'
import { PostgresConnections } from '../../src/stores/postgres/connections.ts'
import { classifyConnectTrouble, Patience, classifyTrouble } from '../../src/stores/postgres/database-trouble.ts'
import { noPostgres } from './server.ts'
import { database } from './stage.ts'

const peer = { host: 'h:5432', user: 'u', database: 'd' }
const coded = (code: string, message = 'said') => Object.assign(new Error(message), { code })
const sent = { sent: true, broken: false }
const unsent = { sent: false, broken: false }

describe('an error', () => {
  it.each(['08006', '08P01', '57P01', '57P02', '57P03', '57P05', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'])(
    'B-PGNET-27: %s is a lost answer once the statement was sent, and asked again before',
    (code) => {
      expect(classifyTrouble(coded(code), peer, sent).type).toBe('lost')
      expect(classifyTrouble(coded(code), peer, unsent)).toMatchObject({
        type: 'again',
        drop: true,
        fault: { code: 'store_busy' },
      })
    },
  )

  it.each([
    ['40001', false],
    ['40P01', false],
    ['57014', false],
    ['25006', true],
    ['53300', true],
    ['25P03', true],
    ['26000', true],
  ])('B-PGNET-27: %s did nothing and is asked again, on another connection: %s', (code, drop) => {
    expect(classifyTrouble(coded(code), peer, sent)).toMatchObject({
      type: 'again',
      drop,
      fault: { code: 'store_busy' },
    })
  })

  it('B-PGNET-27: 55P03 did nothing: a row is locked by another transaction', () => {
    expect(classifyTrouble(coded('55P03'), peer, sent)).toMatchObject({ type: 'locked', fault: { code: 'store_busy' } })
  })

  it('B-PGLOCK-4: a table that is gone is a store that was replaced, in one sentence', () => {
    for (const code of ['42P01', '3F000'])
      expect(classifyTrouble(coded(code), peer, sent)).toMatchObject({
        type: 'final',
        error: { code: 'store_replaced' },
      })
  })

  it('B-PGNET-27: a connection that is gone makes any answer without a code a lost one', () => {
    expect(classifyTrouble(new Error('Connection terminated'), peer, { sent: true, broken: true }).type).toBe('lost')
    expect(classifyTrouble(new Error('a mistake of ours'), peer, sent)).toMatchObject({ type: 'final' })
  })

  it('B-PGNET-27: of a statement that is wrong says no value of it', () => {
    const wrong = Object.assign(coded('23505', 'duplicate key'), { detail: 'Key (id)=(secret) already exists.' })
    const trouble = classifyTrouble(wrong, peer, sent)
    expect(trouble.type === 'final' && trouble.error).toEqual(new Error('23505: duplicate key'))
  })

  it('B-PGNET-27: a certificate that is not believed is said at once, and an unknown name only at first', () => {
    expect(classifyConnectTrouble(coded('DEPTH_ZERO_SELF_SIGNED_CERT'), peer, true)).toMatchObject({
      type: 'final',
      error: { code: 'invalid_config' },
    })
    expect(classifyConnectTrouble(coded('ENOTFOUND'), peer, true).type).toBe('final')
    expect(classifyConnectTrouble(coded('ENOTFOUND'), peer, false).type).toBe('again')
    const every = new AggregateError([coded('ECONNREFUSED', 'no')], '')
    expect(classifyConnectTrouble(every, peer, true).type).toBe('again')
  })

  it('B-PGNET-27: patience ends after its time, however long the waits were', async () => {
    let now = 0
    const clock = {
      now: () => now,
      timer(ms: number, fire: () => void) {
        now += ms
        fire()
        return () => {}
      },
    }
    const patience = new Patience(clock, 10_000)
    const fault = new Fault('store_busy', 'busy')
    let tries = 0
    await expect(
      (async () => {
        for (;;) {
          await patience.after(fault)
          tries += 1
        }
      })(),
    ).rejects.toBe(fault)
    expect(now).toBe(10_000)
    expect(tries).toBeGreaterThan(15)
  })
})

describe.skipIf(noPostgres)('a server that says', () => {
  it.each([
    ['53100', 'disk_full', 'disk of the database is full'],
    ['XX001', 'store_damaged', 'Restore it'],
    ['58030', 'io_error', 'disk of the database failed'],
    ['40P01', 'store_busy', 'other writers were in the way'],
    ['25006', 'store_busy', 'it takes no writes'],
  ])('B-PGNET-27: %s is %s', async (state, code, sentence) => {
    const { url } = await database()
    const made = new PostgresConnections({ url, patienceMs: 50 })
    onTestFinished(() => made.close())
    const error = await made.lane.ask('', `do $$ begin raise sqlstate '${state}' using message = 'x'; end $$`).then(
      () => null,
      (thrown: unknown) => thrown,
    )
    expect(error).toMatchObject({ name: 'Fault', code, message: expect.stringContaining(sentence) as string })
  })
})
