// The tool jsonl_search on real files with the real ripgrep: what is searched, shown, counted, refused and bounded.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Json } from '../../src/kernel/content.ts'
import { jsonlSearchTool } from '../../src/tools/jsonl/jsonl-search.ts'
import type { Output } from '../../src/tools/core/tool-output.ts'
import { executeTool } from '../../src/tools/core/run-tool.ts'
import { toolContext } from './context.ts'

let outside = ''
let root = ''
let kept = new Map<string, string>()

beforeEach(() => {
  outside = mkdtempSync(join(tmpdir(), 'jsonl-'))
  root = join(outside, 'workspace')
  mkdirSync(root)
  kept = new Map()
})
afterEach(() => rmSync(outside, { recursive: true, force: true }))

describe('what is searched', () => {
  beforeEach(() => {
    put('a.jsonl', [{ id: 1 }])
    put('logs/b.jsonl', [{ id: 2, note: 'needle' }, { id: 3 }])
    put('logs/deep/c.ndjson', [{ id: 4, note: 'needle' }])
    put('logs/not.txt', [{ id: 5, note: 'needle' }])
    put('node_modules/d.jsonl', [{ id: 6, note: 'needle' }])
    put('logs/.hidden.jsonl', [{ id: 7 }])
  })

  it.each([
    [undefined, [1, 7, 2, 3, 4]],
    ['.', [1, 7, 2, 3, 4]],
    ['a.jsonl', [1]],
    ['logs', [7, 2, 3, 4]],
    ['*.jsonl', [1]],
    ['logs/*.jsonl', [7, 2, 3]],
    ['logs/**', [7, 2, 3, 4]],
    ['logs/{b,c}.jsonl', [2, 3]],
    ['**/c.*', [4]],
    ['node_modules', [6]],
    ['logs/not.txt', [5]],
    ['logs/z*.jsonl', []],
  ])('B-JSONL-1: path %s', async (path, ids) => {
    expect(idsIn(await search({ fields: { id: 0 }, ...(path === undefined ? {} : { path }) }))).toEqual(ids)
  })

  it('B-JSONL-1: a name with glob characters means itself when it is there', async () => {
    put('logs/[b].jsonl', [{ id: 8 }])
    expect(idsIn(await search({ path: 'logs/[b].jsonl', fields: { id: 0 } }))).toEqual([8])
  })

  it('B-JSONL-1: files come in order, each named from the root', async () => {
    const { content } = await search({ path: 'logs' })
    expect(content.split('\n').filter((line) => line.endsWith('json') || line.endsWith('jsonl'))).toEqual([
      'logs/.hidden.jsonl',
      'logs/b.jsonl',
      'logs/deep/c.ndjson',
    ])
  })

  it('B-JSONL-2: the query is a ripgrep regex over the raw line, before any filter', async () => {
    expect(idsIn(await search({ query: 'need.e', fields: { id: 0 } }))).toEqual([2, 4])
    expect(
      idsIn(await search({ query: '"id":[24]', where: [{ field: 'note', op: 'exists' }], fields: { id: 0 } })),
    ).toEqual([2, 4])
    expect(await search({ query: 'nowhere' })).toMatchObject({ ok: true, metadata: { rows_matched: 0 } })
    expect(await search({ query: '(', path: 'a.jsonl' })).toMatchObject({
      ok: false,
      metadata: { error_type: 'InvalidInput' },
    })
    expect(await search({ query: '(' })).toMatchObject({ ok: false, metadata: { error_type: 'InvalidInput' } })
    expect(await search({ query: '--files' })).toMatchObject({ ok: true, metadata: { rows_matched: 0 } })
  })

  it('B-JSONL-15: nothing out of bounds is read, by name, glob or link', async () => {
    writeFileSync(join(outside, 'secret.jsonl'), '{"id":"canary"}\n')
    symlinkSync(join(outside, 'secret.jsonl'), join(root, 'logs/link.jsonl'))
    symlinkSync(outside, join(root, 'up'))
    for (const path of [
      '../secret.jsonl',
      '../*.jsonl',
      'up/*.jsonl',
      'up',
      'logs/link.jsonl',
      join(outside, 'secret.jsonl'),
      '/**/*.jsonl',
    ]) {
      const { ok, content } = await search({ path })
      expect({ path, ok, leaked: content.includes('canary') }).toEqual({ path, ok: false, leaked: false })
    }
    expect((await search({})).content).not.toContain('canary')
    expect(await search({ path: 'gone.jsonl' })).toMatchObject({ ok: false, metadata: { error_type: 'NotFound' } })
  })

  it('B-JSONL-15: it is a read, so it may run again and beside others', () => {
    expect(jsonlSearchTool({ root })).toMatchObject({ name: 'jsonl_search', effect: 'read', sequential: false })
  })
})

describe('filters on files', () => {
  it('AC-29, B-JSONL-5: number ranges compare large integers exactly, and rows keep their numbers as written', async () => {
    write('n.jsonl', ['{"n":9007199254740992}', '{"n":9007199254740993}', '{"n":9007199254740994,"d":1.10}'])
    const { content } = await search({ where: [{ field: 'n', op: 'gt', value: '9007199254740993', type: 'number' }] })
    expect(content).toContain('  3: {"n":9007199254740994,"d":1.10}')
    expect(content).toContain('rows_matched: 1 ')
  })

  it('B-JSONL-4: a number or truth value in a filter counts as the text it is; one that was rounded is refused', async () => {
    put('n.jsonl', [
      { id: 1, ok: true },
      { id: 2.5, ok: false },
    ])
    expect(idsIn(await search({ where: [{ field: 'ok', op: 'eq', value: true }], fields: { id: 0 } }))).toEqual([1])
    expect(
      idsIn(await search({ where: [{ field: 'id', op: 'gt', value: 1.5, type: 'number' }], fields: { id: 0 } })),
    ).toEqual([2.5])
    expect(idsIn(await search({ where: [{ field: 'id', op: 'in', values: [1, 7] }], fields: { id: 0 } }))).toEqual([1])
    const large = { field: 'id', op: 'lt', value: 2 ** 53 + 2, type: 'number' }
    await expect(search({ where: [large] })).rejects.toThrow('where.0.value')
  })

  it('AC-29, B-JSONL-8: bad definitions are refused before anything is opened', async () => {
    const tool = { root, ripgrep: join(root, 'no-such-binary') }
    const bad: readonly Json[] = [
      { where: [{ field: 'n', op: 'gt', value: 'NaN', type: 'number' }] },
      { where: [{ field: 'n', op: 'gt', value: '1' }] },
      { where: [{ field: 'n', op: 'lt', value: 'not-a-date', type: 'date' }] },
      { where: [{ field: 'n', op: 'regex', value: '(a+)+' }] },
      { fields: { 'a b': 0 } },
      { field_searches: [{ field: 'a', query: '(', regex: true }] },
    ]
    for (const args of bad) {
      expect(await search(args, tool)).toMatchObject({ ok: false, metadata: { error_type: 'InvalidInput' } })
    }
    put('a.jsonl', [{}])
    expect(await search({}, tool)).toMatchObject({ ok: false, metadata: { error_type: 'Unavailable' } })
  })

  it('AC-29, B-JSONL-9: a row that cannot be compared is counted once, and only if it came to the comparison', async () => {
    put('a.jsonl', [
      { id: 1, kind: 'keep', score: 'bad', other: 'bad' },
      { id: 2, kind: 'skip', score: 'bad', other: 'bad' },
      { id: 3, kind: 'keep', score: 2, other: 'bad' },
      { id: 4, kind: 'keep', score: 2, other: 2 },
    ])
    const where = [
      { field: 'kind', op: 'eq', value: 'keep' },
      { field: 'score', op: 'gte', value: '1', type: 'number' },
      { field: 'other', op: 'gte', value: '1', type: 'number' },
    ]
    const found = await search({ where, fields: { id: 0 } })
    expect(idsIn(found)).toEqual([4])
    expect(found.metadata).toMatchObject({ compare_warnings: 2, rows_matched: 1 })
    expect(found.content).toContain('compare_warnings: 2 row(s)')
  })

  it('B-JSONL-10: lines that are not JSON are skipped and counted; empty ones, a byte order mark and CRLF do not matter', async () => {
    write('a.jsonl', ['\uFEFF{"id":1}\r', '', '{"id":2', 'null', '   ', '{"id":3,"x":"a\u0000b"}', '{"id":3}'])
    const found = await search({ where: [{ field: 'id', op: 'exists' }], fields: { id: 0 } })
    expect(idsIn(found)).toEqual([1, 3])
    expect(found.metadata).toMatchObject({ malformed_lines: 2 })
    expect(found.content).toContain('malformed_lines: 2 line(s)')
  })

  it('B-JSONL-13: a regex that would run for ever ends as a failure the model can read', async () => {
    put('a.jsonl', [{ t: 'a'.repeat(20_000) }])
    const value = '.*a.*b.*c'
    const found = await search({ where: [{ field: 't', op: 'regex', value }] })
    expect(found).toMatchObject({ ok: false, metadata: { error_type: 'InvalidInput' } })
    expect(found.content).toContain('where[0] (t regex)')
  })
})

describe('what is shown', () => {
  it('B-JSONL-11: chosen fields, each cut to its length; 0 means no cut, null stands for missing', async () => {
    put('a.jsonl', [{ id: 7, text: 'x'.repeat(50), list: [1, 2, 3], deep: { er: 'y' } }])
    const { content } = await search({ fields: { id: 3, text: 5, list: 4, 'deep.er': 0, gone: 0 } })
    expect(content).toContain('  1: {"id":7,"text":"xxxxx…","list":"[1,2…","deep.er":"y","gone":null}')
  })

  it('AC-29, B-JSONL-12: field searches show lines with context under each row, and the row itself only when asked', async () => {
    put('a.jsonl', [{ id: 1, body: 'one\ntwo error\nthree error\nfour\nfive' }])
    const field_searches = [{ field: 'body', query: 'error', context_lines: 1, max_matches: 1 }]
    const { content } = await search({ field_searches })
    expect(content.split('\n').slice(-5)).toEqual([
      '  1:',
      '    body matches:',
      '      1- one',
      '      2: two error',
      '      3: three error',
    ])
    expect((await search({ field_searches, fields: { id: 0 } })).content).toContain('  1: {"id":1}\n    body matches:')
  })

  it('B-JSONL-14: limits cut what is shown and never what is counted', async () => {
    for (const file of ['a', 'b', 'c'])
      put(
        `${file}.jsonl`,
        Array.from({ length: 30 }, (_, id) => ({ id })),
      )
    const found = await search({ max_files: 2, max_matches_per_file: 3, fields: { id: 0 } })
    expect(idsIn(found)).toEqual([0, 1, 2, 0, 1, 2])
    expect(found.content).toContain('rows_matched: 90 (6 shown)')
    expect(found.content).toContain('files: 3 searched, 3 with matches, 2 shown')
    expect(found.content).toContain('  … 27 more row(s)')
    expect(found.content).toContain('… 1 more file(s)')
    expect(found.metadata).toMatchObject({ rows_matched: 90, files_matched: 3 })
    expect(idsIn(await search({ path: 'a.jsonl', fields: { id: 0 } }))).toHaveLength(25)
  })

  it('B-JSONL-14: the content is bounded, and the whole is kept to be read on', async () => {
    put(
      'a.jsonl',
      Array.from({ length: 20 }, (_, id) => ({ id, text: 'x'.repeat(1_000) })),
    )
    const { content, metadata } = await search({}, { root, contentCharsMax: 2_000 })
    expect(content.length).toBeLessThan(2_500)
    expect(metadata).toMatchObject({ truncated: true, rows_matched: 20 })
    expect([...kept.values()].join('')).toContain('"id":10')
  })

  it('B-JSONL-14: rows of megabytes do not pile up in memory', async () => {
    put(
      'a.jsonl',
      Array.from({ length: 10 }, (_, id) => ({ id, text: 'x'.repeat(1_000_000) })),
    )
    const { content } = await search({})
    expect(content).toContain('rows_matched: 10 (2 shown)')
    expect([...kept.values()].join('').length).toBeLessThan(2_500_000)
  })

  it('B-JSONL-14: an abort ends the search', async () => {
    put('a.jsonl', [{ id: 1 }])
    expect(await search({}, { root }, AbortSignal.abort())).toMatchObject({
      ok: false,
      metadata: { error_type: 'Interrupted' },
    })
  })
})

/** As the harness does it: normalise, validate, execute. */
async function search(
  args: Json,
  options: Parameters<typeof jsonlSearchTool>[0] = { root },
  signal = new AbortController().signal,
): Promise<Output> {
  const tool = jsonlSearchTool(options)
  const checked = await tool.validate(tool.normalise?.(args))
  if (checked.issues)
    throw new Error(checked.issues.map(({ path, message }) => `${path?.join('.')}: ${message}`).join())
  const context = toolContext({ signal, kept })
  const done = await executeTool(tool, checked.value, context)
  if (done.type === 'undecided') throw new Error('a search always has an end')
  return done.output
}

function idsIn({ content }: Output): number[] {
  return [...content.matchAll(/^ {2}\d+: \{"id":([\d.]+)/gm)].map(([, id]) => Number(id))
}

function put(path: string, rows: readonly Json[]): void {
  write(
    path,
    rows.map((row) => JSON.stringify(row)),
  )
}

function write(path: string, lines: readonly string[]): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), `${lines.join('\n')}\n`)
}
