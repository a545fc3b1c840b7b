// `terret history`: the events of a session, one a line.
import type { Call } from '../args.ts'
import { lineWriter } from '../present/event-line.ts'
import { EXIT } from '../exit.ts'
import { eventsOf } from '../state/log.ts'
import { readPlace, sessionOf } from '../state/place.ts'
import { print, printJson } from '../present/print.ts'

export function history(call: Call): Promise<number> {
  const last = call.count('tail')
  const type = call.text('event')
  return readPlace(async (place) => {
    const { session } = await sessionOf(place, call.words[0] ?? '')
    const kept: (() => void)[] = []
    const line = lineWriter()
    for await (const event of eventsOf(place.store, session)) {
      const text = call.is('json') ? '' : line(event)
      if (type !== undefined && event.type !== type) continue
      const show = () => (call.is('json') ? printJson(event) : print(text))
      if (last === undefined) show()
      else kept.push(show)
      if (last !== undefined && kept.length > last) kept.shift()
    }
    for (const show of kept) show()
    return EXIT.ok
  })
}
