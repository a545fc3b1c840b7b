// `terminal`: the chat in a terminal of its own, as published. Typing while an answer of 5,000 lines streams, what a token
// costs in bytes, what it costs to open a long session again, a chat at rest, a name among 50,000 files, Esc, and a paste.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Case, type Family, medianOf } from './family.ts'

const LINES = 5_000
const TOKENS_PER_LINE = 12
const FAST_MS = 6_000
const SLOW_TOKENS = 600
const TOKEN_MS = 10
const KEYS = 60
const KEY_MS = 60
const REOPENED_LINES = 20_000
const IDLE_MS = 10_000
const FILES = 50_000
const FILES_PER_FOLDER = 250
const NAMES = ['@editline', '@schedu', '@chat/in', '@s9/mod']
/** How long a search may go on behind a key. */
const SEARCH_MS = 150
const STOPS = 5
const PASTE_BYTES = 1_000_000
const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const ESC = '\u001b'
/** Clock ticks a second in /proc. */
const TICKS = 100

type Stage = { readonly folder: string; readonly env: NodeJS.ProcessEnv; readonly close: () => void }

/** A provider that streams an answer. A word of the message says which. */
async function openStage(folder: string): Promise<Stage> {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => void answer(response, Buffer.concat(pieces).toString()))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const settings = { baseUrl: `http://127.0.0.1:${port}/v1`, protocol: 'chat' }
  const config = { model: 'fake:m', endpoints: { fake: settings }, context: { compaction: false } }
  mkdirSync(join(folder, 'config/terret'), { recursive: true })
  mkdirSync(join(folder, 'work'), { recursive: true })
  mkdirSync(join(folder, 'data'), { mode: 0o700 })
  // A workspace of its own, and not that of this repository.
  execFileSync('git', ['init', '-q'], { cwd: join(folder, 'work') })
  writeFileSync(join(folder, 'config/terret/config.json'), JSON.stringify(config))
  const env = {
    ...process.env,
    TERRET_HOME: join(folder, 'data'),
    XDG_CONFIG_HOME: join(folder, 'config'),
    TERM: 'xterm-256color',
  }
  const close = (): void => {
    server.close()
    server.closeAllConnections()
  }
  return { folder, env, close }
}

async function answer(response: ServerResponse, body: string): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (delta: object, finish: string | null = null): void => {
    response.write(
      `data: ${JSON.stringify({ id: 'a', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
    )
  }
  if (body.includes('bench-slow')) {
    // By the clock: a busy machine that wakes late sends what is due, and the rate stays.
    const begun = performance.now()
    for (let i = 0; i < SLOW_TOKENS; i += 1) {
      send({ content: i % TOKENS_PER_LINE === TOKENS_PER_LINE - 1 ? `word${i}.\n\n` : `word${i} ` })
      const ahead = (i + 1) * TOKEN_MS - (performance.now() - begun)
      if (ahead > 0) await sleep(ahead)
    }
  } else if (body.includes('bench-short')) send({ content: 'Short.' })
  else if (body.includes('bench-long')) {
    const line = (i: number): string => `- line ${i} with **bold** words, \`code\` and more of it\n`
    for (let i = 0; i < REOPENED_LINES; i += 100)
      send({ content: Array.from({ length: 100 }, (_, k) => line(i + k)).join('') })
  } else {
    const begun = performance.now()
    for (let line = 0; line < LINES; line += 1) {
      const words = Array.from({ length: TOKENS_PER_LINE - 1 }, (_, i) => `token${i} `)
      for (const word of [`- line ${line}: `, ...words.slice(1), 'end\n']) send({ content: word })
      const ahead = (line * FAST_MS) / LINES - (performance.now() - begun)
      if (ahead > 5) await sleep(ahead)
    }
  }
  send({}, 'stop')
  response.end('data: [DONE]\n\n')
}

type Terminal = {
  readonly child: ChildProcess
  text: string
  type(text: string): void
  until(there: string): Promise<number>
}

/** The chat in a pseudo terminal, which `script` makes. */
function openChat({ folder, env }: Stage, words: string): Terminal {
  const command = `stty cols 100 rows 30; exec '${process.execPath}' '${main}' interactive --trust ${words}`
  const child = spawn('script', ['-qfc', command, '/dev/null'], { cwd: join(folder, 'work'), env, stdio: 'pipe' })
  const heard: (() => void)[] = []
  const terminal: Terminal = {
    child,
    text: '',
    type: (text) => void child.stdin?.write(text),
    until: async (there) => {
      const begun = performance.now()
      while (!terminal.text.includes(there)) {
        if (performance.now() - begun > 30_000) throw new Error(`never seen: ${there}\n${terminal.text.slice(-300)}`)
        await Promise.race([new Promise<void>((resolve) => void heard.push(resolve)), sleep(1_000)])
      }
      return performance.now() - begun
    },
  }
  child.stdout?.on('data', (data: Buffer) => {
    terminal.text += data.toString()
    for (const hear of heard.splice(0)) hear()
  })
  return terminal
}

/** The terminal is closed under the chat. */
async function leave({ child }: Terminal): Promise<void> {
  const ended = new Promise((resolve) => void child.once('exit', resolve))
  child.kill('SIGKILL')
  await ended
  // The chat sees that its terminal is gone, and gives the session back.
  await sleep(1_500)
  child.stdout?.destroy()
  child.stdin?.destroy()
}

const PROMPT = '› '

const typed: Case = async (folder) => {
  const stage = await openStage(join(folder, `typed-${process.pid}`))
  // A colour would stand between the prompt and the draft.
  const chat = openChat({ ...stage, env: { ...stage.env, NO_COLOR: '1' } }, '')
  await chat.until(PROMPT)
  chat.type('Go.\r')
  await chat.until('line 20:')
  const delays: number[] = []
  let draft = ''
  for (let i = 0; i < KEYS; i += 1) {
    chat.text = ''
    const key = 'abcdefghij'[i % 10] ?? ''
    draft += key
    chat.type(key)
    delays.push(await chat.until(`${PROMPT}${draft}`))
    await sleep(KEY_MS)
  }
  await leave(chat)
  stage.close()
  const sorted = delays.toSorted((a, b) => a - b)
  return { p50: medianOf(sorted), p99: sorted.at(-1) ?? 0, lost: KEYS - draft.length }
}

const streamed: Case = async (folder) => {
  const stage = await openStage(join(folder, `streamed-${process.pid}`))
  const chat = openChat(stage, '')
  await chat.until(PROMPT)
  chat.text = ''
  chat.type('Go: bench-slow.\r')
  await chat.until(`word${SLOW_TOKENS - 1}.`)
  const bytes = Buffer.byteLength(chat.text)
  await sleep(300)
  await leave(chat)
  stage.close()
  return { bytes: bytes / SLOW_TOKENS }
}

/** CPU until a session is open again and left, with a log of so many lines. */
async function reopenCpu(stage: Stage, session: string): Promise<number> {
  const chat = openChat(stage, session)
  await chat.until('goes on, after')
  await chat.until('Ctrl-D leaves')
  await sleep(400)
  const ms = cpuOf(chat)
  await leave(chat)
  return ms
}

/** CPU ms of the chat so far: `script` runs it as its only child. */
function cpuOf({ child }: Terminal): number {
  const pid = execFileSync('ps', ['-o', 'pid=', '--ppid', String(child.pid)], { encoding: 'utf8' }).trim()
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS
}

/** One answer, recorded as the command line records it. */
async function runOnce({ folder, env }: Stage, task: string): Promise<void> {
  const child = spawn(process.execPath, [main, 'run', '--quiet', task], {
    cwd: join(folder, 'work'),
    env,
    stdio: 'ignore',
  })
  const code = await new Promise((resolve) => void child.once('exit', resolve))
  if (code !== 0) throw new Error(`terret run ended with ${String(code)}`)
}

const reopened: Case = async (folder) => {
  const stage = await openStage(join(folder, `reopened-${process.pid}`))
  await runOnce(stage, 'Go: bench-short.')
  const bare = await reopenCpu(stage, 'latest')
  await runOnce(stage, 'Go: bench-long.')
  const ms = await reopenCpu(stage, 'latest')
  const rest = openChat(stage, 'latest')
  await rest.until('goes on, after')
  await sleep(3_000)
  const before = cpuOf(rest)
  await sleep(IDLE_MS)
  const idle = ((cpuOf(rest) - before) * 1_000) / IDLE_MS
  await leave(rest)
  stage.close()
  return { ms: ms - bare, bare, idle }
}

/** A folder that git knows nothing of yet. */
function fillFolder(folder: string): void {
  const words = ['edit-line', 'scheduler', 'index', 'chat', 'store', 'module', 'session', 'input']
  for (let i = 0; i < FILES; i += 1) {
    const below = join(folder, `packages${i % 7}`, words[i % 8] ?? '', `s${Math.floor(i / FILES_PER_FOLDER)}`)
    if (i % FILES_PER_FOLDER < 56) mkdirSync(below, { recursive: true })
    writeFileSync(join(below, `${words[(i * 5) % 8]}-${i}.ts`), '')
  }
}

/** CPU of each key of a name behind an `@`, with the search that it begins. */
const named: Case = async (folder) => {
  const stage = await openStage(join(folder, `named-${process.pid}`))
  fillFolder(join(stage.folder, 'work'))
  const chat = openChat({ ...stage, env: { ...stage.env, NO_COLOR: '1' } }, '')
  await chat.until(PROMPT)
  chat.type('@')
  await chat.until('❯ ')
  await sleep(2_000)
  const keys: number[] = []
  for (const name of NAMES) {
    chat.type('\u0015')
    await sleep(SEARCH_MS)
    for (const key of name) {
      const before = cpuOf(chat)
      chat.type(key)
      await sleep(SEARCH_MS)
      keys.push(cpuOf(chat) - before)
    }
  }
  await leave(chat)
  stage.close()
  return { mean: keys.reduce((sum, ms) => sum + ms, 0) / keys.length, most: Math.max(...keys), keys: keys.length }
}

/** Esc while an answer streams, to the row that says it has stopped. */
const stopped: Case = async (folder) => {
  const stage = await openStage(join(folder, `stopped-${process.pid}`))
  const chat = openChat({ ...stage, env: { ...stage.env, NO_COLOR: '1' } }, '')
  await chat.until(PROMPT)
  const [walls, cpus]: [number[], number[]] = [[], []]
  for (let i = 0; i < STOPS; i += 1) {
    chat.text = ''
    chat.type('Go: bench-slow.\r')
    await chat.until('word30')
    const before = cpuOf(chat)
    chat.type(ESC)
    walls.push(await chat.until('Stopped.'))
    cpus.push(cpuOf(chat) - before)
    await sleep(300)
  }
  await leave(chat)
  stage.close()
  return { wall: medianOf(walls), cpu: medianOf(cpus), most: Math.max(...walls) }
}

/** A megabyte pasted, to its cell. */
const pasted: Case = async (folder) => {
  const stage = await openStage(join(folder, `pasted-${process.pid}`))
  const chat = openChat({ ...stage, env: { ...stage.env, NO_COLOR: '1' } }, '')
  await chat.until(PROMPT)
  const text = 'a line of thirty-nine letters and a bit\n'.repeat(PASTE_BYTES / 40)
  const before = cpuOf(chat)
  chat.type(`${ESC}[200~${text}${ESC}[201~`)
  const wall = await chat.until('[pasted ')
  const cpu = cpuOf(chat) - before
  await leave(chat)
  stage.close()
  return { wall, cpu }
}

export const terminal: Family = {
  repetitions: 3,
  cases: { typed, streamed, reopened, named, stopped, pasted },
  lacks: spawnSync('script', ['-qc', 'true', '/dev/null']).status === 0 ? null : 'the program `script`',
  figures: [
    {
      name: 'terminal',
      unit: 'ms',
      target: 30,
      value: (median) => median('typed.p99'),
      floor: (median) => median('typed.p50'),
      note: (median) =>
        `slowest of ${KEYS} keys while ${LINES} lines stream; lost: ${median('typed.lost')}; floor: p50`,
    },
    {
      name: 'terminal.bytes',
      unit: 'bytes',
      target: 70,
      value: (median) => median('streamed.bytes'),
      floor: () => 1,
      note: () => 'a token, at 100 tokens a second',
    },
    {
      name: 'terminal.open',
      unit: 'CPU ms',
      target: 300,
      value: (median) => median('reopened.ms'),
      floor: (median) => median('reopened.bare'),
      note: () => `a session of ${REOPENED_LINES} lines opened again, less one of a line, which is the floor`,
    },
    {
      name: 'terminal.idle',
      unit: 'CPU ms',
      target: 1,
      value: (median) => median('reopened.idle'),
      floor: () => 1,
      note: () => 'a chat at rest, a second; ticks of 10 ms',
    },
    {
      name: 'terminal.files',
      unit: 'CPU ms',
      target: 30,
      value: (median) => median('named.mean'),
      floor: () => 1,
      note: (median) =>
        `a key of a name behind "@" among ${FILES} files; the most of ${median('named.keys')}: ${median('named.most').toFixed(1)}`,
    },
    {
      name: 'terminal.stop',
      unit: 'ms',
      target: 100,
      value: (median) => median('stopped.wall'),
      floor: () => 25,
      note: (median) =>
        `Esc to "Stopped."; CPU ${median('stopped.cpu').toFixed(1)}; the slowest of ${STOPS}: ${median('stopped.most').toFixed(0)}; floor: how long an Esc may be the begin of another key`,
    },
    {
      name: 'terminal.paste',
      unit: 'CPU ms',
      target: 500,
      value: (median) => median('pasted.cpu'),
      floor: () => 1,
      note: (median) => `1 MB pasted, to its cell; wall ${median('pasted.wall').toFixed(0)} ms`,
    },
  ],
}
