// The examples of the guides on the sandbox and on skills are the ones that are compiled and run here.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { noBubblewrap } from './box.ts'

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

it.each([
  ['sandbox', new URL('../../.build/test/tools/guide-sandbox.js', import.meta.url), "[ 'here' ] false\n"],
  ['skills', new URL('../../.build/test/tools/guide-skills.js', import.meta.url), 'Good day, Ada\n\n'],
])('B-SANDBOX-6: the program of the guide %s compiles and runs as it stands there', (name, compiled, said) => {
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(text(`../../docs/guide/${name}.md`)) ?? []
  const imported = code
    .replace("'terret'", "'../../src/index.ts'")
    .replace("'terret/tools'", "'../../src/tools/index.ts'")
  const example = text(`./guide-${name}.ts`)
  expect(imported).toBe(example.slice(example.indexOf('\n') + 1))
  if (noBubblewrap) return
  // Compiled by `npm run build:all`, which the tests begin with.
  const cwd = mkdtempSync(join('/var/tmp', 'terret-guide-'))
  try {
    expect(execFileSync(process.execPath, [fileURLToPath(compiled)], { cwd, encoding: 'utf8' })).toBe(said)
  } finally {
    rmSync(cwd, { recursive: true, force: true })
  }
})
