// The example of the guide is the one that runs here.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

it('B-GRAPH-52: the example of the guide runs as it stands there: it stops at the gate with the bytes, and goes on', () => {
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(text('../../docs/guide/workflows.md')) ?? []
  const imported = code
    .replace("'terret'", "'../../src/index.ts'")
    .replace("'terret/graphs'", "'../../src/graphs/index.ts'")
  const example = text('./guide-example.ts')
  expect(imported).toBe(example.slice(example.indexOf('\n') + 1))
  // Compiled by `npm run build:all`, which the tests begin with.
  const script = fileURLToPath(new URL('../../.build/test/graphs/guide-example.js', import.meta.url))
  const said = execFileSync(process.execPath, [script], { encoding: 'utf8' }).split('\n')
  const facts = ['today', 'a hundred years ago'].map(
    (when) => `One page says of The weather in Oslo ${when}: 4 °C and rain.`,
  )
  const args = { path: 'report.md', text: ['# The weather in Oslo', ...facts].join('\n') }
  expect(said.slice(0, 4)).toEqual([
    `requires_action: publish ${JSON.stringify(args)}`,
    `wrote report.md, ${args.text.length} characters`,
    'completed after 5 calls',
    'flowchart TD',
  ])
})
