// `read`, `listField` and the bounding of long results, and what the six tools say about themselves.
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { boundContent } from '../../src/tools/core/bound-content.ts'
import { fileTools } from '../../src/tools/files/file-tools.ts'
import {
  flagField,
  integerField,
  listField,
  objectField,
  optionalField,
  textField,
} from '../../src/tools/core/argument-schema.ts'
import { toolContext } from './context.ts'
import { Refused, Workbench } from './workbench.ts'

let bench: Workbench
beforeEach(() => {
  bench = new Workbench()
})
afterEach(() => bench.remove())

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `${from + index}\tline ${from + index}`).join('\n')
const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join('')
/** Without the last line, which says where one is. */
const body = (content: string) => content.slice(0, content.lastIndexOf('\n'))

describe('read', () => {
  it('B-FILES-40: numbers lines from 1, stops at 2,000, and says where to read on until the end', async () => {
    const call = bench.tools()
    bench.put('a.txt', lines(4500))
    const first = await call('read', { path: 'a.txt' })
    expect(body(first.content)).toBe(numbered(1, 2000))
    expect(first.metadata).toMatchObject({ offset: 1, lines: 2000, total_lines: 4500, next_offset: 2001 })
    const last = await call('read', { path: 'a.txt', offset: 4499, limit: 10 })
    expect(body(last.content)).toBe(numbered(4499, 4500))
    expect(last.metadata).not.toHaveProperty('next_offset')
    expect(await call('read', { path: 'a.txt', offset: 4501 })).toMatchObject({ kind: 'InvalidInput' })
    await expect(call('read', { path: 'a.txt', offset: 0 })).rejects.toThrow(Refused)
  })

  it('B-FILES-41: an empty file is no error; a missing one is NotFound; a binary one is refused', async () => {
    const call = bench.tools()
    bench.put('empty', '')
    bench.put('a.bin', Buffer.from([1, 2, 0, 3]))
    expect(await call('read', { path: 'empty' })).toMatchObject({ ok: true, metadata: { total_lines: 0 } })
    expect(await call('read', { path: 'none/such' })).toMatchObject({ kind: 'NotFound' })
    expect(await call('read', { path: 'empty/such' })).toMatchObject({ ok: false })
    expect(await call('read', { path: 'a.bin' })).toMatchObject({ kind: 'InvalidInput' })
  })

  it('B-PART-9: a picture or PDF is read as a part of the result, whatever its name says', async () => {
    const call = bench.tools()
    const png = Buffer.from('iVBORw0KGgoAAAANSUhEUg==', 'base64')
    bench.put('shots/a.txt', png)
    const { content, metadata, parts } = await call('read', { path: 'shots/a.txt' })
    expect(content).toMatch(/^\(a picture, image\/png, 16 bytes; sha256 [0-9a-f]{16}\)$/)
    expect(metadata).toMatchObject({ path: 'shots/a.txt', media: 'image/png', bytes: 16 })
    expect(parts).toEqual([{ type: 'image', media: 'image/png', data: png, name: 'a.txt' }])
    bench.put('a.pdf', Buffer.from('%PDF-1.7\n\0'))
    expect(await call('read', { path: 'a.pdf' })).toMatchObject({ parts: [{ type: 'file', media: 'application/pdf' }] })
  })

  it('B-FILES-42: a file over 1 MB needs a limit', async () => {
    const call = bench.tools()
    bench.put('big', lines(120_000))
    expect(await call('read', { path: 'big' })).toMatchObject({ kind: 'InvalidInput' })
    const page = await call('read', { path: 'big', offset: 100_000, limit: 2 })
    expect(body(page.content)).toBe(numbered(100_000, 100_001))
  })

  it('B-FILES-43: reading on, by line and within a line too long to show, gives the whole text, and never splits a character', async () => {
    const call = bench.tools({ contentCharsMax: 500 })
    const original = `short\n${'😀x'.repeat(400)}\n\n${'y'.repeat(1200)}\nend`
    bench.put('long', original)
    const parts = new Map<number, string>()
    let next: { offset: number; column: number } | null = { offset: 1, column: 1 }
    for (let page = 0; next !== null && page < 50; page++) {
      const { content, metadata } = await call('read', { path: 'long', ...next })
      for (const row of body(content).split('\n')) {
        const [, number = '', part = ''] = /^(\d+)\t(.*)$/s.exec(row) ?? []
        parts.set(Number(number), (parts.get(Number(number)) ?? '') + part)
      }
      const { next_offset: offset, next_column: column } = metadata
      next = typeof offset === 'number' && typeof column === 'number' ? { offset, column } : null
    }
    expect([...parts.values()].join('\n')).toBe(original)
  })

  it('B-FILES-44: max_chars may lower the bound but not raise it', async () => {
    const call = bench.tools({ contentCharsMax: 1000 })
    bench.put('a.txt', lines(500))
    const length = async (max_chars: number) => (await call('read', { path: 'a.txt', max_chars })).content.length
    expect(await length(200)).toBeLessThan(330)
    expect(await length(100_000)).toBeLessThan(1130)
  })
})

describe('a long result', () => {
  it('B-FILES-45: keeps head and tail, and the whole is read back even where nothing on disk may be read', async () => {
    for (let index = 0; index < 300; index++) bench.put(`folder/file-${String(index).padStart(3, '0')}.txt`, '')
    const call = bench.tools({ contentCharsMax: 600 })
    const listed = await call('list', { path: 'folder' })
    expect(listed.content.length).toBeLessThan(800)
    expect(listed.content.startsWith('file-000.txt\n')).toBe(true)
    expect(listed.content.endsWith('\nfile-299.txt')).toBe(true)
    const { truncated, blob, bytes } = listed.metadata
    expect([truncated, bytes]).toEqual([true, 300 * 13 - 1])
    const locked = bench.tools({ read: [], write: [] })
    const path = /path "(blob:[0-9a-f]+)"/.exec(listed.content)?.[1] ?? ''
    expect(path).toBe(`blob:${blob as string}`)
    const page = await locked('read', { path, offset: 151, limit: 1 })
    expect(body(page.content)).toBe('151\tfile-150.txt')
  })

  it('B-FILES-45: long results of calls that run at once are kept apart (AC-26)', async () => {
    const names = ['a', 'b', 'c', 'd']
    for (const name of names) bench.put(`${name}.txt`, lines(500).replaceAll('line', `line of ${name}`))
    const call = bench.tools({ contentCharsMax: 600 })
    const found = await Promise.all(
      names.map((path) => call('search', { pattern: 'line', path: `${path}.txt`, max_matches_per_file: 500 })),
    )
    for (const [i, { metadata }] of found.entries()) {
      const whole = bench.blobs.get(metadata['blob'] as string) ?? ''
      const others = names.filter((name) => name !== names[i])
      expect(whole).toContain(`line of ${names[i]}`)
      for (const other of others) expect(whole).not.toContain(`line of ${other}`)
    }
  })

  it('B-FILES-46: a blob that is not kept, or is no hash but a path, is NotFound', async () => {
    const call = bench.tools()
    for (const hash of ['0'.repeat(64), '', '../../ws-evil/canary.txt', join(bench.outside, 'canary.txt')]) {
      expect(await call('read', { path: `blob:${hash}` })).toMatchObject({ ok: false, kind: 'NotFound' })
    }
  })

  it('B-SECRET-1: a text is redacted before it is cut, so that no half of a secret is left', () => {
    const secret = 'hunter2-hunter2-hunter2'
    const context = toolContext({ secrets: { TOKEN: secret } })
    for (let at = 60; at < 140; at++) {
      const { content } = boundContent(`${'x'.repeat(at)}${secret}${'y'.repeat(300 - at)}`, context, 200)
      expect(content).not.toContain('hunter2')
    }
  })

  it('B-FILES-47: whatever the text, the bounded one is short, starts and ends like it, and is well-formed', () => {
    const unit = fc.constantFrom('a', '\n', '😀', 'é', '\t')
    fc.assert(
      fc.property(
        fc.array(unit, { maxLength: 400 }),
        fc.integer({ min: 2, max: 200 }),
        fc.double({ min: 0.1, max: 0.9, noNaN: true }),
        (units, max, share) => {
          const whole = units.join('')
          const { content, metadata } = boundContent(whole, bench.context(), max, share)
          if (whole.length <= max) {
            expect(content).toBe(whole)
            return
          }
          const [head = '', tail = ''] = content.split(/\n\[….*…\]\n/)
          expect(head.length + tail.length).toBeLessThanOrEqual(max + 1)
          expect(whole.startsWith(head) && whole.endsWith(tail)).toBe(true)
          expect(Buffer.from(content).toString()).toBe(content)
          expect(bench.blobs.get(metadata['blob'] as string)).toBe(whole)
        },
      ),
    )
  })
})

describe('list', () => {
  it('B-FILES-48: shows one folder by name, with folders and links marked', async () => {
    bench.put('b.txt', '')
    mkdirSync(join(bench.root, 'a'))
    symlinkSync(bench.outside, join(bench.root, 'c'))
    const call = bench.tools()
    expect((await call('list', {})).content).toBe('a/\nb.txt\nc@')
    expect((await call('list', { path: 'a' })).content).toBe('(empty)')
    expect(await call('list', { path: 'none' })).toMatchObject({ kind: 'NotFound' })
    expect(await call('list', { path: 'b.txt' })).toMatchObject({ ok: false })
  })
})

describe('the six tools', () => {
  it('B-FILES-49: say what they do to the world, and take no field they do not know', () => {
    const tools = fileTools({ root: bench.root })
    const effects = tools.map(({ name, effect }) => `${name} ${effect}`)
    expect(effects).toEqual(['read read', 'write idempotent', 'edit once', 'list read', 'glob read', 'search read'])
    for (const { parameters } of tools)
      expect(parameters).toMatchObject({ type: 'object', additionalProperties: false })
  })

  it('B-FILES-50: their schemas name every wrong field by its path', () => {
    const schema = objectField({
      a: textField('A', { min: 1 }),
      b: optionalField(integerField('B', { min: 1, max: 5 })),
      c: optionalField(listField('C', objectField({ d: flagField('D') }))),
    })
    const issues = (value: unknown) => {
      const checked = schema['~standard'].validate(value)
      if (checked instanceof Promise) throw new Error('it is not async')
      return checked.issues?.map(({ path = [], message }) => `${path.join('.')} ${message}`) ?? checked
    }
    expect(issues({ a: 'x', b: 3, c: [{ d: true }] })).toEqual({ value: { a: 'x', b: 3, c: [{ d: true }] } })
    expect(issues({ a: 'x' })).toEqual({ value: { a: 'x' } })
    expect(issues({ a: '', b: 9, c: [{ d: true }, { d: 'yes' }], e: 1 })).toEqual([
      'e unknown field; the fields are a, b, c',
      'a must not be empty',
      'b must be at most 5',
      'c.1.d must be true or false, not "yes"',
    ])
    expect(issues(null)).toEqual([' must be an object, not null'])
    expect(issues(JSON.parse('{"a":"x","__proto__":1}'))).toEqual(['__proto__ unknown field; the fields are a, b, c'])
  })
})
