// What the connections of a store cost a process that has nothing to do: it ends by itself.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { noPostgres } from './server.ts'
import { database } from './stage.ts'

const script = fileURLToPath(new URL('../../.build/test/postgres/child-idle.js', import.meta.url))

describe.skipIf(noPostgres)('a process with nothing left to do', () => {
  it('B-PGNET-9: ends by itself, with every connection open, when what it asked is answered', async () => {
    const { url } = await database()
    const { stdout } = await promisify(execFile)(process.execPath, [script, url])
    expect(stdout).toBe('open\nanswered\nwaited\nclosed\n')
  })
})
