// Path claims of writers in one folder: checked before they start, and at each write.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { decideClaims, type FolderWriter } from '../../src/tools/files/path-claims.ts'
import { createPathGuard, guardInFolder, locatePath } from '../../src/tools/files/path-guard.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function workspace(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'terret-claims-')))
  folders.push(folder)
  for (const name of ['src/a', 'src/b', 'docs']) mkdirSync(join(folder, name), { recursive: true })
  return folder
}

const writer = (owner: string, ...ownership: readonly string[]): FolderWriter => ({ owner, writes: true, ownership })

describe('path claims', () => {
  it('B-TREE-20: disjoint paths from the workspace are granted, and each writer knows whose the others are', async () => {
    const root = workspace()
    const granted = await decideClaims(root, [writer('one', './src//a/'), writer('two', 'src/b', 'src/ab.ts')])
    expect(granted).toEqual([
      { claims: { own: ['src/a'], others: [{ owner: 'two', paths: ['src/b', 'src/ab.ts'] }] } },
      { claims: { own: ['src/b', 'src/ab.ts'], others: [{ owner: 'one', paths: ['src/a'] }] } },
    ])
  })

  it('B-TREE-20: paths that lead elsewhere, patterns and odd ones are refused, one task at a time', async () => {
    const root = workspace()
    symlinkSync(tmpdir(), join(root, 'out'))
    const odd = [
      '/etc',
      '../x',
      'src/../../x',
      'C:/x',
      '~/x',
      'src\\a',
      'src/*',
      'a\0b',
      '',
      ' ',
      'x'.repeat(2_000),
      'out/x',
    ]
    for (const path of odd) {
      const [first, second] = await decideClaims(root, [writer('one', path), writer('two', 'docs')])
      expect([path, first]).toEqual([path, { refused: expect.stringContaining('"ownership"') as unknown }])
      expect(second).toMatchObject({ claims: { own: ['docs'] } })
    }
  })

  it('B-TREE-20: overlaps are found between places, also through case, links and folders above', async () => {
    const root = workspace()
    symlinkSync(join(root, 'src'), join(root, 'link'))
    for (const [one, two] of [
      ['src', 'src/a'],
      ['src/a', 'SRC/A'],
      ['src/a', 'link/a/x.ts'],
      ['docs/é.md', 'docs/e\u0301.md'],
      ['.', 'docs'],
    ] as const) {
      const both = await decideClaims(root, [writer('one', one), writer('two', two)])
      expect(both).toEqual([
        { refused: expect.stringContaining('of two overlap') as unknown },
        { refused: expect.stringContaining('of one overlap') as unknown },
      ])
    }
  })

  it('B-TREE-20: of several writers each needs a claim; one alone, and those that only read, need none', async () => {
    const root = workspace()
    const plain = { owner: 'one', writes: true }
    const reader = { owner: 'two', writes: false }
    expect(await decideClaims(root, [plain, reader])).toEqual([{ claims: null }, { claims: null }])
    expect(await decideClaims(root, [plain, writer('two', 'docs')])).toEqual([
      { refused: expect.stringContaining('Several agents would write') as unknown },
      { claims: { own: ['docs'], others: [] } },
    ])
    expect(await decideClaims(root, [writer('one'), reader])).toEqual([
      { refused: expect.any(String) as unknown },
      { claims: null },
    ])
  })

  it('B-TREE-21: a write outside of the claims is refused with the name of the owner, and all may be read', async () => {
    const root = workspace()
    symlinkSync(join(root, 'src', 'b'), join(root, 'src', 'a', 'b'))
    const claims = { own: ['src/a'], others: [{ owner: 'two', paths: ['src/b'] }] }
    const guarded = guardInFolder(createPathGuard({ root }), { claims })
    expect((await locatePath(guarded, 'src/a/x.ts', 'write')).shown).toBe('src/a/x.ts')
    await expect(locatePath(guarded, 'src/b/x.ts', 'write')).rejects.toThrow('src/b belongs to two')
    await expect(locatePath(guarded, 'src/a/b/x.ts', 'write')).rejects.toThrow('src/b belongs to two')
    await expect(locatePath(guarded, 'docs/x.md', 'write')).rejects.toThrow('it may write only src/a')
    expect((await locatePath(guarded, 'src/b/x.ts', 'read')).shown).toBe('src/b/x.ts')
  })
})
