// The example of the guide is the one that runs here.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

it('B-DEFINE-43: the program of the guide on agents runs as written', () => {
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(text('../../docs/guide/agents.md')) ?? []
  const imported = code
    .replace("'terret'", "'../../src/index.ts'")
    .replace("'terret/agents'", "'../../src/agents/index.ts'")
  const example = text('./guide-example.ts')
  expect(imported).toBe(example.slice(example.indexOf('\n') + 1))
  const folder = mkdtempSync(join(tmpdir(), 'terret-guide-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  // Compiled by `npm run build:all`, which the tests begin with.
  const script = fileURLToPath(new URL('../../.build/test/agents/guide-example.js', import.meta.url))
  const said = execFileSync(process.execPath, [script], { encoding: 'utf8', cwd: folder })
  expect(said).toBe('She was greeted: Good day, Ada!\n16 0\n')
})
