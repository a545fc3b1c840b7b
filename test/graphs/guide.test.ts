// The example of the guide is the one that runs here.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

it('B-DELEGATE-9: the example of a delegation runs as it stands in the guide: approval is forced after the second execution', () => {
  const guide = text('../../docs/guide/workflows.md')
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(guide.slice(guide.indexOf('\n## Delegation\n'))) ?? []
  const imported = code
    .replace("'terret'", "'../../src/index.ts'")
    .replace("'terret/graphs'", "'../../src/graphs/index.ts'")
  const example = text('./guide-delegate.ts')
  expect(imported).toBe(example.slice(example.indexOf('\n') + 1))
  const script = fileURLToPath(new URL('../../.build/test/graphs/guide-delegate.js', import.meta.url))
  expect(JSON.parse(execFileSync(process.execPath, [script], { encoding: 'utf8' }))).toMatchObject({
    executions: 2,
    forced: true,
    summary: 'approval was forced after 2 executions; findings left open: 1',
  })
})

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

it.each([
  [
    'B-COUNCIL-12: the guide’s example of a council runs as it stands there',
    'council',
    '# Council: 2 of 3 answered\n\n- Seat C is empty: ',
  ],
  [
    'B-PHASE-12: the guide’s example of phases runs as it stands there',
    'phases',
    'completed: judge, read, synthesize; the summary is of synthesize',
  ],
])('%s', (_sentence, name, begins) => {
  const example = text(`./guide-${name}.ts`)
  const code = example
    .slice(example.indexOf('\n') + 1)
    .replace("'../../src/index.ts'", "'terret'")
    .replace("'../../src/graphs/index.ts'", "'terret/graphs'")
  expect(text('../../docs/guide/workflows.md')).toContain(code)
  const script = fileURLToPath(new URL(`../../.build/test/graphs/guide-${name}.js`, import.meta.url))
  const said = execFileSync(process.execPath, [script], { encoding: 'utf8' })
  expect(said.slice(0, begins.length)).toBe(begins)
})
