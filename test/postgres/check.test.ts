// `checkStore` on a store in Postgres. Its rows have no checksums of their own but for events, blobs and snapshots: a row that another
// program changed is found by what the logs and the other rows say.
import { describe, expect, it, onTestFinished } from 'vitest'
import { Harness, scripted } from '../../src/index.ts'
import { checkStore, type StoreProblem } from '../../src/replay.ts'
import { readPostgres } from '../../src/stores/postgres/postgres-move.ts'
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { begin, note, write } from '../contract/fixture.ts'
import { noPostgres } from './server.ts'
import { database } from './stage.ts'

describe.skipIf(noPostgres)('a check of a store in Postgres', () => {
  it('B-PGMOVE-13: finds a changed row of sessions, accounts and holds, by what the log and the other rows say', async () => {
    const { server, name, url } = await database()
    const store = postgres(url)
    const model = scripted(() => ({ text: 'Done.', usage: { inputTokens: 10, outputTokens: 5 }, cost: 1_000 }))
    const harness = new Harness({ model, store, secrets: {}, budget: { sessionUsd: 1, dayUsd: 5 } })
    onTestFinished(async () => {
      await harness.close()
      await store.close()
    })
    await (await harness.open({ id: 'one' })).run('Hello.')
    const owner = await begin(store, 'two')
    const charges = [{ type: 'hold', key: 'two:2', accounts: ['day:x'], amount: 7 }] as const
    await write(store, owner, [note('held')], { charges, release: true })
    const problems = async (): Promise<readonly StoreProblem[]> => {
      const reader = await readPostgres({ url, name: 'here' })
      try {
        return (await checkStore(store, reader)).problems
      } finally {
        await reader.close()
      }
    }
    expect(await problems()).toEqual([])
    for (const [table, set, where] of [
      ['sessions', 'seq = seq - 1', "id = 'one'"],
      ['sessions', 'sum = sum + 1', "id = 'one'"],
      ['sessions', `card = replace(card, '"wakes":0', '"wakes":3')`, "id = 'one'"],
      ['accounts', 'spent = spent - 500', "id = 'session:one'"],
      ['accounts', 'held = 3', "id = 'day:x'"],
      ['holds', 'amount = 3', "key = 'two:2'"],
      ['holds', "session = 'none'", "key = 'two:2'"],
      ['holds', `accounts = '["day:y"]'`, "key = 'two:2'"],
    ] as const) {
      await server.query(
        `create table kept as select * from terret.${table}; update terret.${table} set ${set} where ${where}`,
        name,
      )
      expect([set, await problems()]).not.toEqual([set, []])
      const own = `select string_agg(quote_ident(column_name), ', ') as names from information_schema.columns
        where table_schema = 'terret' and table_name = '${table}' and is_generated = 'NEVER'`
      const [{ names } = { names: '' }] = await server.query<{ names: string }>(own, name)
      await server.query(
        `delete from terret.${table}; insert into terret.${table} (${names}) select ${names} from kept; drop table kept`,
        name,
      )
    }
    expect(await problems()).toEqual([])
  })
})
