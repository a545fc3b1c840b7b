// `run`, `resume` and `wake` on a remote server: they send the message and show the events until the session rests.
import type { Client } from '../../client/index.ts'
import type { PursueOptions, Result, Session } from '../../index.ts'
import type { CommandArgs } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { oneLine } from '../../view/clean.ts'
import { printResult } from '../present/result-output.ts'
import { isEventStream, printEventsDuring } from '../present/output-format.ts'
import { eventLineWriter } from '../present/event-line.ts'
import { print, printJson, shortId, warn, terretCommand } from '../present/print.ts'
import { findSession, type CommandContext } from '../state/command-context.ts'

/** These flags are for the process that drives, which is the server. */
const NOT_FAR = ['mode', 'on-ask', 'environment', 'patience', 'verbose', 'trust'] as const

export function checkFlags(call: CommandArgs): void {
  const given = NOT_FAR.find((flag) => call.text(flag) !== undefined || call.is(flag))
  if (given !== undefined)
    throw new CliError(
      EXIT.usage,
      `--${given} is for the process that drives, which is the server. Give it to \`${terretCommand`serve`}\`.`,
    )
}

export async function runRemotely(
  client: Client,
  place: CommandContext,
  call: CommandArgs,
  { task, outcome }: { readonly task: string; readonly outcome: Omit<PursueOptions, 'description'> | null },
): Promise<number> {
  checkFlags(call)
  const [model] = call.texts('model')
  if (outcome !== null && model !== undefined)
    throw new CliError(EXIT.usage, '--outcome and --model exclude each other with a server: its agent has a model.')
  if (call.is('continue')) {
    const { session, seq } = await findSession(place, call.text('session') ?? 'latest')
    if (outcome !== null) return pursueRemotely(client, place, call, session, { description: task, ...outcome })
    return sendRemotely(client, place, call, { id: session, task, after: seq })
  }
  const agent = call.text('agent')
  const session = await client.open({
    folder: place.folder,
    ...(agent === undefined ? {} : { agent }),
  })
  if (outcome !== null) return pursueRemotely(client, place, call, session.id, { description: task, ...outcome })
  await session.send(task, model === undefined ? {} : { model })
  if (!call.is('quiet') && !call.is('json')) warn(`Session ${shortId(session.id)}`)
  return showUntilRest(client, place, call, { id: session.id, after: 0 })
}

async function pursueRemotely(
  client: Client,
  place: CommandContext,
  call: CommandArgs,
  id: string,
  task: PursueOptions,
): Promise<number> {
  const { printPursuit, pursueInRounds } = await import('../present/pursuit-run.ts')
  if (!call.is('quiet') && !call.is('json')) warn(`Session ${shortId(id)}`)
  const driveRound = (after: number) => showUntilRest(client, place, call, { id, after })
  const { last, pursuit } = await pursueInRounds(client.session(id), call, task, driveRound)
  return printPursuit(call, id, pursuit, last)
}

type RemoteInput = { readonly id: string; readonly task: string; readonly after: number }

/** Without a message it continues the open work. */
export async function sendRemotely(
  client: Client,
  place: CommandContext,
  call: CommandArgs,
  { id, task, after }: RemoteInput,
): Promise<number> {
  checkFlags(call)
  const session = client.session(id)
  const { card } = await client.server.session(id)
  const [model] = call.texts('model')
  if (task !== '') await session.send(task, model === undefined ? {} : { model })
  else if (card.due === null && card.status !== 'requires_action') await session.send([{ type: 'resume' }])
  else await client.server.wake(session.id)
  return showUntilRest(client, place, call, { id, after })
}

/** Shows events as they arrive, and then how the run ended. */
async function showUntilRest(
  client: Client,
  { folder, store }: CommandContext,
  call: CommandArgs,
  { id, after }: Omit<RemoteInput, 'task'>,
): Promise<number> {
  const session = client.session(id)
  if (isEventStream(call)) {
    const result = await printEventsDuring(call, { store, session, after }, () => runUntilRest(session))
    return printResult(result, { json: true, stream: true, quiet: true, told: '', folder })
  }
  const over = new AbortController()
  let seen = after
  const [json, quiet] = [call.is('json'), call.is('quiet')]
  const line = eventLineWriter()
  const showing = async (): Promise<void> => {
    for await (const item of session.follow({ after, signal: over.signal })) {
      if (item.type !== 'event') continue
      if (!json && !quiet) warn(line(item.event))
      seen = item.event.seq
    }
  }
  const shows = showing().catch((error: unknown) => warn(oneLine(error instanceof Error ? error.message : '', 300)))
  try {
    const result = await runUntilRest(session)
    // The answer may arrive before its events.
    const { head } = await client.server.session(id)
    for (let waits = 0; seen < head && waits < WAITS_MAX; waits++)
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS))
    return await printResult(result, { json, quiet, told: '', folder })
  } finally {
    over.abort()
    await shows
  }
}

/** Ctrl-C stops the run. */
async function runUntilRest(session: Session): Promise<Result> {
  const stop = (): void => void session.interrupt().catch(() => {})
  process.once('SIGINT', stop)
  try {
    return await session.run()
  } finally {
    process.off('SIGINT', stop)
  }
}

const WAIT_MS = 20
const WAITS_MAX = 100

export async function wakeRemotely(client: Client, id: string, call: CommandArgs): Promise<number> {
  await client.server.wake(id)
  if (call.is('json')) printJson({ session: id, type: 'asked' })
  else print(`${shortId(id)}: the server looks at it.`)
  return EXIT.ok
}
