// Leaves the folder of a session and its program out of its log, for exports: a path of one machine means nothing on another, and may
// tell too much; and whoever imports it says which program drives it.
import type { Event } from '../kernel/event.ts'

export function withoutFolder(events: readonly Event[]): readonly Event[] {
  return events.map((event) => {
    if (event.type !== 'session.created' && event.type !== 'session.imported') return event
    const { folder: _folder, program: _program, ...rest } = event
    return rest
  })
}
