// A real terminal for tests: tmux with a server of its own, a shell in it, and the built command as `terret`. A test types and
// waits for text; it never waits for time. What the screen shows is compared with a file.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import type { Stage } from './stage.ts'

/** Terminal tests need tmux. The CI installs it; elsewhere its absence is a named skip. */
export const noTmux = spawnSync('tmux', ['-V']).status !== 0
if (noTmux && process.env['TERRET_REQUIRE_TMUX'])
  throw new Error('tmux is missing, and its tests may not be skipped here')

const DEADLINE_MS = 90_000
const LOOK_MS = 40

export type Screen = {
  /** Keys by their names: `Enter`, `C-c`. */
  keys(...names: readonly string[]): void
  /** Text and Enter. */
  enter(text: string): void
  type(text: string): void
  /** As a terminal pastes: in brackets, if it was asked to. */
  paste(text: string): void
  /** Resolves when everything that was shown, from the first line on, has this in it. */
  until(there: string | RegExp): Promise<string>
  /** Everything shown so far; with `colours` as it was sent. */
  text(colours?: boolean): string
  /** What the screen shows now, without what has left it. */
  shown(colours?: boolean): string
  resize(columns: number, rows: number): void
  /** Resolves when the bell rang. */
  rang(): Promise<void>
  /** The terminal is closed under whatever runs in it. Resolves when all of that has ended. */
  close(): Promise<void>
}

let opened = 0

/** Closed after the test. */
export function openScreen(stage: Stage, env: Readonly<Record<string, string>> = {}): Screen {
  opened += 1
  const socket = `terret-test-${process.pid}-${opened}`
  const tmuxWith = (input: string, ...args: readonly string[]): string =>
    execFileSync('tmux', ['-u', '-L', socket, '-f', '/dev/null', ...args], {
      encoding: 'utf8',
      input,
      env: { ...stage.env, TERM: 'xterm-256color' },
    })
  const tmux = (...args: readonly string[]): string => tmuxWith('', ...args)
  const rc = stage.write(
    'rc',
    `PS1='$ '\nunset HISTFILE\nterret() { '${process.execPath}' '${stage.command}' "$@"; }\n`,
  )
  const variables = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`])
  tmux(
    'new-session',
    '-d',
    '-x',
    '100',
    '-y',
    '30',
    '-c',
    stage.folder,
    ...variables,
    `bash --noprofile --rcfile ${rc}`,
  )
  let isClosed = false
  const captured = (colours: boolean, ...more: readonly string[]): string =>
    tmux('capture-pane', '-p', ...more, ...(colours ? ['-e'] : []))
      .replace(/[^\S\n]+$/gm, '')
      .trimEnd()
  const text = (colours = false): string => captured(colours, '-S', '-')
  const close = async (): Promise<void> => {
    if (isClosed) return
    isClosed = true
    const pids = family(Number(tmux('display-message', '-p', '#{pane_pid}')))
    const begun = begunOf(pids)
    tmux('kill-server')
    while (begunOf(pids).some((each) => begun.includes(each))) await pause()
  }
  onTestFinished(close)
  return {
    keys: (...names) => void tmux('send-keys', ...names),
    enter: (said) => {
      tmux('send-keys', '-l', said)
      tmux('send-keys', 'Enter')
    },
    type: (said) => void tmux('send-keys', '-l', said),
    paste: (said) => {
      tmuxWith(said, 'load-buffer', '-')
      tmux('paste-buffer', '-p', '-d')
    },
    until: (there) => until(text, there),
    text,
    shown: (colours = false) => captured(colours),
    rang: async () => {
      while (tmux('display-message', '-p', '#{window_bell_flag}').trim() !== '1') await pause()
    },
    resize: (columns, rows) => void tmux('resize-window', '-x', String(columns), '-y', String(rows)),
    close,
  }
}

const pause = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, LOOK_MS))

/** All that runs below a process, and the process. */
function family(root: number): readonly number[] {
  const rows = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
  const parents = rows.map((row) => row.trim().split(/\s+/).map(Number))
  const found = [root]
  for (const each of found) for (const [pid, parent] of parents) if (parent === each && pid) found.push(pid)
  return found
}

/** Since when each of these runs: another process may get the number of one that has ended. */
function begunOf(pids: readonly number[]): readonly string[] {
  try {
    const text = execFileSync('ps', ['-o', 'pid=,stat=,lstart=', '-p', pids.join()], { encoding: 'utf8' })
    return text.split('\n').flatMap((row) => {
      const [, pid, state = '', begun] = /^\s*(\d+) (\S+)\s+(.*)$/.exec(row) ?? []
      // One that has ended and that nobody has asked about runs no more.
      return pid === undefined || state.startsWith('Z') ? [] : [`${pid} ${begun}`]
    })
  } catch {
    return []
  }
}

async function until(text: () => string, there: string | RegExp): Promise<string> {
  const deadline = Date.now() + DEADLINE_MS
  for (;;) {
    const shown = text()
    if (typeof there === 'string' ? shown.includes(there) : there.test(shown)) return shown
    if (Date.now() > deadline) throw new Error(`The screen never had ${String(there)}. It has:\n${shown}`)
    await pause()
  }
}

/** At rest: nothing moves, and the prompt is the last thing there is. */
export const PROMPT = /\n›$/
const FRAMES = /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/gu

/** The screen is as recorded. What differs from run to run is replaced; `TERRET_UPDATE_SCREENS=1` records anew. */
export function expectScreen(shown: string, name: string, stage: Stage): void {
  const stable = `${shown
    .replaceAll(stage.folder, '/work')
    // A busy machine may be too slow for its memory, and the chat says so.
    .replace(/^Memory: Nothing was recalled: it took longer than [^\n]*\n\n/gm, '')
    .replace(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '1a2b3c4d-…')
    .replace(/\b[0-9a-f]{8}\b/g, '1a2b3c4d')
    .replace(/\b[\d,]+ tokens\b/g, 'N tokens')
    .replace(/\b\d+ out\b/g, 'N out')
    .replace(/ · \d+(?:\.\d)? s\b/g, ' · N s')
    .replace(/ by (?!terret:)\S+$/gm, ' by you')
    .replace(FRAMES, '⠋')}\n`
  const file = fileURLToPath(new URL(`screens/${name}.txt`, import.meta.url))
  if (process.env['TERRET_UPDATE_SCREENS']) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, stable)
  }
  expect(stable).toBe(readFileSync(file, 'utf8'))
}
