// `terret rename`: another title for a session, on the command line.
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Harness, scripted, sqlite } from '../../src/index.ts'
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

describe('titles of a configuration with a route for small prompts', () => {
  const routes = { models: { routes: { burst: 'fake:small' } } }
  const isTitle = (body: string): boolean => body.includes('You give conversations their titles')

  it('B-TITLE-24: run names a new session by the route, once, and never without the route or offline', async () => {
    const chaos = await scriptedBy((request) => (isTitle(JSON.stringify(request)) ? 'A dig' : 'Done.'), routes)
    expect(await stage.terret('run', 'Dig in the garden.')).toMatchObject({ code: 0, out: 'Done.\n' })
    expect((await stage.terret('list')).out).toContain('A dig')
    await stage.terret('run', '-c', 'More.')
    expect((await stage.terret('list')).out).toContain('A dig')
    const bodies = chaos.requests.map(({ body }) => JSON.stringify(body))
    expect(bodies.filter(isTitle).map((body) => body.includes('"small"'))).toEqual([true])
    expect(bodies).toHaveLength(3)
    await stage.terret('run', '--model', 'offline:any', 'Look around.')
    expect(chaos.requests).toHaveLength(3)
    expect((await stage.terret('list')).out).toContain('Look around.')
    expect((await stage.terret('letters')).out).toBe('')
  })

  it('B-TITLE-24: "titles": false of the user or of the folder asks nothing, and a folder cannot turn it on', async () => {
    const answer = (request: object) => (isTitle(JSON.stringify(request)) ? 'A dig' : 'Done.')
    const chaos = await scriptedBy(answer, { ...routes, titles: false })
    await stage.terret('run', 'Dig in the garden.')
    expect(chaos.requests).toHaveLength(1)
    await scriptedBy(answer, routes)
    stage.write('work/.terret/config.json', JSON.stringify({ titles: false }))
    await stage.terret('run', '--trust', 'Dig in the field.')
    expect((await stage.terret('list')).out).not.toContain('A dig')
    stage.write('work/.terret/config.json', JSON.stringify({ titles: true }))
    expect((await stage.terret('run', 'Dig.')).err).toContain('"titles" is not for a workspace to choose')
    stage.write('work/.terret/config.json', '{}')
    await stage.terret('run', 'Dig in the sand.')
    expect((await stage.terret('list')).out.match(/A dig/g)).toHaveLength(1)
  })

  it('B-TITLE-24: a worker names the sessions that it drives', async () => {
    await scriptedBy((request) => (isTitle(JSON.stringify(request)) ? 'A dig' : 'Done.'), routes)
    await stage.terret('list')
    const store = sqlite(join(stage.home, 'terret.db'))
    const harness = new Harness({ model: scripted([]), store, program: 'terret', worker: { drives: false } })
    await (await harness.open({ id: 's', folder: stage.folder })).send('Dig in the garden.')
    await harness.close()
    await store.close()
    expect((await stage.terret('worker', '--idle')).code).toBe(0)
    expect(await stage.json('list', '--search', 'A dig')).toMatchObject({ session: 's', title: 'A dig' })
  })
})
