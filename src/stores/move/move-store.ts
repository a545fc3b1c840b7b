// Moves all sessions of a store to another one and proves it: both sides are read row by row and must have the same
// digest. If the process is killed at any point, the source is unchanged or says where it was moved to, and the same
// move can be run again to finish. It knows no kind of store.
import { Fault } from '../../kernel/failure.ts'
import { RowDigest, findMiscount } from './row-digest.ts'
import type { MoveCounts, MoveMark, StoreReader, MoveRow, MoveSource, MoveTarget } from './move-rows.ts'

/** `finished`: an earlier move was killed after its proof, and this one completed it. */
export type MoveResult = {
  readonly digest: string
  readonly counts: MoveCounts
  readonly bytes: number
  readonly finished: boolean
}
export type MoveStep = 'copy' | 'prove'
/** Called after each piece: how many events are done, and of how many. */
export type MoveProgress = (step: MoveStep, events: number, of: number) => void

export async function moveStore(
  source: MoveSource,
  target: MoveTarget,
  now: number,
  tell: MoveProgress,
): Promise<MoveResult> {
  if (source.id === target.id)
    throw new Fault('invalid_input', `${target.name} is the store that would be moved. Name another one.`)
  const left = await source.movedTo()
  // Only the last step of an earlier move may be missing. Nothing was written to either store since.
  if (left && left.id !== target.id) throw new Fault('store_replaced', left.text)
  await refuseIfDriven(source)
  await prepareTarget(source, target, left)
  const from = markOf(source, now, `A move from ${source.name} to here is not finished. Run it again to finish it.`)
  let read: MoveProof
  try {
    read = await copyRows(source, target, from, tell)
  } catch (error) {
    // Even if it cannot be emptied now, it takes no writes, and the next move empties it first.
    await target.clear().catch(() => {})
    throw error
  }
  if (!left) await source.leave(markOf(target, now, movedText(source, target, now)))
  await target.finish()
  return { ...read, finished: left !== null }
}

type MoveProof = Pick<MoveResult, 'digest' | 'counts' | 'bytes'>

function markOf({ id, name }: StoreReader, at: number, text: string): MoveMark {
  return { id, name, at, text }
}

function movedText(source: StoreReader, target: StoreReader, now: number): string {
  const day = new Date(now).toISOString().slice(0, 10)
  return `${source.name} was moved to ${target.name} on ${day}, and nothing more is written here. Use that store: set TERRET_STORE, or "store" in the configuration.`
}

async function refuseIfDriven(source: MoveSource): Promise<void> {
  const driven = await source.driven()
  if (driven.length === 0) return
  const which = driven.length === 1 ? `Session ${driven[0]} is driven` : `Sessions are driven (${driven.join(', ')}…)`
  throw new Fault(
    'session_busy',
    `${which} now. Stop the workers, servers and runs of this store, wait ten seconds, and move it then.`,
  )
}

async function prepareTarget(source: MoveSource, target: MoveTarget, left: MoveMark | null): Promise<void> {
  const state = await target.state()
  if (state.type === 'empty') return
  if (state.type === 'arriving' && state.from.id === source.id) return target.clear()
  if (left) throw new Fault('store_replaced', left.text)
  const has = state.type === 'arriving' ? `has an unfinished move from ${state.from.name}` : 'is not empty'
  throw new Fault('conflict', `${target.name} ${has}. Name an empty store: a new file, or a new database.`)
}

/** Copies the rows, then reads them back. */
async function copyRows(
  source: MoveSource,
  target: MoveTarget,
  from: MoveMark,
  tell: MoveProgress,
): Promise<MoveProof> {
  const counts = await source.counts()
  const sent = new RowDigest()
  await target.fill(
    from,
    digestRows(source.rows(), sent, (events) => tell('copy', events, counts.event)),
  )
  const unread = findMiscount(sent.counts, counts)
  if (unread !== null)
    throw new Fault('store_damaged', `${source.name} has rows (${unread}) that belong to no session. It was not moved.`)
  const found = new RowDigest()
  const back = digestRows(target.rows(), found, (events) => tell('prove', events, counts.event))
  for await (const _piece of back);
  const digest = sent.end()
  if (found.end() !== digest || findMiscount(await target.counts(), counts) !== null)
    throw new Fault(
      'store_damaged',
      `${target.name} does not hold what was sent to it, and was emptied. ${source.name} is as it was.`,
    )
  return { digest, counts, bytes: sent.bytes }
}

async function* digestRows(
  rows: AsyncIterable<readonly MoveRow[]>,
  digest: RowDigest,
  tell: (events: number) => void,
): AsyncGenerator<readonly MoveRow[]> {
  for await (const piece of rows) {
    for (const row of piece) digest.add(row)
    yield piece
    tell(digest.counts.event)
  }
}
