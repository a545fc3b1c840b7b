// `terret token`: who may ask the server of a data folder.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { TokenRegistry } from '../../src/server/token-registry.ts'
import type { TokenMade } from '../../src/server/wire.ts'
import { withFileLock } from '../../src/stores/sqlite/file-lock.ts'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()

it('B-TOKEN-6: makes, lists and drops tokens, and what was dropped is not given again by accident', async () => {
  const made = (await stage.json(
    'token',
    'make',
    'ann',
    '--role',
    'operator',
    '--reach',
    'own',
    '--expires',
    '30d',
  )) as TokenMade
  expect(made).toMatchObject({ name: 'ann', role: 'operator', reach: 'own' })
  expect((made.expires ?? 0) - made.made).toBe(30 * 86_400_000)
  const file = join(stage.home, 'tokens.json')
  expect(readFileSync(file, 'utf8')).not.toContain(made.token)
  const server = new TokenRegistry(file, 'owner', withFileLock)
  expect(server.principalOf(made.token, made.made).name).toBe('ann')
  expect((await stage.terret('token', 'list')).out).toContain('ann  operator  reaches own  until ')
  expect((await stage.terret('token', 'drop', 'ann')).code).toBe(0)
  expect(() => server.principalOf(made.token, made.made)).toThrow('needs a token')
  const again = await stage.terret('token', 'make', 'ann')
  expect([again.code, again.err]).toEqual([9, expect.stringContaining('say inherit')])
  expect((await stage.terret('token', 'make', 'ann', '--inherit')).code).toBe(0)
  expect((await stage.terret('token', 'drop', 'nobody')).code).toBe(6)
})

it.each([
  ['token', 'make'],
  ['token', 'list', 'ann'],
  ['token', 'take', 'ann'],
  ['token', 'make', 'ann', '--role', 'king'],
  ['token', 'make', 'ann', '--reach', 'far'],
  ['token', 'make', 'ann', '--roles', 'a,,b'],
  ['token', 'make', 'ann', '--expires', 'soon'],
])('B-TOKEN-6: %s %s %s %s %s is refused in one line', async (...line) => {
  const { code, err } = await stage.refused(...line)
  expect([code, err.trim().split('\n').length]).toEqual([2, 1])
})
