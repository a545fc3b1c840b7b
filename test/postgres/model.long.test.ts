// Memory and Postgres side by side: whatever is asked of both, in any order and in any grouping, both answer the same.
import { describe, it } from 'vitest'
import { runs } from '../runs.ts'
import { expectSameAnswers } from '../stores/model.ts'
import { emptySchema, openPostgres } from './opened.ts'
import { noPostgres } from './server.ts'

describe.skipIf(noPostgres)('memory and Postgres', () => {
  it('B-STORE-120: give the same answers to the same questions', async () => {
    await expectSameAnswers(
      async (clock) => {
        const store = await openPostgres({ clock, schema: await emptySchema() })
        return { store, end: () => store.close() }
      },
      runs(20),
      ['lease_lost'],
    )
  }, 600_000)
})
