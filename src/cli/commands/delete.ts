// `terret delete`: removes one session for good, with its children and its files outside the database. It first shows what is lost.
import type { Card } from '../../kernel/index.ts'
import { type Call, person } from '../args.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import { EXIT, isDiskFull, Refusal } from '../exit.ts'
import { removalRefusal } from '../state/disk.ts'
import { clientOf } from '../state/far.ts'
import { folderOf } from '../state/folders.ts'
import { sweep, warnOfWorktrees } from '../state/leftovers.ts'
import { inPlace, type Place, sessionOf } from '../state/place.ts'
import { ask, isAttended, print, printJson, shortId, warn, typed } from '../present/print.ts'
import { aside } from '../state/without-driving.ts'
import { taskOf } from './list.ts'
import { stateOf } from '../../view/tree.ts'

export function deleteOne(call: Call): Promise<number> {
  return inPlace(async (place) => {
    const card = await sessionOf(place, call.words[0] ?? '')
    const { session } = card
    const folder = await folderOf(place, session)
    if (!(await isMeant(place, call, card))) {
      warn('Nothing was removed.')
      return EXIT.interrupted
    }
    const removed = await aside(place, (harness) => harness.remove(session, { by: person(call) })).catch(
      (error: unknown) => {
        throw isDiskFull(error) ? removalRefusal() : error
      },
    )
    const left = removed.flatMap((each) => each.worktrees ?? [])
    warnOfWorktrees(left)
    if (!clientOf(place.store)) await sweep(place.home, removed)
    const events = removed.reduce((sum, each) => sum + each.events, 0)
    const bytes = removed.reduce((sum, each) => sum + each.bytes, 0)
    if (call.is('json')) printJson({ session, folder, events, bytes, removed, worktrees: left.map(({ path }) => path) })
    else print(`Removed session ${shortId(session)} for good: ${countOf(events, 'event')}, ${sizeOf(bytes)}.`)
    return EXIT.ok
  })
}

/** Shows what is lost. At a terminal it asks; elsewhere `--yes` is required. */
async function isMeant(place: Place, call: Call, card: Card): Promise<boolean> {
  const { session } = card
  const sure = call.is('yes')
  if (!sure && (call.is('json') || !isAttended())) {
    const what = `Session ${shortId(session)} has ${countOf(card.seq, 'event')}, and is gone for good when it is removed.`
    throw new Refusal(EXIT.usage, `${what} Confirm with: ${typed`delete ${session} --yes`}`)
  }
  if (!call.is('json')) for (const line of await lossOf(place, card)) warn(line)
  if (sure) return true
  return /^y(es)?$/i.test((await ask('Remove it for good? [y/N] '))?.trim() ?? '')
}

async function lossOf(place: Place, card: Card): Promise<readonly string[]> {
  const { session, root, at } = card
  const { store } = place
  const family = session === root ? await store.list({ root, limit: FAMILY_MAX }) : [card]
  const events = family.reduce((sum, { seq }) => sum + seq, 0)
  const children = family.length > 1 ? `, with ${countOf(family.length - 1, 'subagent session')}` : ''
  const next = card.due === null ? '' : `; it would go on ${whenOf(card.due)}`
  return [
    `Session   ${shownId(session)}`,
    `State     ${stateOf(card)}${next}`,
    `Folder    ${oneLine((await folderOf(place, session)) ?? 'not known', 400)}`,
    `Task      ${oneLine(await taskOf(store, session), 400)}`,
    `Events    ${events}${children}, the last one ${whenOf(at)}`,
  ]
}

const FAMILY_MAX = 10_000

export function whenOf(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace('T', ' ')
}

export function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

export function sizeOf(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}
