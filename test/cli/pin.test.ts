// `terret pin`: what a session keeps word for word, on the command line.
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { provider, scriptedBy, stage } = stageOfEach()
const sent = (n: number): string => JSON.stringify(provider.chaos?.requests[n]?.body)

describe('terret pin', () => {
  it('B-RULE-4: pins a text or a message, lists what is pinned, and lets it go; later requests hold it', async () => {
    await scriptedBy(['Hello.', 'Again.'])
    await stage.terret('run', 'Use the blue theme.')
    expect(await stage.terret('pin', 'latest')).toMatchObject({
      code: 0,
      out: '',
      err: expect.stringContaining('Nothing is pinned') as string,
    })
    const first = await stage.terret('pin', 'latest', 'Only ever deploy to staging-7.')
    expect(first).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^ +\d+ {2}Only ever deploy to staging-7\.\n$/) as string,
    })
    await stage.terret('resume', 'latest', 'Go on.')
    expect(sent(1)).toContain('Only ever deploy to staging-7.')
    const { pins } = (await stage.json('pin', 'latest')) as { pins: readonly { seq: number; text: string }[] }
    expect(pins).toMatchObject([{ text: 'Only ever deploy to staging-7.' }])
    expect((await stage.terret('pin', 'latest', '--message', '2')).out).toContain('Use the blue theme.')
    expect((await stage.terret('pin', 'latest', '--remove', String(pins[0]?.seq))).out).not.toContain('staging-7')
  })

  it('B-RULE-15: the list shows a pin from before a fork with its name, and --remove takes it', async () => {
    await scriptedBy(['Hello.'])
    await stage.terret('run', 'Hi.')
    const { pins } = (await stage.json('pin', 'latest', 'Only UTC.')) as { pins: readonly { seq: number }[] }
    const forked = await stage.terret('fork', 'latest')
    expect(forked.code).toBe(0)
    const name = `^${pins[0]?.seq}`
    expect((await stage.terret('pin', 'latest')).out).toContain(`${name}  Only UTC. (from before the fork)`)
    expect((await stage.terret('pin', 'latest', '--remove', name)).err).toContain('Nothing is pinned')
  })

  it('B-RULE-4: what cannot be is refused in one sentence', async () => {
    await scriptedBy(['Hello.'])
    await stage.terret('run', 'Hi.')
    for (const args of [
      ['x', '--remove', '3'],
      ['--remove', '99'],
      ['--remove', '^99'],
      ['--remove', 'x'],
      ['--message', '99'],
      ['--message', 'x'],
      [' '],
    ]) {
      const { code, err } = await stage.terret('pin', 'latest', ...args)
      expect([args, code !== 0, err.trim().split('\n').length]).toEqual([args, true, 1])
    }
    expect((await stage.terret('pin', 'nobody', 'x')).code).not.toBe(0)
  })

  it('B-RULE-3: the configuration file switches the search for rules off, and refuses what is no switch', async () => {
    await scriptedBy(['Hello.'])
    stage.configure({ context: { compaction: { detectPins: 'no' } } })
    expect(await stage.terret('run', 'Hi.')).toMatchObject({
      code: 7,
      err: expect.stringContaining('"context.compaction.detectPins"') as string,
    })
    await scriptedBy(['Hello.'], { context: { compaction: { detectPins: false } } })
    expect((await stage.terret('run', 'Hi.')).code).toBe(0)
  })
})
