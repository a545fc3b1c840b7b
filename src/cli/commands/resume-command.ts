// `terret resume`: continues a session: drives open work, ends a pause, releases an imported session, and continues an
// unfinished run.
import type { Harness } from '../../index.ts'
import type { Card } from '../../kernel/index.ts'
import { type CommandArgs, actorName } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { withOutputFormat } from '../present/output-format.ts'
import { remoteClient } from '../state/remote-server.ts'
import { readAllEvents, foldAll } from '../state/read-log.ts'
import { withStore, type CommandContext, findSession, workingFolder } from '../state/command-context.ts'
import { shortId, terretCommand } from '../present/print.ts'
import { readCommandSetup, driveAndReport } from '../state/drive-session.ts'
import { isWorkflowAgent } from '../state/workflow-agents.ts'

export function resumeCommand(given: CommandArgs): Promise<number> {
  const call = withOutputFormat(given)
  const [name = '', ...words] = call.words
  return withStore(async (place) => {
    const card = await findSession(place, name)
    const message = words.join(' ').trim()
    return resumeSession(place, card, call, message)
  })
}

export async function resumeSession(
  place: CommandContext,
  card: Card,
  call: CommandArgs,
  message = '',
): Promise<number> {
  const { session: id, status, agent } = card
  if (status === 'terminated')
    throw new CliError(
      EXIT.conflict,
      `Session ${shortId(id)} is closed. \`${terretCommand`fork ${id}`}\` goes on from it.`,
    )
  const said = message !== '' ? message : wasCutShort(card) ? goOnInput(card) : ''
  if (said === '' && isUnused(card)) {
    const go = terretCommand`run --continue --session ${id} TASK`
    throw new CliError(EXIT.conflict, `Session ${shortId(id)} has had no run yet. Give it something to do: ${go}`)
  }
  const client = remoteClient(place.store)
  if (client) {
    const { sendRemotely } = await import('../remote/remote-run.ts')
    return sendRemotely(client, place, call, { id, task: said, after: card.seq })
  }
  const setup = await readCommandSetup(place, await workingFolder(place, id), call, { agent })
  const { paused, held, run } = foldAll(await readAllEvents(place.store, id))
  const open = async (harness: Harness) => {
    const session = harness.session(id, { stored: true })
    if (paused || held || (said === '' && mayWaitForProvider(card)))
      await session.send([{ type: 'resume' }], { by: actorName(call) })
    return session
  }
  const input = said === '' ? undefined : said
  return driveAndReport(place, call, { setup, agent, open, input, after: card.seq, calls: run?.turn?.open ?? [] })
}

/**
 * The session waits for an unavailable provider, or for children that may wait for one. A person who resumes it wants
 * the next try now.
 */
function mayWaitForProvider({ outage, status, waits }: Card): boolean {
  return outage !== undefined || (status === 'running' && waits.length > 0)
}

/** A workflow takes JSON, not text. */
function goOnInput({ agent }: Card): string {
  return isWorkflowAgent(agent) ? '{"retry":true}' : 'Go on.'
}

/** The session is idle but did not complete. A forked workflow is idle before its first run. */
function wasCutShort({ status, outcome, due, agent }: Card): boolean {
  const begun = outcome !== null || isWorkflowAgent(agent)
  return status === 'idle' && due === null && begun && outcome !== 'completed'
}

/**
 * The session waits for nothing and never had a run. A quarantined session has a message that no worker tries any more,
 * so it does not count.
 */
function isUnused({ status, outcome, due, agent, trouble, held }: Card): boolean {
  return status === 'idle' && due === null && outcome === null && !isWorkflowAgent(agent) && !trouble && !held
}
