// Scenes of a chat as they stand in a real terminal, one after the other in one chat: at three sizes, and without colours.
// `TERRET_SCENES=FOLDER` writes all of them there, with their colours.
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { widthOf } from '../../src/cli/present/terminal-text.ts'
import type { ChaosReply } from '../../src/testing/index.ts'
import { noBubblewrap } from '../tools/box.ts'
import { stageOfEach } from './scripted.ts'
import { expectScreen, noTmux, openScreen, PROMPT, type Screen } from './terminal.ts'

const { scriptedBy, stage } = stageOfEach()

const SOURCE = `export function sum(numbers) {
  let total = 0
  for (let i = 0; i <= numbers.length; i++) total += numbers[i]
  return total // the sum of every number of the list, one after the other, from the first to the last
}
`
const PAGE = `The loop runs **one step too far**:

\`\`\`js
for (let i = 0; i <= n; i++) sum += values[i] // one too many
\`\`\`

| file | what it does | lines |
|------|--------------|------:|
| src/sum.js | adds the numbers of a list and divides the sum by how many there are | 5 |
| 日本語.md | 日本語の説明 | 20 |

1. change \`<=\` to \`<\`
2. run the tests

> Tests first.`
const call = (tool: string, args: Record<string, string | readonly string[]>) => ({ tool, args })
const use = (tool: string, args: Record<string, string | readonly string[]>) => ({ calls: [call(tool, args)] })
const stalled: ChaosReply = { text: PAGE, deltas: 40, chaos: { stallAfterBytes: 6_000 } }
const fix = call('edit', {
  path: 'src/sum.js',
  old_string: 'i <= numbers.length; i++) total += numbers[i]\n  return total // the sum of every number',
  new_string: 'i < numbers.length; i++) total += numbers[i]\n  return total // the sum of all the numbers',
})
const failing = 'for i in $(seq 1 28); do echo "not ok $i - 日本語 sums"; done; exit 3'
const serving = 'echo "listening on port 3000"; seq -f "request %g" 9; until [ -e go ]; do sleep 0.1; done'

const CHILD = 'You are the child.'
/** Each brings something new. */
const READS = [
  use('list', { path: '.' }),
  use('list', { path: 'src' }),
  use('read', { path: 'src/sum.js' }),
  use('read', { path: 'docs/日本語.md' }),
  use('search', { pattern: 'total' }),
  use('search', { pattern: 'export' }),
]

/** What is answered after each of these words of a person, request by request. */
const replies = (): ReadonlyMap<string, ChaosReply[]> =>
  new Map<string, ChaosReply[]>([
    [CHILD, [{ text: 'I look around, and I think of', deltas: 9, chaos: { stallAfterBytes: 900 } }]],
    ['Have it read.', [use('spawn_subagent', { prompt: CHILD }), 'It reads.']],
    [
      'Which colour?',
      [use('ask_user', { question: 'Which colour has the **door**?', choices: ['red', 'green'] }), 'Green.'],
    ],
    ['List all.', [...READS]],
    ['Serve it.', [use('bash', { command: serving }), 'It serves on port 3000.']],
    ['Explain it.', [stalled]],
    [
      'Fix the sum',
      [
        { text: 'I change the loop, then I run the **tests**.', calls: [fix, call('bash', { command: 'npm test' })] },
        use('bash', { command: failing }),
        'The tests fail, and **nothing** else is wrong.',
      ],
    ],
  ])

type Scene = {
  readonly name: string
  /** To this scene from the one before. */
  readonly act: (seen: Screen) => void | Promise<void>
  readonly there: RegExp
  /** Back to a prompt with nothing on it. */
  readonly after?: (seen: Screen) => void | Promise<void>
  /** It is compared with a file: nothing in it is up to the machine. */
  readonly isKept?: boolean
}

const rested = /\n›$/
const cleared = (seen: Screen): void => seen.keys('C-u')
const left = async (seen: Screen): Promise<void> => {
  seen.keys('Escape')
  await seen.until(rested)
}

const SCENES: readonly Scene[] = [
  { name: 'rest', act: () => {}, there: rested },
  { name: 'files', act: (seen) => seen.type('look at @su'), there: /❯ src\/sum\.js/, after: cleared, isKept: true },
  { name: 'commands', act: (seen) => seen.type('/'), there: /❯ \/help/, after: cleared },
  {
    name: 'wide-input',
    act: (seen) =>
      seen.type('これは長い入力で、折り返されるまで続きます。👍🏽👩‍👩‍👧 é und weiter bis zum Ende der Zeile'),
    there: /Zeile$/,
    after: cleared,
    isKept: true,
  },
  { name: 'models', act: (seen) => seen.enter('/model'), there: /❯ fake:m[\s\S]*Esc leaves$/, after: left },
  {
    name: 'question',
    act: (seen) => seen.enter('Fix the sum, and run the tests.'),
    there: /Allow it\?[^›]*›$/,
    isKept: true,
  },
  {
    name: 'always',
    act: async (seen) => {
      seen.enter('y')
      await seen.until(/allowed\n[\s\S]*npm test[\s\S]*Allow it\?[^›]*›$/)
      seen.enter('k')
    },
    there: /Which rule\?[^›]*›$/,
    isKept: true,
  },
  {
    name: 'failed',
    act: async (seen) => {
      seen.enter('n')
      await seen.until(/Allow it\?[^›]*›$/)
      seen.enter('n not now')
      await seen.until(/refused: not now[\s\S]*seq 1 28[\s\S]*Allow it\?[^›]*›$/)
      seen.enter('y')
    },
    there: /nothing else is wrong\.[\s\S]*tokens\n[\s\S]*\n›$/,
    isKept: true,
  },
  { name: 'all', act: (seen) => seen.keys('C-o'), there: /Esc leaves$/, after: left, isKept: true },
  {
    name: 'rewind',
    act: (seen) => seen.keys('Escape', 'Escape'),
    there: /Go back to before ›[\s\S]*❯ [^\n]*/,
    after: left,
  },
  { name: 'shell', act: (seen) => seen.enter('!ls -a src; cat nothing'), there: /✗ exit 1[\s\S]*\n›$/ },
  { name: 'answering', act: (seen) => seen.enter('Explain it.'), there: /│ src\/sum\.js[\s\S]*Esc stops\n›$/ },
  {
    name: 'queued',
    act: (seen) => seen.enter('and then the docs'),
    there: /queued: and then the docs \(↑ takes it back\)[\s\S]*\n›$/,
    after: async (seen) => {
      seen.keys('Up')
      await seen.until(/› and then the docs$/)
      seen.keys('C-u', 'Escape')
      await seen.until(/Stopped\.[\s\S]*\n›$/)
    },
  },
  {
    name: 'running',
    act: async (seen) => {
      seen.enter('Serve it.')
      await seen.until(/listening on[\s\S]*Allow it\?[^›]*›$/)
      seen.enter('y')
    },
    there: /Ctrl-B background #\d+\n( {4}request \d\n){5}/,
  },
  {
    name: 'background',
    act: async (seen) => {
      seen.keys('C-b')
      await seen.until(/It serves on port 3000\.[\s\S]*1 in the background\n›$/)
      seen.enter('/background')
    },
    there: /stops one[\s\S]*\n›$/,
  },
  {
    name: 'asked',
    act: (seen) => seen.enter('Which colour?'),
    there: /Your answer, or a number[^›]*›$/,
    after: async (seen) => {
      seen.enter('2')
      await seen.until(/Green\.[\s\S]*tokens\n[\s\S]*\n›$/)
    },
    isKept: true,
  },
  {
    name: 'limit',
    act: (seen) => seen.enter('List all.'),
    there: /were made\. Go on for another[^›]*›$/,
    after: async (seen) => {
      seen.enter('n')
      await seen.until(/It stays here[\s\S]*\n›$/)
    },
  },
  {
    name: 'child',
    act: (seen) => seen.enter('Have it read.'),
    there: /It reads\.[\s\S]*subagent · thinking[\s\S]*1 agent works[^\n]*\n›$/,
  },
  {
    name: 'resume',
    act: async (seen) => {
      seen.enter('/new')
      await seen.until(/A new session\.[\s\S]*\n›$/)
      seen.enter('/resume sum')
    },
    there: /Resume › sum\n❯ Fix the sum/,
    after: left,
  },
]

/** What a scene must be whatever it shows: no row is cut by the terminal, and there is one prompt or list at its end. */
function expectWhole(shown: string, columns: number, rows: number): void {
  const lines = shown.split('\n')
  expect(lines.length).toBeLessThanOrEqual(rows)
  for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns)
  expect(shown).not.toMatch(/undefined|NaN|\[object|\\u\{1b\}/)
  expect(shown.match(/Esc stops/g)?.length ?? 0).toBeLessThanOrEqual(1)
}

function record(seen: Screen, name: string, columns: number): void {
  const folder = process.env['TERRET_SCENES']
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${name}-${columns}.txt`), seen.shown(true))
}

async function playScenes(
  columns: number,
  rows: number,
  looked: (name: string, seen: Screen, isKept: boolean) => void,
  env = {},
) {
  stage.write('work/src/sum.js', SOURCE)
  stage.write('work/docs/日本語.md', '日本語\n')
  execFileSync('git', ['init', '-q', '-b', 'main'], { cwd: stage.folder })
  const script = replies()
  await scriptedBy(
    (request) => {
      const body = JSON.stringify(request.body)
      // The parent has the words of its child, too.
      const isChild = body.includes(CHILD) && !body.includes('Have it read.')
      const words = [...script.keys()].filter((each) => (each === CHILD) === isChild)
      const [said] = words.toSorted((a, b) => body.lastIndexOf(b) - body.lastIndexOf(a))
      return script.get(said ?? '')?.shift() ?? 'Nothing.'
    },
    { bash: { risk: 'relaxed' }, limits: { modelRequests: 6 } },
  )
  const seen = openScreen(stage, env)
  seen.resize(columns, rows)
  seen.enter('clear; terret interactive --trust')
  await seen.until(PROMPT)
  for (const { name, act, there, after, isKept = false } of SCENES) {
    await act(seen)
    await seen.until(there)
    record(seen, name, columns)
    expectWhole(seen.shown(), columns, rows)
    looked(name, seen, isKept)
    await after?.(seen)
  }
}

const SIZES = [
  [80, 24],
  [120, 40],
  [200, 50],
] as const

describe.skipIf(noTmux || noBubblewrap)('scenes of a chat', { timeout: 300_000 }, () => {
  it.each(SIZES)('B-CLI-367, B-CLI-365, B-CLI-312, B-CLI-377: at %i columns', async (columns, rows) => {
    await playScenes(columns, rows, (name, seen, isKept) => {
      if (isKept) expectScreen(seen.shown(), `scene-${name}-${columns}`, stage)
    })
  })

  it('B-CLI-314, B-TALK-17: without colours a change is marked by brackets, and nothing has a colour', async () => {
    const look = (name: string, seen: Screen, isKept: boolean): void => {
      const shown = seen.shown(true)
      // oxlint-disable-next-line no-control-regex -- they are what it is about
      expect(shown).not.toMatch(/\u001b\[[\d;]*3[0-7]/)
      if (isKept) expectScreen(shown, `scene-${name}-no-colour`, stage)
    }
    await playScenes(80, 24, look, { NO_COLOR: '1' })
  })
})

describe.skipIf(noTmux)('a server that is away', { timeout: 180_000 }, () => {
  it.each(SIZES)('B-CLI-411: is one row above the draft, at %i columns', async (columns, rows) => {
    await scriptedBy(['Hello there.'])
    const server = stage.start(['serve', '--port', '0'])
    onTestFinished(() => void server.child.kill('SIGKILL'))
    await server.says('http://')
    const seen = openScreen(stage)
    seen.resize(columns, rows)
    seen.enter('clear; terret interactive --server')
    await seen.until(PROMPT)
    seen.enter('Say hello.')
    await seen.until(/Hello there\.[\s\S]*tokens\n[\s\S]*\n›$/)
    seen.type('a draft')
    server.child.kill('SIGKILL')
    await server.ended
    await seen.until(/The server is away\.[\s\S]*› a draft$/)
    record(seen, 'away', columns)
    expectWhole(seen.shown(), columns, rows)
    expectScreen(seen.shown(), `scene-away-${columns}`, stage)
  })
})
