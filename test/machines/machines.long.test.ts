// `npm run machines` as a person runs it: real processes and a real server, which are killed; and nothing of them is left.
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { noPostgres } from '../postgres/server.ts'
import { database } from '../postgres/stage.ts'
import { until } from '../until.ts'

const MAIN = fileURLToPath(new URL('../../.build/test/machines/main.js', import.meta.url))

/** With a folder of its own for temporary files. */
function started(args: readonly string[] = [], more: Readonly<Record<string, string>> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'terret-machines-test-'))
  // The server is another user's.
  chmodSync(folder, 0o755)
  const { TERRET_STORE: _store, ...env } = process.env
  const child = spawn(process.execPath, [MAIN, ...args], { env: { ...env, TMPDIR: folder, ...more } })
  const said = { text: '' }
  for (const out of [child.stdout, child.stderr])
    out.setEncoding('utf8').on('data', (text: string) => (said.text += text))
  const ended = new Promise<number | null>((done) => void child.once('close', done))
  onTestFinished(() => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  return { folder, child, said, ended }
}

/** Processes that have this folder for temporary files: whatever it started, and what that started. */
function processesIn(folder: string): readonly string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(folder)
    } catch {
      return false
    }
  })
}

async function expectNothingLeft(folder: string, text: string): Promise<void> {
  const port = Number(/on port (\d+)/.exec(text)?.[1])
  const answers = await new Promise<boolean>((done) => {
    const socket = connect(port, '127.0.0.1', () => done(true)).on('error', () => done(false))
    socket.on('close', () => {}).unref()
  })
  expect(answers).toBe(false)
  await until(() => expect(processesIn(folder)).toEqual([]))
  await until(() => expect(readdirSync(folder)).toEqual([]))
}

describe.skipIf(noPostgres)('without Postgres on this machine these are skipped', { timeout: 300_000 }, () => {
  it('B-MACHINES-1, B-MACHINES-2: a worker and the database are killed, and the ledger of the log and the bank says lost 0, doubled 0', async () => {
    const { folder, said, ended } = started(['--agents', '20'])
    expect([await ended, said.text]).toEqual([0, expect.stringContaining('All 20 agents are done')])
    const { text } = said
    const pids = /Three workers run: (.*)/.exec(text)?.[1]?.match(/\d+/g) ?? []
    const killed = /kill -9 (\d+): worker (\w+), in the middle of a payment/.exec(text)
    expect(pids).toContain(killed?.[1])
    expect(text).toMatch(/✗ kill -9: Postgres.*\n.*✓ Postgres runs again/)
    expect(text).toMatch(/^Agents +20, 20 of them done\nPayments +20 in the logs, 20 in the book of the bank$/m)
    expect(text).toMatch(/^ +lost 0, doubled 0$/m)
    expect(text).toMatch(new RegExp(`invoice-\\d+: \\w+ for ${killed?.[2]}, cut off in a payment`))
    expect(text).toMatch(/^Money +\$0\.\d{4} for \d+ requests in the logs, and so says the account(, with .*)?$/m)
    expect(text).toMatch(/^Processes +none is left$/m)
    // A pipe gets lines: nothing moves.
    expect(text).not.toContain('\u001b[')
    await expectNothingLeft(folder, text)
  })

  it.each(['SIGINT', 'SIGKILL'] as const)('B-MACHINES-3: after %s no process and no file is left', async (signal) => {
    const { folder, child, said, ended } = started(['--agents', '20'])
    await until(() => expect(said.text).toContain('Other processes approve'))
    expect(processesIn(folder).length).toBeGreaterThan(3)
    child.kill(signal)
    expect(await ended).toBe(signal === 'SIGINT' ? 5 : null)
    if (signal === 'SIGINT') expect(said.text).toContain('Stopped. No process is left.')
    // Commands that approve end by themselves when nobody answers them.
    await until(() => expect(processesIn(folder)).toEqual([]))
    // What a killed program cannot remove is a folder with the book of the bank in it.
    if (signal === 'SIGKILL')
      for (const name of readdirSync(folder).filter((each) => each.startsWith('terret-machines-')))
        rmSync(join(folder, name), { recursive: true })
    await expectNothingLeft(folder, said.text)
  })

  it('B-MACHINES-4: a store that is given is used if it is empty, and its server is not killed', async () => {
    const { url, server } = await database()
    const [since] = await server.query<{ at: string }>('select pg_postmaster_start_time()::text as at')
    const first = started(['--agents', '5'], { TERRET_STORE: url })
    expect([await first.ended, first.said.text]).toEqual([0, expect.stringContaining('lost 0, doubled 0')])
    expect(first.said.text).not.toContain('kill -9: Postgres')
    expect(await server.query('select pg_postmaster_start_time()::text as at')).toEqual([since])
    const again = started([], { TERRET_STORE: url })
    expect([await again.ended, again.said.text]).toEqual([
      1,
      expect.stringContaining('has sessions. Give an empty database'),
    ])
    for (const { folder } of [first, again])
      await until(() => expect([processesIn(folder), readdirSync(folder)]).toEqual([[], []]))
  })
})
