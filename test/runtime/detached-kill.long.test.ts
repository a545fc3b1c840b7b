// A worker killed with SIGKILL while twenty children of a session work beside it: a few rounds of `npm run crash -- --trees`, one for
// each commit that matters. How the logs are compared is test/crash/tree-check.ts.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const program = fileURLToPath(new URL('../../.build/test/crash/main.js', import.meta.url))

it('B-SPAWN-20, B-SPAWN-21: killed before and after children are made, begin, end and are read, each is made once and reports once', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, '--trees', '--rounds', '8', '--seed', '7'], {
    encoding: 'utf8',
    timeout: 170_000,
  })
  expect(`${stdout}${stderr}`).toMatch(/children 160, reports 160, shown 160, lost 0, twice 0\n[^]*violations 0;/)
  for (const place of ['birth', 'start', 'end', 'ask']) {
    expect(stdout).toMatch(new RegExp(`after ${place} \\d.*before ${place} \\d`))
  }
  expect(status).toBe(0)
}, 180_000)
