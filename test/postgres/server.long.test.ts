// The servers that the tests of the Postgres store rest on, tested themselves: that they die, start again and leave nothing.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { until } from '../until.ts'
import { noPostgres } from './server.ts'
import { ownServer } from './stage.ts'

const script = fileURLToPath(new URL('../../.build/test/postgres/child-server.js', import.meta.url))

describe.skipIf(noPostgres)('a server for tests', () => {
  it('B-PGNET-1: keeps what was committed when it is killed and started again on its port', async () => {
    const server = await ownServer({ fsync: true })
    await server.query('create table t as select 7 as a')
    await server.kill()
    await expect(server.query('select 1')).rejects.toThrow('ECONNREFUSED')
    await server.up()
    expect(await server.query('select a from t')).toEqual([{ a: 7 }])
    await server.close()
    expect(existsSync(server.data)).toBe(false)
  })

  it('B-PGNET-1: leaves nothing behind when the process that started it is killed', async () => {
    const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [data = '', port = ''] = await new Promise<string[]>((done) =>
      child.stdout.once('data', (chunk: Buffer) => done(chunk.toString().trim().split(' '))),
    )
    expect(existsSync(data)).toBe(true)
    child.kill('SIGKILL')
    await until(() => expect(existsSync(data)).toBe(false))
    const refused = new Promise((done) => connect(Number(port), '127.0.0.1').once('error', done))
    expect(String(await refused)).toContain('ECONNREFUSED')
  })
})
