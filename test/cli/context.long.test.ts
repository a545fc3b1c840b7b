// How full a context is, on the command line: `inspect --context`, what `inspect` says of compactions, and the settings of both.
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { ContextReport } from '../../src/index.ts'
import type { ChaosRequest } from '../../src/testing/index.ts'
import { compactionLines, contextLines } from '../../src/cli/present/context-lines.ts'
import { widthOf } from '../../src/cli/present/terminal-text.ts'
import { GOOD_SUMMARY } from '../context/long-stage.ts'
import { stageOfEach } from './scripted.ts'
import { endpoint } from './stage.ts'
import { noTmux, openScreen, PROMPT } from './terminal.ts'

const { scriptedBy, stage } = stageOfEach()

const ODD = fileURLToPath(new URL('../tools/mcp-servers/odd.mjs', import.meta.url))

const isSummary = ({ body }: ChaosRequest): boolean => JSON.stringify(body).includes('You summarise the earlier part')

/** Reads eleven files and answers. A provider that counts four characters a token. */
async function longSession(more: object = {}): Promise<void> {
  for (let n = 1; n <= 11; n += 1) stage.write(`work/${n}.txt`, `line of file ${n}\n`.repeat(260))
  let turn = 0
  await scriptedBy(
    (request) => {
      const usage = { inputTokens: Math.ceil(JSON.stringify(request.body).length / 4), outputTokens: 10 }
      if (isSummary(request)) return { text: GOOD_SUMMARY, usage }
      turn += 1
      return turn > 11 ? { text: 'done', usage } : { calls: [{ tool: 'read', args: { path: `${turn}.txt` } }], usage }
    },
    { context: { compaction: { windowTokens: 9_000 } }, subagents: false, board: false, ...more },
  )
  expect(await stage.terret('run', 'Read them.')).toMatchObject({ code: 0, err: expect.any(String) as string })
}

describe('terret inspect --context', () => {
  it('B-CLI-215: what the next request holds is a table by source, with what was cut before, in 80 columns', async () => {
    await longSession()
    const { code, out } = await stage.terret('inspect', 'latest', '--context')
    expect(code).toBe(0)
    expect(out).toMatch(/^Model {5}fake:m$/m)
    expect(out).toMatch(/^Context {3}[\d,]+ tokens of 9,000, \d+ %$/m)
    expect(out).toMatch(/^ {10}█+░+$/m)
    expect(out).toMatch(/^Compacts {2}from 7,200 tokens on, 80 %$/m)
    expect(out).toMatch(/^(Cut|Cleared) +event \d+: .* [\d,]+ → [\d,]+ tokens/m)
    expect(out).toMatch(/^ {2}instructions +[\d,]+ +<?\d+ %/m)
    expect(out).toMatch(/^ {2}tools \(\d+\) /m)
    expect(out).toMatch(/^ {4}read +/m)
    expect(out).toMatch(/^ {2}results that were cleared \(\d+\)|^ {2}summary of what was cut/m)
    expect(out).toMatch(/^ {2}in all +[\d,]+ +100 %/m)
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
    const report = (await stage.json('inspect', 'latest', '--context')) as ContextReport
    expect(report).toMatchObject({ window: 9_000, compactsAt: 7_200, counted: true, model: 'fake:m' })
    expect(report.sources.map(({ source }) => source)).toContain('instructions')
  })

  it('B-CLI-216: `inspect` names each compaction with tokens, cost and the reason of a failure', async () => {
    await longSession()
    const { out } = await stage.terret('inspect', 'latest')
    expect(out).toMatch(/^(Cut|Cleared) +event \d+: /m)
    const { summary } = (await stage.json('inspect', 'latest')) as { summary: { compactions: readonly object[] } }
    expect(summary.compactions.length).toBeGreaterThan(0)
    expect(out).toMatch(/^Context {3}\d+ tokens; --context says what they are$/m)
    expect(await stage.json('list')).toMatchObject({ contextTokens: expect.any(Number) as number })
  })

  it('B-CLI-216: a failed one has its reason, as safe text, and only the last ten are shown', () => {
    const none = { at: 0, messages: 0, results: 0, before: null, after: null }
    const failed = { ...none, seq: 7, cost: 1_500, failed: 'it was \u001b[2Jempty\nCut       event 1' }
    expect(compactionLines([failed])).toEqual([
      'Failed    event 7: not compacted, $0.0015: it was \\u{1b}[2Jempty ⏎ Cut⟨7 blanks⟩event 1',
    ])
    const many = Array.from({ length: 12 }, (_, n) => ({
      ...none,
      seq: n + 1,
      results: 2,
      before: 9_000,
      after: 5_000,
      cost: 0,
    }))
    const lines = compactionLines(many)
    expect(lines[0]).toBe('Compacted 2 earlier times')
    expect(lines[1]).toBe('Cleared   event 3: 2 old results, 9,000 → 5,000 tokens')
    expect(lines).toHaveLength(11)
  })

  it('B-CLI-215: names of tools cannot break the table, and of many the largest are shown', () => {
    const tools = Array.from({ length: 30 }, (_, n) => ({
      source: 'tool' as const,
      name: `\u001b[31m日本語\n${'x'.repeat(n)}${n}`,
      count: 1,
      chars: 100 + n,
      tokens: 25 + n,
    }))
    const empty = { compactions: [], prefix: null, cache: null, misses: [], ends: false, off: false, compactsAt: null }
    const lines = contextLines({
      ...empty,
      sessionId: 's',
      tokens: 1_185,
      window: null,
      counted: true,
      model: null,
      sources: tools,
    })
    expect(lines.every((line) => !line.includes('\u001b') && !line.includes('\n') && widthOf(line) < 80)).toBe(true)
    expect(lines).toContainEqual(expect.stringMatching(/^ {2} {2}and 18 more +\d+ +\d+ %/))
    expect(lines[0]).toBe('Context   1,185 tokens; how many its model takes is not known')
  })

  it('B-CLI-217: `results` and `context` are settings of the user, and a workspace may not set them', async () => {
    await longSession({ context: { compaction: false }, results: { compression: 'light' } })
    const { out } = await stage.terret('inspect', 'latest', '--context')
    expect(out).toMatch(/^Compacts {2}never: it is off$/m)
    expect(out).toMatch(/^ {4}retrieve_original /m)
    stage.configure({ context: { compaction: { windowTokens: 0 } } })
    expect(await stage.refused('run', 'x')).toMatchObject({
      code: 7,
      err: expect.stringContaining('"context.compaction.windowTokens"') as string,
    })
    stage.configure({ context: { compaction: true } })
    expect((await stage.refused('run', 'x')).err).toContain('"context.compaction" is on unless it is false')
    stage.configure({ results: { compression: 'most' } })
    expect((await stage.refused('run', 'x')).err).toContain('"results.compression" must be auto, full, light or off')
    stage.configure({ model: 'offline:any' })
    await stage.terret('trust')
    for (const own of [{ context: { compaction: false } }, { results: { compression: 'full' } }]) {
      stage.write('work/.terret/config.json', JSON.stringify(own))
      expect((await stage.refused('run', 'x')).err).toContain('is not for a workspace to choose')
    }
  })
})

describe('a window that nobody knows', () => {
  it('B-CLI-218: `run` says once that it is unknown and where to set it, and says nothing with --quiet or --json', async () => {
    const long = 'word '.repeat(2_000)
    await scriptedBy(() => ({ text: 'fine', usage: { inputTokens: 3_000, outputTokens: 5 } }), {
      context: { compaction: {} },
    })
    const said = await stage.terret('run', long)
    const told = /^The window of fake:m is unknown, .* Set context\.compaction\.windowTokens\.$/gm
    expect(said.err.match(told)).toHaveLength(1)
    expect((await stage.terret('run', '--quiet', long)).err).not.toMatch(told)
    expect((await stage.terret('run', '--json', long)).err).not.toMatch(told)
    expect((await stage.terret('run', 'short')).err).not.toMatch(told)
  })
})

describe.skipIf(noTmux)('a context at a terminal', { timeout: 120_000 }, () => {
  it('B-TALK-26: the chat shows how full the context is, /context what it holds, and both are right after /compact', async () => {
    let turn = 0
    await scriptedBy(
      (request) => {
        turn += 1
        if (isSummary(request)) return { text: GOOD_SUMMARY, usage: { inputTokens: 900, outputTokens: 20 } }
        return { text: `Answer ${turn}.`, usage: { inputTokens: 2_990 + 10 * turn, outputTokens: 10 } }
      },
      { context: { compaction: { windowTokens: 10_000 } } },
    )
    const seen = openScreen(stage)
    seen.resize(80, 50)
    seen.enter('clear; terret interactive')
    await seen.until(PROMPT)
    for (let n = 1; n <= 12; n += 1) {
      seen.enter(`Say ${n}. ${'Go on. '.repeat(60)}`)
      await seen.until(new RegExp(`Answer ${n}\\.\n\n {2}[\\d,]+ tokens · ctx 3\\d %\n\n.*\n›$`))
    }
    seen.enter('/compact')
    await seen.until(/Compacted: about [\d,]+ tokens before, [\d,]+ now\.\n\n.*\n›$/)
    seen.enter('/context')
    const shown = await seen.until(/Shares: by size\.\n\n.*\n›$/)
    expect(shown).toMatch(
      /^Context {3}[\d,]+ tokens of 10,000, \d+ %\n {10}█+░+\nCompacts {2}from 8,000 tokens on, 80 %$/m,
    )
    expect(shown).toMatch(/^ {2}summary of what was cut +\d+ +<?\d+ %/m)
    expect(shown.slice(shown.indexOf('› /context'))).not.toContain('┆')
    seen.enter('/quit')
    await seen.until('Go on with')
    seen.enter('clear; terret inspect latest --context')
    expect(await seen.until(/Shares: by size\.\n\$$/)).not.toContain('┆')
  })
})

describe('tools that join later', () => {
  it('B-CLI-219: a session that goes on is told which tools came and which went, also of an MCP server whose list changed', async () => {
    const tool = (name: string) => ({ name, inputSchema: { type: 'object', properties: {} } })
    const lists = (...names: readonly string[]): string =>
      stage.write('server/tools.json', JSON.stringify({ tools: names.map(tool) }))
    const mcp = { odd: { command: process.execPath, args: [ODD, dirname(lists('one'))] } }
    const chaos = await scriptedBy(['One.', 'Two.', 'Three.'], { tools: ['read', 'list'], mcp })
    const asked = (): string => JSON.stringify(chaos.requests.at(-1)?.body)
    expect(await stage.terret('run', 'Begin.')).toMatchObject({ code: 0 })
    stage.configure({ ...endpoint(chaos.url), tools: ['read', 'glob'], mcp })
    expect(await stage.terret('run', '--continue', 'Go on.')).toMatchObject({ code: 0 })
    expect(asked()).toContain('Tools that came, and cannot be called yet: glob')
    expect(asked()).toContain('Tools that are no longer there, and cannot be called: list')
    lists('one', 'two')
    const third = await stage.terret('run', '--continue', 'Go on.')
    expect(asked()).toContain('Tools that came, and cannot be called yet: odd__two')
    expect(third).toMatchObject({ code: 0 })
    // The person sees it too.
    expect(third.err).toContain('note: Tools that came, and cannot be called yet: odd__two\n')
  })
})
