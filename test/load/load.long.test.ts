// The load and soak tests, shorter: that nothing is missing or doubled. How fast it is, is measured by `npm run load` on a quiet machine.
import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { runs } from '../runs.ts'

const run = promisify(execFile)
const repository = resolve(import.meta.dirname, '../..')

it('B-SERVE-51: fifty sessions at once with 250 followers, beside idle tabs and readers that do not read: every event comes once', {
  timeout: 300_000,
}, async () => {
  const args = ['--sessions', '50', '--seconds', '5', '--pieces', '10', '--every', '100', '--unbounded']
  const { stdout } = await run(process.execPath, ['.build/test/load/main.js', ...args], { cwd: repository })
  expect(stdout).toMatch(/✓ missing or doubled +0\n/)
  expect(stdout).toContain('50 and 250 followers')
  expect(Number(/followers +p50 .* (\d+) events/.exec(stdout)?.[1])).toBeGreaterThan(0)
})

it('B-SERVE-52, B-SOAK-1: killed, stopped and started again for a minute, with readers that are cut and tabs that are reloaded: every reader has each event once, the page each message, each delivery its session', {
  timeout: 400_000,
}, async () => {
  const args = ['.build/test/load/soak.js', '--seconds', String(runs(60, 3)), '--seed', '7']
  const { stdout } = await run(process.execPath, args, { cwd: repository })
  expect(stdout).toMatch(/[1-9]\d* kills/)
  expect(stdout).toContain('✓ nothing missing, nothing doubled')
})

it('B-SOAK-3: a leak that is planted is found, and what cannot be planted is refused', {
  timeout: 600_000,
}, async () => {
  const soak = (...more: readonly string[]) =>
    run(process.execPath, ['.build/test/load/soak.js', '--seconds', '40', '--seed', '4', ...more], { cwd: repository })
  const { stdout } = await soak('--plant', 'memory')
  expect(stdout).toMatch(/✗ memory of the server, MB: [\d.]+, grew by/)
  expect(stdout).toMatch(/✓ nothing missing, nothing doubled, and the leak of memory was found/)
  await expect(soak('--plant', 'nothing')).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--plant must be one of memory, descriptors, latency, disk') as string,
  })
})
