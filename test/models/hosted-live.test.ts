// `npm run live` as a process, without any key: it must not call any provider. With keys, people run it by hand.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { endpoints } from '../../src/index.ts'

it('B-HOSTED-50: without a key `npm run live` calls no provider, says which variables it looks for, and ends well', () => {
  const script = fileURLToPath(new URL('../../.build/scripts/live.js', import.meta.url))
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], { env: {}, encoding: 'utf8' })
  expect(stderr).toBe('')
  expect(stdout).toMatch(/^No key is set, so nobody was called\. Set one of: /)
  for (const { keys } of Object.values(endpoints)) for (const key of keys) expect(stdout).toContain(key)
  expect(status).toBe(0)
})
