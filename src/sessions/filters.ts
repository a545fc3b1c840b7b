// Which sessions, events and calls a harness is asked for, and the one check of each. What is found is reading.ts and look.ts.
import type { Status } from '../ports/store.ts'
import { count, filled, flag, needed, oneOf, optionsOf, shown, text } from '../options.ts'
import { labelsCheck } from './metadata.ts'
import type { ListOptions } from './meter.ts'
import type { ActiveFilter, EventsFilter } from './reading.ts'
import type { PendingFilter, RemoveOptions } from './verbs.ts'

export const checkList = optionsOf<ListOptions>('list', {
  status: oneOf<Status>({ idle: true, running: true, rescheduling: true, requires_action: true, terminated: true }),
  root: text,
  folder: text,
  where: labelsCheck,
  after: text,
  newest: (value) =>
    value === 'made' || typeof value === 'boolean' ? null : `must be true, false or "made", not ${shown(value)}`,
  limit: count(),
  context: flag,
})
export const checkEvents = optionsOf<EventsFilter>('events', {
  session: needed(filled),
  run: count(1),
  after: count(),
  limit: count(),
})
export const checkActive = optionsOf<ActiveFilter>('active', { root: filled, parent: filled })
export const checkPending = optionsOf<PendingFilter>('pending', { where: labelsCheck })
export const checkRemove = optionsOf<RemoveOptions>('remove', { by: filled })
