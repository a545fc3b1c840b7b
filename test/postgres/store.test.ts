// The Postgres store keeps the contract of every store.
import { describe } from 'vitest'
import { StillClock } from '../contract/fixture.ts'
import { describeStore } from '../contract/store.ts'
import { emptySchema, openPostgres } from './opened.ts'
import { noPostgres } from './server.ts'

describe.skipIf(noPostgres)('without Postgres on this machine these are skipped', () => {
  describeStore('postgres', async () => {
    const clock = new StillClock()
    return { clock, store: await openPostgres({ clock, schema: await emptySchema() }) }
  })
})
