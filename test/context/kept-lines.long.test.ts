// The lines that matter stay in what `full` shows: over a corpus of outputs, for phrases in the middle of any output, and in the
// cases that earlier forms of the router got wrong.
import { describe, expect, it } from 'vitest'
import { type Compressed, compressContent, type ContentHint } from '../../src/index.ts'
import { findOddValues, startSplitBudget } from '../../src/context/compress/odd-values.ts'
import { notableRows } from '../../src/context/compress/notable-rows.ts'
import { isTroubleSignal, findSignal } from '../../src/context/compress/signals.ts'
import { logLines } from './corpus.ts'
import { BLIND } from './blind.ts'
import { HELD_OUT } from './held-out.ts'
import { FRESH } from './fresh.ts'
import { FAILURES, UNUSUAL, withLine } from './phrases.ts'
import { ALL, isTuned, missingIn } from './machine-outputs.ts'
import { UNSEEN } from './unseen.ts'

const keep = (): string => 'a'.repeat(32)

function full(text: string, hint: ContentHint = {}): Promise<Compressed> {
  return compressContent(text, hint, { keep })
}

/** What some program of a user printed: no rule knows it. */
function unknownOutput(lines = 500): string {
  return Array.from(
    { length: lines },
    (_, i) => `stage ${i % 7} item ${i}: copied ${(i * 37) % 900} blocks to node-${i % 5}`,
  ).join('\n')
}

/** The share of parts that stay, and the size of what is shown, over outputs. */
async function measured(outputs: typeof ALL): Promise<{ readonly kept: number; readonly size: number }> {
  let [parts, lost, before, after] = [0, 0, 0, 0]
  for (const output of outputs) {
    const { content, bytesBefore, bytesAfter } = await full(output.text, output.hint)
    parts += output.stays.length
    lost += missingIn(output, content).length
    before += bytesBefore
    after += bytesAfter
  }
  return { kept: (parts - lost) / parts, size: after / before }
}

describe('what full keeps', () => {
  it('B-ROUTER2-1: in each half of the corpus, and in three further sets, 95 % of the lines that matter stay in 35 % of the bytes', async () => {
    expect(ALL.length).toBeGreaterThanOrEqual(60)
    expect(HELD_OUT).toHaveLength(40)
    expect(UNSEEN).toHaveLength(40)
    for (const output of [...ALL, ...HELD_OUT, ...BLIND, ...UNSEEN]) expect(missingIn(output, output.text)).toEqual([])
    const halves = [true, false].map((half) => ALL.filter((output) => isTuned(output) === half))
    for (const outputs of [...halves, HELD_OUT, BLIND, UNSEEN]) {
      const { kept, size } = await measured(outputs)
      expect(kept).toBeGreaterThanOrEqual(0.95)
      expect(size).toBeLessThanOrEqual(0.35)
    }
  })

  it('B-ROUTER2-1: of outputs that no rule was made for, 94 % of the lines that matter stay in 35 % of the bytes', async () => {
    expect(FRESH).toHaveLength(40)
    for (const output of FRESH) expect(missingIn(output, output.text)).toEqual([])
    const { kept, size } = await measured(FRESH)
    expect(kept).toBeGreaterThanOrEqual(0.94)
    expect(size).toBeLessThanOrEqual(0.35)
  })

  it.each(FAILURES)('B-ROUTER2-2: a line of failure in the middle of unknown output stays: %s', async (line) => {
    for (const hint of [{}, { command: './run-it' }]) {
      const made = await full(withLine(unknownOutput(), line), hint)
      expect(made.lossy).toBe(true)
      expect(made.content).toContain(line)
      expect(made.bytesAfter).toBeLessThan(made.bytesBefore * 0.35)
    }
  })

  it('B-ROUTER2-2: in the middle of outputs of real programs all lines of failure stay, and 95 % of unusual lines', async () => {
    const lost: string[] = []
    let [unusual, missed] = [0, 0]
    const logs = ALL.filter((output) => output.kind === 'log')
    for (const [at, { name, text, hint, kind }] of logs.entries()) {
      // Each phrase is put into a fourth of the outputs.
      for (const line of [...FAILURES, ...UNUSUAL].filter((_line, i) => (i + at) % 4 === 0)) {
        const { content, lossy } = await full(withLine(text, line), { ...hint, kind })
        const isLost = lossy && !content.includes(line)
        if (FAILURES.includes(line)) {
          if (isLost) lost.push(`${name}: ${line}`)
          continue
        }
        unusual += 1
        if (isLost) missed += 1
      }
    }
    expect(lost).toEqual([])
    // Where nearly every line is of its own kind, a line without a signal may be lost.
    expect(missed / unusual).toBeLessThan(0.05)
  })
})

describe('what earlier forms lost', () => {
  const quiet = (count: number): readonly string[] =>
    Array.from({ length: count }, (_, i) => `GET /items/${i} served in ${i % 90} ms`)

  it('B-ROUTER2-4: equal lines are counted, and the one that differs stays', async () => {
    const text = [
      ...Array<string>(60).fill('waiting for db:5432'),
      'connect ECONNREFUSED',
      ...Array<string>(60).fill('waiting for db:5432'),
    ]
    const made = await full(text.join('\n'), { command: './wait.sh' })
    expect(made.content.split('\n').slice(0, 3)).toEqual([
      'waiting for db:5432 (×60)',
      'connect ECONNREFUSED',
      'waiting for db:5432 (×60)',
    ])
    expect(made.lossy).toBe(false)
  })

  it('B-ROUTER2-4: of a long stack the first and the last frames and every cause stay', async () => {
    const frames = (from: string): readonly string[] =>
      Array.from({ length: 60 }, (_, i) => `    at ${from}${i} (/app/${from}.js:${i}:1)`)
    const stack = ['ERROR job failed', ...frames('outer'), 'Caused by: Error: pool is empty', ...frames('inner')]
    const { content } = await full([...quiet(400), ...stack, ...quiet(400)].join('\n'))
    for (const part of ['at outer0 ', 'at inner59 ', 'Caused by: Error: pool is empty']) expect(content).toContain(part)
  })

  it('B-ROUTER2-4: a finding stays with the file above it', async () => {
    const files = Array.from({ length: 40 }, (_, i) => [
      `/app/src/part-${String.fromCharCode(97 + (i % 26))}${i}.ts`,
      ...Array.from({ length: 8 }, (_each, k) => `  ${k + 1}:1  warning  Unexpected any  no-explicit-any`),
      ...(i === 23 ? ["  88:4  error  'total' is not defined  no-undef"] : []),
      '',
    ])
    const { content } = await full(files.flat().join('\n'), { command: 'npx eslint .' })
    expect(content).toContain("'total' is not defined")
    expect(content).toContain('part-x23.ts')
  })

  it('B-ROUTER2-5: names and counts of nothing are no signals', () => {
    for (const line of [
      '0 errors, 0 warnings',
      'errors: 0',
      '{"level":"info","failed":0}',
      'npm install http-errors',
      'added @scope/error',
      'src/errors/index.ts',
      'found 0 vulnerabilities',
      'level=info msg=ok',
      'no errors',
      'self-test completed without error',
    ])
      expect([line, findSignal(line)]).toEqual([line, null])
    for (const line of [
      '1 error',
      'TypeError: x',
      'java.lang.IllegalStateException',
      'level=error',
      'errors: 3',
      'Permission denied',
      'exit code 137',
      '2 errors, 0 warnings',
    ])
      expect([line, isTroubleSignal(findSignal(line))]).toEqual([line, true])
  })

  it('B-ROUTER2-5: hostile texts are bounded: 200,000 keys, 10,000 levels, half a character and lines of a megabyte', async () => {
    const keys = JSON.stringify(Object.fromEntries(Array.from({ length: 200_000 }, (_, i) => [`key${i}`, { a: i }])))
    const levels = `${'['.repeat(10_000)}${']'.repeat(10_000)}`
    const pairs = `${'😀'.repeat(500)}\n`.repeat(60)
    for (const text of [keys, levels, pairs, `${'x'.repeat(1_000_000)}\n`.repeat(3), 'a\tb\n'.repeat(30_000)]) {
      const { content } = await full(text, { command: 'cat it' })
      expect(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/.test(content)).toBe(false)
    }
    const { content } = await full(pairs, { command: 'cat it' })
    expect(content.length).toBeLessThan(13_000)
  })

  it('B-ROUTER2-6: of 100,000 lines a rare line without any signal stays, and at most 12,200 characters are shown', async () => {
    const { content } = await full(withLine(logLines(100_000), UNUSUAL[0] ?? ''))
    expect(content).toContain(UNUSUAL[0])
    expect(content.length).toBeLessThan(12_200)
  })

  it('B-ROUTER2-7: without loss a text is shown in a shorter form only if the same bytes can be made of it', async () => {
    const light = (text: string, hint: ContentHint): Promise<Compressed> =>
      compressContent(text, hint, { keep, profile: 'light' })
    const paths = Array.from({ length: 90 }, (_, i) => `src/folder-${i % 3 === 0 ? 'a' : 'b'}/file-${i}.ts`).toSorted()
    const folded = await light(paths.join('\n'), { command: 'find .' })
    expect(folded).toMatchObject({ changed: true, lossy: false })
    expect(folded.content).toContain('src/folder-a/: file-0.ts ')
    for (const odd of ['src/a b/c.ts', 'src/x/: y.ts', 'twice (×2)']) {
      const made = await light([...paths, odd].join('\n'), { command: 'find .' })
      if (!made.changed) {
        expect(made.content).toBe([...paths, odd].join('\n'))
        continue
      }
      const shown = made.content.slice(0, made.content.lastIndexOf('\n['))
      const again = shown.split('\n').flatMap((line) => {
        const [, folder, names] = /^(\S*\/): (.+)$/.exec(line) ?? []
        return folder === undefined ? [line] : (names ?? '').split(' ').map((name) => folder + name)
      })
      expect(again.join('\n')).toBe([...paths, odd].join('\n'))
    }
  })
})

/** A word of letters that hardly another line has, as names are. */
function wordFor(i: number): string {
  return ((i + 11) * 7_919).toString(26).replace(/\d/g, (digit) => 'qrstuvwxyz'[Number(digit)] ?? '')
}

function manyLines(count: number, make: (i: number) => string | readonly string[]): string[] {
  return Array.from({ length: count }, (_, i) => make(i)).flat()
}

describe('rules for outputs that nobody has seen', () => {
  it('B-ROUTER2-8: among hundreds of errors that begin alike, a graver line and a rare quiet one stay', async () => {
    const text = manyLines(260, (i) => {
      const at = `2031-02-03 04:${String(i % 60).padStart(2, '0')}:11`
      if (i === 150) return `${at} [emerg] the master left, 3 children were given up`
      if (i === 190) return `${at} [notice] leader moved from vm-4 to vm-9`
      return `${at} [error] cannot render /pages/${wordFor(i)}/${wordFor(i * 7 + 1)}.tpl (${wordFor(i * 5)}), template missing for ${wordFor(i * 4)}`
    })
    const { content, bytesBefore, bytesAfter } = await full(text.join('\n'), { path: 'render.log' })
    expect(content).toContain('the master left, 3 children were given up')
    expect(content).toContain('leader moved from vm-4 to vm-9')
    expect(bytesAfter).toBeLessThan(bytesBefore * 0.5)
  })

  it('B-ROUTER2-8: a signal that ended a process and levels above an error are grave, words in names are not', () => {
    for (const line of ['child 7 exited on signal 6', '<crit> disk', 'level=alert msg=x', 'Segmentation fault'])
      expect([line, findSignal(line)]).toEqual([line, 'grave'])
    for (const line of ['alert rules loaded', 'src/panic-button.ts', 'signals: 11'])
      expect([line, findSignal(line)]).toEqual([line, null])
  })

  it('B-ROUTER2-9: what is said below a finding stays with it: values under labels, notes and a second stack', async () => {
    const quiet = (from: number): readonly string[] =>
      manyLines(150, (i) => [`%7% checked ${wordFor(i)} part ${from + i}`, `%7%   took ${i % 40} ms`])
    const finding = [
      '%7% write after close of handle 0x9910',
      '%7%    in flush_page (pager.c:88)',
      '%7%  handle was closed here',
      '%7%    in drop_pager (pager.c:31)',
      '%7%  wanted:',
      '%7%    open',
      '%7%  found:',
      '%7%    closed twice, illegal',
      '%7% ',
    ]
    const { content } = await full([...quiet(0), ...finding, ...quiet(500)].join('\n'), { command: './check-pages' })
    for (const line of finding.slice(0, -1)) expect(content).toContain(line)
  })

  it('B-ROUTER2-9: a note after the quoted source of a finding stays, between hundreds of findings of another kind', async () => {
    const other = (i: number): readonly string[] => [
      `lib/${wordFor(i)}/${wordFor(i * 7)}.zig:${i}:3: warning: name is shadowed [shadow]`,
      `   ${i} | const ${wordFor(i * 5)} = 1;`,
      '     |       ^~~',
    ]
    const finding = [
      'lib/boat/anchor.zig:70:9: warning: pointer may be freed twice [memory]',
      '   70 |   release(rope);',
      '      |   ^~~',
      'lib/boat/anchor.zig:64:2: note: first released in this branch',
    ]
    const text = [...manyLines(120, other), ...finding, ...manyLines(120, other)].join('\n')
    const { content } = await full(text, { command: './lint-all' })
    for (const line of [finding[0], finding[3]]) expect(content).toContain(line)
  })

  it('B-ROUTER2-10: in records of many lines, one number that is far from those of the other records stays', async () => {
    const names = ['depth', 'reads', 'writes', 'drops', 'waits', 'peers', 'locks', 'pages', 'slots', 'users'] as const
    const kinds = [...names, ...names.map((name) => `${name} a minute`), ...names.map((name) => `most ${name}`)]
    const record = (queue: number): string =>
      [`queue q${queue}`, ...kinds.map((kind, i) => `  ${kind}: ${(queue * 31 + i * 7) % 40}`)].join('\n')
    const text = Array.from({ length: 18 }, (_, queue) => record(queue))
    const at = text[11]?.split('\n')[17]?.split(':')[0] ?? ''
    text[11] = text[11]?.replace(new RegExp(`${at}: \\d+`), `${at}: 918273`) ?? ''
    const { content, lossy } = await full(text.join('\n'))
    expect(lossy).toBe(true)
    expect(content).toContain('918273')
  })

  it('B-ROUTER2-13: a last line that says how it failed stays, also where it looks like progress', async () => {
    const steps = Array.from({ length: 400 }, (_, i) => `➤ YN0000: │ package-${i}@npm:1.0.${i} was fetched`)
    const { content } = await full([...steps, '➤ YN0000: · Failed in 33s'].join('\n'), { command: 'yarn install' })
    expect(content).toContain('Failed in 33s')
  })

  it('B-ROUTER2-10: of lines that differ in names only, those with the largest numbers stay', async () => {
    const rows = manyLines(300, (i) => {
      const [calls, seconds] = i === 207 ? ['90,211', '41.250'] : [String(1 + (i % 30)), `0.0${10 + (i % 80)}`]
      return `  ${calls.padStart(9)}  ${seconds}  ${wordFor(i)}/${wordFor(i * 7 + 2)}::run${i}`
    })
    const { content } = await full(['calls and seconds of each part', '', ...rows].join('\n'), { command: './profile' })
    expect(content).toContain('41.250')
    const sizes = manyLines(
      200,
      (i) => `unit-${i},${wordFor(i)},${i === 120 ? '99.50%' : `${1 + (i % 9)}.${10 + (i % 80)}%`}`,
    )
    expect((await full(['unit,site,load', ...sizes].join('\n'), { path: 'load.csv' })).content).toContain('99.50%')
  })

  it('B-ROUTER2-11: rows of JSON stay that are odd inside, have another type, or are pointed to', async () => {
    const boats = Array.from({ length: 160 }, (_, i) => ({
      ref: `boat-${i}-end`,
      berth: { pier: i % 4, crew: { size: 2 + (i % 5), master: i === 71 ? null : `m${i}` } },
      draft: i === 92 ? 'unknown' : 1 + (i % 7),
    }))
    const errors = [
      { message: 'too deep', path: ['boats', 48, 'draft'] },
      { message: 'too long', pointer: '/boats/55/berth' },
      { message: 'too wide', field: 'boats[63].berth.pier' },
    ]
    const { content } = await full(JSON.stringify({ data: { boats }, errors }, null, 1))
    for (const place of [71, 92, 48, 55, 63]) expect(content).toContain(`boat-${place}-end`)
    expect(content).not.toContain('boat-100-end')
  })

  it.each([
    ['null', null],
    ['a number', 7],
    ['true', true],
    ['an empty text', ''],
    ['a list', ['a', 'b']],
    ['an object', { a: 1 }],
  ])('B-ROUTER2-11: a row of JSON stays for %s in a column of free text', (_name, odd) => {
    const texts = [
      'Fix it (again)',
      'feat(core): x',
      'Merge "a/b"',
      'Revert "y" [skip]',
      'v1.2.3',
      'A.md, B.md',
      'a & b; c/d',
    ]
    const more = [
      '{"json": true}',
      '<b>html</b>',
      'path=/x/y?z=1&q=2',
      "it's done!",
      'Right? See #42',
      'WIP',
      'docs: typo',
    ]
    const said = [...texts, ...more]
    for (const count of [25, 200, 2_000]) {
      const rows = Array.from({ length: count }, (_, i) => ({
        id: i,
        message: i === 17 ? odd : `${said[(i * 5) % said.length]} ${'xyz,;/'[i % 6]?.repeat(i % 4)}${i}`,
      }))
      expect(notableRows(rows, ['id', 'message'])).toContain(17)
    }
  })

  it('B-ROUTER2-11: types of which a column has many of each say nothing', () => {
    const mixed = [null, 7, 'a text', true]
    const rows = Array.from({ length: 400 }, (_, i) => ({ id: i, note: mixed[i % 4] ?? null }))
    expect(notableRows(rows, ['id', 'note'])).toEqual([])
  })

  it('B-ROUTER2-14: of hundreds of columns of joined cells the first are taken apart, the others are judged as a whole', () => {
    const cell = (i: number): string => `A=${i % 9};B=${i === 2_171 ? 9_999 : (i * 31) % 97};C=x${i % 4};D=${i}`
    const cells = Array.from({ length: 5_000 }, (_, i) => cell(i))
    const numbers = cells.map((_cell, i) => String(i === 1_300 ? 900_000 : i % 70))
    const work = startSplitBudget()
    const found = Array.from({ length: 40 }, () => findOddValues(cells, work).some(({ row }) => row === 2_171))
    expect(found.indexOf(false)).toBeGreaterThanOrEqual(15)
    expect(found.lastIndexOf(true)).toBeLessThan(25)
    expect(findOddValues(numbers, work).map(({ row }) => row)).toEqual([1_300])
  })

  it('B-ROUTER2-12: prose around a printed table stays prose, and a row with a mark before it stays a row', async () => {
    const row = (mark: string, name: string, state: string, note: string): string =>
      `${mark} ${name.padEnd(24)} ${state.padEnd(8)} ${'2d'.padEnd(5)} ${note}`
    const rows = manyLines(120, (i) =>
      row(i === 66 ? '!' : ' ', `${wordFor(i)}-${i}`, i === 66 ? 'adrift' : 'moored', 'no note'),
    )
    const legend = [
      'STATE is what the harbour office reported last.',
      '120 boats shown, give --sunk to see the others too.',
    ]
    const { content } = await full(
      [row(' ', 'BOAT', 'STATE', 'NOTE').replace('2d   ', 'AGE  '), ...rows, '', ...legend].join('\n'),
      {
        command: 'boats list',
      },
    )
    for (const line of legend) expect(content).toContain(line)
    expect(content).toMatch(/! \w+-66\tadrift/)
  })

  it.each([
    ['https://files.harbour.example/a', 'http://10.9.9.9:8099/a'],
    ['(0.120 seconds)', '(48.221 seconds)'],
    ['9m12', '51m40'],
    ['48211', '0'],
    ['2031-04-01T00:00:00', '2027-02-28T23:59:59'],
    ['mode=ro;depth=4', 'mode=rw;depth=4'],
    ['0/1:40:99', '1/1:40:99'],
    ['7200', '-7200'],
  ])(
    'B-ROUTER2-14: among lines that are alike, the one with a value that differs stays: %s and %s',
    async (usual, odd) => {
      const changed = (i: number): string =>
        usual.startsWith('http') || usual.startsWith('mode') || usual.startsWith('0/1')
          ? usual
          : usual.replace(/\d(?=\D*$)/, String(i % 9))
      const lines = manyLines(
        320,
        (i) => `boat ${wordFor(i)} loads ${wordFor(i * 3)} as ${i === 143 ? odd : changed(i)} today`,
      )
      const { content, bytesBefore, bytesAfter } = await full(lines.join('\n'), { command: './load-boats' })
      expect(content).toContain(`${wordFor(143)} loads ${wordFor(429)} as ${odd} today`)
      expect(bytesAfter).toBeLessThan(bytesBefore * 0.5)
    },
  )

  it('B-ROUTER2-14: a row of a table stays for a key or a part of a joined cell that differs, and CSV keeps its sign', async () => {
    const cell = (i: number): string => `AC=${i % 3};AN=6${i === 80 ? ';FLAG=yes' : ''}`
    const rows = manyLines(
      220,
      (i) =>
        `${wordFor(i)},${cell(i)},10.0.${i % 7}.4:${i === 150 ? 4_444 : 5_432},${i === 31 ? '-' : ''}${100 + ((i * 37) % 90)}`,
    )
    const { content } = await full(['name,info,peer,used', ...rows].join('\n'), { path: 'peers.csv' })
    for (const row of [31, 80, 150]) expect(content).toContain(rows[row])
  })

  it('B-ROUTER2-15: the place of a frame that stands on a line of its own stays with its function', async () => {
    const library = (from: number): readonly string[] =>
      manyLines(14, (i) => [
        `  ${from + i}: std::panicking::${wordFor(i)}`,
        `             at /rustc/9f3/library/std/src/panic.rs:${i}:5`,
      ])
    const own = ['  14: tide::flush', '             at /build/tide/src/flush.rs:71:9']
    const go = ['goroutine 7 [running]:', 'harbour/berth.(*Pier).close(0xc0004)', '\t/src/berth/pier.go:90 +0x4e']
    const quiet = manyLines(300, (i) => `checked ${wordFor(i)} at pier ${i}`)
    const stack = [
      "thread 'main' panicked at src/flush.rs:71:9:",
      'stack backtrace:',
      ...library(0),
      ...own,
      ...library(15),
    ]
    const text = [...quiet, ...stack, ...quiet, 'panic: berth is taken', '', ...go, '', ...quiet]
    const { content } = await full(text.join('\n'), { command: './tide' })
    for (const line of [...own, ...go]) expect(content).toContain(line)
  })

  it('B-ROUTER2-16: sections that repeat are no table, and lines between the rows of a table stay at their place', async () => {
    const section = (i: number): readonly string[] => [
      `*   << Visit >>   ${i}`,
      `-   Asked          /pier/${wordFor(i)}`,
      `-   Answer         ${i === 33 ? 503 : 200}`,
      '-   End',
      '',
    ]
    const sections = await full(manyLines(90, section).join('\n'), { command: './visits' })
    expect(sections.content).toMatch(/-   Asked          \/pier\/\w+.*\n-   Answer         503/)
    const rows = manyLines(120, (i) => `${wordFor(i)}-${i},moored,${i}`)
    rows.splice(61, 0, '  note of the harbour office')
    const table = await full(['boat,state,berth', ...rows].join('\n'), { path: 'boats.csv' })
    expect(table.content).toMatch(/-60,60\n {2}note of the harbour office\n\w+-61,61/)
  })

  it('B-ROUTER2-14: an entry of a listing stays whole for its mode, owner or year', async () => {
    const entry = (i: number): string => {
      const [mode, owner, year] = [
        i === 70 ? '-rwsrwxrwx' : '-rw-r--r--',
        i === 90 ? 'guest' : 'app',
        i === 120 ? ' 2019' : '04:11',
      ]
      return `${mode} 1 ${owner} app ${1_000 + ((i * 37) % 900)} Nov 16 ${year} ${wordFor(i)}-${i}.dat`
    }
    const lines = manyLines(400, entry)
    const { content } = await full(['total 400', ...lines].join('\n'), { command: 'ls -l' })
    for (const row of [70, 90, 120]) expect(content).toContain(lines[row])
  })
})
