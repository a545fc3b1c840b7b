// A database that is gone, is another one or is an older copy: nothing is written to it before the user accepts it.
import { copyFileSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'
import { lastLine } from './stage.ts'

const { stage } = stageOfEach()

// In a process of its own, whose end lets go of the file: on Node 20 a database that was closed keeps it open for a while.
const run = (task: string) => stage.apart('run', '--model', 'offline:any', task)
const database = (): string => join(stage.home, 'terret.db')
const listed = async (): Promise<number> => (await stage.terret('list', '--all')).out.split('\n').length - 1

it('B-CLI-155: a database restored from an older copy is not written to, reads warn, and it can be accepted (F17)', async () => {
  await run('One.')
  copyFileSync(database(), join(stage.home, 'copy'))
  await run('Two.')
  copyFileSync(join(stage.home, 'copy'), database())
  for (const args of [
    ['run', '--model', 'offline:any', 'Three.'],
    ['resume', 'latest', 'Go on.'],
    ['wake', 'latest'],
    ['worker', '--idle'],
    ['fork', 'latest'],
    ['interrupt', 'latest'],
  ]) {
    const { code, out, err } = await stage.terret(...args)
    expect([args, code, out]).toEqual([args, 8, ''])
    expect(err).toMatch(
      /^terret: \S+terret\.db is older than it was: what was written since is missing\. Put the right file back, or accept this one\. To accept what is there: terret doctor --accept-store\n$/,
    )
  }
  const read = await stage.terret('list', '--all')
  expect([read.code, read.out.split('\n').length - 1]).toEqual([0, 1])
  expect(read.err).toMatch(/^\S+terret\.db is older than it was: [^\n]+--accept-store\n$/)
  const doctor = await stage.terret('doctor', '--model', 'offline:any')
  expect([doctor.code, doctor.out]).toEqual([
    1,
    expect.stringMatching(/^store +misconfigured +\S+ is older than it was/),
  ])
  expect(await stage.terret('doctor', '--accept-store')).toMatchObject({ code: 0 })
  expect((await run('Three.')).code).toBe(0)
  expect(await listed()).toBe(2)
}, 60_000)

it('B-CLI-156: a database that was replaced by another one is noticed, also if that one has more in it (F17)', async () => {
  await run('One.')
  const other = { env: { TERRET_HOME: join(stage.home, '..', 'other-data') } }
  for (const task of ['A.', 'B.', 'C.']) await stage.start(['run', '--model', 'offline:any', task], other).ended
  copyFileSync(join(stage.home, '..', 'other-data', 'terret.db'), database())
  const refused = await run('Two.')
  expect([refused.code, lastLine(refused.err)]).toEqual([
    8,
    expect.stringContaining('is not the store it was, but another one'),
  ])
  expect(await listed()).toBe(3)
  expect(await stage.json('doctor', '--accept-store')).toMatchObject({ accepted: { removals: 0 } })
  expect((await run('Two.')).code).toBe(0)
})

it('B-CLI-157: a database that is gone is no empty one: every command says so until that is accepted (F17)', async () => {
  await run('One.')
  rmSync(database())
  for (const args of [['list'], ['pending'], ['inspect', 'latest'], ['run', '--model', 'offline:any', 'Two.']]) {
    const { code, out, err } = await stage.terret(...args)
    expect([args, code, out]).toEqual([args, 8, ''])
    expect(err).toMatch(/^terret: \S+terret\.db is gone, and with it every session\. [^\n]+--accept-store\n$/)
  }
  expect(existsSync(database())).toBe(false)
  expect(await stage.terret('doctor', '--accept-store')).toMatchObject({
    code: 0,
    out: 'There is no database. The next run makes a new one.\n',
  })
  expect((await run('Two.')).code).toBe(0)
  expect(await listed()).toBe(1)
})

it('B-CLI-158: how far it was seen is kept for its owner only, moves with what is written, and is not guessed', async () => {
  await run('One.')
  const seen = join(stage.home, 'store.json')
  const first = readFileSync(seen, 'utf8')
  expect(statSync(seen).mode & 0o077).toBe(0)
  await stage.terret('list')
  expect(readFileSync(seen, 'utf8')).toBe(first)
  await run('Two.')
  const pos = (text: string): number => (JSON.parse(text) as { readonly pos: number }).pos
  expect(pos(readFileSync(seen, 'utf8'))).toBeGreaterThan(pos(first))
  writeFileSync(seen, first.slice(0, 10))
  const unknown = await run('Three.')
  expect([unknown.code, lastLine(unknown.err)]).toEqual([8, expect.stringContaining('store.json cannot be read')])
  await stage.terret('doctor', '--accept-store')
  expect((await run('Three.')).code).toBe(0)
})
