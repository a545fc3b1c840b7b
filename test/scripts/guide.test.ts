// The example of the guide is the one that runs here.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

it('B-CELL-31: the example of the guide runs as it stands there', () => {
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(text('../../docs/guide/scripts.md')) ?? []
  const imported = code
    .replace("'terret'", "'../../src/index.ts'")
    .replace("'terret/scripts'", "'../../src/scripts/index.ts'")
  const example = text('./child-guide.ts')
  expect(imported).toBe(example.slice(example.indexOf('\n') + 1))
  const script = fileURLToPath(new URL('../../.build/test/scripts/child-guide.js', import.meta.url))
  expect(execFileSync(process.execPath, [script], { encoding: 'utf8' }).trim().split('\n')).toEqual([
    'requires_action script',
    '3 lines to read',
    'They cost 9 together.',
  ])
})
