// `terret wake ID --in TIME`, `--at TIME` and `--cancel KEY`: schedules a look at a session, or drops one. It drives
// nothing: a worker or a server begins the run when the time has come.
import type { ScheduleOptions } from '../../index.ts'
import { oneLine } from '../../view/clean.ts'
import { type CommandArgs, actorName } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { print, printJson, shortId, terretCommand } from '../present/print.ts'
import type { CommandContext } from '../state/command-context.ts'
import { withoutDriving } from '../state/without-driving.ts'
import { parseMomentFlag, parseSpanMs } from '../time-flags.ts'

const FLAGS = ['in', 'at', 'reason', 'key', 'cancel'] as const

/** Whether these flags ask for a schedule, and not for a look now. */
export function asksForSchedule(call: CommandArgs): boolean {
  return FLAGS.some((flag) => call.text(flag) !== undefined)
}

export async function scheduleCommand(place: CommandContext, session: string, call: CommandArgs): Promise<number> {
  const key = call.text('cancel')
  return key === undefined ? schedule(place, session, call) : cancel(place, session, { key, call })
}

async function schedule(place: CommandContext, session: string, call: CommandArgs): Promise<number> {
  const options = { ...readTime(call), ...readTexts(call), by: actorName(call) }
  const wake = await withoutDriving(place, (sessions) => sessions.session(session, { stored: true }).schedule(options))
  const due = new Date(wake.due).toISOString()
  if (call.is('json')) printJson({ session, ...wake })
  else {
    print(`${shortId(session)} ${wake.duplicate ? 'is already looked at' : 'is looked at'} at ${due}.`)
    print(wake.elsewhere ?? `A worker or a server must run then. Cancel it with: ${cancelCommand(session, wake.key)}`)
  }
  return EXIT.ok
}

async function cancel(
  place: CommandContext,
  session: string,
  { key, call }: { readonly key: string; readonly call: CommandArgs },
): Promise<number> {
  const other = FLAGS.find((flag) => flag !== 'cancel' && call.text(flag) !== undefined)
  if (other !== undefined) throw new CliError(EXIT.usage, `Give --cancel alone, without --${other}.`)
  const by = actorName(call)
  const dropped = await withoutDriving(place, (sessions) =>
    sessions.session(session, { stored: true }).unschedule(key, { by }),
  )
  if (call.is('json')) printJson({ session, key, dropped })
  else print(dropped ? `Cancelled "${oneLine(key)}".` : `No wake waits under "${oneLine(key)}" in ${shortId(session)}.`)
  return dropped ? EXIT.ok : EXIT.missing
}

function readTime(call: CommandArgs): Pick<ScheduleOptions, 'at' | 'inMs'> {
  const [span, at] = [call.text('in'), call.text('at')]
  if (span !== undefined && at === undefined) return { inMs: parseSpanMs('in', span) }
  if (at !== undefined && span === undefined) return { at: parseMomentFlag('at', at) }
  throw new CliError(EXIT.usage, 'Say when: give either --in, such as 2h, or --at, such as 2027-01-31T09:00.')
}

function readTexts(call: CommandArgs): Pick<ScheduleOptions, 'reason' | 'key'> {
  const [reason, key] = [call.text('reason'), call.text('key')]
  return { ...(reason === undefined ? {} : { reason }), ...(key === undefined ? {} : { key }) }
}

function cancelCommand(session: string, key: string): string {
  return terretCommand`wake ${session} --cancel ${key}`
}
