// What the rounds of twenty children have shown: ends close together while the parent worked, and kills between a child's order and its
// begin, or between its end and the request that shows it. Read from the logs and the times of the kills. Pure; the checks are elsewhere.
import type { Event } from '../../src/kernel/event.ts'
import type { Logs } from './tree-check.ts'

/** Children that end so close together are read in a few requests. */
const CLOSE_MS = 1_000

export class Rows {
  /** Requests that showed reports, one number a round. */
  readonly requests: number[] = []
  /** Rounds whose children ended within a second while their parent worked, and of those the ones read in at most two requests. */
  close = 0
  closeInTwo = 0
  /** Children that a kill struck, and the rounds of them. */
  readonly unbegun = { children: 0, rounds: 0 }
  readonly unread = { children: 0, rounds: 0 }

  take(root: string, logs: Logs, kills: readonly number[]): void {
    const above = logs.get(root) ?? []
    const children = [...logs].flatMap(([id, events]) => (id === root ? [] : [{ id, events }]))
    const ends = children.flatMap(({ events }) => timeOf(events, 'run.settled') ?? [])
    const shown = requestsWithReports(above)
    this.requests.push(shown)
    if (Math.max(...ends) - Math.min(...ends) <= CLOSE_MS && worked(above, Math.min(...ends), Math.max(...ends))) {
      this.close += 1
      if (shown <= 2) this.closeInTwo += 1
    }
    const between = (from: number | null, to: number | null): boolean =>
      from !== null && to !== null && kills.some((at) => from <= at && at <= to)
    count(
      this.unbegun,
      children.filter(({ events }) => between(timeOf(events, 'session.created'), timeOf(events, 'run.started'))),
    )
    count(
      this.unread,
      children.filter(({ id, events }) => between(timeOf(events, 'run.settled'), readAt(above, id))),
    )
  }

  get text(): readonly string[] {
    const { close, closeInTwo, unbegun, unread } = this
    const sorted = this.requests.toSorted((a, b) => a - b)
    const [middle, most] = [sorted[sorted.length >> 1], sorted.at(-1)]
    return [
      `requests that showed the reports of a round: ${middle} in the middle, ${most} at most`,
      `all ended within a second while their parent worked: ${close} rounds, ${closeInTwo} of them read in at most two requests`,
      `children struck between order and begin ${unbegun.children} in ${unbegun.rounds} rounds, between end and delivery ${unread.children} in ${unread.rounds} rounds`,
    ]
  }

  /** What a run of many rounds must have shown. */
  get missed(): readonly string[] {
    const { close, unbegun, unread } = this
    const wrong = close > 0 ? [] : ['in no round all children ended within a second while their parent worked']
    if (unbegun.children === 0) wrong.push('no kill fell between the order of a child and its begin')
    if (unread.children === 0) wrong.push('no kill fell between the end of a child and its delivery')
    return wrong
  }
}

function count(sums: { children: number; rounds: number }, struck: readonly unknown[]): void {
  sums.children += struck.length
  if (struck.length > 0) sums.rounds += 1
}

/** When something happened for the first time. */
function timeOf(events: readonly Event[], type: Event['type']): number | null {
  return events.find((event) => event.type === type)?.at ?? null
}

/** Was one run of it open from the first of these times to the second? */
function worked(events: readonly Event[], from: number, to: number): boolean {
  const begun = events.findLastIndex((event) => event.type === 'run.started' && event.at <= from)
  const end = events.slice(begun).find((event) => event.type === 'run.settled')
  return begun >= 0 && end !== undefined && end.at >= to
}

/** When the first request was written that shows a report of this child. */
function readAt(events: readonly Event[], child: string): number | null {
  const report = events.find((event) => event.type === 'user.message' && event.by === `session:${child}`)
  const request = events.find(
    (event) => report !== undefined && event.type === 'model.started' && event.shows.includes(report.seq),
  )
  return request?.at ?? null
}

function requestsWithReports(events: readonly Event[]): number {
  const reports = new Set(
    events.flatMap((event) => (event.type === 'user.message' && event.report !== undefined ? [event.seq] : [])),
  )
  return events.filter((event) => event.type === 'model.started' && event.shows.some((seq) => reports.has(seq))).length
}
