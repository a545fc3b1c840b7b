// What can go wrong with a report: each a sentence that says what to do, nothing lost, and a retry that goes on.
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadPolicy } from '../../src/index.ts'
import { eventsIn, failureIn, ofType } from './stage.ts'
import { DOCUMENTS, endsIn, INPUT, openBench, quotesIn, stateOf } from './report-stage.ts'

/** Stops before this node, so that the world can change meanwhile. */
const before = (tool: string) => ({ approvals: { policy: { rules: [{ effect: 'ask', tool }] } } }) as const

describe('documents', () => {
  it('B-REPORT-20: a missing folder, an empty one and one that says nothing about it are told apart, and a retry goes on when that was mended', async () => {
    const bench = openBench({}, {})
    const { result, session } = await bench.report()
    expect(failureIn(result)).toBe(
      'planner_failed: Node "search" failed: NoDocuments: There is no folder docs. Make it and put .txt or .md documents there, and go on.',
    )
    bench.write('docs/picture.png', 'x')
    expect(failureIn(await session.run({ retry: true }))).toMatch(
      /NoDocuments: The folder docs has no \.txt or \.md document/,
    )
    bench.write('docs/large.txt', 'x'.repeat(2_000_001))
    expect(failureIn(await session.run({ retry: true }))).toMatch(
      /NoDocuments: .*Put some there, and go on\.\n- large\.txt was not read: .*2000001 bytes/s,
    )
    bench.write('docs/sheep.txt', DOCUMENTS['sheep.txt'])
    expect(failureIn(await session.run({ retry: true }))).toMatch(
      /NothingFound: None of 1 document in docs says anything about tides, lamps\. Add documents and go on/,
    )
    bench.write('docs/tides.txt', DOCUMENTS['tides.txt'])
    expect(await session.run({ retry: true })).toMatchObject({ status: 'requires_action' })
    expect(await endsIn(session)).toEqual([
      'plan ok',
      ...Array.from({ length: 4 }, () => 'search error'),
      'search ok',
      'extract ok',
      'draft ok',
      'review ok',
      'propose ok',
    ])
  })

  it.each(['extract', 'review'])(
    'B-REPORT-21: a source that is gone when %s looks is named, and a retry goes on when it is back',
    async (node) => {
      const bench = openBench(before(node))
      const { session } = await bench.report()
      renameSync(join(bench.folder, 'docs/tides.txt'), join(bench.folder, 'away.txt'))
      expect(failureIn(await bench.allowed(session))).toMatch(
        /SourceMissing: tides\.txt was a source .*Put it back, and go on\.$/,
      )
      renameSync(join(bench.folder, 'away.txt'), join(bench.folder, 'docs/tides.txt'))
      await session.run({ retry: true })
      await bench.allowed(session)
      expect(await bench.allowed(session)).toMatchObject({ status: 'completed' })
    },
  )

  it('B-REPORT-22: a source that changed before it was read again is not quoted from memory', async () => {
    const bench = openBench(before('extract'))
    const { session } = await bench.report()
    bench.write('docs/tides.txt', `${DOCUMENTS['tides.txt']}\nMore.\n`)
    expect(failureIn(await bench.allowed(session))).toMatch(/SourceChanged: tides\.txt was changed after it was found/)
  })

  it('B-REPORT-23: what does not stand in its source any more when it is reviewed is left out of the next draft', async () => {
    const bench = openBench(before('review'))
    const { session } = await bench.report()
    bench.write('docs/tides.txt', DOCUMENTS['tides.txt'].replace('The moon raises', 'The sun raises'))
    await bench.allowed(session)
    expect((await stateOf(session)).findings).toMatchObject([{ type: 'quote', file: 'tides.txt', line: 3 }])
    await bench.allowed(session)
    expect(await bench.allowed(session)).toMatchObject({ status: 'completed', output: { drafts: 2 } })
    const report = bench.read('out/report.md')
    expect(report).not.toContain('raises')
    expect(report).toContain('1 passage was left out')
    expect(quotesIn(report).length).toBeGreaterThan(1)
  })

  it('B-REPORT-24: when nothing is left to quote, the run ends and says so', async () => {
    const bench = openBench(before('review'))
    const { session } = await bench.report()
    for (const name of ['tides.txt', 'lamps.md']) bench.write(`docs/${name}`, 'Something else.\n')
    expect(failureIn(await bench.allowed(session))).toMatch(/Node "draft" failed: NothingLeft: No passage is left/)
    expect(existsSync(join(bench.folder, 'out'))).toBe(false)
  })
})

describe('what is said to it', () => {
  it('B-REPORT-25: an input that lacks something, is of a wrong kind, unknown or no JSON is refused in a sentence', async () => {
    const bench = openBench()
    const wrong = async (input: string | object): Promise<string> => {
      return failureIn(await bench.harness.run(input as never, { agent: 'report' }))
    }
    const says =
      /InvalidInput: Say what it is about, where its documents are and where it goes: \{"topic": "…", "documents": "FOLDER", "out": "FILE"\}\.$/
    expect(await wrong({ topic: 'Tides' })).toMatch(says)
    expect(await wrong({ ...INPUT, topic: 7 })).toMatch(says)
    expect(await wrong({ ...INPUT, colour: 'red' })).toMatch(/UnknownChannel: The input has "colour"/)
    expect(await wrong('{"topic": "Tides",')).toMatch(/InvalidMessage: graph "report" takes a JSON object/)
    expect(await wrong('Tides, please.')).toMatch(/InvalidMessage/)
  })

  it.each(['The', '?!', '的'])(
    'B-REPORT-29: the topic "%s" has no word to look for, and that is said',
    async (topic) => {
      const { result } = await openBench().report({ ...INPUT, topic })
      expect(failureIn(result)).toMatch(
        /Node "plan" failed: NoWords: ".+" has no word that could be looked for\. Begin again/,
      )
    },
  )

  it('B-REPORT-26: a session may make another report: nothing of the first is left in it', async () => {
    const bench = openBench()
    const { session } = await bench.report()
    await bench.allowed(session)
    rmSync(join(bench.folder, 'docs/tides.txt'))
    const second = await session.run({ topic: 'Sheep', out: 'out/second.md' })
    expect(second.status).toBe('requires_action')
    await bench.allowed(session)
    expect(quotesIn(bench.read('out/second.md')).map(({ file }) => file)).toEqual(['sheep.txt'])
  })
})

describe('large documents', () => {
  const lines = (line: (n: number) => string, chars = 400_000): string => {
    let text = ''
    for (let n = 0; text.length < chars; n++) text += line(n)
    return text
  }

  it.each([
    ['short lines', lines((n) => `The tide ${n} is high.\n`, 800_000)],
    ['one long line', lines((n) => `The tide of day ${n} is high. `)],
    ['headings', lines((n) => `# ${n}\nThe tide is high on day ${n}.\n`)],
    ['marks', `${'> '.repeat(900_000)}The tide is high.\n`],
    ['full stops', `The tide is high.\n\n${'.'.repeat(1_900_000)}\n`],
  ])(
    'B-REPORT-30: a document of %s takes time in proportion to its size, and others have their turn',
    async (_, text) => {
      const bench = openBench({}, { 'a.md': text })
      let turns = 0
      const ticks = setInterval(() => (turns += 1), 1)
      const { result } = await bench.report({ ...INPUT, topic: 'Tides' })
      clearInterval(ticks)
      expect(result.status).toBe('requires_action')
      expect(turns).toBeGreaterThan(5)
    },
  )

  it('B-REPORT-30: an interrupt is heard while documents are read', async () => {
    const bench = openBench({}, { 'a.md': lines((n) => `The tide ${n} is high.\n`) })
    const session = await bench.harness.open({ agent: 'report' })
    const running = session.run({ ...INPUT, topic: 'Tides' })
    while (!(await endsIn(session)).includes('plan ok')) await new Promise((resolve) => setImmediate(resolve))
    await session.interrupt()
    expect(await running).toMatchObject({ status: 'interrupted' })
    expect(await endsIn(session)).toEqual(['plan ok', 'search aborted'])
  })
})

describe('policy', () => {
  it('B-REPORT-27: a policy file that allows writes elsewhere only denies the file before a person is asked; the denial is recorded and the run ends (AC-107, S3-14)', async () => {
    const bench = openBench()
    writeFileSync(join(bench.folder, 'policy.json'), JSON.stringify({ rules: [], writeRoots: ['allowed'], base: '.' }))
    const strict = openBench({ approvals: { policy: loadPolicy(join(bench.folder, 'policy.json')) } })
    const { result, session } = await strict.report()
    expect(failureIn(result)).toMatch(/Node "finalize" failed: .*denied by policy: it may write only in \S+allowed/s)
    expect(result.pending).toEqual([])
    const events = await eventsIn(session)
    expect(ofType(events, 'run.started')[0]).toHaveProperty('policy')
    // Attempts 0: it was never begun.
    const last = ofType(events, 'agent.tool_result').at(-1)
    expect(last?.failure?.kind).toBe('Denied')
    expect(ofType(events, 'agent.tool_use').some(({ call }) => call === last?.call)).toBe(false)
    expect(existsSync(join(strict.folder, 'out'))).toBe(false)
  })

  it('B-REPORT-28: under a policy that allows the place, it is asked and written there', async () => {
    const bench = openBench()
    const able = openBench({ approvals: { policy: { rules: [], writeRoots: [join(bench.folder, '..')], base: '/' } } })
    const { session } = await able.report()
    expect(await able.allowed(session)).toMatchObject({ status: 'completed' })
  })
})
