// `terret replay`: the log of a session folded and decided again by today's code. It writes nothing.
import type { Call } from '../args.ts'
import { EXIT } from '../exit.ts'
import { allEvents } from '../state/log.ts'
import { readPlace, sessionOf } from '../state/place.ts'
import { print, printJson } from '../present/print.ts'

export function replay(call: Call): Promise<number> {
  return readPlace(async (place) => {
    const { session } = await sessionOf(place, call.words[0] ?? '')
    const { redecide, refold, unwritten } = await import('../../replay.ts')
    const folded = await refold(place.store, session)
    const events = await allEvents(place.store, session)
    const decided = redecide(events)
    const missing = unwritten(events)
    const same = folded.difference === null && decided.length === 0
    if (call.is('json')) {
      const { difference, snapshot } = folded
      printJson({
        session,
        events: events.length,
        same,
        snapshot,
        fold: difference,
        decisions: decided,
        unwritten: missing,
      })
    } else {
      print(`${events.length} events: ${same ? 'folded and decided as they were written.' : 'today differs.'}`)
      if (folded.difference)
        print(
          `Event ${folded.difference.seq}: folded otherwise (${folded.difference.type}, at "${folded.difference.path}").`,
        )
      for (const { seq, expected, found } of decided)
        print(`Event ${seq}: ${found.type} was written; today it would be ${expected.type}.`)
      for (const { seq } of missing)
        print(`After event ${seq} more would have been written; a worker was stopped there, or it had other rules.`)
    }
    return same ? EXIT.ok : EXIT.failed
  })
}
