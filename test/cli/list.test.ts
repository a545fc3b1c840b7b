// `terret list` where there is nothing to list, or no way to, and where there is more than it shows.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()

const ONE_LINE = /^terret: [^\n]+\n$/

it('B-CLI-153: a home that cannot be used has no empty list: it is said in one line, with exit code 8', async () => {
  const file = stage.write('a-file', '')
  const inFile = join(file, 'below')
  const odd = stage.write('odd/folders.jsonl/x', '')
  mkdirSync(join(odd, '..', '..', 'terret.db'))
  const broken = stage.write('broken/terret.db', 'This is no database, and long enough to be read as one. '.repeat(99))
  for (const home of [file, inFile, join(odd, '..', '..'), join(broken, '..')]) {
    for (const args of [['list'], ['list', '--all'], ['list', '--json'], ['pending']]) {
      const { code, out, err } = await stage.start(args, { env: { TERRET_HOME: home } }).ended
      expect([home, args, code, out]).toEqual([home, args, 8, ''])
      expect(err).toMatch(ONE_LINE)
    }
  }
}, 60_000)

it('B-CLI-154: --all shows the newest of all folders, says if there are more, and finds folders by odd ids too', async () => {
  for (const task of ['One.', 'Two.', 'Three.']) await stage.terret('run', '--model', 'offline:any', task)
  const some = await stage.terret('list', '--all', '--limit', '2')
  expect(
    some.out
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/\s{2,}/).at(-1)),
  ).toEqual(['Three.', 'Two.'])
  expect(some.err).toBe('… and more: --limit N shows them.\n')
  expect((await stage.terret('list', '--all', '--limit', '3')).err).toBe('')
  const file = join(stage.folder, 's.json')
  writeFileSync(file, (await stage.terret('export', 'latest', '--format', 'json')).out)
  await stage.terret('import', file, '--id', 'an "odd" id')
  const { out } = await stage.terret('list', '--all', '--json')
  const listed = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly session: string; readonly folder: string })
  expect(listed).toHaveLength(4)
  for (const { folder } of listed) expect(folder).toBe(stage.folder)
  expect(listed.map(({ session }) => session)).toContain('an "odd" id')
})
