// The load model as a program: it runs, prints each figure and each budget, and refuses what it does not know. No timing is asserted.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { noPostgres } from './server.ts'

const script = join(import.meta.dirname, '..', '..', '.build', 'bench', 'scale', 'main.js')

function scale(...args: readonly string[]) {
  return spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' })
}

const FIGURES = [
  'parked sessions',
  'hot row, one commit a process',
  'hot row, 16 at once',
  'woken by an approval',
  'full pages after a checkpoint',
  'turns done, a second',
  'commits a second',
  'rows a second',
  'WAL, KB a second',
  'WAL to body bytes',
  'HOT share',
  'dead rows',
  'due → taken, p50, ms',
  'due → taken, p99, ms',
  'vain claims of all',
  'connections',
  'CPU of the database, cores',
  'CPU of the workers, cores',
  'memory of the workers, MB',
]

describe.skipIf(noPostgres)('npm run scale', () => {
  it('B-SCALE-3: drives real turns on a Postgres of its own, and prints each figure and where each budget breaks', {
    timeout: 120_000,
  }, () => {
    const { status, stdout, stderr } = scale('--quick')
    expect([status, stderr]).toEqual([0, expect.stringContaining('turns a second')])
    const lines = stdout.split('\n')
    for (const name of FIGURES) {
      const line = lines.find((text) => text.startsWith(`${name} `))
      expect([name, line]).toEqual([name, expect.stringMatching(/\d/)])
    }
    expect(stdout).toMatch(/^refused +0$/m)
    expect(stdout.match(/ (holds up to|breaks at) \d+ turns a second /g)).toHaveLength(7)
  })
})

describe('npm run scale', () => {
  it('B-SCALE-4: refuses options it does not know and values it cannot use, and starts nothing', () => {
    const asked = [
      ['--activ', '3'],
      ['--accounts', 'one'],
      ['--sessions', '5', '--active', '6'],
      ['--workers', '0'],
      ['--pace', '50'],
      ['--pace', '50', '--minutes', '1', '--seconds', '9'],
    ]
    for (const args of asked) {
      const { status, stdout, stderr } = scale(...args)
      expect([status, stdout, stderr.trim().split('\n').length]).toEqual([2, '', 1])
    }
  })
})
