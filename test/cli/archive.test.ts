// `terret store archive` and `terret store restore`, as they are typed, on a store in a file.
import { copyFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { meddle } from '../stores/folder.ts'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()

const run = (task: string) => stage.terret('run', '--model', 'offline:any', task)
const folder = (): string => join(stage.home, '..', 'archive')
const archive = (...more: readonly string[]) =>
  stage.terret('store', 'archive', '--older', '0', '--to', folder(), ...more)
const restore = () => stage.terret('store', 'restore', folder())
const logs = async (): Promise<string> => {
  const cards = (await stage.terret('list', '--all', '--json')).out
  const ids = cards
    .split('\n')
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as { session: string }).session)
  const all = await Promise.all(ids.sort().map(async (id) => (await stage.terret('history', id, '--json')).out))
  return all.join('')
}

it('B-OPS-10, B-OPS-11: sessions leave the store for files of mode 0600, and come back as they were, once', async () => {
  for (const task of ['One.', 'Two.']) expect((await run(task)).code).toBe(0)
  const before = await logs()
  const done = await archive()
  expect([done.code, done.out]).toEqual([
    0,
    expect.stringMatching(/^Archived 2 sessions with \d+ events in 2 files of /),
  ])
  expect((await stage.terret('list', '--all', '--json')).out).toBe('')
  const files = readdirSync(folder())
  expect(files).toHaveLength(2)
  for (const file of files) expect(statSync(join(folder(), file)).mode & 0o777).toBe(0o600)
  expect((await archive()).out).toBe('There was no session to archive that is as old.\n')
  expect((await restore()).out).toBe('Restored 2 sessions.\n')
  expect(await logs()).toBe(before)
  expect((await restore()).out).toBe('Restored 0 sessions. 2 files had sessions that are there already.\n')
  expect((await stage.terret('store', 'check')).code).toBe(0)
  expect((await stage.terret('run', '--model', 'offline:any', '--continue', 'More.')).code).toBe(0)
}, 60_000)

it('B-OPS-12: what was changed is refused by name, and the others come back', async () => {
  for (const task of ['One.', 'Two.']) await run(task)
  await archive()
  const [first = '', second = ''] = readdirSync(folder()).map((name) => join(folder(), name))
  copyFileSync(first, `${first}.kept`)
  writeFileSync(first, readFileSync(first, 'utf8').replace(/(One|Two)\./, 'Pay me.'))
  writeFileSync(join(folder(), 'other.json'), '{"format":"terret.session"}')
  writeFileSync(join(folder(), 'half.json'), readFileSync(`${first}.kept`, 'utf8').slice(0, 2_000))
  writeFileSync(join(folder(), 'none.json'), 'no json')
  const { code, out, err } = await restore()
  expect([code, out]).toEqual([1, 'Restored 1 session.\n'])
  expect(err.split('\n').filter(Boolean)).toEqual([
    expect.stringContaining('its checksum does not match'),
    expect.stringContaining('half.json: It cannot be read (it was cut off).'),
    expect.stringContaining('none.json: It cannot be read (no JSON).'),
    expect.stringContaining('other.json: This is no session that can be imported'),
  ])
  expect(second).not.toBe('')
  copyFileSync(`${first}.kept`, first)
  expect((await restore()).out).toBe('Restored 1 session. 1 file had sessions that are there already.\n')
}, 60_000)

it('B-OPS-10: flags that are missing or of another command are refused before anything is looked at', async () => {
  for (const [args, text] of [
    [['archive'], 'Usage: terret store archive --older DAYS --to DIR'],
    [['archive', '--older', '3'], 'Usage: terret store archive --older DAYS --to DIR'],
    [['archive', '--older', '-1', '--to', 'x'], '--older'],
    [['archive', '--older', 'x', '--to', 'x'], '--older must be a whole number from 0 on'],
    [['archive', '--older', '1', '--to', 'x', '--store', 'y'], '`terret store archive` takes no --store.'],
    [['restore'], 'Usage: terret store restore DIR'],
    [['restore', 'x', '--older', '1'], '`terret store restore` takes no --older.'],
    [['restor', 'x'], 'Did you mean `terret store restore`?'],
    [['archiv', 'x'], 'Did you mean `terret store archive`?'],
  ] as const) {
    const { code, err } = await stage.refused('store', ...args)
    expect([args, code, err]).toEqual([args, 2, expect.stringContaining(text)])
  }
  expect(await stage.refused('store', 'restore', join(stage.home, 'nowhere'))).toMatchObject({ code: 6 })
})

it('B-KIND-5: a session that cannot be archived stays and is named, and the others are archived', async () => {
  for (const task of ['One.', 'Two.']) expect((await run(task)).code).toBe(0)
  const [damaged] = meddle(join(stage.home, 'terret.db'), (db) => {
    db.exec(`DROP TRIGGER events_keep; UPDATE events SET body = replace(body, 'One.', 'Won.')`)
    return db.prepare(`SELECT id FROM sessions WHERE n IN (SELECT session FROM events WHERE body LIKE '%Won.%')`).all()
  }) as { id: string }[]
  const done = await archive()
  expect([done.code, done.out]).toEqual([1, expect.stringMatching(/^Archived 1 session with /)])
  expect(done.err).toContain(`Session ${damaged?.id} stays in the store, as it cannot be archived: `)
  expect(readdirSync(folder())).toHaveLength(1)
  expect((await stage.terret('list', '--all', '--json')).out).toContain(damaged?.id)
}, 60_000)
