// Reads the events of a session, or of one of its runs, a page at a time: from a store, or from a server.
import type { Event } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Page, Store } from '../ports/store.ts'

type LogPages = Pick<Store, 'read'>

/** Which events are read. */
export type EventsFilter = {
  /** Only the events of the run whose `run.started` has this seq, to its end. Default: all events. */
  readonly run?: number
  /** Only events after this seq. Default 0: from the beginning. */
  readonly after?: number
  /** How many events at most. Default and maximum 1,000. */
  readonly limit?: number
}
/** A page of events. */
export type EventPage = Page & {
  /** The `after` of the next page. Null if there is nothing more now. */
  readonly next: number | null
}

const EVENTS_MAX = 1_000

export async function readEventPage(log: LogPages, session: string, filter: EventsFilter): Promise<EventPage> {
  const { run, after = 0, limit = EVENTS_MAX } = filter
  const size = Math.min(Math.max(limit, 1), EVENTS_MAX)
  try {
    if (run === undefined) return cutPage(size, await log.read(session, after, size + 1))
    if (!(await isRunOpenAfter(log, session, run, after))) return NOTHING
    const page = await log.read(session, Math.max(after, run - 1), size + 1)
    const end = page.events.findIndex(({ type }) => type === 'run.settled')
    return cutPage(size, end < 0 ? page : { events: page.events.slice(0, end + 1) })
  } catch (error) {
    if (isMissing(error)) return NOTHING
    throw error
  }
}

const NOTHING: EventPage = { events: [], next: null }

/** One event more than the page holds was read, to know whether there is a next page. */
function cutPage(size: number, page: Page): EventPage {
  const { events } = page
  if (events.length <= size) return { ...page, next: null }
  const kept = events.slice(0, size)
  return { events: kept, next: kept.at(-1)?.seq ?? null }
}

/** Whether a run began at this seq and was still open after that one. Only the log knows where it ended. */
async function isRunOpenAfter(log: LogPages, session: string, run: number, after: number): Promise<boolean> {
  for (let from = run - 1; from <= Math.max(after, run) - 1; ) {
    const { events } = await log.read(session, from, Math.min(EVENTS_MAX, Math.max(after, run) - from))
    const last = events.at(-1)
    if (last === undefined || (from === run - 1 && events[0]?.type !== 'run.started')) return false
    if (events.some(({ type }: Event) => type === 'run.settled')) return false
    from = last.seq
  }
  return true
}

export function isMissing(error: unknown): boolean {
  return error instanceof Fault && error.code === 'session_missing'
}
