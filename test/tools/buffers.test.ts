// Files as an editor has them, seen from the file tools: which text counts, what is written where, and what is refused.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Output } from '../../src/tools/core/tool-output.ts'
import { executeTool } from '../../src/tools/core/run-tool.ts'
import { fileTools } from '../../src/tools/files/file-tools.ts'
import type { FileBuffers } from '../../src/tools/index.ts'
import { Workbench } from './workbench.ts'

let bench: Workbench
const open = new Map<string, string>()
beforeEach(() => {
  bench = new Workbench()
  open.clear()
})
afterEach(() => bench.remove())

const reader: FileBuffers = { read: async (path) => open.get(path) ?? null }
const editor: FileBuffers = {
  ...reader,
  write: async (path, text) => {
    open.delete(path)
    writeFileSync(path, text)
  },
}
const at = (path: string): string => join(bench.root, path)
const onDisk = (path: string): string => readFileSync(at(path), 'utf8')

describe('files as an editor has them', () => {
  it('B-EDITOR-10: an editor that only shows its texts is read, and a file with changes that are not saved is not written under it', async () => {
    const call = bench.tools({ buffers: reader })
    bench.put('a.txt', 'saved\n')
    open.set(at('a.txt'), 'typed\n')
    expect((await call('read', { path: 'a.txt' })).content).toContain('typed')
    const refused = await call('write', { path: 'a.txt', content: 'new\n' })
    expect(refused).toMatchObject({ ok: false, metadata: { error_type: 'Conflict' } })
    expect(refused.content).toMatch(/not saved, so nothing was written\. Ask the user to save it/)
    expect(onDisk('a.txt')).toBe('saved\n')
    open.set(at('a.txt'), 'saved\n')
    expect(await call('write', { path: 'a.txt', content: 'new\n' })).toMatchObject({ ok: true })
    expect(onDisk('a.txt')).toBe('new\n')
  })

  it('B-EDITOR-11: line ends and a byte order mark that an editor keeps apart are no change; bytes that are no text stay on disk', async () => {
    const call = bench.tools({ buffers: editor })
    bench.put('dos.txt', '\uFEFFone\r\ntwo\r\n')
    open.set(at('dos.txt'), 'one\ntwo\n')
    const { metadata } = await call('read', { path: 'dos.txt' })
    expect(metadata).toMatchObject({ bytes: Buffer.byteLength('\uFEFFone\r\ntwo\r\n') })
    bench.put('a.bin', Buffer.from([0xff, 0xfe, 0x41]))
    open.set(at('a.bin'), 'what an editor makes of it')
    expect(await call('write', { path: 'a.bin', content: 'B', append: true })).toMatchObject({ ok: true })
    expect(readFileSync(at('a.bin'))).toEqual(Buffer.from([0xff, 0xfe, 0x41, 0x42]))
  })

  it('B-EDITOR-12: a text that was never saved is a file, an empty one is none, and one that is too large is refused', async () => {
    const call = bench.tools({ buffers: editor, fileBytesMax: 1_000 })
    open.set(at('new.txt'), 'draft\n')
    open.set(at('nothing.txt'), '')
    open.set(at('large.txt'), 'x'.repeat(1_001))
    expect((await call('read', { path: 'new.txt' })).content).toContain('draft')
    expect(await call('read', { path: 'nothing.txt' })).toMatchObject({ kind: 'NotFound' })
    expect((await call('read', { path: 'large.txt' })).content).toContain('1000 is the most')
    expect(await call('write', { path: 'new.txt', content: 'more\n', append: true })).toMatchObject({ ok: true })
    expect(onDisk('new.txt')).toBe('draft\nmore\n')
  })

  it('B-EDITOR-13: a file that the editor does not show is read on disk and not changed; a write that it refuses is told', async () => {
    const failing: FileBuffers = {
      read: async () => {
        throw new Error('It is private.')
      },
      write: async () => {
        throw new Error('It is read-only.')
      },
    }
    bench.put('a.txt', 'saved\n')
    const call = bench.tools({ buffers: failing })
    expect((await call('read', { path: 'a.txt' })).content).toContain('saved')
    expect((await call('write', { path: 'a.txt', content: 'x' })).content).toContain(
      'so it is not changed: It is private.',
    )
    const refused = await call('write', { path: 'b.txt', content: 'x' })
    expect([refused.ok, refused.content]).toEqual([false, expect.stringContaining('It is read-only.')])
    expect([onDisk('a.txt'), existsSync(at('b.txt'))]).toEqual(['saved\n', false])
  })

  it('B-EDITOR-14: what is typed between the look and the change is not written over, and in another folder the disk counts', async () => {
    bench.put('a.txt', 'saved\n')
    let looks = 0
    const typing: FileBuffers = { ...editor, read: async () => `typed ${(looks += 1)}\n` }
    const call = bench.tools({ buffers: typing })
    expect(await call('write', { path: 'a.txt', content: 'new\n' })).toMatchObject({
      metadata: { error_type: 'Conflict' },
    })
    expect(onDisk('a.txt')).toBe('saved\n')
    const asked = looks
    bench.put('tree/a.txt', 'in the worktree\n')
    const [tool] = fileTools({ root: bench.root, buffers: typing })
    const rooted = tool?.rooted?.({ folder: at('tree') })
    if (!rooted) throw new Error('read works in any folder')
    const { output } = (await executeTool(rooted, { path: 'a.txt' }, bench.context())) as { readonly output: Output }
    expect([output.content.includes('in the worktree'), looks]).toEqual([true, asked])
  })

  it('B-EDITOR-15: a change is taken back through the editor, unless the person typed since', async () => {
    const [, write] = fileTools({ root: bench.root, buffers: editor })
    if (!write?.undo) throw new Error('write can be taken back')
    bench.put('a.txt', 'saved\n')
    open.set(at('a.txt'), 'typed\n')
    const change = async () => {
      const done = await executeTool(write, { path: 'a.txt', content: 'new\n' }, bench.context())
      return (done as { readonly output: Output }).output.metadata
    }
    expect(await write.undo(await change(), bench.context())).toEqual([{ what: 'a.txt', result: 'restored' }])
    expect(onDisk('a.txt')).toBe('typed\n')
    const second = await change()
    open.set(at('a.txt'), 'typed since\n')
    expect(await write.undo(second, bench.context())).toEqual([{ what: 'a.txt', result: 'changed_since' }])
    expect([onDisk('a.txt'), open.get(at('a.txt'))]).toEqual(['new\n', 'typed since\n'])
  })
})
