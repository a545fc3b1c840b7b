// The log against the client's journal: what was promised is there, once, in its place, and as it was sent. Pure.
import type { Event } from '../../src/kernel/event.ts'
import { digestOf, type JournalLine } from './evidence.ts'

export type JournalReport = {
  readonly wrong: readonly string[]
  readonly acknowledged: number
  readonly lost: number
  readonly duplicated: number
}

/** `logs` by session, each whole. */
export function checkJournal(
  journal: readonly JournalLine[],
  logs: ReadonlyMap<string, readonly Event[]>,
): JournalReport {
  const wrong: string[] = []
  const tried = new Map<string, string>()
  const promised = new Map<string, number>()
  let lost = 0
  for (const line of journal) {
    const name = `${line.session} ${line.id}`
    if (line.type === 'try') tried.set(name, line.digest)
    else if (line.type === 'refused') wrong.push(`${name} was refused: ${line.reason}`)
    else {
      const before = promised.get(name) ?? line.seq
      if (before !== line.seq) wrong.push(`${name} was promised at ${before}, and again at ${line.seq}`)
      promised.set(name, before)
    }
  }
  for (const line of new Map(journal.map((entry) => [`${entry.session} ${entry.id}`, entry])).values()) {
    const name = `${line.session} ${line.id}`
    const seq = promised.get(name)
    if (seq === undefined) continue
    const event = logs.get(line.session)?.[seq - 1]
    if (event && digestOf(bodyOf(event)) === tried.get(name)) continue
    lost += 1
    wrong.push(`lost: ${name} was acknowledged at ${seq}, where ${event ? `a ${event.type}` : 'nothing'} is`)
  }
  const strangers = checkInbox(logs, tried)
  return { wrong: [...wrong, ...strangers.wrong], acknowledged: promised.size, lost, duplicated: strangers.duplicated }
}

/** Also what was never acknowledged may be there: once, and as it was sent. Nothing else may. */
function checkInbox(
  logs: ReadonlyMap<string, readonly Event[]>,
  tried: ReadonlyMap<string, string>,
): { readonly wrong: readonly string[]; readonly duplicated: number } {
  const wrong: string[] = []
  let duplicated = 0
  for (const [session, events] of logs) {
    const seen = new Set<string>()
    for (const event of events) {
      if (event.epoch !== 0) continue
      const id = 'id' in event ? event.id : event.type === 'session.created' ? 'created' : event.type
      // What the harness itself sends between parents and children is for tree-check.ts.
      if (id.startsWith('terret:') || (event.type === 'session.created' && event.parent)) continue
      if (seen.has(id)) duplicated += 1
      seen.add(id)
      if (tried.get(`${session} ${id}`) === digestOf(bodyOf(event))) continue
      wrong.push(`${session}: event ${event.seq} (${event.type}, ${id}) is not what anybody sent`)
    }
  }
  return { wrong, duplicated }
}

function bodyOf(event: Event): object {
  const { seq: _seq, at: _at, wall: _wall, epoch: _epoch, ...body } = event
  return body
}
