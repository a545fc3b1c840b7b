// `terret undo`: reverts the file changes of a run. Files changed since then are left alone.
import type { UndoneCall } from '../../index.ts'
import type { CommandArgs } from '../args.ts'
import { fileToolsOf } from '../state/folder-agent.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT } from '../exit.ts'
import { remoteClient } from '../state/remote-server.ts'
import { withStore, type CommandContext, findSession, workingFolder } from '../state/command-context.ts'
import { print, printJson, warn } from '../present/print.ts'
import { PROGRAM } from '../state/own-program.ts'
import { workflowParts, workflowOfAgent } from '../state/workflow-agents.ts'

export const UNDO_TEXTS = {
  restored: 'put back as it was',
  removed: 'removed, as it was new',
  changed_since: 'left alone: it was changed since',
  not_kept: 'left alone: the old content was not kept',
} as const

export function undoCommand(call: CommandArgs): Promise<number> {
  return withStore(async (place) => {
    const { session, agent } = await findSession(place, call.words[0] ?? '')
    const workflow = workflowOfAgent(agent)
    const undone = await undoInSession(place, session, agent, call.count('run'))
    if (call.is('json')) printJson({ session, undone })
    else if (undone.length === 0)
      warn(workflow === null ? 'There was nothing to take back.' : 'The file of a report is not taken back.')
    else for (const { what, result } of undone) print(`${oneLine(what)}: ${UNDO_TEXTS[result]}`)
    return undone.every(({ result }) => result === 'restored' || result === 'removed') ? EXIT.ok : EXIT.conflict
  })
}

async function undoInSession(
  place: CommandContext,
  session: string,
  agent: string,
  run: number | undefined,
): Promise<readonly UndoneCall[]> {
  const client = remoteClient(place.store)
  if (client) return client.session(session).undo(run)
  const folder = await workingFolder(place, session)
  const tools = await fileToolsOf(folder)
  const { Harness, offline } = await import('../../index.ts')
  const workflow = workflowOfAgent(agent)
  const parts = workflow === null ? {} : await workflowParts(workflow, folder)
  const harness = new Harness({
    program: PROGRAM,
    model: offline(),
    tools,
    store: place.store,
    worker: { drives: false },
    ...parts,
  })
  try {
    return await harness.session(session, { stored: true }).undo(run)
  } finally {
    await harness.close()
  }
}
