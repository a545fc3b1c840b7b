// The content router on input that is broken, huge or hostile: it never throws, never takes long, and never hands out what cannot be
// read back.
import { describe, expect, it } from 'vitest'
import { compressContent, type ContentHint, type ContentKind } from '../../src/index.ts'

const KINDS: readonly ContentKind[] = ['json', 'code', 'log', 'search', 'diff', 'html', 'plain']

async function timed(text: string, hint: ContentHint): Promise<number> {
  const before = process.cpuUsage()
  await compressContent(text, hint, { keep: () => '0'.repeat(32) })
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

describe('bad input', () => {
  it.each(KINDS)('B-COMPRESS-12: 50 MB in one line, called %s, come back as they are', async (kind) => {
    const text = 'abcde fghi '.repeat(4_800_000)
    const made = await compressContent(text, { kind }, { keep: () => '0'.repeat(32) })
    expect(made.changed).toBe(false)
    expect(made.content === text).toBe(true)
  })

  it.each(KINDS)(
    'B-COMPRESS-12: two MB in one line, called %s, are read in linear time',
    async (kind) => {
      for (const unit of ['word ', '"a\\"', '{(', "';", '<a ', '/*`', '[1,', 'a:1:']) {
        const text = unit.repeat(2_000_000 / unit.length)
        expect(await timed(text, { kind })).toBeLessThan(1_500)
      }
    },
    120_000,
  )

  it('B-COMPRESS-12: JSON with a million keys, and JSON 10,000 levels deep, is still the same JSON', async () => {
    const keys = `{ ${Array.from({ length: 1_000_000 }, (_, i) => `"k${i}": ${i}`).join(', ')} }`
    const wide = await compressContent(keys)
    expect(wide.changed).toBe(false)
    expect(wide.content === keys).toBe(true)
    const many = `{ ${Array.from({ length: 100_000 }, (_, i) => `"k${i}": ${i}`).join(', ')} }`
    const dense = await compressContent(many)
    expect(dense).toMatchObject({ kind: 'json', changed: true, lossy: false })
    expect(dense.content.slice(0, dense.content.lastIndexOf('\n')) === JSON.stringify(JSON.parse(many))).toBe(true)
    const nested = `${'[ '.repeat(10_000)}1${' ]'.repeat(10_000)}`
    const deep = await compressContent(nested, {}, { keep: () => '0'.repeat(32) })
    expect(deep.content.startsWith(nested.replaceAll(' ', ''))).toBe(true)
  }, 60_000)

  it('B-COMPRESS-12: half a character, and binary data that is called text, come back as they are', async () => {
    const half = `[${'{"a": "x\uD83D"}, '.repeat(400)}{"a":1}]`
    const binary = `PNG\0\u0001\u0002${'\u0000\uFFFD'.repeat(5_000)}`
    for (const text of [half, binary])
      for (const kind of KINDS)
        expect(await compressContent(text, { kind }, { keep: () => '0'.repeat(32) })).toMatchObject({
          content: text,
          changed: false,
        })
  })

  it.each([
    ['nested quantifiers', 'a'.repeat(20_000), '!'],
    ['colons', ':'.repeat(20_000), 'x'],
    ['digits', '1'.repeat(20_000), ':'],
    ['blanks', ' '.repeat(20_000), 'x'],
    ['dots', 'tests/a.py '.padEnd(20_000, '.'), '!'],
    ['tildes', '~'.repeat(20_000), 'x'],
    ['escapes', '\u001B['.repeat(10_000), 'm'],
    ['quotes', '\\"'.repeat(10_000), '"'],
    ['slashes', '(/'.repeat(10_000), ')'],
    ['errors', 'error '.repeat(4_000), ''],
  ])(
    'B-COMPRESS-11: a text of %s takes no longer for each character when there are ten times as many lines',
    async (_name, unit, end) => {
      const lines = (count: number) => Array.from({ length: count }, () => unit + end).join('\n')
      const commands = ['git fetch', 'npm test', 'cargo build', 'pytest', 'tsc', 'kubectl get pods']
      for (const hint of [
        ...KINDS.map((kind) => ({ kind })),
        ...commands.map((command) => ({ kind: 'log' as const, command })),
      ]) {
        // What takes the square of the length takes ten times as long for each character. A busy machine may make one try slow.
        const isSlow = async () => (await timed(lines(30), hint)) > 10 * Math.max(await timed(lines(3), hint), 5) * 4
        const slow = (await isSlow()) && (await isSlow()) && (await isSlow())
        expect({ hint, slow }).toEqual({ hint, slow: false })
      }
    },
    120_000,
  )

  it('B-COMPRESS-27: a long diff leaves turns to others, ends at a stop, and is the same as its parts', async () => {
    const file = (i: number): string => {
      const same = ' an unchanged line of this file\n'.repeat(12)
      return `diff --git a/f${i}.ts b/f${i}.ts\n--- a/f${i}.ts\n+++ b/f${i}.ts\n@@ -1,25 +1,25 @@\n${same}-old\n+new\n${same}`
    }
    const text = Array.from({ length: 12_000 }, (_, i) => file(i)).join('')
    let turns = 0
    const timer = setInterval(() => {
      turns += 1
    }, 0)
    const keep = () => '0'.repeat(32)
    const { content, kind } = await compressContent(text, {}, { keep })
    clearInterval(timer)
    expect([kind, turns >= 3]).toEqual(['diff', true])
    expect(content.match(/unchanged lines/g)).toHaveLength(24_000)
    const one = await compressContent(file(7), {}, { keep, minBytes: 1 })
    expect(content).toContain(one.content.split('\n').slice(0, -2).join('\n'))
    const stop = new AbortController()
    setImmediate(() => stop.abort(new Error('stopped')))
    await expect(compressContent(text, {}, { keep, signal: stop.signal })).rejects.toThrow('stopped')
  })
})
