// The file of tokens, with several servers on one folder.
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Tokens } from '../../src/server/tokens.ts'

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
    const tokens = new Tokens(path, 'owner')
    expect(new Set(said.map(({ stdout }) => stdout.trim()))).toEqual(new Set([tokens.own]))
    const left = tokens.list().map(({ name }) => name)
    expect(new Set(left)).toEqual(new Set(names.map((name) => `${name}-29`)))
    expect(existsSync(`${path}.lock`)).toBe(false)
  })

  it('B-SERVE-94: what a process left that was killed while it changed them is passed over; a file that is gone is made anew', () => {
    const path = pathOf()
    const tokens = new Tokens(path, 'owner')
    writeFileSync(`${path}.lock`, '')
    utimesSync(`${path}.lock`, 0, 0)
    tokens.make({ name: 'ana', role: 'viewer' }, 1)
    expect(new Tokens(path, 'owner').list().map(({ name }) => name)).toEqual(['ana'])
    rmSync(path)
    tokens.make({ name: 'bob', role: 'viewer' }, 1)
    expect(tokens.list().map(({ name }) => name)).toEqual(['bob'])
    expect(existsSync(`${path}.lock`)).toBe(false)
  })
})
