// The programs that hurt workers, servers and networks, as part of the suite: a short round of each. The long ones are the commands
// `npm run crash -- --store postgres`, `npm run partition` and `npm run failover`.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { noPostgres } from '../postgres/server.ts'

function run(program: string, ...args: readonly string[]) {
  const path = fileURLToPath(new URL(`../../.build/test/${program}.js`, import.meta.url))
  const { status, stdout, stderr } = spawnSync(process.execPath, [path, ...args], { encoding: 'utf8' })
  return { status, said: `${stdout}${stderr}` }
}

const WELL = /lost 0, doubled 0, once twice 0, all settled\nviolations 0; again with: npm run /

describe.skipIf(noPostgres)('workers on one Postgres', () => {
  it('B-FAULT-1, B-FAULT-2: four of them, killed and with the server killed under them, lose and double nothing, and all settles', () => {
    const { status, said } = run('crash/main', '--store', 'postgres', '--kill-server', '--rounds', '4', '--seed', '7')
    expect(said).toMatch(/kills of the server +1\n/)
    expect(said).toMatch(WELL)
    expect(status).toBe(0)
  }, 400_000)

  it('B-FAULT-3, B-FAULT-4, B-FAULT-5, B-FAULT-6, B-FAULT-7, B-PGLOCK-6, B-PG-22: cut off, stopped, without answers, with other clocks and at one queue', () => {
    const { status, said } = run('faults/partition', '--short', '--seed', '5')
    expect(said).toMatch(/dark for 4 s.* written late 0\n.*stopped for.* written after its lease 0\n.*answers lost for/)
    expect(said).toMatch(/row of one session locked for 4 s.* taken away 0, without progress 0\n.*unknown outcome 0 of/)
    expect([said.match(new RegExp(WELL, 'g'))?.length, said]).toEqual([4, expect.any(String)])
    expect(status).toBe(0)
  }, 400_000)

  it('B-FAULT-8: go on with the copy of a primary that was killed', () => {
    const { status, said } = run('faults/failover', '--rounds', '1', '--within', '60000', '--seed', '3')
    expect(said).toMatch(/primary killed, copy promoted/)
    expect(said).toMatch(WELL)
    expect(status).toBe(0)
  }, 400_000)
})

describe('what cannot be done is refused with one sentence', () => {
  it.each([
    [['--store', 'memory'], 'A store in memory dies with its process, so there is nothing to recover.'],
    [['--store', 'mysql'], '--store must be sqlite or postgres, not "mysql".'],
    [['--kill-server'], 'There is no server to kill. Use --kill-server with: --store postgres'],
  ])('B-FAULT-1: crash %j', (args, sentence) => {
    const { status, said } = run('crash/main', ...args)
    expect(said).toContain(sentence)
    expect(status).toBe(2)
  })
})
