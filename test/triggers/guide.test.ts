// The example of the guide is the one that runs here.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

it('B-TRIGGER-29: the example of the guide runs as it stands there: the newsletter is dropped, and the outage is not', () => {
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(text('../../docs/guide/triggers.md')) ?? []
  const imported = code
    .replace("'terret'", "'../../src/index.ts'")
    .replace("'terret/triggers'", "'../../src/triggers/index.ts'")
  const example = text('./guide-example.ts')
  expect(imported).toBe(example.slice(example.indexOf('\n') + 1))
  // Compiled by `npm run build:all`, which the tests begin with.
  const script = fileURLToPath(new URL('../../.build/test/triggers/guide-example.js', import.meta.url))
  expect(execFileSync(process.execPath, [script], { encoding: 'utf8' }).trim().split('\n')).toEqual([
    'Our spring offers: drop, the second delivery was a duplicate: true',
    'The shop is DOWN: escalate, the second delivery was a duplicate: true',
  ])
})
