// `terret history`: the events of a session, one on each line.
import type { Event } from '../../kernel/index.ts'
import { nearest } from '../../options.ts'
import { oneLine } from '../../view/clean.ts'
import type { CommandArgs } from '../args.ts'
import { eventLineWriter } from '../present/event-line.ts'
import { EXIT, CliError } from '../exit.ts'
import { readEvents } from '../state/read-log.ts'
import { withStoreToRead, findSession } from '../state/command-context.ts'
import { print, printJson } from '../present/print.ts'

export function historyCommand(call: CommandArgs): Promise<number> {
  const last = call.count('tail')
  const type = call.text('event')
  if (type !== undefined && !Object.hasOwn(EVENT_TYPES, type)) throw new CliError(EXIT.usage, unknownEventText(type))
  return withStoreToRead(async (place) => {
    const { session } = await findSession(place, call.words[0] ?? '')
    const kept: (() => void)[] = []
    const line = eventLineWriter()
    for await (const event of readEvents(place.store, session)) {
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

/** The compiler checks that no type is missing. */
const EVENT_TYPES: Readonly<Record<Event['type'], true>> = {
  'user.message': true,
  'user.tool_confirmation': true,
  'user.custom_tool_result': true,
  'user.interrupt': true,
  'user.withdraw': true,
  'user.schedule': true,
  'user.unschedule': true,
  'user.rename': true,
  'session.created': true,
  'run.started': true,
  'model.started': true,
  'agent.message': true,
  'model.failed': true,
  'agent.tool_use': true,
  'agent.custom_tool_use': true,
  'agent.tool_result': true,
  'context.compacted': true,
  'note.added': true,
  'wake.scheduled': true,
  'run.deferred': true,
  'run.ending': true,
  'run.settled': true,
  'session.closed': true,
  'session.imported': true,
  'run.reviewed': true,
  'call.reviewed': true,
}

function unknownEventText(type: string): string {
  const known = Object.keys(EVENT_TYPES)
  const near = nearest(type, known)
  const meant = near === null ? '' : ` Did you mean ${near}?`
  return `There is no event "${oneLine(type, 60)}".${meant} --event takes one of: ${known.join(', ')}.`
}
