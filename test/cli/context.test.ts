// How full a context is, on the command line: `inspect --context`, what `inspect` says of compactions, and the settings of both.
import { describe, expect, it } from 'vitest'
import type { ContextReport } from '../../src/index.ts'
import type { ChaosRequest } from '../../src/testing/index.ts'
import { stageOfEach } from './scripted.ts'

const { scriptedBy, stage } = stageOfEach()

const isSummary = ({ body }: ChaosRequest): boolean => JSON.stringify(body).includes('You summarise the earlier part')

/** Reads eleven files and answers. A provider that counts four characters a token. */
async function longSession(more: object = {}): Promise<void> {
  for (let n = 1; n <= 11; n += 1) stage.write(`work/${n}.txt`, `line of file ${n}\n`.repeat(260))
  let turn = 0
  await scriptedBy(
    (request) => {
      const usage = { inputTokens: Math.ceil(JSON.stringify(request.body).length / 4), outputTokens: 10 }
      if (isSummary(request)) return { text: '## Goal\nRead.', usage }
      turn += 1
      return turn > 11 ? { text: 'done', usage } : { calls: [{ tool: 'read', args: { path: `${turn}.txt` } }], usage }
    },
    { compaction: { windowTokens: 9_000 }, ...more },
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
    expect(out).toMatch(/^Compacts {2}from 8,100 tokens on, 90 %$/m)
    expect(out).toMatch(/^(Cut|Cleared) +event \d+: .* [\d,]+ → [\d,]+ tokens/m)
    expect(out).toMatch(/^ {2}instructions +[\d,]+ +<?\d+ %/m)
    expect(out).toMatch(/^ {2}tools \(\d+\) /m)
    expect(out).toMatch(/^ {4}read +/m)
    expect(out).toMatch(/^ {2}results that were cleared \(\d+\)|^ {2}summary of what was cut/m)
    expect(out).toMatch(/^ {2}in all +[\d,]+ +100 %/m)
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
    const report = (await stage.json('inspect', 'latest', '--context')) as ContextReport
    expect(report).toMatchObject({ window: 9_000, compactsAt: 8_100, counted: true, model: 'fake:m' })
    expect(report.sources.map(({ source }) => source)).toContain('instructions')
  })

  it('B-CLI-216: `inspect` names each compaction with tokens, cost and the reason of a failure', async () => {
    await longSession()
    const { out } = await stage.terret('inspect', 'latest')
    expect(out).toMatch(/^(Cut|Cleared) +event \d+: /m)
    const { summary } = (await stage.json('inspect', 'latest')) as { summary: { compactions: readonly object[] } }
    expect(summary.compactions.length).toBeGreaterThan(0)
  })

  it('B-CLI-217: `compression` and `compaction` are settings of the user, and a workspace may not set them', async () => {
    await longSession({ compaction: false, compression: 'light' })
    const { out } = await stage.terret('inspect', 'latest', '--context')
    expect(out).toMatch(/^Compacts {2}never: it is off$/m)
    expect(out).toMatch(/^ {4}retrieve_original /m)
    stage.configure({ compaction: { windowTokens: 0 } })
    expect(await stage.refused('run', 'x')).toMatchObject({
      code: 7,
      err: expect.stringContaining('"compaction.windowTokens"') as string,
    })
    stage.configure({ compression: 'most' })
    expect((await stage.refused('run', 'x')).err).toContain('"compression" must be auto, full, light or off')
    stage.configure({ model: 'offline:any' })
    await stage.terret('trust')
    for (const own of [{ compaction: false }, { compression: 'full' }]) {
      stage.write('work/.terret/config.json', JSON.stringify(own))
      expect((await stage.refused('run', 'x')).err).toContain('is not for a workspace to choose')
    }
  })
})
