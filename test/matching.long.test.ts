// What strangers write meets parsers and matchers outside of rules too. Inputs here would take minutes, or for ever, if anything looked
// at them more often than once. Rules are in tools/matching.long.test.ts.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { MarkdownStream } from '../src/cli/present/markdown-stream.ts'
import { loadMarkdown } from '../src/cli/present/markdown.ts'
import { breakText, clipToWidth, clipToEnd, widthOf, wrapText } from '../src/cli/present/terminal-text.ts'
import { oneLine } from '../src/view/clean.ts'
import { looksLikeCall } from '../src/models/protocols/leaked-calls.ts'
import { readTolerantJson } from '../src/view/tolerant-json.ts'
import { diff } from '../src/view/line-diff.ts'
import { splitBy } from '../src/tools/files/edit-tool.ts'
import { convertHtml } from '../src/tools/web/html-to-markdown.ts'
import { compileSchema, fromJsonSchema } from '../src/tools/core/json-schema.ts'
import { FOLDERS_MAX, scanProtected, NOTHING_SEEN } from '../src/tools/shell/scan-protected.ts'
import { defineTool } from '../src/tools/core/tool.ts'
import { closeJson } from '../src/tools/repair/close-json.ts'
import { admitAll, one, tool } from './tools/admitting.ts'

const LONG = 200_000

/** Two alternatives that are the same and never fit: each level of the value doubles the work. */
const RECURSIVE = {
  type: 'object',
  $ref: '#/$defs/t',
  $defs: {
    t: { anyOf: [1, 2].map(() => ({ type: 'object', properties: { a: { $ref: '#/$defs/t' } } })) },
  },
}
const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`

describe('schemas of strangers', () => {
  it.each([
    ['refers to itself', RECURSIVE, JSON.parse(nested(60)) as unknown],
    [
      'compares all items',
      { type: 'object', properties: { a: { type: 'array', uniqueItems: true } } },
      { a: Array.from({ length: 90_000 }, (_, i) => [i]) },
    ],
    [
      'has long lists of values',
      { type: 'object', properties: { a: { items: { enum: Array.from({ length: 20_000 }, (_, i) => `v${i}`) } } } },
      { a: Array.from({ length: 90_000 }, () => ['v19999'].join()) },
    ],
  ])(
    'B-MATCH-10: a check is stopped where the schema %s, and each stop leaves the next less time',
    async (_, schema, value) => {
      const { validate } = fromJsonSchema(schema, 'far')['~standard']
      const said: (string | undefined)[] = []
      for (let i = 0; i < 8; i++) said.push((await validate(value)).issues?.[0]?.message)
      expect(said[0]).toBe('takes longer than 250 ms to check with this schema. Send a shorter or simpler value')
      expect(said.at(-1)).toContain('longer than 5 ms')
    },
  )

  it('B-MATCH-10: a schema that takes long to compile is refused, and the refusal says so', async () => {
    const many = Array.from({ length: 40_000 }, (_, i) => ({ type: 'string', minLength: i }))
    const schema = { type: 'object', properties: { a: { anyOf: many } } }
    await expect(compileSchema(schema, 'far')).rejects.toThrow(
      '"far" cannot be used: it takes longer than 3000 ms to compile',
    )
    expect((await compileSchema({ type: 'object', required: ['a'] }, 'near'))({})).toBe(false)
  })

  it('B-MATCH-11: a schema with billions of alternatives is not used to repair', async () => {
    const all = Array.from({ length: 16 }, (_, i) => [
      `d${i}`,
      i === 15 ? { type: 'string' } : { anyOf: Array.from({ length: 9 }, () => ({ $ref: `#/$defs/d${i + 1}` })) },
    ])
    const input = {
      type: 'object',
      properties: { a: { $ref: '#/$defs/d0' } },
      $defs: Object.fromEntries(all) as object,
    }
    const bomb = defineTool({ name: 'act', description: 'd', input, execute: () => 'done' })
    const [bad] = await admitAll([bomb], '{"a":1}')
    expect(bad?.gate).toMatchObject({ type: 'refuse', failure: { kind: 'InvalidInput' } })
  })

  it('B-MATCH-11: alternatives are looked up once for all items of a list', async () => {
    const kinds = Array.from({ length: 60 }, (_, k) => ({ type: 'object', properties: { k: { const: k } } }))
    const input = { type: 'object', properties: { a: { type: 'array', items: { anyOf: kinds } } }, required: ['b'] }
    const wide = defineTool({ name: 'act', description: 'd', input, execute: () => 'done' })
    const [proposal] = await admitAll([wide], JSON.stringify({ a: Array.from({ length: 40_000 }, () => ({ k: -1 })) }))
    expect(proposal?.gate).toMatchObject({ type: 'refuse', failure: { kind: 'InvalidInput' } })
  })
})

describe('arguments', () => {
  const numbers = `{"a":[${'1,'.repeat(LONG)}1]}`
  it.each([
    ['in a fence', `\`\`\`json\n${numbers}\n\`\`\``],
    ['cut short', numbers.slice(0, -1)],
  ])('B-MATCH-12: too many values are refused as such when they stand %s', (_, text) => {
    const { gate } = one(tool(z.object({ a: z.array(z.int()) })), text)
    expect(gate).toMatchObject({ type: 'refuse', failure: { kind: 'InvalidInput' } })
    expect(JSON.stringify(gate)).toContain('more than 100000 values')
  })

  it('B-MATCH-12: a text within arguments that holds too many values stays a text', () => {
    const subject = tool(z.object({ a: z.array(z.int()) }))
    expect(one(subject, JSON.stringify({ a: '[1,2]' })).args).toEqual({ a: [1, 2] })
    expect(one(subject, JSON.stringify({ a: `[${'1,'.repeat(LONG)}1]` })).gate).toMatchObject({ type: 'refuse' })
  })

  it.each(['[', '{"a":', '[1,', '```', ' '])('B-MATCH-13: arguments of many %j are read once', (piece) => {
    expect(closeJson(`{"a":${piece.repeat(LONG)}`)?.lost ?? 'nothing').not.toBe('none')
  })
})

describe('what models and pages say', () => {
  it.each(['[t]', '{"a}', '[1,,]', '{"a":t}', '"', '[['])('B-MATCH-13: JSON is looked for once in many %j', (piece) => {
    expect(readTolerantJson(`so ${piece.repeat(LONG / 2)} x`)).toBeUndefined()
  })

  it('B-MATCH-13: the last of very many values is still the answer', () => {
    expect(readTolerantJson(`${'[t] '.repeat(LONG / 4)} {"a":1}`)).toEqual({ a: 1 })
  })

  it('B-MATCH-13: a call written as text is looked for once, however deep or often brackets stand there', () => {
    const names = ['read']
    for (const piece of ['{\n', '{}\n', '[]\n', '```\n'])
      expect(looksLikeCall(`a\n${piece.repeat(LONG)}`, names)).toBe(false)
    expect(looksLikeCall(`a\n${'['.repeat(LONG)}${']'.repeat(LONG)}`, names)).toBe(false)
    expect(looksLikeCall(`a\n${'[]\n'.repeat(100)}{"name":"read","arguments":{}}`, names)).toBe(true)
  })

  it.each(['\u00a0', '<pre> ', '\u00a0<br>'])('B-MATCH-13: a page of many %j is converted once', async (piece) => {
    const page = `<p>a${piece}${piece.at(-1)?.repeat(LONG)}b`
    const conversion = {
      format: 'markdown',
      from: new URL('http://a.test/'),
      signal: AbortSignal.timeout(60_000),
    } as const
    expect(await convertHtml(page, conversion)).toContain('b')
  })
})

describe('files', () => {
  it('B-MATCH-13: the text that an edit replaces is searched once', () => {
    const half = 'a'.repeat(LONG)
    expect(splitBy('a'.repeat(4 * LONG), `${half}b${half}`)).toHaveLength(1)
    expect(splitBy(`x${half}b${half}y${half}b${half}`, `${half}b${half}`)).toEqual(['x', 'y', ''])
  })

  it('B-MATCH-13: an edit finds what the built-in search finds', () => {
    const letter = (i: number) => ((i * 7919) % 13 < 6 ? 'a' : 'b')
    const text = Array.from({ length: 3_000 }, (_, i) => letter(i))
      .join('')
      .repeat(3)
    for (const needle of [
      text.slice(5, 60),
      text.slice(100, 900),
      'ab'.repeat(40),
      `${text.slice(5, 60)}c`,
      'a'.repeat(33),
    ])
      expect(splitBy(text, needle)).toEqual(text.split(needle))
    expect(splitBy('a'.repeat(100), 'a'.repeat(40))).toEqual('a'.repeat(100).split('a'.repeat(40)))
  })

  it('B-MATCH-13: long lines that begin alike are compared by a diff once', () => {
    const file = (mark: string) =>
      Array.from({ length: 1_900 }, (_, i) => `${'x'.repeat(20_000)}${mark}${1_000 + i}`).join('\n')
    expect(diff('f', file('a'), file('b'))).toContain('@@ -1,1900 +1,1900 @@')
  })

  it.each([' ', '\n', '\t\n'])('B-MATCH-13: settings of a repository with many %j are read once', (piece) => {
    const workspace = mkdtempSync(join(tmpdir(), 'terret-'))
    mkdirSync(join(workspace, '.git'))
    writeFileSync(join(workspace, '.git', 'HEAD'), 'ref: refs/heads/main\n')
    mkdirSync(join(workspace, '.git', 'objects'))
    mkdirSync(join(workspace, '.git', 'refs'))
    writeFileSync(join(workspace, '.git', 'config'), `[core]\n\tworktree = a${piece.repeat(LONG / 2)}x`)
    expect(scanProtected(workspace, NOTHING_SEEN, { now: 0, foldersMax: FOLDERS_MAX })).toBeDefined()
  })
})

describe('what is shown', () => {
  it.each([' ', '\t', '\u00a0', ' \n'])('B-MATCH-14: many %j are put on one line once', (piece) => {
    const line = oneLine(`a${piece.repeat(LONG)}b`, Number.POSITIVE_INFINITY)
    expect([line.startsWith('a'), line.endsWith('b')]).toEqual([true, true])
  })

  it('B-MATCH-14: a row ends also where nothing in it takes a column', () => {
    const marks = `a${'\u0301'.repeat(LONG)}`
    expect(widthOf(marks)).toBeGreaterThan(80)
    for (const rows of [breakText(marks, 80), wrapText(`${marks}${' a'.repeat(500)}`, 80)])
      expect(Math.max(...rows.map((row) => row.length))).toBeLessThanOrEqual(80 * 16)
    expect(clipToWidth(marks, 80).length).toBeLessThanOrEqual(80 * 16)
    expect(clipToEnd(marks, 80).length).toBeLessThanOrEqual(80 * 16 + 2)
    // What people write is measured as before.
    expect(widthOf('e\u0301te\u0301')).toBe(3)
  })

  it.each([
    ['marks', '', '\u0301'],
    ['code', '```\n', 'x'],
  ])('B-MATCH-14: a long line of %s that comes in small pieces is drawn once', async (_, before, piece) => {
    await loadMarkdown()
    const style = { columns: 80, hasColours: false }
    const stream = new MarkdownStream()
    stream.push(before)
    const rows: string[] = []
    let longest = 0
    for (let i = 0; i < LONG / 8; i++) {
      stream.push(piece.repeat(8))
      if (i % 100 > 0) continue
      const { finished, open } = stream.look(style)
      rows.push(...finished)
      longest = Math.max(longest, open.join('').length)
    }
    expect(longest).toBeLessThanOrEqual(20_000)
    expect([...rows, ...stream.end(style)].join('').replace(/[│┆ ]/gu, '')).toBe(piece.repeat(LONG))
  })
})
