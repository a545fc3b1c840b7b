// The example of the guide on imports is the one that runs here.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

it('B-FOREIGN-1: the program of the guide runs as it stands there, and prints what the guide says', () => {
  const guide = text('../../../docs/guide/import.md')
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(guide) ?? []
  const [, printed = ''] = /```\n(build Why[\s\S]*?)```/.exec(guide) ?? []
  const imported = code
    .replace("'terret'", "'../../../src/index.ts'")
    .replace("'terret/replay'", "'../../../src/replay.ts'")
  const example = text('./guide-import.ts')
  expect(imported).toBe(example.slice(example.indexOf('\n') + 1))
  // Compiled by `npm run build:all`, which the tests begin with.
  const script = fileURLToPath(new URL('../../../.build/test/archive/foreign/guide-import.js', import.meta.url))
  expect(execFileSync(process.execPath, [script], { encoding: 'utf8' })).toBe(printed)
})
