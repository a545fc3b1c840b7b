// `terret crash-test`: a file with a crash test, in this process and in processes that are killed, and files that do harm.
import { expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()
const dist = new URL('../../dist/', import.meta.url).href

/** A payment that is in a file. `pay` is its handler. */
const agentFile = (pay: string): string => `
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineTool, scripted } from '${dist}index.js'

export default {
  world: ({ folder }) => {
    const file = join(folder, 'payments')
    const look = () => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\\n') : [])
    return { look, happened: (key) => look().includes(key), add: (row) => appendFileSync(file, row + '\\n') }
  },
  options: ({ look, happened, add }) => ({
    model: scripted(({ messages }) =>
      messages.some(({ role }) => role === 'tool') ? 'Paid.' : { calls: [{ tool: 'pay', args: {} }] },
    ),
    tools: [
      defineTool({
        name: 'pay',
        description: 'pays the bill',
        input: { type: 'object' },
        effect: 'idempotent',
        execute: (_args, { key }) => ${pay},
      }),
    ],
  }),
  run: 'Pay the bill.',
}
`
const LYING = 'add(key)'
const HONEST = 'happened(key) || add(key)'

it('B-CRASHTEST-8: the command prints each finding with the command that finds it again, and ends with 1', async () => {
  stage.write('work/lying.mjs', agentFile(LYING))
  const { code, out, err } = await stage.terret('crash-test', './lying.mjs')
  expect(err).toBe('')
  expect(out).toContain('T5 at point 12, leaving handler 1 (pay): pay (crash-test:5.0) ran again')
  expect(out).toContain('   again: terret crash-test ./lying.mjs --at 12\n')
  expect(out).toContain('T7 NOT TESTED: ')
  expect(out.trim().split('\n').at(-1)).toBe('18 points, 2 findings')
  expect(code).toBe(1)
  const again = await stage.json('crash-test', './lying.mjs', '--at', '12')
  expect(again).toMatchObject({ passed: false, findings: [{ point: { n: 12 }, rule: 'T5' }] })
  stage.write('work/honest.mjs', agentFile(HONEST))
  const honest = await stage.terret('crash-test', 'honest.mjs')
  expect(honest).toMatchObject({ code: 0, out: expect.stringContaining('18 points, no finding') as string })
})

it('B-CRASHTEST-9: with --process a real process is killed at the point, and another goes on', async () => {
  stage.write('work/lying.mjs', agentFile(LYING))
  const { out, code } = await stage.apart('crash-test', './lying.mjs', '--process', '--at', '13')
  expect(out).toContain('T5 at point 13, before commit 5: pay (crash-test:5.0) ran again')
  expect(out).toContain('   again: terret crash-test ./lying.mjs --process --at 13\n')
  expect(code).toBe(1)
})

const HOSTILE: readonly (readonly [string, string, number, RegExp])[] = [
  [
    'exports nothing',
    'const a = 1',
    7,
    /hostile\.mjs exports no crash test\. Write: export default \{ world, options, run \}/,
  ],
  ['exports something else', 'export default 7', 7, /The options of crashTest must be an object, not a number/],
  ['throws', "throw new Error('no database')", 7, /hostile\.mjs could not be loaded: no database/],
  ['is no JavaScript', 'export default {', 7, /hostile\.mjs could not be loaded: /],
  ['ends the process', 'process.exit(0)', 7, /hostile\.mjs ended the process before the test was done/],
  ['waits for ever', 'await new Promise(() => {})', 7, /hostile\.mjs ended the process before the test was done/],
  [
    'ends the process in a handler',
    agentFile('process.exit(0)'),
    7,
    /hostile\.mjs ended the process before the test was done/,
  ],
]

it.each(HOSTILE)('B-CRASHTEST-10: a file that %s gets one sentence and no success', async (_what, text, exit, says) => {
  stage.write('work/hostile.mjs', text)
  const { code, out, err } = await stage.apart('crash-test', 'hostile.mjs')
  expect({ code, out }).toEqual({ code: exit, out: '' })
  expect(err.trim().split('\n').at(-1)).toMatch(says)
})

it('B-CRASHTEST-10: with --process such a file gets one sentence too, and a file that is not there another one', async () => {
  stage.write('work/hostile.mjs', agentFile('process.exit(0)'))
  const ended = await stage.apart('crash-test', 'hostile.mjs', '--process')
  expect(ended.code).toBe(7)
  expect(ended.err).toMatch(/the process ended by itself, with exit code 7: .*hostile\.mjs ended the process/)
  const missing = await stage.refused('crash-test', 'nowhere.mjs')
  expect(missing).toMatchObject({ code: 2, err: expect.stringContaining('There is no file nowhere.mjs.') as string })
  const wrong = await stage.refused('crash-test', 'hostile.mjs', '--at', 'twelve')
  expect(wrong.code).toBe(2)
})
