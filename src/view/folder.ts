// A log without the folder its session works in: a path of one machine says nothing on another, and is nobody's business there.
import type { Event } from '../kernel/event.ts'

export function withoutFolder(events: readonly Event[]): readonly Event[] {
  return events.map((event) => {
    if (event.type !== 'session.created' && event.type !== 'session.imported') return event
    const { folder: _, ...rest } = event
    return rest
  })
}
