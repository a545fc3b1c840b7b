// `--output-format` of commands that drive a session: text, one JSON object, or each event of the session as a line of
// JSON, in the words of the server's stream.
import type { Session } from '../../index.ts'
import type { Store } from '../../kernel/index.ts'
import type { CommandArgs } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { printJson, warn } from './print.ts'
import { oneLine } from '../../view/clean.ts'

const FORMATS: readonly string[] = ['text', 'json', 'stream-json']

/** The same command line, where `json` also is true for the two formats that are JSON. */
export function withOutputFormat(call: CommandArgs): CommandArgs {
  const format = call.text('output-format')
  if (format === undefined) return call
  if (!FORMATS.includes(format))
    throw new CliError(EXIT.usage, `--output-format must be text, json or stream-json, not "${format}".`)
  if (call.is('json') && format !== 'json')
    throw new CliError(EXIT.usage, `--json and --output-format ${format} exclude each other. Leave one of them out.`)
  if (format === 'stream-json' && call.text('outcome') !== undefined)
    throw new CliError(EXIT.usage, '--outcome has several runs, so it takes --output-format text or json.')
  return { ...call, is: (flag) => (flag === 'json' ? format !== 'text' : call.is(flag)) }
}

export function isEventStream(call: CommandArgs): boolean {
  return call.text('output-format') === 'stream-json'
}

/** How long the last events of a run that has ended are waited for: they may come after its result. */
const LAST_EVENTS_MS = 5_000
const LOOK_MS = 20

type PrintedSession = {
  readonly store: Pick<Store, 'card'>
  readonly session: Pick<Session, 'id' | 'follow'>
  readonly after: number
}

/**
 * Prints every event after `after`, and what is being said, as lines while `act` runs, and ends with the last event of
 * the log. Does nothing unless the command line asks for the stream.
 */
export async function printEventsDuring<T>(
  call: CommandArgs,
  { store, session, after }: PrintedSession,
  act: () => Promise<T>,
): Promise<T> {
  if (!isEventStream(call)) return act()
  const over = new AbortController()
  let seen = after
  printJson({ type: 'hello', session: session.id, after })
  const printing = async (): Promise<void> => {
    for await (const item of session.follow({ after, deltas: true, signal: over.signal })) {
      printJson(item.type === 'event' ? item.event : item)
      if (item.type === 'event') seen = item.event.seq
    }
  }
  let isCut = false
  const printed = printing().catch((error: unknown) => {
    isCut = true
    warn(`The stream of events has ended early: ${oneLine(error instanceof Error ? error.message : '', 300)}`)
  })
  try {
    const done = await act()
    const seq = (await store.card(session.id))?.seq ?? 0
    for (let waitedMs = 0; seen < seq && !isCut && waitedMs < LAST_EVENTS_MS; waitedMs += LOOK_MS)
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    return done
  } finally {
    over.abort()
    await printed
  }
}
