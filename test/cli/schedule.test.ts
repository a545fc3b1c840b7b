// `terret wake` with a time: a look at a session later, on the command line.
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { scriptedBy, stage } = stageOfEach()

type Wake = { readonly key: string; readonly due: number; readonly duplicate: boolean }

describe('terret wake with a time', () => {
  it('B-SCHED-16: schedules a look, says how to cancel it, and cancels it', async () => {
    await scriptedBy(['Hello.', 'Looked.'])
    await stage.terret('run', 'Hi.')
    const said = await stage.terret('wake', 'latest', '--in', '2h', '--reason', 'Is it green?', '--key', 'build')
    expect(said).toMatchObject({ code: 0, out: expect.stringContaining('--cancel build') as string })
    const again = (await stage.json('wake', 'latest', '--in', '3d', '--key', 'build')) as Wake
    expect(again).toMatchObject({ key: 'build', duplicate: true })
    expect((await stage.terret('history', 'latest')).out).toContain('Is it green?')
    expect(await stage.terret('wake', 'latest', '--cancel', 'build')).toMatchObject({
      code: 0,
      out: 'Cancelled "build".\n',
    })
    expect((await stage.terret('wake', 'latest', '--cancel', 'build')).code).toBe(6)
    const at = (await stage.json('wake', 'latest', '--at', '2030-01-31T09:00Z')) as Wake
    expect(at.due).toBe(Date.UTC(2030, 0, 31, 9))
    await stage.terret('wake', 'latest', '--at', '2020-01-31 09:00', '--reason', 'Late.')
    expect((await stage.terret('wake', 'latest')).code).toBe(10)
    expect((await stage.terret('history', 'latest')).out).toContain('Looked.')
  })

  it('B-SCHED-16: what cannot be is refused in one sentence, and nothing is written', async () => {
    await scriptedBy(['Hello.'])
    await stage.terret('run', 'Hi.')
    const before = (await stage.terret('history', 'latest')).out
    for (const args of [
      ['--in', '2'],
      ['--in', '0h'],
      ['--in', '-2h'],
      ['--in', '9999d'],
      ['--at', 'tomorrow'],
      ['--at', '2030-01-31'],
      ['--at', '2030-02-30T09:00'],
      ['--at', '2030-01-31T25:00'],
      ['--at', '2090-01-31T09:00Z'],
      ['--in', '2h', '--at', '2030-01-31T09:00Z'],
      ['--reason', 'x'],
      ['--key', 'x'],
      ['--in', '2h', '--key', ''],
      ['--in', '2h', '--reason', ' '],
      ['--cancel', ''],
      ['--cancel', 'x', '--in', '2h'],
    ]) {
      const { code, err } = await stage.terret('wake', 'latest', ...args)
      expect([args, code !== 0, err.trim().split('\n').length]).toEqual([args, true, 1])
    }
    expect((await stage.terret('history', 'latest')).out).toBe(before)
    expect((await stage.terret('wake', 'nobody', '--in', '2h')).code).not.toBe(0)
  })
})
