// The example of the guide is the one that runs here.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

it('B-CRON-24: the example of the guide runs as it stands there', () => {
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(text('../../docs/guide/cron.md')) ?? []
  const imported = code
    .replace("'terret'", "'../../src/index.ts'")
    .replace("'terret/cron'", "'../../src/cron/index.ts'")
  const example = text('./child-guide.ts')
  expect(imported).toBe(example.slice(example.indexOf('\n') + 1))
  const script = fileURLToPath(new URL('../../.build/test/cron/child-guide.js', import.meta.url))
  const cwd = mkdtempSync(join(tmpdir(), 'terret-cron-guide-'))
  expect(execFileSync(process.execPath, [script], { encoding: 'utf8', cwd }).trim().split('\n')).toEqual([
    'nightly true 5',
    'completed',
  ])
})
