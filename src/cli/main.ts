#!/usr/bin/env node
// The `terret` command: reads the arguments, loads one command, sets the exit code. Each command is a file of its own, loaded when
// it is used.
import { type Call, readCall, unknownCommand } from './args.ts'
import { endOf, EXIT, Refusal, EXIT_TEXT } from './exit.ts'
import { clean, joined } from '../view/clean.ts'
import { keepIn, print, printJson, warn } from './present/print.ts'
import { serverIn, useServer } from './server-flag.ts'
import { TABLE, type Entry } from './table.ts'

type Command = (call: Call) => Promise<number>
type Commands = Readonly<Record<string, () => Promise<Command>>>

const COMMANDS: Commands = {
  init: async () => (await import('./configure/init.ts')).init,
  run: async () => (await import('./commands/run.ts')).run,
  start: async () => (await import('./commands/start.ts')).start,
  interactive: async () => (await import('./commands/interactive.ts')).interactive,
  list: async () => (await import('./commands/list.ts')).list,
  inspect: async () => (await import('./commands/inspect.ts')).inspect,
  board: async () => (await import('./commands/board.ts')).board,
  tasks: async () => (await import('./commands/board.ts')).tasks,
  pending: async () => (await import('./commands/pending.ts')).pending,
  approve: async () => (await import('./commands/decide.ts')).approve,
  reject: async () => (await import('./commands/decide.ts')).reject,
  answer: async () => (await import('./commands/answer.ts')).answer,
  resume: async () => (await import('./commands/resume.ts')).resume,
  tail: async () => (await import('./commands/tail.ts')).tail,
  history: async () => (await import('./commands/history.ts')).history,
  wake: async () => (await import('./commands/wake.ts')).wake,
  serve: async () => (await import('./commands/serve.ts')).serve,
  token: async () => (await import('./commands/token.ts')).token,
  worker: async () => (await import('./commands/worker.ts')).worker,
  interrupt: async () => (await import('./commands/interrupt.ts')).interrupt,
  undo: async () => (await import('./commands/undo.ts')).undo,
  compact: async () => (await import('./commands/compact.ts')).compact,
  pin: async () => (await import('./commands/pin.ts')).pin,
  fork: async () => (await import('./commands/fork.ts')).fork,
  replay: async () => (await import('./commands/replay.ts')).replay,
  export: async () => (await import('./commands/export.ts')).exportTo,
  import: async () => (await import('./commands/import.ts')).importFrom,
  memory: async () => (await import('./commands/memory.ts')).memory,
  delete: async () => (await import('./commands/delete.ts')).deleteOne,
  prune: async () => (await import('./commands/prune.ts')).prune,
  policy: async () => (await import('./configure/policy.ts')).policy,
  tools: async () => (await import('./configure/tools.ts')).tools,
  agents: async () => (await import('./configure/agents.ts')).agents,
  handoffs: async () => (await import('./commands/handoffs.ts')).handoffs,
  worktree: async () => (await import('./commands/worktree.ts')).worktree,
  workflow: async () => (await import('./commands/workflow.ts')).workflow,
  mcp: async () => (await import('./configure/mcp.ts')).mcp,
  acp: async () => (await import('./serve/acp.ts')).acp,
  trust: async () => (await import('./configure/trust.ts')).trust,
  models: async () => (await import('./configure/models.ts')).models,
  store: async () => (await import('./commands/store.ts')).store,
  doctor: async () => (await import('./configure/doctor.ts')).examine,
  completion: async () => (await import('./configure/completion.ts')).completion,
  demo: async () => (await import('./demo/demo.ts')).demo,
  version: async () => version,
  help: async () => async (call) => help(call.words[0]),
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

/** What the library reports is one plain line, without the prefix that Node.js writes before warnings. Other warnings stay as they are. */
function showOwnWarnings(): void {
  const usual = process.listeners('warning')
  process.removeAllListeners('warning')
  process.on('warning', (warning) => {
    if (warning.name === 'TerretWarning') warn(joined(clean(warning.message), ' '))
    else for (const show of usual) show(warning)
  })
}

async function main(line: readonly string[]): Promise<number> {
  let isFar = false
  try {
    const { far, words } = serverIn(line)
    isFar = far !== null
    const [command = 'help', ...args] = flagsBehind(words)
    if (command === '--help' || command === '-h') return help()
    if (command === '--version' || command === '-v') return await version(readCall('version', args))
    const load = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined
    if (!load && command.startsWith('-'))
      throw new Refusal(EXIT.usage, `There is no flag ${command}. Run \`terret --help\` to see what there is.`)
    if (!load) throw new Refusal(EXIT.usage, unknownCommand(command))
    const call = readCall(command, args)
    if (call.is('help')) return help(command)
    // Throws where the working folder was removed: each command works in it.
    process.cwd()
    keepIn(call.text('data'))
    if (far) await useServer(far, command)
    return await (await load())(call)
  } catch (error) {
    const { exit, text } = endOf(error, isFar)
    warn(`terret: ${joined(clean(text), ' ')}`)
    return exit
  } finally {
    // Another line may run in this process.
    if (isFar) await useServer(null)
  }
}

/** `--data DIR` and `--json` may also stand before the command. */
function flagsBehind(words: readonly string[]): readonly string[] {
  const isData = words[0] === '--data'
  const count = isData ? 2 : words[0] === '--json' || words[0]?.startsWith('--data=') ? 1 : 0
  if (count === 0 || words.length <= count) return words
  const [command = '', ...args] = flagsBehind(words.slice(count))
  return [command, ...words.slice(0, count), ...args]
}

function help(name?: string): number {
  const entry = name === undefined ? undefined : TABLE[name]
  if (name !== undefined && !entry) throw new Refusal(EXIT.usage, unknownCommand(name))
  print(...(name !== undefined && entry ? helpOn(name, entry) : overview()).split('\n'))
  return EXIT.ok
}

async function version(call: Call): Promise<number> {
  const { VERSION } = await import('../version.ts')
  if (call.is('json')) printJson({ version: VERSION })
  else print(VERSION)
  return EXIT.ok
}

// The texts of `terret help`, made from the table. Without the version, which would load the library.

function overview(): string {
  const commands = Object.entries(TABLE).map(([name, { words, says }]) => row(`${name} ${words}`, says))
  const codes = Object.entries(EXIT_TEXT).map(([code, text]) => row(code, text, 6))
  return `terret · a durable agent harness

Usage: terret <command> [words] [flags]

Commands:
${commands.join('\n')}

\`terret --server URL COMMAND\` works with a server elsewhere (token: TERRET_TOKEN, or --token-file FILE).
\`terret --server COMMAND\` works with the server of this data folder that was started last.
A session's ID may be shortened as long as it is unique, or be "latest".
\`terret help COMMAND\` shows its flags. Most commands take --json.

Exit codes:
${codes.join('\n')}`
}

function helpOn(name: string, { words, says, flags }: Entry): string {
  const rows = Object.entries(flags).map(([flag, { short, takes, says: text }]) => {
    return row(`${short ? `-${short}, ` : '    '}--${flag}${takes ? ` ${takes}` : ''}`, text)
  })
  return `terret ${name}: ${says}\n\nUsage: terret ${name} ${words}\n\nFlags:\n${rows.join('\n')}`
}

function row(left: string, right: string, width = 26): string {
  const name = `  ${left}`.trimEnd()
  return name.length < width ? `${name.padEnd(width)}${right}` : `${name}\n${' '.repeat(width)}${right}`
}
