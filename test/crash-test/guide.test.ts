// The examples of docs/guide/crash-tests.md are the ones that run here.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')
const page = text('../../docs/guide/crash-tests.md')
const codeOf = (example: string): string =>
  text(example)
    .replace(/^.*\n/, '')
    .replace("'../../src/index.ts'", "'terret'")
    .replace("'../../src/testing/index.ts'", "'terret/testing'")

function run(name: string) {
  const script = fileURLToPath(new URL(`../../.build/test/crash-test/${name}.js`, import.meta.url))
  const { status, stdout } = spawnSync(process.execPath, [script], { encoding: 'utf8' })
  return { status, lines: stdout.trim().split('\n') }
}

it('B-CRASHTEST-13: the agent of the guide, with a tool that lies, runs as it stands there, and is found out', () => {
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(page) ?? []
  expect(code).toBe(codeOf('./guide-lying.ts'))
  const { status, lines } = run('guide-lying')
  expect(status).toBe(1)
  const [, shown = ''] = /\n```\n(T5 [\s\S]*?)```/.exec(page) ?? []
  const [first = '', again = '', ...rest] = shown.trim().split('\n')
  expect(lines[0]).toMatch(new RegExp(`^${first.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`))
  expect(lines[1]).toMatch(/^ {3}again: TERRET_CRASH_AT=12 node .*guide-lying\.js$/)
  expect(again).toBe('   again: TERRET_CRASH_AT=12 node pay.js')
  expect(lines.at(-1)).toBe(rest.at(-1))
})

it('B-CRASHTEST-13: its mended form runs, and nothing is found', () => {
  const blocks = [...page.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = '']) => code)
  const mended = (blocks.at(-1) ?? '').replace(/^(?=.)/gm, '      ')
  expect(codeOf('./guide-mended.ts')).toBe(
    codeOf('./guide-lying.ts').replace(/ {6}defineTool\(\{[\s\S]*?\n {6}\}\),\n/, () => mended),
  )
  const { status, lines } = run('guide-mended')
  expect(status).toBe(0)
  expect(lines.at(-1)).toBe('18 points, no finding')
  expect(lines.find((line) => line.startsWith('T5'))).toBe(
    'T5 held: an `idempotent` call that runs twice changes the world once (4 cases)',
  )
})
