// `terret start`: runs the report workflow on a topic, over a folder of documents, in a new session. Before it writes
// the file it asks, or prints how to decide. It stops there by design, so waiting is not a failure.
import { existsSync } from 'node:fs'
import { isAbsolute, relative, resolve } from 'node:path'
import type { Harness } from '../../index.ts'
import type { CommandArgs } from '../args.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'
import { startSessionIn } from '../state/session-folders.ts'
import { realFolder } from '../state/cli-home.ts'
import { startFolder } from '../state/workspace.ts'
import { withStore, type CommandContext } from '../state/command-context.ts'
import { shortId, warn } from '../present/print.ts'
import { readCommandSetup, driveAndReport } from '../state/drive-session.ts'
import type { WorkflowName } from '../state/workflow-agents.ts'

const NAME_CHARS_MAX = 40

export function startCommand(call: CommandArgs): Promise<number> {
  const topic = call.words.join(' ').trim()
  const [folder, file] = [call.text('documents'), call.text('source-file')]
  const documents = folder ?? file
  if (topic === '' || documents === undefined || (folder !== undefined && file !== undefined)) {
    const usage = 'Usage: terret start TOPIC --documents DIR, or: terret start TOPIC --source-file FILE.json'
    throw new CliError(EXIT.usage, `Name a topic, and either a folder of documents or a file with sources. ${usage}`)
  }
  // Missing documents are an error before anything begins.
  if (folder !== undefined) realFolder(folder)
  else checkSources(documents)
  return withStore((place) =>
    runReport(place, call, { topic, documents, out: call.text('out') ?? `reports/${reportFileName(topic)}.md` }),
  )
}

function checkSources(file: string): void {
  if (!/\.json$/i.test(file))
    throw new CliError(EXIT.usage, `--source-file takes a .json file with a list of sources, not "${file}".`)
  if (!existsSync(file)) throw new CliError(EXIT.missing, `There is no file ${file}.`)
}

type ReportInput = { readonly topic: string; readonly documents: string; readonly out: string }

async function runReport(
  place: CommandContext,
  call: CommandArgs,
  { topic, documents, out }: ReportInput,
): Promise<number> {
  const given = call.texts('model')
  const setup = await readCommandSetup(place, place.folder, call, {
    agent: given.length > 0 ? workflowFor(given) : undefined,
  })
  const agent = workflowFor(given.length > 0 ? given : (setup.settings.model ?? []))
  const { folder } = place
  const input = { topic, documents: relativeInside(folder, documents), out: relativeInside(folder, out) }
  const open = async (harness: Harness) => {
    const session = await startSessionIn(place, folder, (as) => harness.open({ ...as, agent }))
    if (!call.is('quiet') && !call.is('json')) warn(`Report ${shortId(session.id)}: ${oneLine(topic, 200)}`)
    return session
  }
  const code = await driveAndReport(place, call, { setup, agent, open, input: JSON.stringify(input) })
  return code === EXIT.waits ? EXIT.ok : code
}

/** The offline workflow runs only if a flag or the configuration names the offline model. */
function workflowFor(models: readonly string[]): WorkflowName {
  const offline = models.filter((name) => name === 'offline' || name.startsWith('offline:'))
  if (offline.length === 0) return 'report_with_model'
  if (offline.length === models.length) return 'report'
  throw new CliError(EXIT.usage, 'The offline model cannot be combined with other models here. Name one or the other.')
}

/** Relative to the session's folder if the path is inside, so that the folder can be moved. */
function relativeInside(folder: string, path: string): string {
  const whole = resolve(startFolder(folder), path)
  const near = relative(folder, whole)
  return near === '' ? '.' : near.startsWith('..') || isAbsolute(near) ? whole : near
}

/** A file name made from the topic. */
function reportFileName(topic: string): string {
  const words = topic
    .toLowerCase()
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^\p{L}\p{N}]+/gu, '-')
  const cut = words.slice(0, NAME_CHARS_MAX)
  const whole = words.length > NAME_CHARS_MAX ? cut.slice(0, Math.max(20, cut.lastIndexOf('-'))) : cut
  return whole.replace(/^-+|-+$/g, '') || 'report'
}
