// `terret cron`: adds, lists, runs, switches and removes jobs, in this folder or on a server. What fires them is
// `terret serve` or `terret worker`.
import { cron, type CronJobOptions, type CronRow, type CronVerbs } from '../../cron/index.ts'
import type { CommandArgs } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { print, printJson, warn, terretCommand } from '../present/print.ts'
import { type CommandContext, withStore, withStoreToRead } from '../state/command-context.ts'
import { CRON_AGENT } from '../state/defined-agents.ts'
import { readCommandSetup, withHarness } from '../state/drive-session.ts'
import { remoteClient } from '../state/remote-server.ts'
import { withoutDriving } from '../state/without-driving.ts'

const USAGE =
  'Usage: terret cron add NAME LINE --prompt TEXT, terret cron list, or terret cron run|on|off|remove NAME. Quote the line.'

export function cronCommand(call: CommandArgs): Promise<number> {
  const [verb = '', name = '', line, ...more] = call.words
  const wants = { add: 3, list: 1, run: 2, on: 2, off: 2, remove: 2 }[verb]
  if (wants !== call.words.length || more.length > 0) throw new CliError(EXIT.usage, USAGE)
  if (verb === 'list') return withStoreToRead((place) => listJobs(call, place))
  return withJobs(call, async (jobs) => {
    if (verb === 'add') return reportJob(call, await jobs.add(jobOf(call, name, line ?? '')), 'Added')
    if (verb === 'on') return reportJob(call, await jobs.on(name), 'On')
    if (verb === 'off') return reportJob(call, await jobs.off(name), 'Off')
    if (verb === 'run') return reportRun(call, name, jobs)
    await jobs.remove(name)
    if (call.is('json')) printJson({ removed: name })
    else print(clean(`Removed ${name}. Its runs stay.`))
    return EXIT.ok
  })
}

/** A change may begin a run, so it needs all that `terret run` needs. */
function withJobs(call: CommandArgs, act: (jobs: CronVerbs) => Promise<number>): Promise<number> {
  return withStore(async (place: CommandContext) => {
    const client = remoteClient(place.store)
    if (client) return act(cron(client))
    const { folder } = place
    const setup = await readCommandSetup(place, folder, call, { agent: CRON_AGENT })
    return withHarness(place, setup, call, (harness) => act(cron(harness, { origin: { folder } })), CRON_AGENT)
  })
}

function jobOf(call: CommandArgs, name: string, line: string): CronJobOptions {
  const prompt = call.text('prompt')
  if (prompt === undefined) throw new CliError(EXIT.usage, `--prompt says what the agent is told. ${USAGE}`)
  const agent = call.text('agent')
  const requests = call.count('requests')
  const zone = call.text('zone') ?? Intl.DateTimeFormat().resolvedOptions().timeZone
  return {
    name,
    line,
    prompt,
    zone,
    ...(agent === undefined ? {} : { agent }),
    ...(requests === undefined ? {} : { limits: { modelRequests: requests } }),
    ...ruleOf(call, 'missed', ['skip', 'once', 'all'] as const),
    ...ruleOf(call, 'overlap', ['skip', 'queue', 'replace'] as const),
  }
}

function ruleOf<const Flag extends string, const Word extends string>(
  call: CommandArgs,
  flag: Flag,
  words: readonly Word[],
): { readonly [F in Flag]?: Word } {
  const text = call.text(flag)
  if (text === undefined) return {}
  const word = words.find((each) => each === text)
  if (word === undefined) throw new CliError(EXIT.usage, `--${flag} must be one of: ${words.join(', ')}.`)
  // Sound: the key is the flag.
  return { [flag]: word } as { readonly [F in Flag]?: Word }
}

/** On a server, the jobs that the token may see. */
async function listJobs(call: CommandArgs, place: CommandContext): Promise<number> {
  const only = remoteClient(place.store) || call.is('all') ? {} : { folder: place.folder }
  const count = await withoutDriving(place, async (sessions) => {
    let found = 0
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await cron(sessions).list({ ...only, limit: 100, ...(cursor === undefined ? {} : { cursor }) })
      for (const row of page.jobs) printJob(call, row)
      found += page.jobs.length
      cursor = page.next
    }
    return found
  })
  if (count === 0 && !call.is('json'))
    warn(`No cron job is here. Add one: ${terretCommand`cron add NAME "0 3 * * *" --prompt TEXT`}`)
  return EXIT.ok
}

function printJob(call: CommandArgs, row: CronRow): void {
  if (call.is('json')) return printJson(row)
  const { name, session, line, at, zone, agent, on, next, last, waiting } = row
  const when = line ?? new Date(at ?? 0).toISOString()
  // One of another id, such as a copy that was imported, is named by its session.
  const own = session === `cron.${name}` ? '' : `  ${session}`
  print(clean(`${name.padEnd(20)} ${on ? 'on ' : 'off'}  ${when}  ${zone}  ${agent}${own}`))
  for (const time of next) print(`  next  ${localTime(time, zone)}`)
  const waits = waiting > 0 ? `, and ${waiting} ${waiting === 1 ? 'time waits' : 'times wait'}` : ''
  if (last) print(clean(`  last  ${localTime(last.at, zone)}  ${last.outcome ?? 'works'}  ${last.session}${waits}`))
}

function localTime(at: number, timeZone: string): string {
  return new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' }).format(at)
}

function reportJob(call: CommandArgs, row: CronRow, word: string): number {
  if (call.is('json')) printJson(row)
  else {
    const [next] = row.next
    print(
      clean(`${word}: ${row.name}${next === undefined ? '' : `, next at ${localTime(next, row.zone)} ${row.zone}`}`),
    )
    if (row.on && !call.is('quiet')) warn(`It fires while ${terretCommand`serve`} or ${terretCommand`worker`} runs.`)
  }
  return EXIT.ok
}

async function reportRun(call: CommandArgs, name: string, jobs: CronVerbs): Promise<number> {
  const run = await jobs.run(name)
  if (call.is('json')) printJson(run)
  else if ('session' in run) print(clean(`Began ${run.session}`))
  else print(oneLine('skipped' in run ? `Nothing began: ${run.skipped}` : 'It waits for an earlier run.', 300))
  return 'skipped' in run ? EXIT.conflict : EXIT.ok
}
