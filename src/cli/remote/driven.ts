// `run`, `resume` and `wake` where a server drives: the message is sent, and what happens is shown until the session rests.
import type { Client, ClientSession, WireResult } from '../../client/index.ts'
import type { Result } from '../../index.ts'
import type { Call } from '../args.ts'
import { EXIT, Refusal } from '../exit.ts'
import { oneLine } from '../../view/clean.ts'
import { tell } from '../present/ending.ts'
import { lineWriter } from '../present/event-line.ts'
import { print, printJson, shortId, warn, typed } from '../present/print.ts'
import { sessionOf, type Place } from '../state/place.ts'

/** These are of the process that drives, and that is the server. */
const NOT_FAR = ['mode', 'on-ask', 'environment', 'patience', 'verbose', 'trust'] as const

function checkFlags(call: Call): void {
  const given = NOT_FAR.find((flag) => call.text(flag) !== undefined || call.is(flag))
  if (given !== undefined)
    throw new Refusal(
      EXIT.usage,
      `--${given} is for the process that drives, which is the server. Give it to \`${typed`serve`}\`.`,
    )
}

export async function farRun(client: Client, place: Place, call: Call, task: string): Promise<number> {
  checkFlags(call)
  const [model] = call.texts('model')
  if (call.is('continue')) {
    const { session, seq } = await sessionOf(place, call.text('session') ?? 'latest')
    return farSay(client.session(session), place, call, { task, after: seq })
  }
  const agent = call.text('agent')
  const session = await client.open({
    input: task,
    folder: place.folder,
    ...(agent === undefined ? {} : { agent }),
    ...(model === undefined ? {} : { model }),
  })
  if (!call.is('quiet') && !call.is('json')) warn(`Session ${shortId(session.id)}`)
  return shown(session, place, call, 0)
}

type Said = { readonly task: string; readonly after: number }

/** With nothing to say, it goes on with what is open. */
export async function farSay(session: ClientSession, place: Place, call: Call, { task, after }: Said): Promise<number> {
  checkFlags(call)
  const { card } = await session.look()
  const [model] = call.texts('model')
  if (task !== '') await session.send(task, model === undefined ? {} : { model })
  else if (card.due === null && card.status !== 'requires_action') await session.steer([{ type: 'resume' }])
  else await session.wake()
  return shown(session, place, call, after)
}

/** Its events as they come, and then how it ended. */
async function shown(session: ClientSession, { folder }: Place, call: Call, after: number): Promise<number> {
  const over = new AbortController()
  let seen = after
  const [json, quiet] = [call.is('json'), call.is('quiet')]
  const line = lineWriter()
  const showing = async (): Promise<void> => {
    for await (const item of session.follow({ after, signal: over.signal })) {
      if (item.type !== 'event') continue
      if (!json && !quiet) warn(line(item.event))
      seen = item.event.seq
    }
  }
  const shows = showing().catch((error: unknown) => warn(oneLine(error instanceof Error ? error.message : '', 300)))
  const stop = (): void => void session.interrupt().catch(() => {})
  process.once('SIGINT', stop)
  try {
    const result: WireResult = await session.run()
    // The answer may be here before its events are.
    const { head } = await session.look()
    for (let waits = 0; seen < head && waits < WAITS_MAX; waits++)
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS))
    return await tell(result as unknown as Result, { json, quiet, told: '', folder })
  } finally {
    process.off('SIGINT', stop)
    over.abort()
    await shows
  }
}

const WAIT_MS = 20
const WAITS_MAX = 100

export async function farWake(session: ClientSession, call: Call): Promise<number> {
  await session.wake()
  if (call.is('json')) printJson({ session: session.id, type: 'asked' })
  else print(`${shortId(session.id)}: the server looks at it.`)
  return EXIT.ok
}
