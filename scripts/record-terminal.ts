// Pictures of a real terminal, for the README and the guide of the chat: `npm run record`. The demo moves, with its kills and
// its approval; of the chat each scene is one state. It needs tmux; `npm run build` makes the command that is recorded.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ChaosReply, startChaos } from '../src/testing/index.ts'
import { svgOfTerminal, type TerminalFrame, withoutStyle } from './terminal-svg.ts'

const OUT = resolve(process.argv[2] ?? 'docs/images')
const COMMAND = resolve('dist/cli/main.js')
const DEADLINE_MS = 120_000

type Recorder = {
  /** What was shown, from the first look on. */
  readonly frames: TerminalFrame[]
  readonly send: (...keys: readonly string[]) => void
  readonly type: (text: string) => void
  /** Looks until this is shown. */
  readonly lookUntil: (there: RegExp) => Promise<void>
}

/** A terminal of its own, in a home of its own, with the built command as `terret`. */
async function withTerminal(
  [columns, rows]: readonly [number, number],
  fill: (home: string) => void,
  act: (recorder: Recorder) => Promise<void>,
): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'terret-record-'))
  const folder = join(home, 'shop')
  mkdirSync(folder)
  const tmux = (...args: readonly string[]): string =>
    execFileSync('tmux', ['-u', '-L', `terret-record-${process.pid}`, '-f', '/dev/null', ...args], { encoding: 'utf8' })
  try {
    // As the package puts it there.
    symlinkSync(COMMAND, join(home, 'terret'))
    const rc = join(home, 'rc')
    writeFileSync(rc, `PS1='$ '\nexport HOME='${home}'\nterret() { '${process.execPath}' '${home}/terret' "$@"; }\n`)
    fill(home)
    const shell = `bash --noprofile --rcfile ${rc}`
    tmux('new-session', '-d', '-x', String(columns), '-y', String(rows), '-c', folder, shell)
    await sleep(500)
    const frames: TerminalFrame[] = []
    const lookUntil = async (there: RegExp): Promise<void> => {
      const end = performance.now() + DEADLINE_MS
      for (;;) {
        // The home is another one each time, and none of the reader's.
        const text = tmux('capture-pane', '-p', '-e').replaceAll(home, '~')
        if (frames.at(-1)?.text !== text) frames.push({ atMs: performance.now(), text })
        if (there.test(withoutStyle(text))) return
        if (performance.now() > end) throw new Error(`The terminal never showed ${there}. It shows:\n${text}`)
        await sleep(60)
      }
    }
    const type = (text: string): void => void tmux('send-keys', '-l', text)
    await act({ frames, send: (...keys) => void tmux('send-keys', ...keys), type, lookUntil })
  } finally {
    tmux('kill-server')
    await removeFolder(home)
  }
}

/** The command in the terminal may still be closing its files. */
async function removeFolder(folder: string): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return rmSync(folder, { recursive: true, force: true })
    } catch (error) {
      if (tries === 20) throw error
      await sleep(500)
    }
  }
}

function write(name: string, svg: string): void {
  writeFileSync(join(OUT, `${name}.svg`), svg)
  process.stdout.write(`${name}.svg, ${Math.round(svg.length / 1_024)} kB\n`)
}

async function recordDemo(): Promise<void> {
  const title =
    'Three worker processes are killed while they make a report; each time another goes on, and the file is written once'
  await withTerminal(
    [92, 34],
    () => {},
    async ({ frames, send, type, lookUntil }) => {
      type('terret demo')
      await lookUntil(/demo$/)
      send('Enter')
      await lookUntil(/Allow it\?/)
      await sleep(1_500)
      send('y', 'Enter')
      await lookUntil(/until Ctrl-C/)
      send('C-c')
      write('killed-and-going-on', svgOfTerminal(frames, { columns: 92, title }))
    },
  )
}

const CODE = `export function sum(numbers: number[]) {
  let total = 0
  for (let i = 0; i <= numbers.length; i++) total += numbers[i]
  return total
}
`
const ANSWER = `The loop runs **one step too far**:

\`\`\`ts
for (let i = 0; i <= numbers.length; i++) total += numbers[i] // one too many
\`\`\`

| where | what | why it matters |
|---|---|---|
| \`src/sum.ts:3\` | \`<=\` | reads past the end of the list and adds \`undefined\` |

1. Change \`<=\` to \`<\`
2. Run the tests`

const edits = [{ path: 'src/sum.ts', old_string: 'i <= numbers', new_string: 'i < numbers' }]
const REPLIES: readonly ChaosReply[] = [
  { text: 'I look at it first.', calls: [{ tool: 'read', args: { path: 'src/sum.ts' } }] },
  { text: ANSWER, calls: [{ tool: 'edit', args: { edits } }] },
  { calls: [{ tool: 'bash', args: { command: 'npm test' } }] },
  { text: 'The sum is right, and the *tests* pass.' },
]

/** A home with a shop in it, whose models are this server. */
function fillShop(home: string, url: string): void {
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), text)
  }
  put('shop/src/sum.ts', CODE)
  const slow = 'for i in 1 2 3 4 5 6 7; do echo "ok $i - sums of $i numbers"; sleep 0.6; done'
  const scripts = {
    test: slow,
    dev: 'echo "listening on port 3000"; sleep 600',
    lint: 'seq -f "line %g: tabs" 28; exit 3',
  }
  put('shop/package.json', JSON.stringify({ name: 'shop', scripts }))
  const endpoint = { protocol: 'chat', baseUrl: `${url}/v1` }
  const config = { model: 'local:fake', endpoints: { local: endpoint }, bash: true, context: { compaction: false } }
  put('.config/terret/config.json', JSON.stringify(config))
  execFileSync('git', ['init', '-q', '-b', 'main', join(home, 'shop')])
}

async function recordChat(): Promise<void> {
  const chaos = await startChaos({ script: REPLIES })
  const fill = (home: string): void => fillShop(home, chaos.url)
  await withTerminal([92, 38], fill, async ({ frames, send, type, lookUntil }) => {
    const keep = (name: string, title: string): void =>
      write(name, svgOfTerminal(frames.slice(-1), { columns: 92, title }))
    type('clear; terret --trust')
    send('Enter')
    await lookUntil(/›$/)
    type('Fix @sum')
    await lookUntil(/❯ src\/sum\.ts/)
    keep('chat-files', 'The menu of files behind an at sign')
    send('Tab')
    type(', please')
    send('Enter')
    await lookUntil(/Allow it\?.*›$/)
    keep('chat-question', 'An answer with code and a table, and the question about an edit, with its difference')
    send('y', 'Enter')
    await lookUntil(/bash npm test[^]*Allow it\?.*›$/)
    send('k', 'Enter')
    await lookUntil(/Which rule\?.*›$/)
    keep('chat-always', 'What "always" would allow beyond this call, before it is taken')
    send('2', 'Enter')
    await lookUntil(/Keep this rule.*›$/)
    send('r', 'Enter')
    await lookUntil(/ok 5 - /)
    keep('chat-command', 'The last lines of a command that runs')
    await lookUntil(/tests pass\.[^]*›$/)
    type('/')
    await lookUntil(/❯ \/help/)
    keep('chat-commands', 'The finished work, and the menu of commands behind a slash')
  })
  await chaos.close()
}

const bash = (command: string) => ({ calls: [{ tool: 'bash', args: { command } }] })
const MORE: readonly ChaosReply[] = [
  bash('npm run dev'),
  'The server runs on port 3000.',
  bash('npm run lint'),
  'The linter found **28 lines** with tabs.',
]

/** A server in the background, a command that fails, and the lists of models, messages and sessions. */
async function recordMore(): Promise<void> {
  const chaos = await startChaos({ script: MORE })
  const fill = (home: string): void => fillShop(home, chaos.url)
  await withTerminal([92, 30], fill, async ({ frames, send, type, lookUntil }) => {
    const keep = (name: string, title: string): void =>
      write(name, svgOfTerminal(frames.slice(-1), { columns: 92, title }))
    type('clear; terret --trust')
    send('Enter')
    await lookUntil(/›$/)
    type('Start the server.')
    send('Enter')
    await lookUntil(/Allow it\?.*›$/)
    send('y', 'Enter')
    await lookUntil(/ {4}listening on port/)
    send('C-b')
    await lookUntil(/port 3000\.[^]*tokens[^]*1 in the background\n›$/)
    type('/background')
    send('Enter')
    await lookUntil(/stops one[^]*\n›$/)
    keep('chat-background', 'A server that was sent to the background, and what is listed there')
    type('And the linter?')
    send('Enter')
    await lookUntil(/npm run lint[^]*Allow it\?.*›$/)
    send('y', 'Enter')
    await lookUntil(/with tabs\.[^]*1 call · [^]*\n›$/)
    keep('chat-failed', 'A command that failed: its exit code, its last lines, and the key for all of them')
    send('Escape', 'Escape')
    await lookUntil(/Go back to before ›[^]*❯/)
    keep('chat-rewind', 'Esc twice: the messages, to go back to before one of them')
    send('Escape')
    await lookUntil(/\n›$/)
    type('/new')
    send('Enter')
    await lookUntil(/\/new[^]*\n›$/)
    type('/resume serv')
    send('Enter')
    await lookUntil(/Resume ›[^]*❯/)
    keep('chat-resume', 'The sessions of this folder, with a search')
  })
  await chaos.close()
}

const READS = ['a list', 'the rules', 'the shop'].map((pattern) => ({ calls: [{ tool: 'search', args: { pattern } }] }))

/** Replies by the words of the person: what a child says is up to nobody. */
function wordsReply({ body }: { readonly body: unknown }, n: number): ChaosReply {
  const text = JSON.stringify(body)
  const has = (words: string): boolean => text.includes(words)
  if (has('Find what sums.') && !has('Have it searched.'))
    return { text: 'I search the folder for', deltas: 9, chaos: { stallAfterBytes: 900 } }
  if (has('spawned_new')) return 'It searches.'
  if (has('Have it searched.')) return { calls: [{ tool: 'spawn_subagent', args: { prompt: 'Find what sums.' } }] }
  if (has('Look around.')) return READS[n % READS.length] ?? ''
  if (has('The newest')) return 'The newest one it is.'
  const choices = ['the oldest', 'The newest', 'both']
  if (has('Ask me.')) return { calls: [{ tool: 'ask_user', args: { question: 'Which **copy** stays?', choices } }] }
  return { text: ANSWER, deltas: 30, chaos: { stallAfterBytes: 5_200 } }
}

/** A message that waits, a question of the model, an agent, a limit, and a server that is away. */
async function recordWaits(): Promise<void> {
  const chaos = await startChaos({ script: wordsReply })
  const fill = (home: string): void => {
    fillShop(home, chaos.url)
    const file = join(home, '.config/terret/config.json')
    const config = JSON.parse(readFileSync(file, 'utf8')) as object
    writeFileSync(file, JSON.stringify({ ...config, limits: { modelRequests: 3 } }))
  }
  await withTerminal([92, 26], fill, async ({ frames, send, type, lookUntil }) => {
    const keep = (name: string, title: string): void =>
      write(name, svgOfTerminal(frames.slice(-1), { columns: 92, title }))
    const enter = (text: string): void => {
      type(text)
      send('Enter')
    }
    enter('clear; terret --trust')
    await lookUntil(/›$/)
    enter('What is wrong with the sum?')
    await lookUntil(/one step too far[^]*Esc stops\n›$/)
    enter('and then the docs')
    await lookUntil(/takes it back/)
    keep('chat-queued', 'An answer while it streams, and a message that waits for the next step')
    send('Up')
    await lookUntil(/› and then the docs$/)
    send('C-u')
    send('Escape')
    await lookUntil(/Stopped\.[^]*\n›$/)
    enter('/new')
    await lookUntil(/A new session[^]*\n›$/)
    enter('Ask me.')
    await lookUntil(/Your answer, or a number[^]*›$/)
    keep('chat-asked', 'A question of the model, with choices')
    enter('2')
    await lookUntil(/one it is\.[^]*tokens[^]*\n›$/)
    enter('/new')
    await lookUntil(/one it is[^]*A new session[^]*\n›$/)
    enter('Look around.')
    await lookUntil(/Go on for another[^]*›$/)
    keep('chat-limit', 'A limit of the run, and the question whether it goes on')
    enter('n')
    await lookUntil(/It stays here[^]*\n›$/)
    send('C-o')
    await lookUntil(/Esc leaves$/)
    keep('chat-calls', 'Ctrl-O: the last calls in full')
    send('Escape')
    await lookUntil(/\n›$/)
    enter('/new')
    await lookUntil(/It stays here[^]*A new session[^]*\n›$/)
    enter('Have it searched.')
    await lookUntil(/It searches\.[^]*1 agent works[^]*\n›$/)
    keep('chat-agents', 'An agent that works for this session, as one row')
  })
  await chaos.close()
}

const only = process.argv[3]
if (only === undefined || only === 'demo') await recordDemo()
if (only === undefined || only === 'chat') await recordChat()
if (only === undefined || only === 'chat') await recordMore()
if (only === undefined || only === 'chat' || only === 'waits') await recordWaits()
