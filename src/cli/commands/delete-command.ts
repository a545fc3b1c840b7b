// `terret delete`: removes one session for good, with its children and its files outside the database. First it shows
// the session that would be lost.
import { countNoun } from '../../view/shown-text.ts'
import type { Card } from '../../kernel/index.ts'
import { type CommandArgs, actorName } from '../args.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import { EXIT, isDiskFull, CliError } from '../exit.ts'
import { removalRefusal } from '../state/disk-space.ts'
import { remoteClient } from '../state/remote-server.ts'
import { folderOf } from '../state/session-folders.ts'
import { sweepFiles, warnOfWorktrees } from '../state/leftovers.ts'
import { withStore, type CommandContext, findSession } from '../state/command-context.ts'
import { askPerson, isAttended, print, printJson, shortId, warn, terretCommand } from '../present/print.ts'
import { withoutDriving } from '../state/without-driving.ts'
import { sessionTask } from './list-command.ts'
import { stateOf } from '../../view/tree-rows.ts'

export function deleteCommand(call: CommandArgs): Promise<number> {
  return withStore(async (place) => {
    const card = await findSession(place, call.words[0] ?? '')
    const { session } = card
    const folder = await folderOf(place, session)
    if (!(await confirmRemoval(place, call, card))) {
      warn('Nothing was removed.')
      return EXIT.interrupted
    }
    const removed = await withoutDriving(place, (harness) => harness.remove(session, { by: actorName(call) })).catch(
      (error: unknown) => {
        throw isDiskFull(error) ? removalRefusal() : error
      },
    )
    const left = removed.flatMap((each) => each.worktrees ?? [])
    warnOfWorktrees(left)
    if (!remoteClient(place.store)) await sweepFiles(place.home, removed)
    const events = removed.reduce((sum, each) => sum + each.events, 0)
    const bytes = removed.reduce((sum, each) => sum + each.bytes, 0)
    if (call.is('json')) printJson({ session, folder, events, bytes, removed, worktrees: left.map(({ path }) => path) })
    else print(`Removed session ${shortId(session)} for good: ${countNoun(events, 'event')}, ${formatSize(bytes)}.`)
    return EXIT.ok
  })
}

/** Shows the session. At a terminal it asks; elsewhere `--yes` is required. */
async function confirmRemoval(place: CommandContext, call: CommandArgs, card: Card): Promise<boolean> {
  const { session } = card
  const sure = call.is('yes')
  if (!sure && (call.is('json') || !isAttended())) {
    const what = `Session ${shortId(session)} has ${countNoun(card.seq, 'event')}, and is gone for good when it is removed.`
    throw new CliError(EXIT.usage, `${what} Confirm with: ${terretCommand`delete ${session} --yes`}`)
  }
  if (!call.is('json')) for (const line of await lossLines(place, card)) warn(line)
  if (sure) return true
  return /^y(es)?$/i.test((await askPerson('Remove it for good? [y/N] '))?.trim() ?? '')
}

async function lossLines(place: CommandContext, card: Card): Promise<readonly string[]> {
  const { session, root, at } = card
  const { store } = place
  const family = session === root ? await store.list({ root, limit: FAMILY_MAX }) : [card]
  const events = family.reduce((sum, { seq }) => sum + seq, 0)
  const children = family.length > 1 ? `, with ${countNoun(family.length - 1, 'subagent session')}` : ''
  const next = card.due === null ? '' : `; it would go on ${formatTime(card.due)}`
  return [
    `Session   ${shownId(session)}`,
    `State     ${stateOf(card)}${next}`,
    `Folder    ${oneLine((await folderOf(place, session)) ?? 'not known', 400)}`,
    `Task      ${oneLine(await sessionTask(store, session), 400)}`,
    `Events    ${events}${children}, the last one ${formatTime(at)}`,
  ]
}

const FAMILY_MAX = 10_000

export function formatTime(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace('T', ' ')
}

export function formatSize(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}
