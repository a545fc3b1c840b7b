// The file of tokens, with several servers on one folder.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { withFileLock } from '../../src/stores/sqlite/file-lock.ts'
import { TokenRegistry } from '../../src/server/token-registry.ts'

const script = fileURLToPath(new URL('../../.build/test/server/child-tokens.js', import.meta.url))

function pathOf(): string {
  const folder = mkdtempSync(join(tmpdir(), 'terret-tokens-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'tokens.json')
}

describe('the file of tokens', () => {
  it('B-SERVE-94: four processes that make it and change it at once have one own token, and lose and revive none of the others', async () => {
    const path = pathOf()
    const names = ['a', 'b', 'c', 'd']
    const said = await Promise.all(names.map((name) => promisify(execFile)(process.execPath, [script, path, name])))
    const tokens = new TokenRegistry(path, 'owner', withFileLock)
    expect(new Set(said.map(({ stdout }) => stdout.trim()))).toEqual(new Set([tokens.own]))
    const left = tokens.list().map(({ name }) => name)
    expect(new Set(left)).toEqual(new Set(names.map((name) => `${name}-29`)))
  })

  it('B-SERVE-94: while one process is at it another changes nothing and says so, and goes on when that one is killed', async () => {
    const path = pathOf()
    const tokens = new TokenRegistry(path, 'owner', withFileLock)
    const holder = spawn(process.execPath, [script, path, 'hold'], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => void holder.kill('SIGKILL'))
    let said = ''
    for await (const text of holder.stdout) if ((said += String(text)).includes('holds')) break
    expect(() => tokens.make({ name: 'ana', role: 'viewer' }, 1)).toThrow(
      expect.objectContaining({ code: 'store_busy' }),
    )
    expect(new TokenRegistry(path, 'owner', withFileLock).list()).toEqual([])
    holder.kill('SIGKILL')
    await once(holder, 'exit')
    tokens.make({ name: 'ana', role: 'viewer' }, 1)
    expect(new TokenRegistry(path, 'owner', withFileLock).list().map(({ name }) => name)).toEqual(['ana'])
  })

  it('B-SERVE-94: a file that is gone is made anew, with no token of before', () => {
    const path = pathOf()
    const tokens = new TokenRegistry(path, 'owner', withFileLock)
    const { token } = tokens.make({ name: 'ana', role: 'viewer' }, 1)
    rmSync(path)
    tokens.make({ name: 'bob', role: 'viewer' }, 1)
    expect(tokens.list().map(({ name }) => name)).toEqual(['bob'])
    expect(() => tokens.principalOf(token, 1)).toThrow()
  })

  it('B-SERVE-95: a token file with an invalid row refuses every request, however often it is read, until it is valid again', () => {
    const path = pathOf()
    const tokens = new TokenRegistry(path, 'owner', withFileLock)
    const { token } = tokens.make({ name: 'ana', role: 'viewer' }, 1)
    const good = readFileSync(path, 'utf8')
    const whole = { hash: 'x', name: 'ana', role: 'viewer', roles: [], reach: 'all', made: 1 }
    for (const row of [null, 7, { hash: 1 }, { ...whole, roles: [7] }, { ...whole, made: '1' }]) {
      writeFileSync(path, JSON.stringify({ own: tokens.own, others: [row] }))
      for (let i = 0; i < 3; i++) expect(() => tokens.principalOf(token, 1)).toThrow('is damaged')
      expect(() => new TokenRegistry(path, 'owner', withFileLock)).toThrow('Remove it: new ones are made')
    }
    writeFileSync(path, good)
    expect(tokens.principalOf(token, 1).name).toBe('ana')
  })

  it('B-SERVE-95: a lock that is no file is said in one sentence, and nothing waits for it', () => {
    const path = pathOf()
    const tokens = new TokenRegistry(path, 'owner', withFileLock)
    rmSync(`${path}.lock`, { force: true })
    for (const spoil of [() => mkdirSync(`${path}.lock`), () => symlinkSync('/nonexistent/x', `${path}.lock`)]) {
      spoil()
      expect(() => tokens.make({ name: 'ana', role: 'viewer' }, 1)).toThrow(`${path}.lock cannot be made or locked.`)
      rmSync(`${path}.lock`, { recursive: true })
    }
    expect(tokens.list()).toEqual([])
  })
})
