// `write` and `edit`: what lands on disk, what is refused, and what is kept for an undo.
import { chmodSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { hash } from 'node:crypto'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { diff } from '../../src/view/line-diff.ts'
import { Refused, Workbench } from './workbench.ts'

let bench: Workbench
beforeEach(() => {
  bench = new Workbench()
})
afterEach(() => bench.remove())

const sha = (text: string) => hash('sha256', text)
const only = (text: string) => ({ path: 'a.txt', old_string: text, new_string: 'NEW' })

describe('write', () => {
  it('B-FILES-20: creates missing folders and the file, replaces it, keeps its mode, and leaves nothing else behind', async () => {
    const call = bench.tools()
    expect(await call('write', { path: 'x/y/a.sh', content: 'one\n' })).toMatchObject({
      metadata: { created: true, replaced: null },
    })
    chmodSync(join(bench.root, 'x/y/a.sh'), 0o750)
    const second = await call('write', { path: 'x/y/a.sh', content: 'two\n' })
    expect(bench.text('x/y/a.sh')).toBe('two\n')
    expect(statSync(join(bench.root, 'x/y/a.sh')).mode & 0o777).toBe(0o750)
    expect(readdirSync(join(bench.root, 'x/y'))).toEqual(['a.sh'])
    expect(bench.blobs.get(second.metadata['replaced'] as string)).toBe('one\n')
    expect(second.metadata['diff']).toContain('-one\n+two')
  })

  it('B-FILES-21: run again with the same arguments, it changes nothing: neither a whole file nor an append', async () => {
    const call = bench.tools()
    bench.put('log', 'a\n')
    for (let run = 0; run < 3; run++) await call('write', { path: 'log', content: 'b\n', append: true })
    expect(bench.text('log')).toBe('a\nb\n')
    expect(await call('write', { path: 'log', content: 'a\nb\n' })).toMatchObject({
      ok: true,
      metadata: { changed: false },
    })
    const known = { path: 'log', content: 'b\n', append: true, expected_hash: sha('a\nb\n') }
    for (let run = 0; run < 3; run++) expect((await call('write', known)).ok).toBe(true)
    expect(bench.text('log')).toBe('a\nb\nb\n')
  })

  it('B-FILES-22: with the hash of what was read, it does not write over a change by others', async () => {
    const call = bench.tools()
    bench.put('a.txt', 'mine\n')
    const read = await call('read', { path: 'a.txt' })
    const shown = /sha256 ([0-9a-f]{16})/.exec(read.content)?.[1] ?? ''
    bench.put('a.txt', 'theirs\n')
    const write = { path: 'a.txt', content: 'new\n', expected_hash: shown }
    expect(await call('write', write)).toMatchObject({ ok: false, metadata: { error_type: 'Conflict' } })
    expect(bench.text('a.txt')).toBe('theirs\n')
    bench.put('a.txt', 'mine\n')
    expect((await call('write', write)).ok).toBe(true)
    expect(bench.text('a.txt')).toBe('new\n')
  })

  it('B-FILES-23: a stopped call leaves the file as it was', async () => {
    const call = bench.tools()
    bench.put('a.txt', 'old')
    const stopped = await call('write', { path: 'a.txt', content: 'new' }, bench.context(AbortSignal.abort()))
    expect(stopped).toMatchObject({ ok: false, kind: 'Interrupted' })
    expect([bench.text('a.txt'), readdirSync(bench.root)]).toEqual(['old', ['a.txt']])
  })

  it('B-FILES-24: replaced bytes that are no text are kept so that they can be put back', async () => {
    const bytes = Buffer.from([0xff, 0xfe, 0x00, 0x80])
    bench.put('a.bin', bytes)
    const { metadata } = await bench.tools()('write', { path: 'a.bin', content: 'text' })
    expect(Buffer.from(bench.blobs.get(metadata['replaced'] as string) ?? '', 'base64')).toEqual(bytes)
  })

  it('B-FILES-25: writes to one file in parallel all land', async () => {
    const call = bench.tools()
    const names = Array.from({ length: 16 }, (_, index) => `line ${index}\n`)
    const done = await Promise.all(names.map((content) => call('write', { path: 'log', content, append: true })))
    expect(done.every(({ ok }) => ok)).toBe(true)
    expect(bench.text('log').split('\n').toSorted().join('\n').trim()).toBe(names.toSorted().join('').trim())
  })
})

describe('edit', () => {
  it('B-FILES-30: replaces exact text that is there once, takes "$&" as text, and shows the difference', async () => {
    bench.put('a.txt', '1\n2\n3\n4\n5\n')
    const done = await bench.tools()('edit', { edits: [{ path: 'a.txt', old_string: '3', new_string: '$& three' }] })
    expect(bench.text('a.txt')).toBe('1\n2\n$& three\n4\n5\n')
    expect(done).toMatchObject({ ok: true, metadata: { applied: 1, failed: 0 } })
    expect(done.content).toContain('@@ -1,5 +1,5 @@\n 1\n 2\n-3\n+$& three\n 4\n 5')
    const results = done.metadata['results'] as { readonly replaced: string }[]
    expect(bench.blobs.get(results[0]?.replaced ?? '')).toBe('1\n2\n3\n4\n5\n')
  })

  it('B-FILES-31: takes the flat form, one edit or a text for the list, a path beside it, and "all"', async () => {
    const call = bench.tools()
    bench.put('a.txt', 'x x y')
    await call('edit', { path: 'a.txt', old_string: 'x', new_string: 'z', all: true })
    await call('edit', { path: 'a.txt', edits: [{ old_string: 'y', new_string: 'w' }] })
    expect(bench.text('a.txt')).toBe('z z w')
    await call('edit', { path: 'a.txt', edits: { old_string: 'w', new_string: 'u' } })
    await call('edit', { path: 'a.txt', edits: '[{"old_string":"u","new_string":"t"}]' })
    expect(bench.text('a.txt')).toBe('z z t')
    await expect(call('edit', { path: 'a.txt', old_string: '', new_string: 'w' })).rejects.toThrow(Refused)
    await expect(call('edit', { path: 'a.txt', old_string: 'z', new_string: 'w', typo: 1 })).rejects.toThrow(Refused)
    await expect(call('edit', { edits: [] })).rejects.toThrow(Refused)
  })

  it('B-FILES-32: what is not there, or there more than once, changes nothing', async () => {
    const call = bench.tools()
    bench.put('a.txt', 'x x')
    for (const edit of [only('q'), only('x'), { ...only('x'), new_string: 'x', replace_all: true }]) {
      expect(await call('edit', edit)).toMatchObject({ ok: false, metadata: { error_type: 'InvalidInput' } })
    }
    expect(bench.text('a.txt')).toBe('x x')
  })

  it('B-FILES-33: applies edits in order, goes on after a failure, and is ok only if all are', async () => {
    bench.put('a.txt', 'one')
    bench.put('b.txt', 'b')
    const edits = [
      { path: 'a.txt', old_string: 'one', new_string: 'two two' },
      { path: 'a.txt', old_string: 'two', new_string: 'three' }, // ambiguous now, by the edit before
      { path: 'missing.txt', old_string: 'x', new_string: 'y' },
      { path: '../ws-evil/canary.txt', old_string: 'nobody', new_string: 'y' },
      { path: 'b.txt', old_string: 'b', new_string: 'c' },
    ]
    const done = await bench.tools()('edit', { edits })
    expect([bench.text('a.txt'), bench.text('b.txt')]).toEqual(['two two', 'c'])
    expect(done).toMatchObject({ ok: false, metadata: { applied: 2, failed: 3 } })
    const results = done.metadata['results'] as { readonly ok: boolean; readonly error_type?: string }[]
    expect(results.map(({ ok, error_type }) => (ok ? 'ok' : error_type))).toEqual([
      'ok',
      'InvalidInput',
      'NotFound',
      'PathValidationError',
      'ok',
    ])
  })

  it('B-FILES-34: expected_replacements only asserts the count of its own edit', async () => {
    const call = bench.tools()
    bench.put('a.txt', 'x x x')
    const edit = { path: 'a.txt', old_string: 'x', new_string: 'y' }
    expect((await call('edit', { ...edit, expected_replacements: 3 })).ok).toBe(false)
    expect((await call('edit', { ...edit, replace_all: true, expected_replacements: 2 })).ok).toBe(false)
    expect(bench.text('a.txt')).toBe('x x x')
    expect((await call('edit', { ...edit, replace_all: true, expected_replacements: 3 })).ok).toBe(true)
    expect(bench.text('a.txt')).toBe('y y y')
  })

  it('B-FILES-35: takes back a double escape only if the text as given is nowhere and the plain one is there once', async () => {
    const call = bench.tools()
    bench.put('a.txt', 'if (a) {\n\tb("c")\n}\n')
    const escaped = { path: 'a.txt', old_string: '{\\n\\tb(\\"c\\")\\n', new_string: '{\\n\\td()\\n' }
    expect((await call('edit', escaped)).ok).toBe(true)
    expect(bench.text('a.txt')).toBe('if (a) {\n\td()\n}\n')
    bench.put('a.txt', 'a\nb a\nb')
    expect((await call('edit', { path: 'a.txt', old_string: 'a\\nb', new_string: 'c', replace_all: true })).ok).toBe(
      false,
    )
    bench.put('b.txt', 'a\\nb and a\nb')
    await call('edit', { path: 'b.txt', old_string: 'a\\nb', new_string: 'x\\ny' })
    expect(bench.text('b.txt')).toBe('x\\ny and a\nb')
  })

  it('B-FILES-36: a file that changed between reading and writing is not written over', async () => {
    const file = bench.put('a.txt', 'old')
    const context = bench.context()
    // Keeping the old bytes is the last step before the replacement: the foreign write happens then.
    const keep: typeof context.keep = (text, media) => {
      writeFileSync(file, 'theirs, old')
      return context.keep(text, media)
    }
    const done = await bench.tools()('edit', only('old'), { ...context, keep })
    expect(done).toMatchObject({ ok: false, metadata: { error_type: 'Conflict' } })
    expect([bench.text('a.txt'), readdirSync(bench.root)]).toEqual(['theirs, old', ['a.txt']])
  })

  it('B-FILES-37: does not touch a file that is not UTF-8 text', async () => {
    const bytes = Buffer.from('caf\xe9 old', 'latin1')
    bench.put('a.txt', bytes)
    expect((await bench.tools()('edit', only('old'))).ok).toBe(false)
    expect(bench.text('a.txt')).toBe(bytes.toString())
  })
})

describe('the diff', () => {
  it('B-FILES-38: applied to the old lines, it gives the new ones', () => {
    const line = fc.constantFrom('a', 'b', 'c', '')
    const body = fc.array(line, { maxLength: 30 }).map((lines) => lines.map((one) => `${one}\n`).join(''))
    fc.assert(
      fc.property(body, body, (before, after) => {
        const old = before.split('\n').slice(0, -1)
        let made: string[] = []
        let at = 0
        for (const row of diff('f', before, after).split('\n').slice(2)) {
          const hunk = /^@@ -(\d+),(\d+) /.exec(row)
          if (hunk) {
            const start = Number(hunk[1]) - (hunk[2] === '0' ? 0 : 1)
            made = [...made, ...old.slice(at, start)]
            at = start
          } else if (row[0] === '+') made.push(row.slice(1))
          else {
            expect(old[at]).toBe(row.slice(1))
            if (row[0] === ' ') made.push(row.slice(1))
            at += 1
          }
        }
        expect([...made, ...old.slice(at)].map((one) => `${one}\n`).join('')).toBe(after)
      }),
    )
  })

  it('B-FILES-38: very many lines are shown in time', () => {
    const lines = Array.from({ length: 300_000 }, (_, n) => `line ${n}\n`).join('')
    expect(diff('f', lines, 'one\n').split('\n')).toHaveLength(300_004)
  })
})
