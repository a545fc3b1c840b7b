// The content router as a library call: kinds, what each kind keeps, and what bad input does. Agents with it are in agent.test.ts.
import { describe, expect, it } from 'vitest'
import { type Compressed, compressContent, type CompressOptions, type ContentHint } from '../../src/index.ts'
import { detectKind } from '../../src/context/compress/detect-kind.ts'
import { CORPUS, gitDiff, htmlPage, logLines, npmTest, orders, pythonFile, rustFile, typescriptFile } from './corpus.ts'

const TOKEN = 'a'.repeat(32)

function full(text: string, hint: ContentHint = {}, more: CompressOptions = {}): Promise<Compressed> {
  return compressContent(text, hint, { keep: () => TOKEN, ...more })
}

function light(text: string, hint: ContentHint = {}): Promise<Compressed> {
  return full(text, hint, { profile: 'light' })
}

/** Without the footer. */
function bodyOf({ content }: Compressed): string {
  return content.slice(0, content.lastIndexOf('\n['))
}

describe('the kind of a text', () => {
  it.each(CORPUS.map((sample) => [sample.name, sample] as const))(
    'B-COMPRESS-1: is found without a hint where the structure tells it: %s',
    (_name, { text, kind, hint }) => {
      expect(detectKind(text, hint)).toBe(kind)
    },
  )

  it('B-COMPRESS-1: is what was said, then its media type or extension, then its tool, then its structure', () => {
    const json = '[{"a":1},{"a":2}]'
    expect(detectKind(json, {})).toBe('json')
    expect(detectKind(json, { tool: 'grep' })).toBe('search')
    expect(detectKind(json, { tool: 'grep', path: 'notes.md' })).toBe('plain')
    expect(detectKind(json, { tool: 'grep', path: 'notes.md', mime: 'text/html; charset=utf-8' })).toBe('html')
    expect(detectKind(json, { tool: 'grep', mime: 'text/html', kind: 'log' })).toBe('log')
    expect(detectKind('a\nb\n', { command: 'make all' })).toBe('log')
    expect(detectKind(json, { command: 'kubectl get pods -o json' })).toBe('json')
    expect(detectKind('x = 1\n', { command: 'cat tool.py' })).toBe('code')
    expect(detectKind('src/a.ts:1:x', { command: 'cd app && rg x | head' })).toBe('search')
  })

  it('B-COMPRESS-1: is a diff if the body clearly is one, whatever was said; a page that quotes one is none', () => {
    expect(detectKind(gitDiff(), { kind: 'log', tool: 'grep' })).toBe('diff')
    const page = `${'A paragraph about changes.\n\n'.repeat(20)}${gitDiff().split('\n').slice(-10).join('\n')}`
    expect(detectKind(page, {})).toBe('plain')
  })

  it('B-COMPRESS-1: lines that begin with a time are no matches of a search', () => {
    expect(detectKind('2026-11-16T10:00:01 INFO a\n'.repeat(50), {})).toBe('log')
    expect(detectKind('10:00:01 a\n'.repeat(50), {})).toBe('log')
    expect(detectKind('src/a.ts:10: a\n'.repeat(50), {})).toBe('search')
  })
})

describe('JSON', () => {
  it('B-COMPRESS-2: a long table shows its first 20 and last 10 rows, those with an error and those far from the mean', async () => {
    const made = await full(orders())
    expect(made).toMatchObject({ kind: 'json', lossy: true, changed: true })
    const rows = bodyOf(made)
      .split('\n')
      .filter((line) => /^\d{4}\t/.test(line))
      .map((line) => Number(line.slice(0, 4)))
    expect(rows.slice(0, 20)).toEqual(Array.from({ length: 20 }, (_, i) => 1_000 + i))
    expect(rows.slice(-10)).toEqual(Array.from({ length: 10 }, (_, i) => 1_390 + i))
    expect(rows.slice(20, -10)).toEqual([1_217, 1_301])
    expect(made.content).toContain('card declined: insufficient funds')
    expect(made.content).toContain('[… rows 21 to 217 left out …]')
  })

  it('B-COMPRESS-2: where every row is an error or far from the mean, the choice is bounded', async () => {
    const rows = Array.from({ length: 5_000 }, (_, i) => ({ id: i, status: 'error', size: i % 10 === 0 ? 1e6 : 1 }))
    const made = await full(JSON.stringify(rows))
    expect(made.content.split('\n').length).toBeLessThan(250)
  })

  it('B-COMPRESS-2: cells are cut to both ends, 240 characters, at a whole character', async () => {
    const rows = Array.from({ length: 5 }, (_, i) => ({ i, text: `${'x'.repeat(143)}😀${'y'.repeat(400)}` }))
    const made = await full(JSON.stringify(rows))
    expect(bodyOf(made)).toContain(`${'x'.repeat(143)}…[306 more]…${'y'.repeat(96)}`)
    expect(made.lossy).toBe(true)
  })

  it('B-COMPRESS-9: without loss, a table holds every row, and what it shows can be read back as the same values', async () => {
    const rows = Array.from({ length: 60 }, (_, i) => ({
      id: i,
      name: ['plain', '12', '', 'a\tb', ' blank ', '"q"', 'null', '{x', '-', 'Tromsø'][i % 10] ?? '',
      nested: i % 2 === 0 ? { a: [1, null] } : null,
      ...(i % 3 === 0 ? { extra: true } : {}),
    }))
    const made = await light(JSON.stringify(rows, null, 2))
    expect(made).toMatchObject({ lossy: false, changed: true })
    const [, head = '', ...lines] = bodyOf(made).split('\n')
    const columns = head.split('\t')
    const read = lines.map((line): unknown =>
      Object.fromEntries(line.split('\t').flatMap((cell, i) => (cell === '' ? [] : [[columns[i], valueOf(cell)]]))),
    )
    expect(read).toEqual(rows)
  })

  it('B-COMPRESS-13: a number with more digits than a number holds is shown as it is written', async () => {
    const rows = Array.from(
      { length: 60 },
      (_, i) => `{"id": 12345678901234567${i + 10}, "name": "row number ${i} of the table"}`,
    )
    for (const text of [`[${rows.join(',\n')}]`, rows.join('\n')]) {
      for (const made of [await full(text), await light(text)])
        for (let i = 0; i < 60; i++) expect(made.content).toContain(`12345678901234567${i + 10}`)
    }
  })

  it('B-COMPRESS-2: rows in lines of their own, and lists inside of objects, become tables too', async () => {
    const rows = Array.from({ length: 90 }, (_, i) => ({ id: i, message: `a message with number ${i}` }))
    const lines = await light(rows.map((row) => JSON.stringify(row)).join('\n'), { path: 'a.jsonl' })
    expect(lines).toMatchObject({ kind: 'json', changed: true, lossy: false })
    const inside = await light(JSON.stringify({ total: 30, page: { items: rows } }))
    expect(inside.content).toContain('{"total":30,"page":{"items":<table 1>}}\ntable 1: 90 rows')
  })

  it('B-COMPRESS-2: objects by their names are rows too, with the name first; a few with rows inside are not', async () => {
    const pods = Array.from({ length: 90 }, (_, i): [string, unknown] => [
      `pod-${i}`,
      { node: `node-${i % 3}`, error: i === 57 ? 'out of memory' : null, restarts: 0 },
    ])
    const byName = JSON.stringify({ kind: 'list', pods: Object.fromEntries(pods) }, null, 2)
    const made = await full(byName)
    expect(made).toMatchObject({ kind: 'json', changed: true, lossy: true })
    expect(made.content).toContain('{"kind":"list","pods":<table 1>}\ntable 1: 90 rows by key')
    expect(made.content).toContain('key\tnode\terror\trestarts\npod-0\tnode-0\tnull\t0\n')
    expect(made.content).toContain('pod-57\tnode-0\tout of memory\t0')
    const rows = Array.from({ length: 60 }, (_, id) => ({ id, name: `the name of row ${id}` }))
    const parts = JSON.stringify({ a: { rows }, b: { rows }, c: { rows } })
    expect((await light(parts)).content).toContain(
      '{"a":{"rows":<table 1>},"b":{"rows":<table 2>},"c":{"rows":<table 3>}}',
    )
  })
})

function valueOf(cell: string): unknown {
  try {
    return JSON.parse(cell) as unknown
  } catch {
    return cell
  }
}

describe('code', () => {
  it.each([
    ['TypeScript', typescriptFile(), { path: 'a.ts' }, 'export function describe29(value: number'],
    ['Rust', rustFile(), { path: 'a.rs' }, "pub fn read(&'a self, limit: usize) -> Result<Vec<u8>, Error> {"],
    ['Python', pythonFile(), { path: 'a.py' }, ') -> float:\n        """The area, scaled."""\n        … 13 lines …'],
  ])(
    'B-COMPRESS-3: signatures of %s stay, and bodies from eight lines on are counted',
    async (_name, text, hint, kept) => {
      const made = await full(text, hint)
      expect(made).toMatchObject({ kind: 'code', lossy: true })
      expect(made.content).toContain(kept)
      expect(made.content.split('… 1').length - 1).toBe(30)
      expect(made.bytesAfter).toBeLessThan(made.bytesBefore / 2)
      expect((await light(text, hint)).changed).toBe(false)
    },
  )

  it('B-COMPRESS-3: short bodies, classes and branches stay; braces that do not add up leave the text as it is', async () => {
    const short = 'function a() {\n  return 1\n}\n'.repeat(120)
    expect((await full(short, { path: 'a.js' })).changed).toBe(false)
    const fields = Array.from({ length: 200 }, (_, i) => `  readonly field${i}: string`).join('\n')
    expect((await full(`interface A {\n${fields}\n}\nif (a) {\n${fields}\n}`, { path: 'a.ts' })).changed).toBe(false)
    expect((await full(`${typescriptFile()}\n}`, { path: 'a.ts' })).changed).toBe(false)
  })
})

describe('logs and commands', () => {
  it('B-COMPRESS-4: of 100,000 lines at most 100 are shown, the first and the last error among them', async () => {
    const text = logLines(100_000)
    const made = await full(text)
    expect(made).toMatchObject({ kind: 'log', lossy: true })
    expect(made.content.split('\n').length).toBeLessThanOrEqual(100)
    expect(made.content).toContain('first: cannot reach the queue')
    expect(made.content).toContain('last: the disk is full')
  })

  it('B-COMPRESS-4: errors of one kind are one line with their number, stack traces stay, and a kind is found wherever it stands', async () => {
    const quiet = (from: number) =>
      Array.from({ length: 3_000 }, (_, i) => `INFO request ${from + i} served in ${i % 90} ms`)
    const same = Array.from({ length: 500 }, (_, i) => `ERROR user ${i} not found`)
    const stack = [
      'ERROR TypeError: x is not a function',
      ...Array.from({ length: 8 }, (_, i) => `    at f${i} (/app/a.js:${i}:1)`),
    ]
    const made = await full([...quiet(0), ...same, ...quiet(3_000), ...stack, ...quiet(6_000)].join('\n'))
    expect(made.content).toContain('ERROR user 0 not found (×500 alike)')
    for (const line of stack) expect(made.content).toContain(line)
    expect(made.content.split('\n').length).toBeLessThanOrEqual(100)
  })

  it('B-COMPRESS-4: a hundred thousand errors, all different, are still at most 130 lines', async () => {
    const words = (i: number) => i.toString(26).replace(/\d/g, (digit) => 'qrstuvwxyz'[Number(digit)] ?? '')
    const text = Array.from({ length: 100_000 }, (_, i) => `ERROR ${words(i * 7_919)} went wrong`).join('\n')
    const made = await full(text)
    expect(made.content.split('\n').length).toBeLessThanOrEqual(130)
    expect(made.content).toContain(text.slice(0, text.indexOf('\n')))
    expect(made.content).toContain(text.slice(text.lastIndexOf('\n') + 1))
  })

  it.each([
    ['npm test', ['AssertionError: expected 10.01 to be 10.02', '1 failed | 4200 passed'], '✓ handles case'],
    ['npm install', ['added 1284 packages', '3 vulnerabilities'], 'npm warn deprecated'],
    ['cargo build', ['error[E0382]: borrow of moved value', '--> src/server.rs:88:21'], 'Compiling'],
    ['pytest', ['E       assert 10.01 == 10.02', '1 failed, 639 passed', 'collected 640 items'], '%]'],
    ['tsc', ['error TS2322', 'Found 120 errors in 120 files.', 'page-0.tsx'], '~~~~'],
    ['kubectl', ['CrashLoopBackOff', 'NAME '], 'Running'],
  ])(
    'B-COMPRESS-10: what %s prints when all is well is counted, and the rest stays',
    async (program, kept, dropped) => {
      const sample = CORPUS.find(({ name, kind }) => kind === 'log' && name.startsWith(program))
      const made = await full(sample?.text ?? '', sample?.hint)
      for (const text of kept) expect(made.content).toContain(text)
      expect(made.content).not.toContain(dropped)
      expect(made.bytesAfter).toBeLessThan(made.bytesBefore / 3)
    },
  )

  it('B-COMPRESS-10: git says what it fetched, and not how far it was', async () => {
    const progress = Array.from({ length: 200 }, (_, i) => `remote: Counting objects:  ${i}% (${i}/200)`)
    const made = await full(
      [...progress, 'From example.com:shop', '   1a2b3c4..5d6e7f8  main -> origin/main'].join('\n'),
      { command: 'git fetch' },
    )
    expect(made.content).toContain('5d6e7f8  main -> origin/main')
    expect(made.content).not.toContain('Counting')
  })

  it('B-COMPRESS-9: without loss only equal lines that follow each other are counted', async () => {
    const text = `${'waiting for the database\n'.repeat(200)}ready`
    const made = await light(text, { command: 'docker logs' })
    expect(made).toMatchObject({ lossy: false })
    expect(bodyOf(made)).toBe('waiting for the database (×200)\nready')
    expect((await light(`${text}\nspeed (×2)`, { command: 'docker logs' })).changed).toBe(false)
  })

  it('B-COMPRESS-4: colours and progress bars that write over themselves are not shown, and what a tool left out itself is', async () => {
    const bar = Array.from({ length: 300 }, (_, i) => `\u001B[32m${i % 100}%\u001B[0m`).join('\r')
    const gap = '[… 500 of 900 characters left out; read on with read, path "blob:0" …]'
    const lines = Array.from({ length: 300 }, (_, i) => `step ${i} of the plan`)
    const made = await full([bar, ...lines.slice(0, 150), gap, ...lines.slice(150)].join('\n'), { command: 'make' })
    expect(made.content).not.toContain('\u001B')
    expect(made.content).toContain(gap)
    expect(made.content.split('\n')[0]).toBe('99%')
  })
})

describe('searches, diffs and pages', () => {
  it('B-COMPRESS-5: from 40 matches on, the best five of each file are shown and the others counted', async () => {
    const sample = CORPUS.find(({ kind }) => kind === 'search')
    const made = await full(sample?.text ?? '', sample?.hint)
    expect(made).toMatchObject({ kind: 'search', lossy: true })
    expect(made.content).toContain('420 matches in 14 files')
    expect(made.content.match(/export function resolveModel/g)).toHaveLength(14)
    expect(made.content.match(/\+25 more/g)).toHaveLength(14)
    const few = (sample?.text ?? '').split('\n').slice(0, 39).join('\n')
    expect((await full(few, sample?.hint)).changed).toBe(false)
  })

  it('B-COMPRESS-9: without loss each path is named once, and every match is there', async () => {
    const sample = CORPUS.find(({ kind }) => kind === 'search')
    // Matches of one file that do not follow each other would lose their places.
    const text = (sample?.text ?? '').split('\n').toSorted().join('\n')
    const made = await light(text, sample?.hint)
    expect(made).toMatchObject({ changed: true, lossy: false })
    let path = ''
    const read = bodyOf(made)
      .split('\n')
      .flatMap((line) => {
        if (line.startsWith('  ')) return [`${path}:${line.slice(2)}`]
        path = line
        return []
      })
    expect(read.join('\n')).toBe(text)
  })

  it('B-COMPRESS-6: changes stay, long runs of unchanged lines and lockfiles are counted', async () => {
    const { content, lossy } = await full(gitDiff())
    expect(lossy).toBe(true)
    expect(content).toContain('package-lock.json: generated, +150 -150 lines left out')
    expect(content).toContain('[… 12 unchanged lines …]')
    for (const line of [
      '-const rate = 0.16',
      '+const rate = 0.19',
      '--- a comment that was removed',
      ' const unchanged12 = load(12)',
    ])
      expect(content).toContain(line)
    expect(content).not.toContain('unchanged11 ')
  })

  it('B-COMPRESS-7: a page is the text that a reader would see; plain text stays as it is', async () => {
    const { content, kind } = await full(htmlPage())
    expect(kind).toBe('html')
    expect(content).toContain('Post number 119')
    expect(content).not.toContain('margin')
    expect(content).not.toContain('__STATE__')
    const prose = 'It was a quiet day in the harbour, and nobody had heard the news yet.\n'.repeat(100)
    expect(await full(prose)).toMatchObject({ kind: 'plain', changed: false, content: prose })
    const shell = `<!DOCTYPE html><html><body><div id="root"></div><script>${'a();'.repeat(2_000)}</script></body></html>`
    expect((await full(shell)).changed).toBe(false)
  })
})

describe('what is handed out', () => {
  it.each(CORPUS.map((sample) => [sample.name, sample] as const))(
    'B-COMPRESS-14: %s is at most half as long, and never longer without loss',
    async (_name, { text, hint }) => {
      const made = await full(text, hint)
      expect(made.bytesAfter).toBeLessThanOrEqual(made.bytesBefore / 2)
      expect(made.bytesAfter).toBe(Buffer.byteLength(made.content))
      const reformatted = await light(text, hint)
      expect(reformatted.lossy).toBe(false)
      expect(reformatted.bytesAfter).toBeLessThanOrEqual(made.bytesBefore)
    },
  )

  it('B-COMPRESS-8: begins at 2,048 bytes, and at 512 for logs and commands', async () => {
    const rows = (count: number) =>
      JSON.stringify(Array.from({ length: count }, (_, i) => ({ number: i, customer: 'a' })))
    expect(Buffer.byteLength(rows(60))).toBeLessThan(2_048)
    expect((await full(rows(60))).changed).toBe(false)
    expect((await full(rows(80))).changed).toBe(true)
    expect((await full(rows(60), {}, { minBytes: 0 })).changed).toBe(true)
    const log = (count: number) => 'waiting for the database\n'.repeat(count)
    expect((await full(log(20), { command: 'a' })).changed).toBe(false)
    expect((await light(log(21), { command: 'a' })).changed).toBe(true)
  })

  it('B-COMPRESS-8: something is left out from 500 tokens on, or from 125 if half of the text goes', async () => {
    const noise = (count: number) =>
      Array.from({ length: count }, (_, i) => `   Compiling crate-${i} v0.1.0`).join('\n')
    const rest = (count: number) => Array.from({ length: count }, (_, i) => `note: item ${i} was seen`).join('\n')
    const command = { command: 'cargo build' }
    expect((await full(`${noise(30)}\n${rest(2)}`, command)).lossy).toBe(true)
    expect((await full(`${noise(14)}\n${rest(40)}`, command)).changed).toBe(false)
    expect((await full(`${noise(20)}\n${rest(80)}`, command)).lossy).toBe(true)
  })

  it('B-COMPRESS-8: it is handed out only if it is smaller with its footer, and only then something is kept', async () => {
    const kept: string[] = []
    const keep = (text: string): string => {
      kept.push(text)
      return TOKEN
    }
    const text = `{"text":${JSON.stringify('word '.repeat(600))} }`
    expect(await compressContent(text, {}, { keep })).toMatchObject({ changed: false, content: text })
    expect(kept).toEqual([])
    await compressContent(orders(), {}, { keep })
    expect(kept).toEqual([orders()])
  })

  it('B-COMPRESS-8: without a place for originals nothing is left out', async () => {
    for (const { text, hint } of CORPUS) {
      const made = await compressContent(text, hint)
      expect(made.lossy).toBe(false)
      expect(made.token).toBeUndefined()
    }
  })

  it('B-COMPRESS-8: the last line says whether something is left out, how long the original is, and its token', async () => {
    const text = orders()
    const partial = (await full(text)).content.split('\n').at(-1)
    expect(partial).toBe(
      `[PARTIAL view, full original (${Buffer.byteLength(text)} bytes): retrieve_original with the token ⟦tj:${TOKEN}⟧]`,
    )
    const whole = (await light(text)).content.split('\n').at(-1)
    expect(whole).toBe(`[reformatted, no data lost; original (${Buffer.byteLength(text)} bytes): ⟦tj:${TOKEN}⟧]`)
  })

  it('B-COMPRESS-4: says how many errors of a kind there really are, and shows no line again that it has counted', async () => {
    const text = 'ERROR at foo\n'.repeat(100_000)
    expect(bodyOf(await full(text, { kind: 'log' }))).toBe(
      'ERROR at foo (×100000 alike) [… lines 2–99999]\nERROR at foo',
    )
    const mixed = Array.from({ length: 30_000 }, (_, i) => (i % 3 === 0 ? `ERROR at ${i}` : `fatal: no disk`)).join(
      '\n',
    )
    const lines = bodyOf(await full(mixed, { kind: 'log' })).split('\n')
    expect(lines.slice(0, 2)).toEqual(['ERROR at 0 (×10000 alike)', 'fatal: no disk (×20000 alike) [… line 3]'])
  })

  it('B-COMPRESS-23: a content that is no text and a token that is none are refused with a sentence', async () => {
    const refused = (message: string) => ({
      code: 'invalid_input',
      message: expect.stringContaining(message) as string,
    })
    for (const content of [5, null, undefined, ['a']])
      await expect(compressContent(content as unknown as string)).rejects.toMatchObject(refused('takes a text'))
    for (const token of ['', 'A'.repeat(32), 'a'.repeat(31), `${TOKEN}\n`, 5, undefined])
      await expect(full(orders(), {}, { keep: () => token as string })).rejects.toMatchObject(refused('32 hex digits'))
  })

  it('B-COMPRESS-23: options, kinds and profiles that are not known are refused', async () => {
    const refused = { code: 'invalid_config' }
    await expect(compressContent('a', { kid: 'json' } as ContentHint)).rejects.toMatchObject(refused)
    await expect(compressContent('a', { kind: 'xml' as 'json' })).rejects.toMatchObject(refused)
    await expect(compressContent('a', {}, { profile: 'auto' as 'full' })).rejects.toMatchObject(refused)
    await expect(compressContent('a', {}, { keeps: true } as CompressOptions)).rejects.toMatchObject(refused)
  })

  it('B-COMPRESS-24: the streams of a command inside of JSON are shortened, and the JSON stays what it is', async () => {
    const result = {
      command: 'npm test',
      shell: '/bin/bash',
      stdout: npmTest(),
      stderr: '',
      exit_code: 1,
      success: false,
    }
    const made = await full(JSON.stringify(result), { tool: 'bash', command: 'npm test' })
    expect(made.bytesAfter).toBeLessThan(made.bytesBefore / 10)
    const read = JSON.parse(bodyOf(made)) as typeof result
    expect({ ...read, stdout: '' }).toEqual({ ...result, stdout: '' })
    expect(read.stdout).toContain('AssertionError: expected 10.01 to be 10.02')
  })
})
