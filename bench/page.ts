// `page.fold`: what a page does with a session of 1,000,000 events that it has: the fold in place. As in a browser: no store, the events
// parsed from JSON in pages of 1,000.
import { open, take } from '../src/kernel/fold.ts'
import { EMPTY } from '../src/kernel/session.ts'
import type { Event } from '../src/kernel/event.ts'
import { type Case, cpuMs, type Family } from './family.ts'
import { logAfter } from './log.ts'

const EVENTS = 1_000_000
const PAGE = 1_000

/** Made and parsed page by page, so that memory holds one of them. `take` is measured alone. */
function over(takeAll: (events: readonly Event[]) => void): number {
  let ms = 0
  let page: Event[] = [
    { seq: 1, at: 1, epoch: 0, type: 'session.created', agent: 'default', planner: 'model' },
    { seq: 2, at: 1, epoch: 0, type: 'user.message', id: 'go', parts: [{ type: 'text', text: 'go' }], when: 'next' },
  ]
  for (const event of logAfter(2, { at: 1, epoch: 1 })) {
    page.push(event)
    if (page.length < PAGE && event.seq < EVENTS) continue
    const events = JSON.parse(JSON.stringify(page)) as readonly Event[]
    const begun = cpuMs()
    takeAll(events)
    ms += cpuMs() - begun
    if (event.seq >= EVENTS) return ms
    page = []
  }
  return ms
}

const folded: Case = async () => {
  const session = open(EMPTY)
  const ms = over((events) => {
    for (const event of events) take(session, event)
  })
  if (session.seq !== EVENTS) throw new Error(`folded to ${session.seq}`)
  return { ms }
}

const floor: Case = async () => {
  const counts: Record<string, number> = {}
  const ms = over((events) => {
    for (const { type } of events) counts[type] = (counts[type] ?? 0) + 1
  })
  return { ms }
}

export const page: Family = {
  repetitions: 3,
  cases: { folded, floor },
  figures: [
    {
      name: 'page.fold',
      unit: 'CPU ms',
      target: 1_500,
      value: (median) => median('folded.ms'),
      floor: (median) => median('floor.ms'),
    },
  ],
}
