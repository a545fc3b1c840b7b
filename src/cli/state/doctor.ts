// `terret doctor`: what is wrong with a session, one line for each finding. It reads the log and writes nothing to it.
import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Event, type Examination, examineLog, Fault, sqlite } from '../../index.ts'

const PAGE = 1_000

/** What is printed, and the exit code: 1 if anything had to be mended. */
export async function doctor(args: readonly string[]): Promise<{ readonly text: string; readonly code: number }> {
  const options = { session: { type: 'string' }, store: { type: 'string' }, json: { type: 'boolean' } } as const
  const { session, store, json } = parseArgs({ args: [...args], options }).values
  if (!session || !store) throw new TypeError('Say which session to look at: terret doctor --session ID --store FILE.')
  if (!existsSync(store)) throw new Fault('invalid_input', `There is no file ${store}.`)
  const { events, damage } = await readLog(store, session)
  if (events.length === 0 && damage === null) throw new Fault('session_missing', `There is no session ${session}.`)
  const examination = examineLog(events)
  const code = damage === null && examination.findings.length === 0 ? 0 : 1
  if (json) return { text: JSON.stringify({ session, damage, ...examination }, null, 2), code }
  return { text: linesOf(examination, damage).join('\n'), code }
}

type Log = { readonly events: readonly Event[]; readonly damage: string | null }

async function readLog(file: string, session: string): Promise<Log> {
  const store = sqlite(file)
  const events: Event[] = []
  try {
    for (;;) {
      const page = await store.read(session, events.at(-1)?.seq ?? 0, PAGE)
      events.push(...page.events)
      const { damaged } = page
      if (damaged)
        return {
          events,
          damage: `Event ${damaged.seq}: it is damaged, and nothing after it is read. ${damaged.reason}`,
        }
      if (page.events.length < PAGE) return { events, damage: null }
    }
  } finally {
    await store.close()
  }
}

const SENT = {
  recorded: 'can be sent as it is',
  mended: 'can be sent mended',
  nothing: 'has nothing to send yet',
} as const

function linesOf({ findings, open, protocols, view }: Examination, damage: string | null): readonly string[] {
  const wrong = [...findings.map(({ text }) => text), ...(damage === null ? [] : [damage])]
  return [
    ...(wrong.length > 0 ? wrong : [`Nothing is wrong with its ${view.length} messages.`]),
    ...open.map((call) => `Call ${call} is not over yet.`),
    ...protocols.map(
      ({ protocol, as, why }) => `${protocol}: ${as === 'refused' ? `cannot be sent: ${why}` : SENT[as]}`,
    ),
  ]
}
