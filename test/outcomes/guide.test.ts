// The example of the guide is the one that runs here.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

it('B-OUTCOME-25: the example of the guide runs as it stands there, and its second round is satisfied', () => {
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(text('../../docs/guide/outcomes.md')) ?? []
  const imported = code.replace("'terret'", "'../../src/index.ts'")
  const example = text('./guide-example.ts')
  expect(imported).toBe(example.slice(example.indexOf('\n') + 1))
  // Compiled by `npm run build:all`, which the tests begin with.
  const script = fileURLToPath(new URL('../../.build/test/outcomes/guide-example.js', import.meta.url))
  expect(execFileSync(process.execPath, [script], { encoding: 'utf8' }).trim().split('\n')).toEqual([
    'round 1: fail, 0 of 1',
    'round 2: pass, 1 of 1',
    'satisfied: Roses are red, the sky is blue.',
  ])
})
