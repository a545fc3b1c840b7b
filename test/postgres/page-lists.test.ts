// Lists of many sessions in a Postgres store: which statements they take, by which index these go, and tables that lack that index.
import { describe, expect, it, onTestFinished } from 'vitest'
import { SCHEMA_VERSION } from '../../src/stores/postgres/postgres-schema.ts'
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts'
import { claim, create, note, write } from '../contract/fixture.ts'
import { expectFewStatements, fillStore } from '../stores/page-lists.ts'
import { connections, meddle, newSchema, openPostgres } from './opened.ts'
import { noPostgres } from './server.ts'

const idsOf = (cards: readonly { readonly session: string }[]): readonly string[] => cards.map(({ session }) => session)

describe.skipIf(noPostgres)('lists of many sessions in a Postgres store', () => {
  it('B-PAGELIST-2: a page of cards with what their trees cost takes two statements, and a look at what is pending takes one', async () => {
    const real = await connections()
    const counted = { count: 0, store: null as unknown as PostgresStore }
    const texts = new Set<string>()
    const reader: typeof real.reader = {
      ask: (name, text, ...rest) => {
        counted.count += 1
        texts.add(text)
        return real.reader.ask(name, text, ...rest)
      },
    }
    const schema = newSchema()
    counted.store = new PostgresStore({ ...real, reader }, { schema })
    await counted.store.open()
    onTestFinished(() => counted.store.close())
    await fillStore(counted.store)
    await meddle(`analyze ${schema}.sessions`)
    await expectFewStatements(counted)
    const planOf = async (part: string, ...values: readonly string[]): Promise<string> => {
      const asked = [...texts].find((text) => text.includes(part)) ?? ''
      const text = values.reduce((before, value, i) => before.replaceAll(`$${i + 1}`, value), asked)
      const rows = await meddle<Record<string, string>>(`explain ${text}`)
      return rows.map((row) => Object.values(row).join()).join('\n')
    }
    expect(await planOf('s.waiting', `''`, '9')).toContain('Index Scan using sessions_waiting')
    expect(await planOf('s.id <> s.root', `'{s001,s002}'`, '9')).toContain('sessions_root')
  })

  it('B-PAGELIST-4: tables of version 2 get the index of the sessions that wait, and a program of before goes on with them', async () => {
    const schema = newSchema()
    const first = await openPostgres({ schema })
    await create(first, 'asks', { status: 'requires_action', asks: ['2.0'] })
    await create(first, 'calm')
    const owner = await claim(first, 'calm', 'w1')
    await meddle(`alter table ${schema}.sessions drop column waiting; update ${schema}.meta set version = 2`)
    const store = await openPostgres({ schema })
    expect(idsOf(await store.list({ waiting: true, limit: 9 }))).toEqual(['asks'])
    expect(await meddle(`select version from ${schema}.meta`)).toEqual([{ version: SCHEMA_VERSION }])
    // It was opened before, and its statements know nothing of the index.
    const card = { ...(await first.card('calm')), status: 'requires_action', asks: ['2.0'] } as never
    await write(first, owner, [note('x')], { card })
    expect(idsOf(await store.list({ waiting: true, limit: 9 }))).toEqual(['asks', 'calm'])
  })
})
