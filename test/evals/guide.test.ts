// The example of the guide is the one that runs here.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

it('B-EVAL-27: the example of the guide runs as it stands there, and prints what the guide says', () => {
  const guide = text('../../docs/guide/evals.md')
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(guide) ?? []
  const [, printed = ''] = /```\n(failed[\s\S]*?)```/.exec(guide) ?? []
  const imported = code
    .replace("'terret'", "'../../src/index.ts'")
    .replace("'terret/evals'", "'../../src/evals/index.ts'")
  const example = text('./guide-example.ts')
  expect(imported).toBe(example.slice(example.indexOf('\n') + 1))
  // Compiled by `npm run build:all`, which the tests begin with.
  const script = fileURLToPath(new URL('../../.build/test/evals/guide-example.js', import.meta.url))
  const cwd = mkdtempSync(join(tmpdir(), 'terret-evals-'))
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }))
  expect(execFileSync(process.execPath, [script], { cwd, encoding: 'utf8' })).toBe(printed)
})
