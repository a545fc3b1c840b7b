// `terret script`: the saved scripts of a folder.
import { expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { scriptedBy, stage } = stageOfEach()

it('B-CELL-32: terret script lists, shows and runs the scripts of the data folder, and asks about what they do', async () => {
  await scriptedBy(() => 'Four.')
  const script = 'const said = await model_query("What is 2 + 2?")\nanswer({ said })\nreturn 4'
  expect((await stage.terret('script', 'list')).err).toContain('No script is saved here')
  await stage.terret('run', 'Go.')
  stage.write('data/scripts/sum.js', script)
  stage.write('work/.terret/scripts/theirs.js', 'return 1')
  expect((await stage.terret('script', 'list')).out).toMatch(/^sum +\S+scripts$/m)
  expect((await stage.terret('script', 'show', 'sum')).out.trim()).toBe(script)
  const ran = await stage.terret('script', 'run', 'sum')
  expect(ran).toMatchObject({ code: 0 })
  expect(ran.out).toContain('Four.')
  expect(ran.err).toContain('  ✓ model_query')
  expect(ran.err).not.toContain('hash')
  const untrusted = await stage.terret('script', 'show', 'theirs')
  expect(untrusted.err).toContain('There is no saved script "theirs".')
  await stage.terret('trust')
  expect((await stage.terret('script', 'show', 'theirs')).out.trim()).toBe('return 1')
  expect((await stage.terret('script', 'show', '../theirs')).err).toContain('There is no saved script')
  expect((await stage.terret('script')).err).toContain('Usage: terret script')
})

it('B-CELL-32: a model writes scripts only where the configuration says so', async () => {
  const offered: string[] = []
  const speak = ({ body }: { readonly body: unknown }): string => {
    offered.push(JSON.stringify(body).includes('"name":"script"') ? 'script' : 'none')
    return 'Done.'
  }
  await scriptedBy(speak)
  await stage.terret('run', 'Go.')
  await scriptedBy(speak, { scripts: 'ask' })
  await stage.terret('run', 'Go.')
  await stage.terret('run', 'Go.', '--mode', 'plan')
  expect(offered).toEqual(['none', 'script', 'none'])
})
