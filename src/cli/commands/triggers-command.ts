// `terret triggers`: triggers that came to no end: lists them, runs one again, or drops it. A worker or a server does
// the work; this command only records what was decided.
import { type CommandArgs, actorName } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import { print, printJson } from '../present/print.ts'
import { type CommandContext, findSession, withStore } from '../state/command-context.ts'
import { PROGRAM } from '../state/own-program.ts'

const USAGE = 'Usage: terret triggers list, terret triggers retry ID, or terret triggers drop ID'

export function triggersCommand(call: CommandArgs): Promise<number> {
  const [act = '', name] = call.words
  if (!['list', 'retry', 'drop'].includes(act) || (act === 'list') !== (name === undefined))
    throw new CliError(EXIT.usage, USAGE)
  const limit = call.count('limit', 1)
  return withStore(async (place) => {
    const [{ createTriggers, deadTriggers }, { Harness, offline }] = await Promise.all([
      import('../../triggers/index.ts'),
      import('../../index.ts'),
    ])
    const triggers = createTriggers({ models: [offline()], sources: {} })
    const { store } = place
    const harness = new Harness({ program: PROGRAM, model: offline(), store, worker: { drives: false }, triggers })
    try {
      const dead = deadTriggers(harness)
      if (act === 'list') return printDead(call, await dead.list(limit === undefined ? {} : { limit }))
      const session = await sessionOf(place, name ?? '')
      const by = { by: actorName(call) }
      await (act === 'retry' ? dead.retry(session, by) : dead.drop(session, by))
      if (call.is('json')) printJson({ session, [act === 'retry' ? 'retried' : 'dropped']: true })
      else print(`${shownId(session)} ${act === 'retry' ? 'runs again where it failed' : 'is dropped'}.`)
      return EXIT.ok
    } finally {
      await harness.close()
    }
  })
}

async function sessionOf(place: CommandContext, name: string): Promise<string> {
  return (await findSession(place, name)).session
}

type Dead = { readonly sessionId: string; readonly title: string; readonly at: number; readonly reason: string }

function printDead(call: CommandArgs, dead: readonly Dead[]): number {
  for (const each of dead) {
    if (call.is('json')) printJson(each)
    else
      print(
        `${new Date(each.at).toISOString()}  ${shownId(each.sessionId)}  ${oneLine(each.title)}`,
        `  ${oneLine(each.reason, 300)}`,
      )
  }
  if (dead.length === 0 && !call.is('json')) print('No trigger is dead.')
  return EXIT.ok
}
