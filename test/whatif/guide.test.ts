// The example of the guide is the one that runs here.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

it('B-WHATIF-22: the example of the guide runs as it stands there, and prints what the guide says', () => {
  const guide = text('../../docs/guide/what-if.md')
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(guide) ?? []
  const imported = code.replace("'terret'", "'../../src/index.ts'").replace("'terret/replay'", "'../../src/replay.ts'")
  const example = text('./guide-example.ts')
  expect(imported).toBe(example.slice(example.indexOf('\n') + 1))
  const script = fileURLToPath(new URL('../../.build/test/whatif/guide-example.js', import.meta.url))
  const printed = execFileSync(process.execPath, [script], { encoding: 'utf8' })
  expect(/```text\n([\s\S]*?)```/.exec(guide)?.[1]).toBe(printed)
})
