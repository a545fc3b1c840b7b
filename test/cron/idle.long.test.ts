// What ten thousand waiting jobs cost a worker.
import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const script = fileURLToPath(new URL('../../.build/test/cron/child-idle.js', import.meta.url))

type Cost = { readonly timers: number; readonly cpuMsPerS: number; readonly grownMb: number }

function costOf(jobs: number): Cost {
  const file = join(mkdtempSync(join(tmpdir(), 'terret-cron-idle-')), 'terret.db')
  const args = ['--expose-gc', script, file, String(jobs), '10']
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as Cost
}

it('B-CRON-27: ten thousand waiting jobs need no timer of their own and less than 50 MB', () => {
  const [none, many] = [costOf(0), costOf(10_000)]
  console.log(JSON.stringify({ none, many }))
  expect(many.timers).toBe(none.timers)
  expect(many.grownMb).toBeLessThan(50)
}, 120_000)
