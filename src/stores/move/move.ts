// Moves all sessions of a store to another one, and proves it: both sides are read, row by row, and must have one digest. Killed at any
// point, the source is as it was or says where it was moved to, and the same move again comes to its end. It knows no kind of store.
import { Fault } from '../../kernel/failure.ts'
import { Digest, miscounted } from './digest.ts'
import type { Counts, MoveMark, Reader, Row, Source, Target } from './rows.ts'

/** `finished`: an earlier move had come as far as the proof, and was killed. */
export type Moved = {
  readonly digest: string
  readonly counts: Counts
  readonly bytes: number
  readonly finished: boolean
}
export type MoveStep = 'copy' | 'prove'
/** Called with each piece: how many events of how many are done. */
export type MoveProgress = (step: MoveStep, events: number, of: number) => void

export async function moveStore(source: Source, target: Target, now: number, tell: MoveProgress): Promise<Moved> {
  if (source.id === target.id)
    throw new Fault('invalid_input', `${target.name} is the store that would be moved. Name another one.`)
  const left = await source.movedTo()
  // Only the last step of an earlier move may be missing. Nothing was written to either of them since.
  if (left && left.id !== target.id) throw new Fault('store_replaced', left.text)
  await refuseDriven(source)
  await makeRoom(source, target, left)
  const from = markOf(source, now, `A move from ${source.name} to here is not finished. Run it again to finish it.`)
  let read: Read
  try {
    read = await copied(source, target, from, tell)
  } catch (error) {
    // Even if it cannot be emptied now, it takes no writes, and the next move empties it first.
    await target.clear().catch(() => {})
    throw error
  }
  if (!left) await source.leave(markOf(target, now, movedText(source, target, now)))
  await target.finish()
  return { ...read, finished: left !== null }
}

type Read = Pick<Moved, 'digest' | 'counts' | 'bytes'>

function markOf({ id, name }: Reader, at: number, text: string): MoveMark {
  return { id, name, at, text }
}

function movedText(source: Reader, target: Reader, now: number): string {
  const day = new Date(now).toISOString().slice(0, 10)
  return `${source.name} was moved to ${target.name} on ${day}, and nothing more is written here. Use that store: set TERRET_STORE, or "store" in the configuration.`
}

async function refuseDriven(source: Source): Promise<void> {
  const driven = await source.driven()
  if (driven.length === 0) return
  const which = driven.length === 1 ? `Session ${driven[0]} is driven` : `Sessions are driven (${driven.join(', ')}…)`
  throw new Fault(
    'session_busy',
    `${which} now. Stop the workers, servers and runs of this store, wait ten seconds, and move it then.`,
  )
}

async function makeRoom(source: Source, target: Target, left: MoveMark | null): Promise<void> {
  const state = await target.state()
  if (state.type === 'empty') return
  if (state.type === 'arriving' && state.from.id === source.id) return target.clear()
  if (left) throw new Fault('store_replaced', left.text)
  const has = state.type === 'arriving' ? `has an unfinished move from ${state.from.name}` : 'is not empty'
  throw new Fault('conflict', `${target.name} ${has}. Name an empty store: a new file, or a new database.`)
}

/** Copies, and reads back what is there then. */
async function copied(source: Source, target: Target, from: MoveMark, tell: MoveProgress): Promise<Read> {
  const counts = await source.counts()
  const sent = new Digest()
  await target.fill(
    from,
    through(source.rows(), sent, (events) => tell('copy', events, counts.event)),
  )
  const unread = miscounted(sent.counts, counts)
  if (unread !== null)
    throw new Fault('store_damaged', `${source.name} has rows (${unread}) that belong to no session. It was not moved.`)
  const found = new Digest()
  const back = through(target.rows(), found, (events) => tell('prove', events, counts.event))
  for await (const _piece of back);
  const digest = sent.end()
  if (found.end() !== digest || miscounted(await target.counts(), counts) !== null)
    throw new Fault(
      'store_damaged',
      `${target.name} does not hold what was sent to it, and was emptied. ${source.name} is as it was.`,
    )
  return { digest, counts, bytes: sent.bytes }
}

async function* through(
  rows: AsyncIterable<readonly Row[]>,
  digest: Digest,
  tell: (events: number) => void,
): AsyncGenerator<readonly Row[]> {
  for await (const piece of rows) {
    for (const row of piece) digest.add(row)
    yield piece
    tell(digest.counts.event)
  }
}
