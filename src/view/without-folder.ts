// Removes a session's folder and program from its log for exports: a path on one machine means nothing on another and
// may reveal too much, and the importer chooses the program.
import type { Event } from '../kernel/event.ts'

export function withoutFolder(events: readonly Event[]): readonly Event[] {
  return events.map((event) => {
    if (event.type !== 'session.created' && event.type !== 'session.imported') return event
    const { folder: _folder, program: _program, ...rest } = event
    return rest
  })
}
