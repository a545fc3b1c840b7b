#!/usr/bin/env node
// The `terret` command: reads the arguments, loads one command, sets the exit code. Each command is a file of its own, loaded when
// it is used.
import { type CommandArgs, isMessage, readCommandArgs, unknownCommandText } from './args.ts'
import { exitForError, EXIT, CliError, EXIT_TEXT } from './exit.ts'
import { clean, joinLines } from '../view/clean.ts'
import { useDataFolder, print, printJson, warn } from './present/print.ts'
import { parseServerFlags, useServer } from './server-flag.ts'
import { TABLE, type CommandEntry } from './table.ts'

type Command = (call: CommandArgs) => Promise<number>
type Commands = Readonly<Record<string, () => Promise<Command>>>

const COMMANDS: Commands = {
  init: async () => (await import('./configure/init-command.ts')).initCommand,
  create: async () => (await import('./commands/create-command.ts')).createCommand,
  run: async () => (await import('./commands/run-command.ts')).runCommand,
  start: async () => (await import('./commands/start-command.ts')).startCommand,
  interactive: async () => (await import('./commands/interactive-command.ts')).interactiveCommand,
  list: async () => (await import('./commands/list-command.ts')).listCommand,
  inspect: async () => (await import('./commands/inspect-command.ts')).inspectCommand,
  board: async () => (await import('./commands/board-command.ts')).boardCommand,
  tasks: async () => (await import('./commands/board-command.ts')).tasksCommand,
  pending: async () => (await import('./commands/pending-command.ts')).pendingCommand,
  approve: async () => (await import('./commands/decide-commands.ts')).approveCommand,
  reject: async () => (await import('./commands/decide-commands.ts')).rejectCommand,
  answer: async () => (await import('./commands/answer-command.ts')).answerCommand,
  resume: async () => (await import('./commands/resume-command.ts')).resumeCommand,
  tail: async () => (await import('./commands/tail-command.ts')).tailCommand,
  history: async () => (await import('./commands/history-command.ts')).historyCommand,
  wake: async () => (await import('./commands/wake-command.ts')).wakeCommand,
  serve: async () => (await import('./commands/serve-command.ts')).serveCommand,
  token: async () => (await import('./commands/token-command.ts')).tokenCommand,
  worker: async () => (await import('./commands/worker-command.ts')).workerCommand,
  interrupt: async () => (await import('./commands/interrupt-command.ts')).interruptCommand,
  undo: async () => (await import('./commands/undo-command.ts')).undoCommand,
  compact: async () => (await import('./commands/compact-command.ts')).compactCommand,
  pin: async () => (await import('./commands/pin-command.ts')).pinCommand,
  rename: async () => (await import('./commands/rename-command.ts')).renameCommand,
  fork: async () => (await import('./commands/fork-command.ts')).forkCommand,
  'what-if': async () => (await import('./commands/what-if-command.ts')).whatIfCommand,
  replay: async () => (await import('./commands/replay-command.ts')).replayCommand,
  export: async () => (await import('./commands/export-command.ts')).exportCommand,
  import: async () => (await import('./commands/import-command.ts')).importCommand,
  memory: async () => (await import('./commands/memory-command.ts')).memoryCommand,
  delete: async () => (await import('./commands/delete-command.ts')).deleteCommand,
  prune: async () => (await import('./commands/prune-command.ts')).pruneCommand,
  policy: async () => (await import('./configure/policy-command.ts')).policyCommand,
  tools: async () => (await import('./configure/tools-command.ts')).toolsCommand,
  agents: async () => (await import('./configure/agents-command.ts')).agentsCommand,
  letters: async () => (await import('./commands/letters-command.ts')).lettersCommand,
  triggers: async () => (await import('./commands/triggers-command.ts')).triggersCommand,
  blueprint: async () => (await import('./commands/blueprint-command.ts')).blueprintCommand,
  handoffs: async () => (await import('./commands/handoffs-command.ts')).handoffsCommand,
  worktree: async () => (await import('./commands/worktree-command.ts')).worktreeCommand,
  workflow: async () => (await import('./commands/workflow-command.ts')).workflowCommand,
  script: async () => (await import('./commands/script-command.ts')).scriptCommand,
  eval: async () => (await import('./commands/eval-command.ts')).evalCommand,
  cron: async () => (await import('./commands/cron-command.ts')).cronCommand,
  mcp: async () => (await import('./configure/mcp-command.ts')).mcpCommand,
  acp: async () => (await import('./serve/acp-command.ts')).acpCommand,
  trust: async () => (await import('./configure/trust-command.ts')).trustCommand,
  model: async () => (await import('./configure/model-command.ts')).modelCommand,
  models: async () => (await import('./configure/models-command.ts')).modelsCommand,
  store: async () => (await import('./commands/store-command.ts')).storeCommand,
  'crash-test': async () => (await import('./commands/crash-test-command.ts')).crashTestCommand,
  doctor: async () => (await import('./configure/doctor-command.ts')).doctorCommand,
  completion: async () => (await import('./configure/completion-command.ts')).completionCommand,
  demo: async () => (await import('./demo/demo-command.ts')).demoCommand,
  version: async () => printVersion,
  help: async () => async (call) => printHelp(call.words[0]),
}

// A reader that stops early, such as `head`, is not an error.
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (code === 'EPIPE') process.exit(EXIT.ok)
  warn(
    `terret: The output could not be written (${code ?? message}), so it is incomplete. Free space, or write to another place.`,
  )
  process.exit(EXIT.store)
})
// A closed stderr must not stop a run.
process.stderr.on('error', () => {})
showOwnWarnings()
process.exitCode = await main(process.argv.slice(2))

/**
 * Prints a warning of the library as one plain line, without the prefix of Node.js. Other warnings stay as they are.
 */
function showOwnWarnings(): void {
  const usual = process.listeners('warning')
  process.removeAllListeners('warning')
  process.on('warning', (warning) => {
    if (warning.name === 'TerretWarning') warn(joinLines(clean(warning.message), ' '))
    else for (const show of usual) show(warning)
  })
}

async function main(line: readonly string[]): Promise<number> {
  let isFar = false
  try {
    const { far, words } = parseServerFlags(line)
    isFar = far !== null
    const [command = 'help', ...args] = addCommand(moveFlagsBehind(words))
    if (command === '--help' || command === '-h') return printHelp()
    if (command === '--version' || command === '-v') return await printVersion(readCommandArgs('version', args))
    const load = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined
    if (!load && command.startsWith('-'))
      throw new CliError(EXIT.usage, `There is no flag ${command}. Run \`terret --help\` to see what there is.`)
    if (!load) throw new CliError(EXIT.usage, unknownCommandText(command))
    const call = readCommandArgs(command, args)
    if (call.is('help')) return printHelp(command)
    // Throws if the working folder was removed, because each command works in it.
    process.cwd()
    useDataFolder(call.text('data'))
    if (far) await useServer(far, command)
    keepCompiled()
    return await (await load())(call)
  } catch (error) {
    const { exit, text } = exitForError(error, isFar)
    warn(`terret: ${joinLines(clean(text), ' ')}`)
    return exit
  } finally {
    // Tests run several command lines in one process, so the server is reset.
    if (isFar) await useServer(null)
  }
}

/**
 * Keeps what V8 compiled of the command for its next start, where Node can (22.8 and later, unless NODE_DISABLE_COMPILE_CACHE is set).
 * Only a program may do so: a library writes no files for its host.
 */
function keepCompiled(): void {
  const module = process.getBuiltinModule('node:module') as { readonly enableCompileCache?: () => unknown }
  module.enableCompileCache?.()
}

/**
 * Adds the command that a line without one means: `terret -p …` is `run`; no words at a terminal, a flag of the chat, or
 * a first word with a space in it is the chat. A first word without a space is always a command, so a mistyped command
 * is never sent to a model.
 */
function addCommand(words: readonly string[]): readonly string[] {
  const [first] = words
  if (first === undefined) return process.stdin.isTTY && process.stdout.isTTY ? ['interactive'] : ['help']
  if (Object.hasOwn(TABLE, first)) return words
  const end = words.indexOf('--')
  const isPrint = (word: string, at: number): boolean => (word === '-p' || word === '--print') && (end < 0 || at < end)
  if (words.some(isPrint)) return ['run', ...words.filter((word, at) => !isPrint(word, at))]
  const name = /^--([\w-]+)/.exec(first)?.[1] ?? ''
  const flags = TABLE['interactive']?.flags ?? {}
  const isChatFlag = Object.values(flags).some(({ short }) => short !== 'h' && first === `-${short}`)
  return isChatFlag || (name !== 'help' && Object.hasOwn(flags, name)) || isMessage(first)
    ? ['interactive', ...words]
    : words
}

/** `--data DIR` and `--json` may also stand before the command. */
function moveFlagsBehind(words: readonly string[]): readonly string[] {
  const isData = words[0] === '--data'
  const count = isData ? 2 : words[0] === '--json' || words[0]?.startsWith('--data=') ? 1 : 0
  if (count === 0 || words.length <= count) return words
  const [command = '', ...args] = moveFlagsBehind(words.slice(count))
  return [command, ...words.slice(0, count), ...args]
}

function printHelp(name?: string): number {
  const entry = name === undefined ? undefined : TABLE[name]
  if (name !== undefined && !entry) throw new CliError(EXIT.usage, unknownCommandText(name))
  print(...(name !== undefined && entry ? commandHelp(name, entry) : helpOverview()).split('\n'))
  return EXIT.ok
}

async function printVersion(call: CommandArgs): Promise<number> {
  const { VERSION } = await import('../version.ts')
  if (call.is('json')) printJson({ version: VERSION })
  else print(VERSION)
  return EXIT.ok
}

// The texts of `terret help`, made from the command table. They omit the version, which would load the library.

function helpOverview(): string {
  const commands = Object.entries(TABLE).map(([name, { words, says }]) => helpRow(`${name} ${words}`, says))
  const codes = Object.entries(EXIT_TEXT).map(([code, text]) => helpRow(code, text, 6))
  return `terret · a durable agent harness

Usage: terret                    a chat in this folder
       terret "TEXT"             a chat that begins with this message; it must have a space in it
       terret -p TEXT            one answer, for scripts: the same as \`terret run TEXT\`
       terret <command> [words] [flags]

Commands:
${commands.join('\n')}

\`terret --server URL COMMAND\` works with a server elsewhere (token: TERRET_TOKEN, or --token-file FILE).
\`terret --server COMMAND\` works with the server of this data folder that was started last.
A session's ID may be shortened as long as it is unique, or be "latest".
\`terret help COMMAND\` shows its flags. Most commands take --json.

Exit codes:
${codes.join('\n')}`
}

function commandHelp(name: string, { words, says, flags }: CommandEntry): string {
  const rows = Object.entries(flags).map(([flag, { short, takes, says: text }]) => {
    return helpRow(`${short ? `-${short}, ` : '    '}--${flag}${takes ? ` ${takes}` : ''}`, text)
  })
  return `terret ${name}: ${says}\n\nUsage: terret ${name} ${words}\n\nFlags:\n${rows.join('\n')}`
}

function helpRow(left: string, right: string, width = 26): string {
  const name = `  ${left}`.trimEnd()
  return name.length < width ? `${name.padEnd(width)}${right}` : `${name}\n${' '.repeat(width)}${right}`
}
