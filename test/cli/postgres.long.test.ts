// One store in a real database, and two data folders as two machines: real processes that share nothing else.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { noPooler, pooler } from '../postgres/pooler.ts'
import { noPostgres, PASSWORD } from '../postgres/server.ts'
import { database } from '../postgres/stage.ts'
import { until } from '../until.ts'
import { stageOfEach } from './scripted.ts'
import { type Ended, type Started, endpoint } from './stage.ts'

const { stage, scriptedBy } = stageOfEach()

/** A machine: a data folder, a configuration, and the folder that its user works in. */
type Machine = {
  readonly folder: string
  readonly start: (...args: readonly string[]) => Started
  readonly terret: (...args: readonly string[]) => Promise<Ended>
}

function machine(name: string, store: string, provider: string): Machine {
  const root = join(stage.folder, '..', name)
  const folder = join(root, 'work')
  mkdirSync(folder, { recursive: true })
  mkdirSync(join(root, 'config', 'terret'), { recursive: true })
  writeFileSync(join(root, 'config', 'terret', 'config.json'), JSON.stringify(endpoint(provider)))
  const env = {
    HOME: root,
    TERRET_HOME: join(root, 'data'),
    XDG_CONFIG_HOME: join(root, 'config'),
    TERRET_STORE: store,
  }
  const start = (...args: readonly string[]): Started => stage.start(args, { cwd: folder, env })
  return { folder, start, terret: (...args) => start(...args).ended }
}

type Listed = { readonly session: string; readonly status: string; readonly task: string; readonly outcome?: string }
async function listed({ terret }: Machine): Promise<readonly Listed[]> {
  const { out } = await terret('list', '--all', '--json')
  return out
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Listed)
}

describe.skipIf(noPostgres)('without Postgres on this machine these are skipped', () => {
  it('B-CLISTORE-40: list, run, approve and worker from two machines work on one store', async () => {
    const write = { calls: [{ tool: 'write', args: { path: 'out.txt', content: 'written' } }] }
    const { url: provider } = await scriptedBy([write, 'Done here.', 'Done there.'])
    const { url } = await database()
    const [one, other] = [machine('one', url, provider), machine('other', url, provider)]
    expect((await one.terret('run', 'Write.')).code).toBe(3)
    expect(await listed(other)).toEqual(await listed(one))
    expect(await listed(other)).toEqual([expect.objectContaining({ task: 'Write.', status: 'requires_action' })])
    const [{ session } = { session: '' }] = await listed(other)
    // Both machines have one disk here: what the other one would not see is put away while it works.
    renameSync(one.folder, `${one.folder}-away`)
    // Decided on a machine that does not have the folder, and driven on the one that has.
    const approved = await other.terret('approve', session, '--yes')
    expect([approved.code, approved.err]).toEqual([0, expect.not.stringContaining(PASSWORD)])
    const left = await other.terret('worker', '--idle')
    expect([left.code, left.err]).toEqual([
      0,
      expect.stringMatching(/^There is no folder \S+one\/work here\. Its sessions are left to other workers/m),
    ])
    renameSync(`${one.folder}-away`, one.folder)
    expect((await one.terret('worker', '--idle')).code).toBe(0)
    expect(readFileSync(join(one.folder, 'out.txt'), 'utf8')).toBe('written')
    expect(await listed(other)).toEqual([expect.objectContaining({ session, outcome: 'completed' })])
    expect((await other.terret('run', 'Say something.')).out).toBe('Done there.\n')
    expect(await listed(one)).toHaveLength(2)
  }, 120_000)

  it('B-PGLOCK-4, B-PGLOCK-5: a schema that is dropped ends a worker with exit code 8, and no command makes a new store there', async () => {
    const { url: provider } = await scriptedBy(['Done here.', 'Done again.'])
    const { url, server, name } = await database()
    const one = machine('one', url, provider)
    expect((await one.terret('run', 'Say something.')).code).toBe(0)
    const worker = one.start('worker')
    await until(async () =>
      expect(
        await server.query("select 1 from pg_stat_activity where application_name = 'terret lane'", name),
      ).not.toEqual([]),
    )
    // By then it has nothing to do, and waits for news.
    await new Promise((done) => setTimeout(done, 3_000))
    await server.query('drop schema terret cascade', name)
    const ended = await worker.ended
    expect([ended.code, ended.err]).toEqual([8, expect.stringContaining('The tables of the store are gone from')])
    for (const command of [['list'], ['run', 'Say more.'], ['worker', '--idle']] as const) {
      const refused = await one.terret(...command)
      expect([refused.code, refused.err]).toEqual([
        8,
        expect.stringMatching(/^(?:terret: )?The store is gone: .*--accept-store/),
      ])
    }
    const schemas = await server.query("select 1 from pg_namespace where nspname = 'terret'", name)
    expect(schemas).toEqual([])
    expect((await one.terret('doctor', '--accept-store')).code).toBe(0)
    expect((await one.terret('run', 'Say something.')).out).toBe('Done again.\n')
  }, 120_000)

  it.skipIf(noPooler)(
    'B-PGNET-29: every command works behind a pooler in transaction mode, by its address alone',
    async () => {
      const { url: provider } = await scriptedBy(['Done here.'])
      const { server, name } = await database()
      const pooled = server.url(name, undefined, await pooler(server, 2))
      const bare = machine('bare', pooled, provider)
      const refused = await bare.terret('list')
      expect([refused.code, refused.err]).toEqual([7, expect.stringContaining('or ?pooled=true in its URL')])
      const one = machine('one', `${pooled}?pooled=true&direct=127.0.0.1:${server.port}`, provider)
      expect((await one.terret('run', 'Say something.')).out).toBe('Done here.\n')
      expect(await listed(one)).toHaveLength(1)
      const checked = await one.terret('store', 'check')
      expect([checked.code, checked.out]).toEqual([0, expect.stringContaining('Nothing is wrong.')])
      const file = join(one.folder, '..', 'back.db')
      expect((await one.terret('store', 'move', '--to', file)).code).toBe(0)
      const wrong = await machine('wrong', `${pooled}?poled=true`, provider).terret('list')
      expect([wrong.code, wrong.err]).toEqual([7, expect.stringContaining('did you mean "pooled"?')])
      expect(wrong.err).not.toContain(PASSWORD)
    },
    120_000,
  )
})
