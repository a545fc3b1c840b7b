// Suites in files: YAML, JSON or JavaScript, with recordings beside them. A file that could run code, or that allows
// calls by itself, is read only in a folder that is trusted.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, extname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { CompleteStore } from '../../kernel/index.ts'
import type { Json } from '../../index.ts'
import type { EvalCase, Suite, SuiteAgent, SuiteOptions } from '../../evals/index.ts'
import { isObject } from '../../view/untrusted-json.ts'
import { EXIT, CliError, describeError } from '../exit.ts'
import { makeFolder } from '../../stores/plan/make-folder.ts'
import { findDefinition, loadDefinitions, addAgentsAndBoard } from './defined-agents.ts'
import { makeFolderAgent, modelsFor } from './folder-agent.ts'
import type { FolderSetup } from './folder-setup.ts'
import { terretCommand } from '../present/print.ts'
import { readPlainFile } from './plain-file.ts'
import { isTrusted } from './trusted-folders.ts'

/** The agent that answers, where the file has none of its own. `models` come from the command line. */
export type SuitePlace = {
  readonly setup: FolderSetup
  readonly store: CompleteStore
  readonly models: readonly string[]
}

/** A suite that is ready, and what is to be closed after it. */
export type OpenedSuite = { readonly suite: Suite; readonly close: () => Promise<void> }

export async function openSuiteFile(file: string, place: SuitePlace): Promise<OpenedSuite> {
  const { defineSuite } = await import('../../evals/index.ts')
  const options = await optionsOf(file, place)
  const recorded = await openRecordings(file, options)
  try {
    return { suite: defineSuite(recorded.options), close: recorded.close }
  } catch (error) {
    await recorded.close()
    throw new CliError(EXIT.config, `${file}: ${describeError(error)}`)
  }
}

async function optionsOf(file: string, place: SuitePlace): Promise<SuiteOptions> {
  const isCode = /\.[cm]?js$/.test(file)
  const value = isCode ? await importSuite(file, place) : await parseSuiteFile(file)
  const given = (value ?? {}) as Partial<SuiteOptions>
  // What has functions is a suite already; anything else is data, wherever it comes from.
  const isData = !isCode || (Array.isArray(given.scorers) && !given.scorers.some((each) => isScorer(each)))
  if (isData) return optionsOfData(file, value, place)
  const options = value as SuiteOptions
  return options.agent !== undefined || options.mode === 'recorded'
    ? options
    : { ...options, agent: await folderAgent(place, undefined, {}) }
}

function isScorer(value: unknown): boolean {
  return typeof value === 'function' || (isObject(value) && typeof (value as { score?: unknown }).score === 'function')
}

async function importSuite(file: string, { setup }: SuitePlace): Promise<unknown> {
  refuseUntrusted(file, setup, 'it is code')
  if (!existsSync(file)) throw missingFile(file)
  let exported: Readonly<Record<string, unknown>>
  try {
    exported = (await import(pathToFileURL(resolve(file)).href)) as Readonly<Record<string, unknown>>
  } catch (error) {
    throw new CliError(EXIT.config, `${file} cannot be loaded: ${describeError(error)}`)
  }
  const suite = exported['suite'] ?? exported['default']
  if (isObject(suite)) return suite
  throw new CliError(EXIT.config, `${file} exports no suite. Write: export const suite = defineSuite({ … })`)
}

function missingFile(file: string): CliError {
  return new CliError(EXIT.missing, `There is no file ${file}. Name a suite in YAML, JSON or JavaScript.`)
}

function refuseUntrusted(file: string, { home }: FolderSetup, why: string): void {
  const folder = dirname(resolve(file))
  if (isTrusted(home, folder)) return
  const text = `${file} is not used: ${why}, and ${folder} is not trusted. \`${terretCommand`trust ${folder}`}\` changes that.`
  throw new CliError(EXIT.config, text)
}

async function parseSuiteFile(file: string): Promise<unknown> {
  const source = readPlainFile(file)
  if (source === null) throw missingFile(file)
  try {
    if (extname(file) === '.json') return JSON.parse(source)
    const { parse } = await import('yaml')
    return parse(source, { schema: 'core', logLevel: 'error' })
  } catch (error) {
    throw new CliError(EXIT.config, `${file} cannot be read: ${describeError(error).split('\n')[0] ?? ''}`)
  }
}

async function optionsOfData(file: string, value: unknown, place: SuitePlace): Promise<SuiteOptions> {
  const { readSuiteData, scorersOf } = await import('../../evals/suite-data.ts')
  try {
    const { agent, model = [], instructions, scorers, ...rest } = readSuiteData(value)
    if (rest.people === 'allow') refuseUntrusted(file, place.setup, 'it allows calls that wait for people')
    if (agent !== undefined) findDefinition((await loadDefinitions(place.setup)).definitions, agent)
    const modelOf = async (name: string) => (await modelsFor(place.setup, { models: [name] }))[0] ?? name
    const models = place.models.length > 0 ? place.models : [model].flat()
    const own = instructions === undefined ? {} : { instructions }
    const isRead = rest.mode === 'recorded'
    return {
      ...rest,
      scorers: await scorersOf(scorers, modelOf),
      ...(isRead ? {} : { agent: await folderAgent({ ...place, models }, agent, own) }),
      ...(agent === undefined ? {} : { agentName: agent }),
    }
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError(EXIT.config, `${file}: ${describeError(error)}`)
  }
}

/** The agent of the folder, without memory and traces: a trial leaves nothing for the next one. */
async function folderAgent(
  { setup, store, models }: SuitePlace,
  agent: string | undefined,
  own: Pick<SuiteAgent, 'instructions'>,
): Promise<SuiteAgent> {
  const made = await makeFolderAgent(setup, { models, agent })
  const { options } = await addAgentsAndBoard(made, setup, agent, store)
  const { tracing: _tracing, plugins: _plugins, triggers: _triggers, program: _program, ...rest } = options
  return { ...rest, ...own }
}

// Recordings: archives of sessions in files beside the suite.

type Recorded = { readonly options: SuiteOptions; readonly close: () => Promise<void> }

/** Reads the recordings that are named by files into a store of their own. */
async function openRecordings(file: string, options: SuiteOptions): Promise<Recorded> {
  const cases: readonly unknown[] = Array.isArray(options.cases) ? options.cases : []
  const files = cases.map((each) => (isObject(each) && isFile(each['recording']) ? each['recording'] : null))
  if (options.recordings !== undefined || files.every((each) => each === null))
    return { options, close: async () => {} }
  const { memory } = await import('../../index.ts')
  const store = memory()
  const sessions = new Map<string, string>()
  for (const each of files)
    if (each !== null && !sessions.has(each)) sessions.set(each, await readRecording(store, join(dirname(file), each)))
  const named = options.cases.map((each, i): EvalCase => {
    const session = sessions.get(files[i] ?? '')
    return session === undefined ? each : { ...each, recording: session }
  })
  return { options: { ...options, cases: named, recordings: store }, close: () => store.close() }
}

function isFile(recording: unknown): recording is string {
  return typeof recording === 'string' && recording.endsWith('.json')
}

/** Throws for a file that was changed, is not whole, or comes from a newer version. */
async function readRecording(store: CompleteStore, path: string): Promise<string> {
  let value: Json
  try {
    value = JSON.parse(readFileSync(path, 'utf8')) as Json
  } catch (error) {
    throw new CliError(EXIT.config, `The recording ${path} cannot be read: ${describeError(error)}`)
  }
  const { checkArchive, importSession, restoreArchive } = await import('../../replay.ts')
  try {
    const [header] = Array.isArray(value) ? (value as readonly Json[]) : []
    if (isObject(header) && header['holds'] === 'session') return (await importSession(store, value)).session
    const archive = await checkArchive(value)
    await store.open()
    // The store knows nothing of it, and takes it as its own.
    return (await restoreArchive(store, archive, ` (archive ${archive.digest})`)).session
  } catch (error) {
    throw new CliError(EXIT.config, `The recording ${path} cannot be used. ${describeError(error)}`)
  }
}

/** Writes the recording of a session beside the suite. */
export async function writeRecording(store: CompleteStore, file: string, session: string, path: string): Promise<void> {
  const { archiveOf, exportSession, portableText } = await import('../../replay.ts')
  const [created] = (await store.read(session, 0, 1)).events
  const isFork = created?.type === 'session.created' && created.fork !== undefined
  // A fork needs the log it continues, which only an export brings.
  const records = isFork ? await exportSession(store, session) : (await archiveOf(store, session)).records
  const place = join(dirname(file), path)
  makeFolder(dirname(place))
  writeFileSync(place, portableText(records))
}

/**
 * Adds a case to a suite in YAML or JSON, and leaves everything else there as it is. A new file begins a suite. `record`
 * writes its recording, once it is known that the case can be added.
 */
export async function addCaseToFile(file: string, of: EvalCase, record: () => Promise<void>): Promise<void> {
  const kind = extname(file)
  if (!['.json', '.yaml', '.yml'].includes(kind))
    throw new CliError(EXIT.usage, `A case is added to a suite in YAML or JSON, not to ${file}.`)
  const source = readPlainFile(file)
  const { Document, isMap, isSeq, parseDocument } = await import('yaml')
  const how = { schema: 'core', logLevel: 'error' } as const
  const document = source === null ? new Document(beginning(file), how) : parseDocument(source, how)
  const { contents, errors } = document
  if (errors.length > 0 || !isMap(contents))
    throw new CliError(EXIT.config, `${file} is no suite: correct it first. ${errors[0]?.message.split('\n')[0] ?? ''}`)
  const cases = contents.get('cases') ?? []
  if (!isSeq(cases) && !Array.isArray(cases))
    throw new CliError(EXIT.config, `"cases" of ${file} is no list. Correct it first.`)
  const known = document.toJS() as { readonly cases?: readonly { readonly id?: string }[] }
  if (known.cases?.some(({ id }) => id === of.id))
    throw new CliError(EXIT.conflict, `${file} has a case "${of.id}" already. Give another id with --id.`)
  if (isSeq(cases)) cases.add(document.createNode(of))
  else contents.set('cases', document.createNode([of]))
  await record()
  writeFileSync(file, kind === '.json' ? `${JSON.stringify(document.toJS(), null, 2)}\n` : document.toString())
}

/** A suite that asks little: the answer and the calls may differ in the next run. */
function beginning(file: string): Json {
  const name = (file.split(/[\\/]/).at(-1) ?? '').replace(/\.[^.]+$/, '').replace(/[^A-Za-z0-9_-]+/g, '-')
  return {
    name: name.slice(0, 40),
    scorers: ['settled', { calls: { list: '$expected.calls', args: 'ignore' } }],
    cases: [],
  }
}
