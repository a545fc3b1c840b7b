// Data folders that can only be read, or that are in trouble: what the commands still show, and what `terret doctor` says.
import { spawn } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Harness, scripted, sqlite } from '../../src/index.ts'
import { diskFindings } from '../../src/cli/configure/doctor-command.ts'
import { meddle } from '../stores/folder.ts'
import { type Ended, MAIN, openStage, type Stage } from './stage.ts'

/** A home with one finished session, whose database still has a write-ahead log beside it if `open`. */
async function homeWith(): Promise<{ stage: Stage; session: string; file: string }> {
  const stage = openStage()
  onTestFinished(() => {
    chmodSync(stage.home, 0o700)
    stage.close()
  })
  mkdirSync(stage.home, { mode: 0o700 })
  const file = join(stage.home, 'terret.db')
  const store = sqlite(file)
  const harness = new Harness({ model: scripted(['All is well.']), store })
  const { sessionId: session } = await harness.run('How is it?')
  await harness.close()
  await store.close()
  return { stage, session, file }
}

/** Runs as a user that may read but not write. A test that runs as root becomes another user: root may write anywhere. */
function asReader(stage: Stage, ...args: readonly string[]): Promise<Ended> {
  const other = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const child = spawn(process.execPath, [MAIN, ...args], { cwd: stage.folder, env: { ...stage.env }, ...other })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk) => (out += String(chunk)))
  child.stderr.on('data', (chunk) => (err += String(chunk)))
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, out, err })))
}

function makeReadOnly(stage: Stage): void {
  const root = process.getuid?.() === 0
  for (const name of readdirSync(stage.home)) {
    if (root) chownSync(join(stage.home, name), 65_534, 65_534)
    chmodSync(join(stage.home, name), 0o400)
  }
  if (root) for (const path of [stage.folder, join(stage.home, '..')]) chmodSync(path, 0o755)
  if (root) chownSync(stage.home, 65_534, 65_534)
  chmodSync(stage.home, 0o500)
}

describe('a data folder that can only be read', () => {
  it('B-DOCTOR-20: is listed, inspected, exported and examined, and nothing in it is changed', async () => {
    const { stage, session, file } = await homeWith()
    makeReadOnly(stage)
    const before = statSync(file).mtimeMs
    const list = await asReader(stage, 'list', '--all', '--json')
    expect([list.code, list.out, list.err]).toEqual([0, expect.stringContaining(session), ''])
    for (const args of [
      ['inspect', session],
      ['history', session],
      ['export', session],
      ['doctor', '--session', session],
    ]) {
      const { code, out, err } = await asReader(stage, ...args)
      expect([args[0], code, err]).toEqual([args[0], 0, ''])
      expect(out).not.toBe('')
    }
    expect((await asReader(stage, 'doctor')).out).toMatch(/store +ok/)
    const removed = await asReader(stage, 'delete', session, '--yes')
    expect(removed.code).not.toBe(0)
    expect(removed.err).toMatch(/writable/)
    expect(statSync(file).mtimeMs).toBe(before)
  }, 60_000)
})

describe('terret doctor on a home in trouble', () => {
  it('B-DOCTOR-21: a damaged session is told by name, with what to do', async () => {
    const { stage, session, file } = await homeWith()
    meddle(file, (db) => db.exec(`DROP TRIGGER events_keep; UPDATE events SET body = replace(body, 'well', 'ill!')`))
    const { code, out } = await stage.terret('doctor')
    expect(code).toBe(1)
    expect(out).toContain(`session ${session}`)
    expect(out).toContain('Restore the database from a backup')
    expect(out).toContain(`terret delete ${session.slice(0, 8)}`)
  }, 60_000)

  it('B-DOCTOR-22: a disk that is full, or has less than 100 MB left, is told, with what to do', () => {
    const at = (mb: number) => diskFindings('/data', { bavail: mb * 256, bsize: 4096, blocks: 1_000_000 })
    expect(at(0)[0]).toMatchObject({ what: 'disk', status: 'misconfigured' })
    expect(at(0)[0]?.detail).toMatch(/^The disk is full where .*Make room.*prune --older DAYS/)
    expect(at(99)[0]?.detail).toContain('nearly full: 99 MB are left')
    expect([at(100), diskFindings('/data', { bavail: 0, bsize: 4096, blocks: 0 })]).toEqual([[], []])
  })
})
