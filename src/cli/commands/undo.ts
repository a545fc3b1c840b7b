// `terret undo`: reverts the file changes of a run. Files changed since then are left alone.
import type { UndoneCall } from '../../index.ts'
import type { Call } from '../args.ts'
import { fileToolsOf } from '../state/agent.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT } from '../exit.ts'
import { clientOf } from '../state/far.ts'
import { inPlace, type Place, sessionOf, workplaceOf } from '../state/place.ts'
import { print, printJson, warn } from '../present/print.ts'
import { PROGRAM } from '../state/program.ts'
import { partsOf, workflowOf } from '../state/workflows.ts'

export const SAID = {
  restored: 'put back as it was',
  removed: 'removed, as it was new',
  changed_since: 'left alone: it was changed since',
  not_kept: 'left alone: the old content was not kept',
} as const

export function undo(call: Call): Promise<number> {
  return inPlace(async (place) => {
    const { session, agent } = await sessionOf(place, call.words[0] ?? '')
    const workflow = workflowOf(agent)
    const undone = await undoneIn(place, session, agent, call.count('run'))
    if (call.is('json')) printJson({ session, undone })
    else if (undone.length === 0)
      warn(workflow === null ? 'There was nothing to take back.' : 'The file of a report is not taken back.')
    else for (const { what, result } of undone) print(`${oneLine(what)}: ${SAID[result]}`)
    return undone.every(({ result }) => result === 'restored' || result === 'removed') ? EXIT.ok : EXIT.conflict
  })
}

async function undoneIn(
  place: Place,
  session: string,
  agent: string,
  run: number | undefined,
): Promise<readonly UndoneCall[]> {
  const client = clientOf(place.store)
  if (client) return (await client.session(session).undo(run)) as unknown as readonly UndoneCall[]
  const folder = await workplaceOf(place, session)
  const tools = await fileToolsOf(folder)
  const { Harness, offline } = await import('../../index.ts')
  const workflow = workflowOf(agent)
  const parts = workflow === null ? {} : await partsOf(workflow, folder)
  const harness = new Harness({
    program: PROGRAM,
    model: offline(),
    tools,
    store: place.store,
    drives: false,
    ...parts,
  })
  try {
    return await harness.session(session, { stored: true }).undo(run)
  } finally {
    await harness.close()
  }
}
