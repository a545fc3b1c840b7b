// `terret run`: gives an agent a task in this folder, in a new session or in an existing one.
import type { Harness } from '../../index.ts'
import type { CommandArgs } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { remoteClient } from '../state/remote-server.ts'
import { withOutputFormat } from '../present/output-format.ts'
import { startSessionIn } from '../state/session-folders.ts'
import { withStore, type CommandContext, findSession, workingFolder } from '../state/command-context.ts'
import { chosenAgent, readCommandSetup, driveAndReport } from '../state/drive-session.ts'

export async function runCommand(given: CommandArgs): Promise<number> {
  const call = withOutputFormat(given)
  const goesOn = call.is('continue')
  if (!goesOn && call.text('session') !== undefined)
    throw new CliError(EXIT.usage, '--session goes with --continue: terret run --continue --session ID TASK')
  if (goesOn && call.text('agent') !== undefined)
    throw new CliError(EXIT.usage, 'A session keeps its agent, so --agent and --continue exclude each other.')
  const task = await readTask(call.words)
  return withStore(async (place) => {
    const client = remoteClient(place.store)
    if (client)
      return (await import('../remote/remote-run.ts')).runRemotely(client, place, call, {
        task,
        outcome: await outcomeOf(call),
      })
    return goesOn ? continueSession(place, call, task) : runInNewSession(place, call, task)
  })
}

/** The words, with piped text as a file below them. A lone `-` stands for the piped text. */
async function readTask(words: readonly string[]): Promise<string> {
  const said = words
    .filter((word) => word !== '-')
    .join(' ')
    .trim()
  const { readStdin } = await import('../present/stdin.ts')
  const piped = await readStdin(words.includes('-'))
  if (piped === null && said === '')
    throw new CliError(
      EXIT.usage,
      'The task is missing. Usage: terret run TASK, or terret run - to read it from standard input',
    )
  if (piped === null || said === '') return piped?.trim() ?? said
  return `${said}\n\n<file name="standard input">\n${piped.trimEnd()}\n</file>`
}

async function runInNewSession(place: CommandContext, call: CommandArgs, input: string): Promise<number> {
  const setup = await readCommandSetup(place, place.folder, call)
  const agent = await chosenAgent(setup, call)
  const as = agent === undefined ? {} : { agent }
  const open = (harness: Harness) => startSessionIn(place, place.folder, (where) => harness.open({ ...where, ...as }))
  return driveAndReport(place, call, { setup, agent, open, input, outcome: await outcomeOf(call) })
}

/** Its code is loaded only where an outcome is asked for. */
async function outcomeOf(call: CommandArgs) {
  const given = ['outcome', 'rounds', 'usd'].some((flag) => call.text(flag) !== undefined)
  return given ? (await import('../present/pursuit-run.ts')).readOutcomeFlags(call) : null
}

async function continueSession(place: CommandContext, call: CommandArgs, input: string): Promise<number> {
  const { session: id, agent, seq: after } = await findSession(place, call.text('session') ?? 'latest')
  const setup = await readCommandSetup(place, await workingFolder(place, id), call, { agent })
  const open = (harness: Harness) => harness.session(id, { stored: true })
  return driveAndReport(place, call, { setup, agent, open, input, after, outcome: await outcomeOf(call) })
}
