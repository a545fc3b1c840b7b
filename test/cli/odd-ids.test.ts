// Sessions of an older version whose ids a terminal or a shell would obey: they can be listed, read, exported, moved to a plain id and
// removed, and nothing of the id reaches the terminal or a pasted command as it is.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { sqlite } from '../../src/index.ts'
import { makeOldSession } from '../old-session.ts'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()

const OBEYED = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u
const ODD = [
  "a'$(touch owned)`touch owned`",
  'row\n1a2b3c4d  idle             a second row\u001b[2J\u202e',
  '-rf',
  'tenant/42',
]

async function old(id: string): Promise<void> {
  const store = sqlite(join(stage.home, 'terret.db'))
  await makeOldSession(store, id, { folder: stage.folder, text: 'Do it.' })
  await store.close()
}

/** As a person pastes it. */
function paste(line: string): string {
  const script = `terret() { '${process.execPath}' '${stage.command}' "$@"; }\n${line}`
  return execFileSync('bash', ['-c', script], { cwd: stage.folder, env: stage.env, encoding: 'utf8', stdio: 'pipe' })
}

it.each(ODD)(
  'B-ID-3, B-ID-5, B-ID-6: an old session %j is listed on one row, read, exported and removed by what is printed',
  async (id) => {
    await stage.terret('run', '--model', 'offline:any', 'Hello.')
    await old(id)
    for (const args of [['list'], ['inspect'], ['history'], ['pending'], ['export', '--format', 'md']] as const) {
      const [command, ...flags] = args
      const { code, out, err } = await stage.terret(command, ...flags, ...(command === 'list' ? [] : ['--', id]))
      expect([command, code, err]).toEqual([command, 0, command === 'pending' ? 'Nothing waits for you here.\n' : ''])
      expect(out + err).not.toMatch(OBEYED)
      if (command === 'list') expect(out.trimEnd().split('\n')).toHaveLength(2)
    }
    const { code, err } = await stage.terret('delete', '--', id)
    expect([code, OBEYED.test(err), err.trimEnd().split('\n').length]).toEqual([2, false, 1])
    paste(err.slice(err.indexOf('terret delete')))
    expect((await stage.terret('list', '--json')).out.trimEnd().split('\n')).toHaveLength(1)
    expect(existsSync(join(stage.folder, 'owned'))).toBe(false)
  },
  60_000,
)

it('B-ID-3: an old session goes on under a plain id, by an export and an import', async () => {
  await old('tenant/42')
  const { out } = await stage.terret('export', 'tenant/42', '--format', 'json')
  const file = stage.write('s.json', out)
  expect(await stage.terret('import', file)).toMatchObject({ code: 2, out: '' })
  expect(await stage.terret('import', file, '--id=-tenant.42')).toMatchObject({ code: 0 })
  const { err } = await stage.terret('delete', '--', '-tenant.42')
  expect(paste(err.slice(err.indexOf('terret delete')))).toContain('Removed session -tenant.42 for good')
})

it.each(['a b', '$(id)', 'a\nb', '.', '..', 'latest', 'x'.repeat(129), 'é'])(
  'B-ID-1: a session cannot be imported as %j, and nothing is written',
  async (id) => {
    await old('plain')
    const file = stage.write('s.json', (await stage.terret('export', 'plain', '--format', 'json')).out)
    const { code, err } = await stage.terret('import', file, `--id=${id}`)
    expect([code, err]).toEqual([2, expect.stringMatching(/^terret: The session id "[^\n]*\(invalid_input\)\n$/)])
    expect((await stage.terret('list', '--json')).out.trimEnd().split('\n')).toHaveLength(1)
    expect(readdirSync(stage.folder)).toEqual([])
  },
)

it('B-ID-7: a whole id that is also the short id of another session names neither', async () => {
  await old('1a2b3c4d-0000-4000-8000-000000000000')
  await old('1a2b3c4d')
  const { code, err } = await stage.terret('inspect', '1a2b3c4d')
  expect([code, err]).toEqual([6, expect.stringContaining('could mean several sessions')])
  expect((await stage.terret('inspect', '1a2b3c4d-')).out).toContain('1a2b3c4d-0000-4000-8000-000000000000')
})
