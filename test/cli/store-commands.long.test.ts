// `terret store check` and `terret store move`, as they are typed; and a worker that leaves to others what is not for it.
import { copyFileSync, mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { scriptedBy, stage } = stageOfEach()

const beside = (name: string): string => join(stage.folder, '..', name)
const run = (task: string) => stage.apart('run', '--model', 'offline:any', '--quiet', task)
const database = (): string => join(stage.home, 'terret.db')

function meddle(sql: string, file = database()): void {
  const db = new DatabaseSync(file)
  db.exec(sql)
  db.close()
}

describe('terret store move', () => {
  it('B-MOVE-20: moves the sessions, prints one digest for both sides, and says how to go on; the old store is read with a warning', async () => {
    await run('One.')
    await run('Two.')
    const before = await stage.terret('list')
    const to = beside('team.db')
    const moved = await stage.apart('store', 'move', '--to', to)
    expect([moved.code, moved.err]).toEqual([0, ''])
    expect(moved.out).toMatch(
      /^Moved 2 sessions, \d+ events, \d+ blobs\.\n  from    \S+terret\.db \(kept; [^\n]+\)\n  to      \S+team\.db\n  SHA-256 [0-9a-f]{64} on both sides\nFrom now on: export TERRET_STORE=\S+team\.db\n$/,
    )
    const old = await stage.terret('list')
    expect(old.out).toBe(before.out)
    expect(old.err).toMatch(
      /^\S+terret\.db was moved to \S+team\.db on \d{4}-\d\d-\d\d, and nothing more is written here\. [^\n]+\n$/,
    )
    const refused = await run('Three.')
    expect([refused.code, refused.err]).toEqual([8, expect.stringContaining(`was moved to ${to}`)])
    const env = { TERRET_STORE: to }
    const there = await stage.terretIn({ env }, 'list')
    expect([there.out, there.err]).toEqual([before.out, ''])
    expect((await stage.terretIn({ env }, 'run', '--model', 'offline:any', '-c', 'Go on.')).code).toBe(0)
    expect((await stage.terretIn({ env }, 'store', 'check')).code).toBe(0)
  })

  it('B-MOVE-21: a session that waits for an approval goes on in the new store', async () => {
    await scriptedBy([{ calls: [{ tool: 'write', args: { path: 'out.txt', content: 'done' } }] }, 'Done.'])
    expect((await stage.apart('run', 'Write.')).code).toBe(3)
    const to = beside('team.db')
    expect((await stage.apart('store', 'move', '--to', to)).code).toBe(0)
    const env = { TERRET_STORE: to }
    const { code, out } = await stage.terretIn({ env }, 'approve', 'latest', '--yes', '--resume')
    expect([code, out]).toEqual([0, expect.stringContaining('Done.')])
  })

  it('B-MOVE-22: with --json it is one object; a move back to a new file works', async () => {
    await run('One.')
    const [there, back] = [beside('there.db'), beside('back.db')]
    const one = (await stage.json('store', 'move', '--to', there)) as { digest: string; session: number }
    const other = (await stage.json('store', 'move', '--store', there, '--to', back)) as { digest: string }
    expect(one).toMatchObject({ session: 1, from: database(), to: there, finished: false })
    expect(other.digest).toBe(one.digest)
  })

  it('B-MOVE-23: what is asked wrongly is refused in one sentence, and nothing is changed', async () => {
    await run('One.')
    for (const [args, code, said] of [
      [['store'], 2, 'Usage: terret store check [--repair] | backup FILE | move --to STORE'],
      [['store', 'chek'], 2, 'Did you mean `terret store check`?'],
      [['store', 'move'], 2, '--to is missing.'],
      [['store', 'check', '--to', 'x.db'], 2, '`terret store check` takes no --to.'],
      [['store', 'move', '--to', database()], 2, 'is the store that would be moved.'],
      [['store', 'move', '--to', ' '], 7, '--to is empty.'],
      [['store', 'move', '--store', 'none.db', '--to', 'x.db'], 6, 'There is no store'],
      [['store', 'check', '--store', 'none.db'], 6, 'There is no store'],
    ] as const) {
      const ended = await stage.terret(...args)
      expect([args, ended.code, ended.out, ended.err]).toEqual([args, code, '', expect.stringContaining(said)])
    }
    expect((await run('Two.')).code).toBe(0)
  })
})

describe('terret store check', () => {
  it('B-MOVE-30: reads everything and says what there is; children, approvals, forks and money are sound', async () => {
    await scriptedBy(
      [{ calls: [{ tool: 'write', args: { path: 'a.txt', content: 'x' } }] }, 'Done.', 'Again.', 'Forked.'],
      { budget: { sessionUsd: 5 } },
    )
    expect((await stage.apart('run', 'Write.')).code).toBe(3)
    expect((await stage.apart('store', 'check')).out).toMatch(
      /1 hold\w*\. Nothing is wrong\.|0 holds\. Nothing is wrong\.\n$/,
    )
    await stage.apart('approve', 'latest', '--yes', '--resume')
    await stage.apart('fork', 'latest')
    await stage.apart('resume', 'latest', 'More.')
    const { code, out, err } = await stage.apart('store', 'check')
    expect([code, out, err]).toEqual([
      0,
      expect.stringMatching(
        /^\S+terret\.db: 2 sessions, \d+ events, \d+ blobs, \d+ accounts, \d+ holds?\. Nothing is wrong\.\n$/,
      ),
      '',
    ])
  })

  const damages: readonly (readonly [string, string, RegExp])[] = [
    [
      'an event',
      `DROP TRIGGER events_keep; UPDATE events SET body = replace(body, 'One.', 'Two.')`,
      /^session \S+: event \d+: the event does not match its checksum\.$/m,
    ],
    [
      'a missing event',
      `DROP TRIGGER events_stay; DELETE FROM events WHERE pos = (SELECT max(pos) FROM events)`,
      /^session \S+: (event \d+: the event is missing|its log)/m,
    ],
    ['a row', `UPDATE sessions SET tries = 7`, /^session \S+: The session is damaged/m],
    [
      'a card',
      `UPDATE sessions SET card = replace(card, '"wakes":0', '"wakes":3'), card_sum = NULL`,
      /^session \S+: its card does not say what its log says\.$/m,
    ],
    ['a blob', `UPDATE blobs SET data = x'00'`, /^session \S+: event \d+: The blob \S+ does not match its checksum/m],
    ['a missing blob', `DELETE FROM blobs`, /^session \S+: event \d+ refers to the blob \S+, which is missing\.$/m],
    [
      'an account',
      `INSERT INTO accounts (id, cap, held, spent, assumed) VALUES ('day:x', NULL, 5, 1, 0)`,
      /^account day:x: 5 is held on it, and its open holds are 0 /m,
    ],
    [
      'a hold',
      `INSERT INTO holds (key, amount, accounts, session) VALUES ('x:1', 2, '["day:x"]', 'none')`,
      /^hold x:1: it is of session none, which is missing\.\naccount day:x: holds name it with 2, and it is missing\.$/m,
    ],
  ]

  it('B-MOVE-31: finds what is wrong in any of them, in each form of output, and ends with 1', async () => {
    await run('One.')
    meddle('PRAGMA wal_checkpoint(TRUNCATE)')
    for (const [what, sql, said] of damages) {
      const copy = beside(`${what}.db`)
      copyFileSync(database(), copy)
      meddle(sql, copy)
      const { code, out } = await stage.terret('store', 'check', '--store', copy)
      expect([what, code, out]).toEqual([what, 1, expect.stringMatching(said)])
      const json = JSON.parse((await stage.terret('store', 'check', '--store', copy, '--json')).out) as Checked
      expect([what, json.problems.length > 0]).toEqual([what, true])
    }
  })
  type Checked = { readonly problems: readonly unknown[] }
})

describe('terret worker', () => {
  const ask = { calls: [{ tool: 'ask_user', args: { question: 'Well?' } }] }

  it('B-CLISTORE-9: leaves sessions whose folder is not on this machine to others, and says so once for each folder', async () => {
    await scriptedBy([ask, ask, ask, 'Done.'])
    const other = beside('other')
    mkdirSync(other)
    for (const _ of [1, 2]) {
      await stage.terretIn({ cwd: other }, 'run', 'There.')
      await stage.terretIn({ cwd: other }, 'answer', 'latest', 'Yes.')
    }
    await stage.terret('run', 'Here.')
    await stage.terret('answer', 'latest', 'Yes.')
    renameSync(other, beside('gone'))
    const { code, err } = await stage.terret('worker', '--idle')
    expect(code).toBe(0)
    expect(
      err.match(
        /^There is no folder \S+other here\. Its sessions are left to other workers: [0-9a-f]{8} and others\.$/gm,
      ),
    ).toHaveLength(1)
    const states = (await stage.terret('list', '--all')).out
    expect([states.match(/completed/g)?.length, states.match(/requires_action|running/g)?.length]).toEqual([1, 2])
  })

  it('B-CLISTORE-10: with --agents drives only sessions of these agents', async () => {
    await scriptedBy([ask, 'Done.'])
    await stage.terret('run', 'Here.')
    await stage.terret('answer', 'latest', 'Yes.')
    const none = await stage.terret('worker', '--idle', '--agents', 'researcher, writer')
    // The store does not even name them to it.
    expect([none.code, none.out, none.err]).toEqual([0, '', ''])
    expect((await stage.terret('list')).out).not.toContain('completed')
    await stage.terret('worker', '--idle', '--agents', 'researcher,default')
    expect((await stage.terret('list')).out).toContain('completed')
    const wrong = await stage.refused('worker', '--idle', '--agents', 'a,,b')
    expect([wrong.code, wrong.err]).toEqual([
      2,
      expect.stringContaining('--agents must be names with commas between them'),
    ])
  })
})
