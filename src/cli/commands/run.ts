// `terret run`: an agent on a task in this folder, in a new session or in one that goes on.
import type { Harness } from '../../index.ts'
import type { Call } from '../args.ts'
import { EXIT, Refusal } from '../exit.ts'
import { clientOf } from '../state/far.ts'
import { startIn } from '../state/folders.ts'
import { inPlace, type Place, sessionOf, workplaceOf } from '../state/place.ts'
import { agentWanted, type Ear, setupOf, withHarness, work } from '../state/work.ts'

export async function run(call: Call): Promise<number> {
  const task = call.words.join(' ').trim()
  const goesOn = call.is('continue')
  if (task === '') throw new Refusal(EXIT.usage, 'The task is missing. Usage: terret run TASK')
  if (!goesOn && call.text('session') !== undefined)
    throw new Refusal(EXIT.usage, '--session goes with --continue: terret run --continue --session ID TASK')
  if (goesOn && call.text('agent') !== undefined)
    throw new Refusal(EXIT.usage, 'A session keeps its agent, so --agent and --continue exclude each other.')
  return inPlace(async (place) => {
    const client = clientOf(place.store)
    if (client) return (await import('../remote/driven.ts')).farRun(client, place, call, task)
    return goesOn ? goOn(place, call, task) : begin(place, call, task)
  })
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
