// The servers that the tests of the Postgres store rest on, tested themselves: that each test has a database of its own.
// That they die, start again and leave nothing is in server.long.test.ts.
import { describe, expect, it } from 'vitest'
import { noPostgres } from './server.ts'
import { database, sharedServer } from './stage.ts'

describe.skipIf(noPostgres)('a server for tests', () => {
  it('B-PGNET-1: gives each test a database of its own, which is gone after it', async () => {
    const { server, name } = await database()
    await server.query('create table t (a int)', name)
    expect(await server.query('select * from t', name)).toEqual([])
    const other = await database()
    expect(other.name).not.toBe(name)
    await expect(server.query('select * from t', other.name)).rejects.toThrow('does not exist')
    expect(await sharedServer()).toBe(server)
  })
})
