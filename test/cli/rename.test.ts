// `terret rename`: another title for a session, on the command line.
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { scriptedBy, stage } = stageOfEach()

describe('terret rename', () => {
  it('B-TITLE-12: gives a session another title, which list, search, inspect and history show', async () => {
    await scriptedBy(['Hello.'])
    await stage.terret('run', 'Look at the flaky test.')
    const { session } = (await stage.json('list')) as { session: string }
    const said = await stage.terret('rename', 'latest', 'The', '\u001b[2Jbuild', 'of Köln', '--by', 'ann')
    expect(said).toMatchObject({ code: 0, out: `${session.slice(0, 8)} is now "The [2Jbuild of Köln".\n` })
    expect((await stage.terret('list')).out).toContain('The [2Jbuild of Köln')
    expect((await stage.terret('list', '--search', 'köln')).out).toContain('Köln')
    expect((await stage.terret('list', '--search', 'flaky')).out).toBe('')
    expect((await stage.terret('history', 'latest', '--event', 'user.rename')).out).toMatch(
      /user\.rename +The \[2Jbuild of Köln by ann\n$/,
    )
    expect(await stage.json('rename', session, 'Again')).toEqual({
      session,
      title: 'Again',
      seq: expect.any(Number) as number,
      duplicate: false,
    })
    expect((await stage.terret('fork', 'latest')).code).toBe(0)
    expect((await stage.terret('list', '--search', 'again')).out.trim().split('\n')).toHaveLength(2)
  })

  it('B-TITLE-12: what is no title, and a session that is not there, is refused in one line', async () => {
    await scriptedBy(['Hello.'])
    await stage.terret('run', 'Hi.')
    for (const args of [['latest'], ['latest', ''], ['latest', '\u200b'], ['nobody', 'A title']]) {
      const { code, err } = await stage.terret('rename', ...args)
      expect([args, code !== 0, err.trim().split('\n').length]).toEqual([args, true, 1])
    }
    expect((await stage.terret('history', 'latest')).out).not.toContain('user.rename')
  })
})
