// `terret start`: the report workflow on a topic, over a folder of documents, in a new session. Before the file is written it asks, or
// prints how to decide. It is meant to stop there, so waiting is not a failure.
import { existsSync } from 'node:fs'
import { isAbsolute, relative, resolve } from 'node:path'
import type { Harness } from '../../index.ts'
import type { Call } from '../args.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, Refusal } from '../exit.ts'
import { startIn } from '../state/folders.ts'
import { realFolder } from '../state/home.ts'
import { inPlace, type Place } from '../state/place.ts'
import { shortId, warn } from '../present/print.ts'
import { setupOf, withHarness, work } from '../state/work.ts'
import type { Workflow } from '../state/workflows.ts'

const NAME_CHARS_MAX = 40

export function start(call: Call): Promise<number> {
  const topic = call.words.join(' ').trim()
  const [folder, file] = [call.text('documents'), call.text('source-file')]
  const documents = folder ?? file
  if (topic === '' || documents === undefined || (folder !== undefined && file !== undefined)) {
    const usage = 'Usage: terret start TOPIC --documents DIR, or: terret start TOPIC --source-file FILE.json'
    throw new Refusal(EXIT.usage, `Name a topic, and either a folder of documents or a file with sources. ${usage}`)
  }
  // What is missing is an error before anything begins.
  if (folder !== undefined) realFolder(folder)
  else checkSources(documents)
  return inPlace((place) =>
    begin(place, call, { topic, documents, out: call.text('out') ?? `reports/${named(topic)}.md` }),
  )
}

function checkSources(file: string): void {
  if (!/\.json$/i.test(file))
    throw new Refusal(EXIT.usage, `--source-file takes a .json file with a list of sources, not "${file}".`)
  if (!existsSync(file)) throw new Refusal(EXIT.missing, `There is no file ${file}.`)
}

type Input = { readonly topic: string; readonly documents: string; readonly out: string }

async function begin(place: Place, call: Call, { topic, documents, out }: Input): Promise<number> {
  const given = call.texts('model')
  const setup = await setupOf(place, place.folder, call, given.length > 0 ? workflowFor(given) : undefined)
  const agent = workflowFor(given.length > 0 ? given : (setup.settings.model ?? []))
  const { folder } = place
  const input = { topic, documents: within(folder, documents), out: within(folder, out) }
  const drive = async (harness: Harness): Promise<number> => {
    const session = await startIn(place, folder, (as) => harness.open({ ...as, agent }))
    if (!call.is('quiet') && !call.is('json')) warn(`Report ${shortId(session.id)}: ${oneLine(topic, 200)}`)
    return work(call, { store: place.store, harness, setup, session, agent }, (deltas) =>
      session.stream(JSON.stringify(input), { deltas }),
    )
  }
  const code = await withHarness(place, setup, call, drive, agent)
  return code === EXIT.waits ? EXIT.ok : code
}

/** Offline only if a flag or the configuration names the offline model. */
function workflowFor(models: readonly string[]): Workflow {
  const offline = models.filter((name) => name === 'offline' || name.startsWith('offline:'))
  if (offline.length === 0) return 'report_with_model'
  if (offline.length === models.length) return 'report'
  throw new Refusal(EXIT.usage, 'The offline model cannot be combined with other models here. Name one or the other.')
}

/** Relative to the session's folder if it is inside, so that the folder may move. */
function within(folder: string, path: string): string {
  const near = relative(folder, resolve(folder, path))
  return near === '' ? '.' : near.startsWith('..') || isAbsolute(near) ? resolve(folder, path) : near
}

/** A file name that says what it is about. */
function named(topic: string): string {
  const words = topic
    .toLowerCase()
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^\p{L}\p{N}]+/gu, '-')
  const cut = words.slice(0, NAME_CHARS_MAX)
  const whole = words.length > NAME_CHARS_MAX ? cut.slice(0, Math.max(20, cut.lastIndexOf('-'))) : cut
  return whole.replace(/^-+|-+$/g, '') || 'report'
}
