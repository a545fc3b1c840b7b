// `terret model`: the model of the user's configuration.
import { readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()
const file = (): string => join(stage.config, 'config.json')
const written = (): unknown => JSON.parse(readFileSync(file(), 'utf8'))

it('B-CLI-421: model prints what is configured, and with a name changes that alone', async () => {
  expect(await stage.terret('model')).toMatchObject({ code: 7, out: '' })
  stage.configure({ mode: 'auto', model: ['offline:any', 'ollama:qwen3'], limits: { tokens: 9 } })
  expect(await stage.terret('model')).toMatchObject({ code: 0, out: 'offline:any, then ollama:qwen3\n' })
  expect(await stage.json('model')).toEqual({ model: ['offline:any', 'ollama:qwen3'] })
  const { code, out, err } = await stage.terret('model', 'openai:gpt-5.1')
  expect([code, out]).toEqual([0, 'openai:gpt-5.1 answers from now on. Sessions that go on use it too.\n'])
  expect(err).toMatch(/^Its key is missing: set OPENAI_API_KEY, or write it into /)
  expect(written()).toEqual({ mode: 'auto', model: 'openai:gpt-5.1', limits: { tokens: 9 } })
  expect(statSync(file()).mode & 0o777).toBe(0o600)
  const keyed = await stage.terretIn({ env: { OPENAI_API_KEY: 'k' } }, 'model', 'openai:gpt-5.1')
  expect(keyed.err).toBe('')
  expect(await stage.json('model', 'offline:any')).toMatchObject({ model: 'offline:any', keyMissing: false })
})

it('B-CLI-421: without a configuration it makes one; what is no model changes nothing', async () => {
  rmSync(file(), { force: true })
  expect((await stage.terret('model', 'offline:any')).code).toBe(0)
  expect(written()).toEqual({ mode: 'ask', bash: true, model: 'offline:any' })
  for (const wrong of ['nobody:x', 'gpt', 'openai:', '']) {
    const { code, err } = await stage.terret('model', wrong)
    expect({ wrong, code }).toEqual({ wrong, code: 7 })
    expect(err.trim().split('\n')).toHaveLength(1)
  }
  expect(written()).toMatchObject({ model: 'offline:any' })
  stage.write('config/terret/config.json', '{ "model": 3 }')
  expect((await stage.terret('model', 'offline:any')).code).toBe(7)
  expect(readFileSync(file(), 'utf8')).toBe('{ "model": 3 }')
})

it('B-CLI-420: without a terminal init names the model that it wrote, and bash is on', async () => {
  rmSync(file(), { force: true })
  const { code, out } = await stage.terret('init')
  expect(code).toBe(0)
  expect(out).toMatch(/It names anthropic:\S+\. Another one: terret model /)
  expect(written()).toMatchObject({ bash: true, mode: 'ask' })
  rmSync(file())
  const named = await stage.terret('init', '--model', 'offline:any')
  expect(named.out).not.toContain('It names')
  const { out: tools } = await stage.terret('tools')
  expect(tools).toContain('bash')
})
