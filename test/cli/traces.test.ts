// What the command line leaves of a run beside its log: one file of spans, for its owner.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()

const run = ['run', '--model', 'offline:any', 'use list: my secret plan'] as const
const traces = (): string => join(stage.home, 'traces')

it('B-CLI-149: a run leaves its spans in the data folder, without texts and for its owner only', async () => {
  expect((await stage.terret(...run)).code).toBe(0)
  const [project = ''] = readdirSync(traces())
  expect(project).toMatch(/^work-[0-9a-f]{10}$/)
  const [file = '', ...others] = readdirSync(join(traces(), project))
  expect(others).toEqual([])
  const path = join(traces(), project, file)
  const spans = readFileSync(path, 'utf8')
  const names = spans
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { readonly name: string }).name)
  expect(names).toContain('invoke_agent default')
  expect(names).toContain('execute_tool list')
  expect(spans).not.toContain('secret plan')
  for (const each of [traces(), join(traces(), project), path]) expect(statSync(each).mode & 0o077).toBe(0)
})

it('B-CLI-150: "tracing": {"local": false} and TERRET_DISABLE_LOCAL_TRACING leave none', async () => {
  expect((await stage.terretIn({ env: { TERRET_DISABLE_LOCAL_TRACING: '1' } }, ...run)).code).toBe(0)
  stage.configure({ tracing: { local: false } })
  expect((await stage.terret(...run)).code).toBe(0)
  expect(existsSync(traces())).toBe(false)
})

it('B-CLI-151: an address for traces that is none is refused before anything is begun', async () => {
  stage.configure({ tracing: { otlp: 'nowhere' } })
  expect(await stage.terret(...run)).toMatchObject({ code: 7, out: '' })
  expect((await stage.terret('list')).out).toBe('')
})
