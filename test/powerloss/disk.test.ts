// What the model of a disk keeps: data by syncs of its file, names by syncs of their folder. With made-up calls; recorded ones are in
// powerloss.long.test.ts.
import { describe, expect, it } from 'vitest'
import { Chance } from '../crash/random.ts'
import type { Call } from './call-log.ts'
import { Disk, type Loss, type NameRule } from './disk.ts'

const call = (kind: Call['kind'], path: string, { file = 1n, offset = 0, data = '', by = 1 } = {}): Call => ({
  kind,
  process: by,
  file,
  offset,
  path,
  data: Buffer.from(data),
})
const made = (path: string, file: bigint, data: string): readonly Call[] => [
  call('name', path, { file }),
  call('write', path, { file, data }),
]
const synced = (file: bigint): readonly Call[] => [call('sync begin', '', { file }), call('sync end', '', { file })]

type How = { readonly loss?: Loss; readonly seed?: number; readonly rule?: NameRule }

function kept(calls: readonly Call[], { loss = 'none', seed = 1, rule = 'folder' }: How = {}) {
  const disk = new Disk(() => true, rule)
  for (const each of calls) disk.take(each)
  const { tree } = disk.remains(loss, new Chance(seed), () => false)
  return Object.fromEntries([...tree].map(([path, bytes]) => [path, bytes?.toString() ?? null]))
}

describe('a disk that lost power', () => {
  it('B-POWERLOSS-9: data is kept by a sync of its file, and a name by a sync of its folder', () => {
    const file = made('a', 1n, 'text')
    expect(kept(file)).toEqual({})
    expect(kept([...file, ...synced(1n)])).toEqual({})
    expect(kept([...file, call('folder sync', '')])).toEqual({ a: '' })
    expect(kept([...file, ...synced(1n), call('folder sync', '')])).toEqual({ a: 'text' })
    expect(kept(file, { loss: 'all' })).toEqual({ a: 'text' })
  })

  it('B-POWERLOSS-9: a sync makes sure what was written before it began, and no more', () => {
    const late = call('write', 'a', { offset: 4, data: ' late' })
    const calls = [...made('a', 1n, 'text'), call('folder sync', ''), call('sync begin', 'a'), late]
    expect(kept([...calls, call('sync end', 'a')])).toEqual({ a: 'text' })
    expect(kept([...calls, call('sync end', 'a', { by: 2 })])).toEqual({ a: '' })
  })

  it('B-POWERLOSS-9: a rename is there or not, with all of both names, and what it replaced stays until it is sure', () => {
    const before = [...made('a', 1n, 'old'), ...synced(1n), call('folder sync', '')]
    const renamed = [...before, ...made('b', 2n, 'new'), ...synced(2n), call('rename', 'b', { data: 'a' })]
    expect(kept(renamed)).toEqual({ a: 'old' })
    expect(kept([...renamed, call('folder sync', '')])).toEqual({ a: 'new' })
    for (let seed = 0; seed < 50; seed++)
      expect([{ a: 'old' }, { a: 'old', b: 'new' }, { a: 'new' }]).toContainEqual(kept(renamed, { loss: 'half', seed }))
  })

  it('B-POWERLOSS-9: a removal is sure once its folder was synced, and a folder that is not there has no files', () => {
    const there = [...made('a', 1n, 'text'), ...synced(1n), call('folder sync', '')]
    expect(kept([...there, call('remove', 'a')])).toEqual({ a: 'text' })
    expect(kept([...there, call('remove', 'a'), call('folder sync', '')])).toEqual({})
    const below = [call('folder', 'x'), ...made('x/a', 1n, 'text'), ...synced(1n), call('folder sync', 'x')]
    expect(kept(below)).toEqual({})
    expect(kept([...below, call('folder sync', '')])).toEqual({ x: null, 'x/a': 'text' })
  })

  it('B-POWERLOSS-9: where the file system has it so, a name is sure with its file, and an older removal of it is over', () => {
    const rule: NameRule = 'folder or file'
    const again = [...made('a', 1n, 'old'), call('remove', 'a'), ...made('a', 2n, 'new'), ...synced(2n)]
    expect(kept(again, { rule })).toEqual({ a: 'new' })
    for (let seed = 0; seed < 20; seed++) expect(kept(again, { rule, loss: 'half', seed })).toEqual({ a: 'new' })
  })

  it('B-POWERLOSS-9: half comes in any order, torn in sectors, and the same chance gives the same', () => {
    const long = 'x'.repeat(512 * 64)
    const calls = [...made('a', 1n, long), call('folder sync', '')]
    const seen = new Set<string>()
    for (let seed = 0; seed < 20; seed++) {
      const text = kept(calls, { loss: 'torn', seed })['a'] ?? ''
      expect(kept(calls, { loss: 'torn', seed })['a']).toBe(text)
      for (let at = 0; at < text.length; at += 512) expect(text.slice(at, at + 512)).toMatch(/^(?:x+|\0+)$/)
      seen.add(text)
    }
    expect(seen.size).toBeGreaterThan(5)
    const two = [...made('b', 1n, 'one'), call('write', 'b', { data: 'two' }), call('folder sync', '')]
    const halves = Array.from({ length: 100 }, (_, seed) => kept(two, { loss: 'half', seed })['b'])
    expect(new Set(halves)).toEqual(new Set(['', 'one', 'two']))
  })
})
