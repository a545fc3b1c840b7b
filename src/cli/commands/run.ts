// `terret run`: an agent on a task in this folder, in a new session or in one that goes on.
import type { Harness } from '../../index.ts'
import type { Call } from '../args.ts'
import { EXIT, Refusal } from '../exit.ts'
import { clientOf } from '../state/far.ts'
import { startIn } from '../state/folders.ts'
import { inPlace, type Place, sessionOf, workplaceOf } from '../state/place.ts'
import { agentWanted, type Ear, setupOf, withHarness, work } from '../state/work.ts'

export async function run(call: Call): Promise<number> {
  const goesOn = call.is('continue')
  if (!goesOn && call.text('session') !== undefined)
    throw new Refusal(EXIT.usage, '--session goes with --continue: terret run --continue --session ID TASK')
  if (goesOn && call.text('agent') !== undefined)
    throw new Refusal(EXIT.usage, 'A session keeps its agent, so --agent and --continue exclude each other.')
  const task = await readTask(call.words)
  return inPlace(async (place) => {
    const client = clientOf(place.store)
    if (client) return (await import('../remote/driven.ts')).farRun(client, place, call, task)
    return goesOn ? goOn(place, call, task) : begin(place, call, task)
  })
}

/** The words, with what is piped in as a file below them. A lone `-` stands for what is piped in. */
async function readTask(words: readonly string[]): Promise<string> {
  const said = words
    .filter((word) => word !== '-')
    .join(' ')
    .trim()
  const { readStdin } = await import('../present/stdin.ts')
  const piped = await readStdin(words.includes('-'))
  if (piped === null && said === '')
    throw new Refusal(
      EXIT.usage,
      'The task is missing. Usage: terret run TASK, or terret run - to read it from standard input',
    )
  if (piped === null || said === '') return piped?.trim() ?? said
  return `${said}\n\n<file name="standard input">\n${piped.trimEnd()}\n</file>`
}

async function begin(place: Place, call: Call, task: string): Promise<number> {
  const setup = await setupOf(place, place.folder, call)
  const agent = await agentWanted(setup, call)
  const drive = async (harness: Harness, ear: Ear): Promise<number> => {
    const as = agent === undefined ? {} : { agent }
    const session = await startIn(place, place.folder, (where) => harness.open({ ...where, ...as }))
    return work(call, { store: place.store, harness, setup, session, ear, ...as }, (deltas) =>
      session.stream(task, { deltas }),
    )
  }
  return withHarness(place, setup, call, drive, agent)
}

async function goOn(place: Place, call: Call, task: string): Promise<number> {
  const { session: id, agent } = await sessionOf(place, call.text('session') ?? 'latest')
  const setup = await setupOf(place, await workplaceOf(place, id), call, agent)
  const drive = (harness: Harness, ear: Ear): Promise<number> => {
    const session = harness.session(id, { stored: true })
    return work(call, { store: place.store, harness, setup, session, ear, agent }, (deltas) =>
      session.stream(task, { deltas }),
    )
  }
  return withHarness(place, setup, call, drive, agent)
}
