// Agents that are defined in files, at the command line: which there are, one of them whole, and a run as one.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'
import { lastLine } from './stage.ts'

const { scriptedBy, stage } = stageOfEach()

describe('terret agents', () => {
  it('B-DEFINE-40: lists the agents with tier, model, tools, where each is from and when to use it', async () => {
    stage.configure({ model: 'offline:any', agents: { orchestrator: { model: 'offline:any' } } })
    const { code, out } = await stage.terret('agents')
    expect(code).toBe(0)
    const rows = out.trim().split('\n')
    expect(rows).toHaveLength(15)
    expect(rows.find((row) => row.startsWith('critic'))).toMatch(
      /^critic +worker +hint:reasoning +5 tools +built-in +reviewing a plan/,
    )
    expect(rows.find((row) => row.startsWith('orchestrator'))).toMatch(/^orchestrator +chat +offline:any /)
    const shown = await stage.terret('agents', 'show', 'critic')
    expect(shown.out).toMatch(/^id +critic\n/)
    expect(shown.out).toContain('You review. You look for what is wrong')
    expect(await stage.json('agents', 'show', 'critic')).toMatchObject({
      id: 'critic',
      sandbox: 'read_only',
      maxIterations: 12,
    })
    const missing = await stage.terret('agents', 'show', 'critik')
    expect([missing.code, lastLine(missing.err)]).toEqual([6, expect.stringContaining('Did you mean "critic"?')])
    expect((await stage.terret('agents', 'critic')).code).toBe(2)
  })

  it('B-DEFINE-41: a folder’s own count only after trust, and a wrong one is one line with file and line', async () => {
    stage.configure({ model: 'offline:any' })
    const folder = join(stage.folder, '.terret', 'agents')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'scribe.md'), '---\nwhen_to_use: minutes\n---\nWrite minutes.\n')
    expect((await stage.terret('agents')).out).not.toContain('scribe')
    await stage.terret('trust')
    expect((await stage.terret('agents')).out).toMatch(/scribe +worker +inherit +all +workspace +minutes/)
    writeFileSync(join(folder, 'scribe.md'), '---\nwhen_to_use: minutes\nsandbx: none\n---\nWrite.\n')
    const wrong = await stage.terret('agents')
    expect([wrong.code, lastLine(wrong.err)]).toEqual([
      7,
      expect.stringContaining('scribe.md:3: "sandbx" is not known. Did you mean "sandbox"?'),
    ])
    writeFileSync(join(stage.folder, '.terret', 'config.json'), '{"agents":{"orchestrator":{"model":"evil:x"}}}')
    expect(lastLine((await stage.terret('agents')).err)).toContain('"agents" is not for a workspace to choose')
  })

  it('B-DEFINE-42: run --agent works as that agent with its tools, goes on as it, and refuses one that is not there', async () => {
    await scriptedBy(['Use it.', 'Still good.'])
    expect(await stage.terret('run', '--agent', 'critic', 'Review.')).toMatchObject({ code: 0 })
    expect(await stage.json('inspect', 'latest')).toMatchObject({ agent: 'critic' })
    expect(await stage.terret('run', '--continue', 'Again.')).toMatchObject({ code: 0 })
    const twice = await stage.terret('run', '--continue', '--agent', 'critic', 'Again.')
    expect([twice.code, lastLine(twice.err)]).toEqual([2, expect.stringContaining('A session keeps its agent')])
    const missing = await stage.terret('run', '--agent', 'nobody', 'Go.')
    expect([missing.code, lastLine(missing.err)]).toEqual([
      6,
      expect.stringContaining('There is no agent "nobody" here.'),
    ])
  })
})
