// The report workflow by fixed rules: its shape, its gate, its quotes, and where it reads and writes.
import { chmodSync, existsSync, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { hash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { reportNodeText, reportGraph, reportWithModelGraph } from '../../src/cli/demo/report/report-graph.ts'
import { toJson, toMermaid } from '../../src/graphs/index.ts'
import { findFacts } from '../../src/cli/demo/report/report-facts.ts'
import { writeReport, proposeWrite } from '../../src/cli/demo/report/write-report.ts'
import { planByRules } from '../../src/cli/demo/report/report-plan.ts'
import { sentencesOf, containsQuote } from '../../src/cli/demo/report/sentences.ts'
import { eventsIn, failureIn, ofType, turnsOf, withGraphs } from './stage.ts'
import { DOCUMENTS, endsIn, INPUT, openBench, quotesIn, stateOf } from './report-stage.ts'

const NODES = ['plan', 'search', 'extract', 'draft', 'review', 'propose', 'finalize']

describe('the shape', () => {
  it('B-REPORT-1: has seven nodes in this order with or without a model, and the drawing shows the gate before the file (AC-109)', () => {
    for (const graph of [reportGraph({ root: tmpdir() }), reportWithModelGraph({ root: tmpdir() })]) {
      expect([...graph.nodes.keys()]).toEqual(NODES)
      expect(toMermaid(graph)).toContain('n6 --> n7')
      expect(toMermaid(graph)).toContain('n7{{"finalize<br/>approval"}}')
    }
    const { nodes } = toJson(reportGraph({ root: tmpdir() })) as { nodes: readonly object[] }
    expect(nodes.at(-1)).toMatchObject({ name: 'finalize', effect: 'idempotent', approval: 'ask' })
  })

  it('B-REPORT-2: it stops with the path and the exact bytes, writes exactly those after a yes, and keeps results, log and artifacts apart (AC-106, S3-6, S3-7)', async () => {
    const bench = openBench()
    const { result, session } = await bench.report()
    expect(result.status).toBe('requires_action')
    const [pending] = result.pending
    const { text, path, sha256 } = (pending?.args ?? {}) as { text: string; path: string; sha256: string }
    expect([pending?.tool, path, hash('sha256', text)]).toEqual([
      'finalize',
      join(bench.folder, 'out/report.md'),
      sha256,
    ])
    expect(existsSync(path)).toBe(false)
    expect((await session.run()).status).toBe('requires_action')
    expect(await bench.allowed(session)).toMatchObject({
      status: 'completed',
      output: { written: { path, changed: true } },
    })
    expect(bench.read('out/report.md')).toBe(text)
    expect(await endsIn(session)).toEqual(NODES.map((name) => `${name} ok`))
    expect(await turnsOf(session)).toEqual([...NODES.map((name) => [name]), []])
    const { artifacts } = await stateOf(session)
    expect(artifacts).toEqual([
      { name: 'draft 1', sha256, bytes: Buffer.byteLength(text) },
      { name: 'report', sha256, bytes: Buffer.byteLength(text), path },
    ])
    expect(ofType(await eventsIn(session), 'user.tool_confirmation')).toMatchObject([{ allow: true, by: 'ana' }])
  })

  it('B-REPORT-3: a no ends the run with nothing written, and a retry asks again', async () => {
    const bench = openBench()
    const { result, session } = await bench.report()
    for (const each of result.pending) await session.decide({ ...each, allow: false, by: 'ana', why: 'too long' })
    expect(failureIn(await session.run())).toMatch(/^planner_failed: Node "finalize" failed: .*too long/s)
    expect(existsSync(join(bench.folder, 'out'))).toBe(false)
    expect(await session.run({ retry: true })).toMatchObject({
      status: 'requires_action',
      pending: [{ tool: 'finalize' }],
    })
  })

  it('B-REPORT-4: what each node came to is told in a few words from the state', async () => {
    const { result, session } = await openBench().report()
    expect(result.status).toBe('requires_action')
    const state = await stateOf(session)
    expect(NODES.slice(0, 5).map((name) => reportNodeText(name, state))).toEqual([
      '2 questions',
      '2 of 3 documents',
      '4 passages from 2 documents',
      expect.stringMatching(/^\d+ bytes$/),
      'passed',
    ])
    expect(reportNodeText('propose', state)).toMatch(/report\.md, a new file$/)
    expect(['finalize', 'other'].map((name) => reportNodeText(name, state))).toEqual(['', ''])
  })
})

describe('what it says', () => {
  it('B-REPORT-5: the report has what was asked, quotes with file and line, sources by hash, what was not found, and that no model wrote it', async () => {
    const bench = openBench()
    const { session } = await bench.report({ ...INPUT, topic: 'The harbour: tides, lamps and dragons' })
    await bench.allowed(session)
    const report = bench.read('out/report.md')
    expect(report.startsWith('# The harbour: tides, lamps and dragons\n')).toBe(true)
    expect(report).toContain('3. What is said about dragons?')
    expect(report).toContain('> The moon raises the tides of the sea. [tides.txt:3]')
    expect(report).toContain('> A spring tide comes with the full moon and with the new moon alike. [tides.txt:4]')
    expect(report).toContain('> A lamp must be trimmed every evening before the tide turns. [lamps.md:3]')
    expect(report).toContain('## What is said about dragons?\n\nNo passage was found.')
    expect(report).toContain('- No passage answers: What is said about dragons?')
    expect(report).toContain('- sheep.txt has no sentence with the words that were looked for.')
    expect(report).toContain(`| tides.txt | Tides | \`${hash('sha256', DOCUMENTS['tides.txt'])}\` |`)
    expect(report).toContain('without a language model')
  })

  it('B-REPORT-6: the same topic and documents are the same bytes; another topic over another folder is another report, all of it from there', async () => {
    const texts: string[] = []
    for (const _ of [1, 2]) {
      const bench = openBench()
      await bench.allowed((await bench.report()).session)
      texts.push(bench.read('out/report.md'))
    }
    expect(texts[0]).toBe(texts[1])
    const other = openBench({}, { 'bees.txt': 'Bees\n\nThe bees make honey from the flowers of the lime tree.\n' })
    await other.allowed((await other.report({ ...INPUT, topic: 'Honey' })).session)
    expect(quotesIn(other.read('out/report.md'))).toEqual([
      { quote: 'The bees make honey from the flowers of the lime tree.', file: 'bees.txt', line: 3 },
    ])
  })

  it('B-REPORT-7: a topic with a list asks about each of it; without one, the topic itself and its words', () => {
    const asks = (topic: string) =>
      planByRules(topic).questions.map(({ text, terms }) => `${text} (${terms.join(' ')})`)
    expect(asks('What a room needs: light, clean air and a good bed')).toEqual([
      'What is said about light? (light)',
      'What is said about clean air? (clean air)',
      'What is said about a good bed? (bed)',
    ])
    expect(asks('How does a candle burn?')).toEqual([
      'How does a candle burn? (candle burn)',
      'What is said about candle? (candle)',
      'What is said about burn? (burn)',
    ])
    expect(asks('The')).toEqual(['The ()'])
  })

  it('B-REPORT-8: a sentence is found whole, with the line it begins on; headings, tables, code and abbreviations are no ends of it', () => {
    const text =
      '# Title.\n\nDr. Who saw e.g. the sea, and\nit was large. "Was it blue?" Nobody\nknows, but it was wet all the same.\n\n```\nThis is code and no sentence at all.\n```\n| a table row that goes on and on. |\n'
    expect(sentencesOf(text)).toEqual([
      { text: 'Dr. Who saw e.g. the sea, and it was large.', line: 3 },
      { text: '"Was it blue?"', line: 4 },
      { text: 'Nobody knows, but it was wet all the same.', line: 4 },
    ])
  })

  it('B-REPORT-8: a short sentence is quoted where nothing else answers, and gives way to what says more', async () => {
    const plan = planByRules('What is wet?')
    const quotes = async (text: string): Promise<readonly string[]> => {
      const facts = await findFacts([{ file: 'a.txt', text, sha256: '', bytes: text.length }], plan, async () => {})
      return facts.map(({ quote }) => quote)
    }
    expect(await quotes('Rain is wet. Snow is cold.')).toEqual(['Rain is wet.'])
    const long = Array.from({ length: 4 }, (_, n) => `The ${n} seas of the north are wet in every month of the year.`)
    expect(await quotes(['Rain is wet.', ...long].join(' '))).toEqual(long)
  })

  const words = fc.array(
    fc.constantFrom(
      'tide',
      'Tides',
      'moon',
      'sea',
      'the',
      'of',
      '\n',
      ' \t ',
      '“so”',
      'e.g.',
      '*x*',
      'Ünïcode',
      '🌊',
      '|',
      '>',
      '[a:1]',
      '#',
      '- ',
    ),
    { maxLength: 14 },
  )
  const sentence = fc
    .tuple(words, fc.constantFrom('.', '!', '?', '. ', '."', '…', ''))
    .map(([list, end]) => `Some ${list.join(' ')} tides${end}`)
  const paragraph = fc.array(sentence, { minLength: 1, maxLength: 5 }).map((list) => list.join(' '))
  const document = fc.array(paragraph, { minLength: 1, maxLength: 4 }).map((list) => `${list.join('\n\n')}\n`)
  const plain = (text: string): string =>
    text
      .replace(/^[ \t]*(?:>[ \t]*)+/gmu, '')
      .replace(/\s+/gu, ' ')
      .trim()

  it('B-REPORT-9: whatever the documents are, every quote of the report stands word for word in its source at its line', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(document, { minLength: 1, maxLength: 4 }), async (documents) => {
        const files = Object.fromEntries(documents.map((text, i) => [`d${i}.${i % 2 ? 'md' : 'txt'}`, text]))
        const bench = openBench({}, files)
        const { result, session } = await bench.report({ ...INPUT, topic: 'Tides' })
        if (result.status !== 'requires_action') {
          expect(failureIn(result)).toMatch(/NothingFound/)
          return
        }
        await bench.allowed(session)
        const quotes = quotesIn(bench.read('out/report.md'))
        expect(quotes.length).toBeGreaterThan(0)
        for (const { quote, file, line } of quotes) {
          const lines = (files[file] ?? '').split('\n').slice(line - 1)
          const begins = plain(lines.join('\n')).indexOf(quote)
          expect(begins).toBeGreaterThanOrEqual(0)
          expect(begins).toBeLessThan(plain(lines[0] ?? '').length)
        }
        await bench.harness.close()
      }),
      { numRuns: 30, examples: [[['Some \n -  > -  tides. Some  tides.\n', 'Some  tides.\n']]] },
    )
  })

  it('B-REPORT-10: a quote stands in a text only word for word and at its line', () => {
    const text = 'One line.\nThe moon raises\n  the tides. It does.\n'
    expect(containsQuote(text, 'The moon raises the tides.', 2)).toBe(true)
    expect(containsQuote(text, 'The moon raises the tides.', 1)).toBe(false)
    expect(containsQuote(text, 'The moon raised the tides.', 2)).toBe(false)
    expect(containsQuote(text, 'It does.', 2)).toBe(false)
    expect(containsQuote(text, '', 2)).toBe(false)
  })

  it('B-REPORT-8: an item of a list may lack its point, and what leads to a list is none', () => {
    const text =
      '- Tea is warm and good for all\n- tea\n- What tea needs, in a word:\n\nTea that is no item and ends nowhere\n'
    expect(sentencesOf(text)).toEqual([{ text: 'Tea is warm and good for all', line: 1 }])
  })

  it('B-REPORT-17: every kind of line end ends a line; quote marks and invisible characters are in no quote', async () => {
    const documents = {
      'mac.txt': 'Tides\r\rThe first tide is the\rhighest tide of all.\r',
      'quote.md':
        '> > Some say that tides\n> > are dull.\n>\n> Others do not.\n\nOf all tides those that are\n> 5 metres high are best.\n',
      'odd.md': 'A ti\u200Bde of\u202E odd\u{E0041} words\u001B came and \u00ADwent.\n',
    }
    const bench = openBench({}, documents)
    await bench.allowed((await bench.report({ ...INPUT, topic: 'Tides' })).session)
    expect(quotesIn(bench.read('out/report.md')).toSorted((a, b) => (a.file < b.file ? -1 : 1))).toEqual([
      { quote: 'The first tide is the highest tide of all.', file: 'mac.txt', line: 3 },
      { quote: 'A tide of odd words came and went.', file: 'odd.md', line: 1 },
      { quote: 'Some say that tides are dull.', file: 'quote.md', line: 1 },
      { quote: 'Of all tides those that are > 5 metres high are best.', file: 'quote.md', line: 6 },
    ])
  })

  it.each([
    ['茶', '绿茶很热。咖啡很苦！茶对身体好。', ['绿茶很热。', '茶对身体好。']],
    ['AI', 'AI技术很好。红茶很热。', ['AI技术很好。']],
    ['绿茶的好处', '绿茶有很多好处。红茶很热。', ['绿茶有很多好处。']],
    ['お茶', 'お茶は体に良いです。水は冷たいです。', ['お茶は体に良いです。']],
    ['चाय', 'चाय गरम है। कॉफ़ी कड़वी होती है।', ['चाय गरम है।']],
    ['الشاي', 'هل الشاي ساخن؟ القهوة مرة جدا. الشاي مفيد للجسم.', ['هل الشاي ساخن؟', 'الشاي مفيد للجسم.']],
    ['שוקו', 'שוקו הוא משקה חם. קפה הוא מר.', ['שוקו הוא משקה חם.']],
  ])('B-REPORT-18: what is said about %s is found in its own script', async (topic, text, expected) => {
    const bench = openBench({}, { 'a.md': `${text}\n` })
    await bench.allowed((await bench.report({ ...INPUT, topic })).session)
    expect(quotesIn(bench.read('out/report.md')).map(({ quote }) => quote)).toEqual(expected)
  })

  it('B-REPORT-19: all documents that answer are counted, and only those that say nothing are said to', async () => {
    const answering = Array.from({ length: 45 }, (_, n): readonly [string, string] => [
      `a${n}.txt`,
      `The tide of day ${n} is high and cold.\n`,
    ])
    const silent = Array.from({ length: 30 }, (_, n): readonly [string, string] => [
      `s${n}.txt`,
      `Sheep number ${n} grazes on the hill.\n`,
    ])
    const bench = openBench({}, Object.fromEntries([...answering, ...silent]))
    const { session } = await bench.report({ ...INPUT, topic: 'Tides' })
    const state = await stateOf(session)
    expect(reportNodeText('search', state)).toBe('45 of 75 documents')
    expect(state.draft).toContain('45 of 75 documents say something about it; 5 passages are quoted below.')
    expect(state.draft).toContain('- 5 more documents answer too; none of that is quoted.')
    expect(state.draft.match(/^- s\d+\.txt has no sentence/gmu)).toHaveLength(20)
    expect(state.draft).not.toMatch(/^- a\d+\.txt has no sentence/mu)
    expect(state.draft).toContain('- The same is true of 10 more documents.')
  })
})

describe('where it reads and writes', () => {
  it('B-REPORT-11: only texts of the folder are read: hidden, binary and large ones and links that lead out are left out, and named', async () => {
    const bench = openBench()
    const secret = join(bench.folder, 'secret.txt')
    writeFileSync(secret, 'The tides of the secret harbour must never be told.')
    symlinkSync(secret, join(bench.folder, 'docs/link.txt'))
    symlinkSync(bench.folder, join(bench.folder, 'docs/up'))
    bench.write('docs/.hidden.txt', 'Hidden tides come and go every day, too.')
    bench.write('docs/binary.txt', new Uint8Array([0, 1, 2, 255, 254]))
    bench.write('docs/large.txt', 'x'.repeat(2_000_001))
    bench.write('docs/a[b].txt', 'The tides have brackets here, and that is that.')
    bench.write('docs/page.html', 'The tides are HTML here, which is no document.')
    const { result, session } = await bench.report()
    expect(result.status).toBe('requires_action')
    const { searched, facts } = await stateOf(session)
    expect(searched.count).toBe(3)
    expect(searched.leftOut.map(({ file, why }) => `${file}: ${why}`).toSorted()).toEqual([
      'a[b].txt: its name cannot be cited',
      'binary.txt: it is no text',
      expect.stringMatching(/^large\.txt: .*2000001 bytes/),
      'link.txt: it leads out of the folder',
    ])
    expect(JSON.stringify(await eventsIn(session))).not.toMatch(/secret harbour|Hidden tides/)
    expect(facts.length).toBeGreaterThan(0)
  })

  it('B-REPORT-12: documents and report lie in the root; what leads out of it is refused, by a link too', async () => {
    const bench = openBench()
    symlinkSync('/', join(bench.folder, 'everything'))
    const wrong = async (change: object): Promise<string> =>
      failureIn((await bench.report({ ...INPUT, ...change })).result)
    expect(await wrong({ documents: '..' })).toMatch(/OutOfBounds: \.\. is not in/)
    expect(await wrong({ documents: 'everything' })).toMatch(/OutOfBounds/)
    expect(await wrong({ out: '../report.md' })).toMatch(/OutOfBounds/)
    expect(await wrong({ out: 'everything/tmp/terret-report.md' })).toMatch(/Unwritable.*out of bounds/)
    expect(await wrong({ out: '.git/config' })).toMatch(/Unwritable.*protected/)
  })

  it('B-REPORT-12: nor does a root that is named from here lead out by a link', async () => {
    const bench = openBench()
    symlinkSync('/', join(bench.folder, 'everything'))
    const near = withGraphs([reportGraph({ root: relative(process.cwd(), bench.folder) })])
    const out = 'everything/tmp/terret-report.md'
    expect(failureIn(await near.run({ ...INPUT, out }, { agent: 'report' }))).toMatch(/Unwritable.*out of bounds/)
    const inside = await near.run(INPUT, { agent: 'report' })
    expect(inside.pending[0]?.args).toHaveProperty('path', join(bench.folder, 'out/report.md'))
    const session = near.session(inside.sessionId)
    for (const each of inside.pending) await session.decide({ ...each, allow: false, by: 'ana' })
    await session.run()
    const { proposal } = await stateOf(session)
    const moved = { proposal: { ...proposal, path: '/tmp/report.md' }, out: '/tmp/report.md' }
    expect(failureIn(await session.run({ edit: moved as never }))).toMatch(/OutOfBounds/)
  })

  it('B-REPORT-13: the same bytes that are there already are done and not written again', async () => {
    const bench = openBench()
    const first = await bench.report()
    await bench.allowed(first.session)
    const before = statSync(join(bench.folder, 'out/report.md'))
    const again = await bench.report()
    expect(again.result.pending[0]?.args).toHaveProperty('replaces')
    expect(again.result.pending[0]?.args).not.toHaveProperty('diff')
    expect(await bench.allowed(again.session)).toMatchObject({ output: { written: { changed: false } } })
    const after = statSync(join(bench.folder, 'out/report.md'))
    expect([after.ino, after.mtimeMs]).toEqual([before.ino, before.mtimeMs])
  })

  it('B-REPORT-14: what is there is shown as a difference and replaced; what came there since is left alone, and said', async () => {
    const bench = openBench()
    bench.write('out/report.md', 'An older report.\n')
    const first = await bench.report()
    expect(JSON.stringify(first.result.pending[0]?.args)).toContain('-An older report.')
    bench.write('out/report.md', 'Mine.\n')
    const [anew] = (await bench.allowed(first.session)).pending
    expect(JSON.stringify(anew?.args)).toMatch(/-Mine\..*report\.md is not what it was [^"]*nothing was written/)
    expect(bench.read('out/report.md')).toBe('Mine.\n')
    rmSync(join(bench.folder, 'out/report.md'))
    const [absent] = (await bench.allowed(first.session)).pending
    expect(absent?.args).toMatchObject({ replaces: null })
    expect(absent?.args).not.toHaveProperty('diff')
    expect(await bench.allowed(first.session)).toMatchObject({ status: 'completed' })
    expect(bench.read('out/report.md')).toMatch(/^# The harbour/)
  })

  it('B-REPORT-15: a place that cannot be written is reported before a person is asked, and a retry goes on when it can be', async () => {
    const bench = openBench()
    bench.write('out', 'a file where the folder should be')
    const { result, session } = await bench.report()
    expect(failureIn(result)).toMatch(
      /^planner_failed: Node "propose" failed: Unwritable: \S+ cannot be written: .*and go on\.$/,
    )
    expect(result.pending).toEqual([])
    bench.write('elsewhere/keep', '')
    expect(await session.run({ edit: { out: 'elsewhere/report.md' } })).toMatchObject({ status: 'requires_action' })
    mkdirSync(join(bench.folder, 'closed'), { mode: 0o500 })
    const closed = await bench.report({ ...INPUT, out: 'closed/report.md' })
    // Root can write to the closed folder, too.
    const able = process.getuid?.() === 0
    expect(closed.result.status).toBe(able ? 'requires_action' : 'failed')
    chmodSync(join(bench.folder, 'closed'), 0o700)
  })

  it('B-REPORT-16: an edited draft is reviewed and proposed anew, and so is an edited place; the gate shows what will be written', async () => {
    const bench = openBench()
    bench.write('out/report.md', 'An older report.\n')
    const { result, session } = await bench.report()
    const refuse = async (pending: typeof result.pending): Promise<void> => {
      for (const each of pending) await session.decide({ ...each, allow: false, by: 'ana' })
      await session.run()
    }
    await refuse(result.pending)
    const { draft } = await stateOf(session)
    const text = draft.replace('# The harbour', '# Our harbour')
    const own = { text, sha256: hash('sha256', text), bytes: Buffer.byteLength(text) }
    const shown = (path: string) => ({ ...own, path: join(bench.folder, path) })
    const edited = await session.run({ edit: { draft: text } })
    expect(edited.pending[0]?.args).toMatchObject(shown('out/report.md'))
    expect(JSON.stringify(edited.pending[0]?.args)).toContain('+# Our harbour')
    expect((await endsIn(session)).slice(-3)).toEqual(['finalize denied', 'review ok', 'propose ok'])
    await refuse(edited.pending)
    const moved = await session.run({ edit: { out: 'out/other.md' } })
    expect(moved.pending[0]?.args).toMatchObject({ ...shown('out/other.md'), replaces: null })
    expect((await endsIn(session)).slice(-2)).toEqual(['finalize denied', 'propose ok'])
    await bench.allowed(session)
    expect(bench.read('out/other.md')).toBe(text)
  })

  it('B-REPORT-16: an edited draft that does not pass is neither shown nor written over', async () => {
    const bench = openBench()
    const { result, session } = await bench.report()
    for (const each of result.pending) await session.decide({ ...each, allow: false, by: 'ana' })
    await session.run()
    const { draft } = await stateOf(session)
    const lie = draft.replace('The moon raises', 'The sun raises')
    const failed = await session.run({ edit: { draft: lie } })
    expect(failureIn(failed)).toMatch(/ReviewFailed: The edited draft did not pass the review\.\n- This quote does not/)
    expect((await stateOf(session)).draft).toBe(lie)
    expect(await session.run({ edit: { draft } })).toMatchObject({ status: 'requires_action' })
  })

  it('B-REPORT-16: a text with another hash than the approved one is not written', async () => {
    const bench = openBench()
    const ground = { root: bench.folder, anywhere: false }
    const proposal = await proposeWrite(ground, 'a.md', 'One.\n')
    const context = {} as Parameters<typeof writeReport>[2]
    await expect(writeReport(ground, { ...proposal, text: 'Two.\n' }, context)).rejects.toThrow(/another hash/)
    expect(existsSync(join(bench.folder, 'a.md'))).toBe(false)
  })
})
