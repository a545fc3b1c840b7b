// The program of the guide on stores is the one that runs here.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

it('B-CORE-13: the program of the guide on stores runs as written', () => {
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(text('../../docs/guide/stores.md')) ?? []
  const imported = code
    .replace("'terret'", "'../../src/index.ts'")
    .replace("'terret/store'", "'../../src/stores/index.ts'")
  const example = text('./guide-store.ts')
  expect(imported).toBe(example.slice(example.indexOf('\n') + 1))
  // Compiled by `npm run build:all`, which the tests begin with.
  const script = fileURLToPath(new URL('../../.build/test/stores/guide-store.js', import.meta.url))
  expect(execFileSync(process.execPath, [script], { encoding: 'utf8' })).toBe('completed Tulips. true\n')
})
