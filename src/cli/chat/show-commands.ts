// The commands of a chat that show what the command line shows too: the difference of the folder, the servers, the
// rules, and the checks of the setup; and what goes on in the background. They decide nothing, but for
// `/permissions forget N` and `/background stop N`.
import { tookText } from '../present/blocks.ts'
import { clipToWidth, fitLines, type Paint } from '../present/terminal-text.ts'
import { oneLine, shownLine, shownRow } from '../../view/clean.ts'
import { countNoun } from '../../view/shown-text.ts'
import { CliError, EXIT, exitForError } from '../exit.ts'
import type { CommandArgs } from '../args.ts'
import { collectPrinted, terretCommand } from '../present/print.ts'
import { readSetup } from '../state/folder-setup.ts'
import type { ChatControl } from './chat-control.ts'

/** Arguments to run a command of the command line. */
export function argsFor(words: readonly string[], flags: Readonly<Record<string, string>>): CommandArgs {
  return { words, text: (flag) => flags[flag], texts: () => [], is: () => false, count: () => undefined }
}

// ── /diff ──

/** More rows are for another program. */
const DIFF_ROWS_MAX = 400
const UNTRACKED_MAX = 20

/** What is not committed yet, in this folder. The settings of the repository run no program. */
export async function showDiff({ options, view }: ChatControl, words: readonly string[]): Promise<void> {
  const { terminal, setup } = options
  const { openRepository, runGit } = await import('../../tools/worktrees/run-git.ts')
  const at = await openRepository(setup.folder)
  if (typeof at === 'string')
    return view.note(`There is no difference to show: this folder ${at}. /show N shows the change of a call.`)
  const path = words.join(' ')
  const where = ['--', path === '' ? '.' : path]
  const shown = await runGit(at, ['diff', '--no-color', '--no-ext-diff', '--no-textconv', 'HEAD', ...where])
  const { stdout: others } = await runGit(at, ['ls-files', '--others', '--exclude-standard', '-z', ...where])
  if (shown.code !== 0 && shown.code !== 1)
    throw new CliError(EXIT.failed, `git: ${oneLine(shown.stderr.trim().split('\n')[0] ?? '', 300)}`)
  const { paint, columns } = terminal.out
  const fresh = others.split('\0').filter((name) => name !== '')
  const rows = shown.stdout.split('\n').slice(0, -1)
  if (rows.length === 0 && fresh.length === 0)
    return view.note(path === '' ? 'Nothing is changed since the last commit.' : 'Nothing is changed there.')
  const more = rows.length - DIFF_ROWS_MAX
  const untracked = fresh
    .slice(0, UNTRACKED_MAX)
    .map((name) => paint.green(fitLines(`  new: ${oneLine(name, 400)}`, columns)))
  const lines = [
    ...rows.slice(0, DIFF_ROWS_MAX).map((row) => diffRow(row, paint, columns)),
    ...(more > 0 ? [paint.dim(`  … ${countNoun(more, 'more row')}: git diff`)] : []),
    ...untracked,
    ...(fresh.length > UNTRACKED_MAX ? [paint.dim(`  … and ${fresh.length - UNTRACKED_MAX} more new files`)] : []),
  ]
  terminal.out.say('note', lines.join('\n'))
}

function diffRow(row: string, { green, red, cyan, bold }: Paint, columns: number): string {
  const text = fitLines(`  ${shownRow(row)}`, columns)
  if (/^(?:diff |index |\+\+\+ |--- |new file|deleted file|similarity|rename )/.test(row)) return bold(text)
  if (row.startsWith('@@')) return cyan(text)
  return row.startsWith('+') ? green(text) : row.startsWith('-') ? red(text) : text
}

// ── /mcp ──

/** Connects to each server of the configuration once, and says what it offers. */
export async function showServers({ options: { setup, terminal }, view }: ChatControl): Promise<void> {
  const entries = Object.entries(setup.settings.mcp ?? {})
  if (entries.length === 0)
    return view.note(`No MCP server is configured. Add one with: ${terretCommand`mcp add`} NAME -- COMMAND…`)
  view.note(`  asking ${countNoun(entries.length, 'server')} …`)
  const { makeServer, toolNamesText, tryConnection } = await import('../state/mcp-servers.ts')
  const { columns } = terminal.out
  const lines = entries.map(async ([name, entry]) => {
    try {
      const { state, tools, detail } = await tryConnection(await makeServer(setup, name, entry))
      const way = state === 'changed' ? ` · see what changed: ${terretCommand`mcp approve ${oneLine(name)}`}` : ''
      const trouble = detail === '' ? '' : ` · ${detail}`
      return `  ${state === 'usable' ? '✓' : '✗'} ${oneLine(name)} · ${toolNamesText(tools)}${trouble}${way}`
    } catch (error) {
      return `  ✗ ${oneLine(name)} · ${oneLine(exitForError(error).text, 400)}`
    }
  })
  terminal.out.say('note', (await Promise.all(lines)).map((line) => fitLines(line, columns)).join('\n'))
}

// ── /permissions and /doctor ──

export async function showPermissions(chat: ChatControl, words: readonly string[]): Promise<void> {
  const { options, view } = chat
  const { home, folder, mode } = options.setup
  const [verb, number] = words
  if (verb !== undefined && (verb !== 'forget' || number === undefined || !/^[1-9]\d{0,5}$/.test(number)))
    throw new CliError(EXIT.usage, 'Usage: /permissions, or: /permissions forget N')
  const { forgetKeptRule, showPolicy } = await import('../configure/policy-command.ts')
  // Rules may have been kept since the chat began.
  const setup = await readSetup(home, folder, { mode })
  const call = argsFor(words, {})
  await sayPrinted(chat, async () =>
    verb === undefined ? showPolicy(call, setup) : forgetKeptRule(call, setup, number ?? ''),
  )
  if (verb === 'forget') view.note('  The chat asks about it again after /mode, /model or /new.')
}

export async function examineSetup(chat: ChatControl): Promise<void> {
  chat.view.note('  looking …')
  const { doctorCommand } = await import('../configure/doctor-command.ts')
  await sayPrinted(chat, () => doctorCommand(argsFor([], {})))
}

/** The lines of a command, in the chat instead of on standard output. */
async function sayPrinted({ options: { terminal } }: ChatControl, act: () => Promise<unknown>): Promise<void> {
  const { columns } = terminal.out
  const rows = await collectPrinted(act)
  if (rows.length > 0) terminal.out.say('note', rows.map((row) => fitLines(`  ${row}`, columns)).join('\n'))
}

// ── /background ──

/** How many of its last lines `/background` shows. */
const LINES_MAX = 5

/** `/background`: what goes on there; `/background stop N` ends one. */
export function listBackground(chat: ChatControl, words: readonly string[]): void {
  const { options, view } = chat
  const { background, terminal } = options
  const [verb, given = ''] = words
  if (verb === 'stop') {
    const found = background.all.find(({ number }) => String(number) === given)
    if (!found) return view.note(`There is no command ${oneLine(given, 40)} in the background. /background lists them.`)
    return found.running.stop()
  }
  if (verb !== undefined) return view.note('Write /background, or /background stop N.')
  if (background.all.length === 0)
    return view.note('Nothing goes on in the background. While a command runs, Ctrl-B sends it there.')
  const { columns, paint } = terminal.out
  const now = Date.now()
  const rows = background.all.flatMap(({ number, running, startedAt }) => [
    fitLines(`  ${number} bash ${oneLine(running.command, 400)} · ${tookText(now - startedAt)}`, columns),
    ...running.lines
      .filter((line) => line.trim() !== '')
      .slice(-LINES_MAX)
      .map((line) => paint.dim(clipToWidth(`      ${shownLine(line)}`, columns))),
  ])
  terminal.out.say('note', [...rows, paint.dim('  /background stop N stops one. They end with the chat.')].join('\n'))
}
