// Cuts a recorded tree at an event of its root: what had happened everywhere by then. Sessions of one tree write some
// events in one commit (a child with the call that creates it, its end with the answer to its parent), and a cut keeps
// such events together. Pure.
import type { CallKey } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { PortableLog } from '../stores/move/portable-tree.ts'
import { harnessId } from '../stores/plan/store-ids.ts'
import { idsDownTo } from '../view/ids.ts'

/** How many events of each session had happened. A session that did not exist yet is missing. */
export type TreeCut = ReadonlyMap<string, number>

export function cutTree(logs: readonly PortableLog[], root: string, at: number): TreeCut {
  const events = new Map(logs.map((log) => [log.session, log.events]))
  const own = events.get(root) ?? []
  const cut = new Map([[root, withNotes(own, at)]])
  const time = own[at - 1]?.at ?? 0
  // A parent comes before its children, whose cuts depend on it.
  for (const { session, events: log } of logs.toSorted((a, b) => depthOf(a) - depthOf(b))) {
    const [created] = log
    if (session === root || created?.type !== 'session.created' || !created.parent) continue
    const { session: above, call } = created.parent
    const upTo = cut.get(above)
    const parent = events.get(above)
    if (upTo === undefined || !parent || !wasBorn(parent, call, upTo, created.at <= time)) continue
    cut.set(session, cutChild({ session, log, parent, upTo, time }))
  }
  return cut
}

function depthOf({ session }: PortableLog): number {
  return idsDownTo(session).length
}

/**
 * The notes that were written in one commit with this event belong to it. A correction is written with the request that
 * shows it, and would be written again without that.
 */
function withNotes(log: readonly Event[], at: number): number {
  let end = at
  while (log[end]?.type === 'note.added' && log[end]?.at === log[at - 1]?.at) end += 1
  const last = log[end - 1]
  const corrects = last?.type === 'note.added' && last.kind === 'correction'
  return corrects && log[end]?.type === 'model.started' ? end + 1 : end
}

/** A host may have started the child by itself, and then only the time says when. */
function wasBorn(parent: readonly Event[], call: CallKey, upTo: number, isInTime: boolean): boolean {
  const handed = parent.find((event) => event.type === 'agent.custom_tool_use' && event.call === call)
  return handed ? handed.seq <= upTo : isInTime && Number.parseInt(call, 10) <= upTo
}

type CutChild = {
  readonly session: string
  readonly log: readonly Event[]
  readonly parent: readonly Event[]
  readonly upTo: number
  readonly time: number
}

function cutChild({ session, log, parent, upTo, time }: CutChild): number {
  // The child and its task.
  let least = Math.min(2, log.length)
  let most = log.length
  /** The child's event was written together with this event of its parent. */
  const bind = (seq: number, parentSeq: number): void => {
    if (parentSeq <= upTo) least = Math.max(least, seq)
    else most = Math.min(most, seq - 1)
  }
  for (const event of parent) {
    const from = 'id' in event ? childSeqOf(event.id, session) : null
    if (from !== null && log[from - 1]) bind(from, event.seq)
  }
  const handed = new Map(
    parent.flatMap((event) => (event.type === 'agent.custom_tool_use' ? [[event.call, event.seq] as const] : [])),
  )
  for (const event of log) {
    const call = 'id' in event && event.epoch === 0 && event.seq > 2 ? handed.get(lastPart(event.id)) : undefined
    if (call !== undefined) bind(event.seq, call)
  }
  const byTime = log.findLastIndex(({ at }) => at <= time) + 1
  return withNotes(log, Math.max(least, Math.min(most, byTime)))
}

/** The seq in the child's own log that the id of its answer to the parent names. Questions name a call instead. */
function childSeqOf(id: string, child: string): number | null {
  const prefix = harnessId('child', child, '')
  if (!id.startsWith(prefix)) return null
  const [of = ''] = id.slice(prefix.length).split(':')
  return /^\d+$/.test(of) ? Number(of) : Number.parseInt(of, 10) || null
}

function lastPart(id: string): string {
  return id.slice(id.lastIndexOf(':') + 1)
}
