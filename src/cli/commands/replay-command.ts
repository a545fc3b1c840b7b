// `terret replay`: folds the log of a session again and repeats its decisions with today's code. It writes nothing.
import type { CommandArgs } from '../args.ts'
import { EXIT } from '../exit.ts'
import { readAllEvents } from '../state/read-log.ts'
import { withStoreToRead, findSession } from '../state/command-context.ts'
import { print, printJson } from '../present/print.ts'

export function replayCommand(call: CommandArgs): Promise<number> {
  return withStoreToRead(async (place) => {
    const { session } = await findSession(place, call.words[0] ?? '')
    const { redecide, refoldSession, findUnwritten } = await import('../../replay.ts')
    const folded = await refoldSession(place.store, session)
    const events = await readAllEvents(place.store, session)
    const decided = redecide(events)
    const missing = findUnwritten(events)
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
