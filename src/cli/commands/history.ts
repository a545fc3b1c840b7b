// `terret history`: the events of a session, one a line.
import type { Event } from '../../kernel/index.ts'
import type { Call } from '../args.ts'
import { eventLine } from '../present/event-line.ts'
import { EXIT } from '../exit.ts'
import { eventsOf } from '../state/log.ts'
import { readPlace, sessionOf } from '../state/place.ts'
import { print, printJson } from '../present/print.ts'

export function history(call: Call): Promise<number> {
  const last = call.count('tail')
  const type = call.text('event')
  return readPlace(async (place) => {
    const { session } = await sessionOf(place, call.words[0] ?? '')
    const kept: Event[] = []
    for await (const event of eventsOf(place.store, session)) {
      if (type !== undefined && event.type !== type) continue
      if (last === undefined) show(call, event)
      else kept.push(event)
      if (last !== undefined && kept.length > last) kept.shift()
    }
    for (const event of kept) show(call, event)
    return EXIT.ok
  })
}

function show(call: Call, event: Event): void {
  if (call.is('json')) printJson(event)
  else print(eventLine(event))
}
