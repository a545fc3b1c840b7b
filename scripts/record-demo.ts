// Records `terret demo` in a real terminal, with its kills and the approval, as a moving picture: `npm run record-demo`.
// It needs tmux; `npm run build` makes the command that is recorded.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { svgOfTerminal, type TerminalFrame } from './terminal-svg.ts'

const OUT = resolve(process.argv[2] ?? 'docs/images/killed-and-going-on.svg')
const COMMAND = resolve('dist/cli/main.js')
const COLUMNS = 92
const TITLE =
  'Three worker processes are killed while they make a report; each time another goes on, and the file is written once'
const DEADLINE_MS = 120_000

const folder = mkdtempSync(join(tmpdir(), 'terret-demo-'))
const socket = `terret-demo-${process.pid}`
const tmux = (...args: readonly string[]): string =>
  execFileSync('tmux', ['-u', '-L', socket, '-f', '/dev/null', ...args], { encoding: 'utf8' })
const frames: TerminalFrame[] = []

/** Adds what is shown now, if that is new. */
function look(): string {
  const text = tmux('capture-pane', '-p', '-e')
  if (frames.at(-1)?.text !== text) frames.push({ atMs: performance.now(), text })
  return text
}

async function lookUntil(there: string): Promise<void> {
  const end = performance.now() + DEADLINE_MS
  while (!look().includes(there)) {
    if (performance.now() > end) throw new Error(`The demo did not show ${JSON.stringify(there)}.`)
    await sleep(60)
  }
}

try {
  const rc = join(folder, 'rc')
  // As the package puts it there.
  symlinkSync(COMMAND, join(folder, 'terret'))
  writeFileSync(rc, `PS1='$ '\nterret() { '${process.execPath}' '${folder}/terret' "$@"; }\n`)
  tmux('new-session', '-d', '-x', String(COLUMNS), '-y', '34', '-c', folder, `bash --noprofile --rcfile ${rc}`)
  await sleep(500)
  tmux('send-keys', '-l', 'terret demo')
  await sleep(300)
  look()
  tmux('send-keys', 'Enter')
  await lookUntil('Allow it?')
  await sleep(1_500)
  tmux('send-keys', 'y', 'Enter')
  await lookUntil('until Ctrl-C')
  tmux('send-keys', 'C-c')
  writeFileSync(OUT, svgOfTerminal(frames, { columns: COLUMNS, title: TITLE }))
  process.stdout.write(`${OUT}: ${frames.length} states\n`)
} finally {
  tmux('kill-server')
  rmSync(folder, { recursive: true, force: true })
}
