// `terret what-if`: the built command on a real file.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { provider, scriptedBy, stage } = stageOfEach()

const read = (path: string) => ({ calls: [{ tool: 'read', args: { path } }] })
const write = (path: string) => ({ calls: [{ tool: 'write', args: { path, content: 'new' } }] })

/** A session that read a file, wrote another one, and answered. */
async function record(): Promise<number> {
  stage.write('work/a.txt', 'hello')
  await scriptedBy([read('a.txt'), write('b.txt'), 'Both done.', read('c.txt'), 'Otherwise.'])
  expect((await stage.terret('run', '--mode', 'auto', 'Read and write.')).out).toBe('Both done.\n')
  return provider.chaos?.requests.length ?? 0
}

describe('terret what-if', () => {
  it('B-WHATIF-20: the recording alone answers, no key is needed and no model asked; with --model that one is asked', async () => {
    const asked = await record()
    stage.write('work/a.txt', 'other')
    const before = readFileSync(join(stage.home, 'terret.db'))
    const same = await stage.terret('what-if', 'latest', '--at', '5', '--mode', 'auto')
    expect([same.code, same.err]).toEqual([0, ''])
    expect(same.out).toContain('no difference')
    expect(same.out).toContain('drift: 0')
    expect(same.out).toContain('Both done.')
    const careful = await stage.terret(
      'what-if',
      'latest',
      '--at',
      '5',
      '--mode',
      'auto',
      '--instructions',
      'Be careful.',
    )
    expect(careful.code).toBe(1)
    expect(careful.out).toContain('changed: instructions')
    expect(careful.out).toContain('choose a model with --model')
    expect(provider.chaos?.requests.length).toBe(asked)
    expect(readFileSync(join(stage.home, 'terret.db'))).toEqual(before)
    const args = ['what-if', 'latest', '--at', '5', '--mode', 'auto', '--model', 'fake:m', '--case', 'other'] as const
    const tried = (await stage.json(...args, '--instructions', 'Be careful.')) as Record<string, unknown>
    expect(tried).toMatchObject({
      drift: 1,
      missing: [{ tool: 'read', args: { path: 'c.txt' } }],
      changed: ['instructions'],
      text: 'Otherwise.',
      settled: { type: 'completed' },
      case: { id: 'other', input: 'Read and write.', expected: 'Otherwise.' },
    })
    expect(JSON.stringify(provider.chaos?.requests.at(-1)?.body)).toContain('Be careful.')
  })

  it('B-WHATIF-20: writes what happened as a file, and refuses what it cannot do', async () => {
    await record()
    const out = join(stage.folder, 'tried.json')
    expect((await stage.terret('what-if', 'latest', '--at', '5', '--mode', 'auto', '--out', out)).code).toBe(0)
    expect(readFileSync(out, 'utf8')).toContain('"terret.stream"')
    const refused: readonly [readonly string[], string][] = [
      [[], '--at SEQ'],
      [['--at', '999'], 'there is no event 999'],
      [['--at', '5', '--tool', 'write=live'], 'effects'],
      [['--at', '5', '--tool', 'read'], '--tool is NAME=recorded'],
      [['--at', '5', '--tool', 'nothing=live'], 'There is no tool "nothing"'],
      [['--at', '5', '--usd', 'much'], '--usd must be an amount'],
    ]
    for (const [args, why] of refused) {
      const { code, err } = await stage.terret('what-if', 'latest', ...args)
      expect([args, code]).toEqual([args, 2])
      expect(err).toContain(why)
    }
  })
})
