// `terret eval`: runs a suite from a file, makes a session a case, and compares two reports. Trials are in a store of
// their own, in the folder `evals` of the data folder: `terret serve --data` with that folder shows them.
import { readFileSync, writeFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { EvalReport, RunSuiteOptions, SuiteStatus } from '../../evals/index.ts'
import type { CommandArgs } from '../args.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { describeError, EXIT, CliError } from '../exit.ts'
import { print, printJson, terretCommand, useDataFolder, warn } from '../present/print.ts'
import { findHome, type Home, makeHome } from '../state/cli-home.ts'
import { type CommandContext, findSession, withStoreToRead } from '../state/command-context.ts'
import { readCommandSetup } from '../state/drive-session.ts'
import { openStoreFile } from '../state/store-location.ts'
import { addCaseToFile, openSuiteFile, writeRecording } from '../state/suite-files.ts'
import { withoutDriving } from '../state/without-driving.ts'
import { workspaceFolder } from '../state/workspace.ts'

const USAGE = 'Usage: terret eval run FILE, terret eval add FILE ID, or terret eval compare BEFORE AFTER.'
const EXITS: Readonly<Record<SuiteStatus, number>> = {
  passed: EXIT.ok,
  failed: EXIT.failed,
  inconclusive: EXIT.inconclusive,
}
const WHY_CHARS = 300

export async function evalCommand(call: CommandArgs): Promise<number> {
  const [verb, first = '', second] = call.words
  if (verb === 'run' && second === undefined) return runFile(call, first)
  if (verb === 'add' && second !== undefined) return addCase(call, first, second)
  if (verb === 'compare' && second !== undefined) return compareReports(call, first, second)
  throw new CliError(EXIT.usage, USAGE)
}

async function runFile(call: CommandArgs, file: string): Promise<number> {
  for (const path of call.texts('report')) checkReportName(path)
  const { runSuite } = await import('../../evals/index.ts')
  const baseline = call.text('baseline')
  const options = { ...runOptions(call), ...(baseline === undefined ? {} : { baseline: readJsonFile(baseline) }) }
  const report = await withTrials(async (place) => {
    const setup = await readCommandSetup(place, place.folder, call)
    const where = { setup, store: place.store, models: call.texts('model'), mode: options.mode }
    const opened = await openSuiteFile(file, where)
    try {
      return await runSuite(opened.suite, { store: place.store, ...options })
    } finally {
      await opened.close()
    }
  })
  await writeReports(call, report)
  // The commands that are printed look where the trials are.
  useDataFolder(trialsFolder(findHome()))
  if (call.is('json')) printJson(report)
  else await printReport(report)
  return EXITS[report.status]
}

function trialsFolder({ folder }: Home): string {
  return join(folder, 'evals')
}

/** The setup is that of the command line, and the store one of its own. */
async function withTrials<T>(act: (place: CommandContext) => Promise<T>): Promise<T> {
  const home = findHome()
  makeHome(home)
  const folder = trialsFolder(home)
  makeHome({ ...home, folder })
  const file = join(folder, 'terret.db')
  const at = { type: 'file', shown: file, file, seen: join(folder, 'store.json') } as const
  const store = await openStoreFile(at)
  try {
    return await act({ home, folder: workspaceFolder(), store, at })
  } finally {
    await store.close()
  }
}

function runOptions(call: CommandArgs): RunSuiteOptions {
  const only = call.texts('only')
  const trials = call.count('trials')
  const mode = call.text('how')
  return {
    ...(only.length > 0 ? { only } : {}),
    ...(trials === undefined ? {} : { trials }),
    // What is no mode is refused where the suite is run.
    ...(mode === undefined ? {} : { mode: mode as NonNullable<RunSuiteOptions['mode']> }),
    ...(call.is('quiet') || call.is('json') ? {} : { onTrial: showTrial }),
  }
}

const showTrial: NonNullable<RunSuiteOptions['onTrial']> = ({ id, n, verdict }) =>
  warn(`${verdict.padEnd(9)} ${id} ${n}`)

async function printReport(report: EvalReport): Promise<void> {
  const { summaryLines, whyOf } = await import('../../evals/report-text.ts')
  print(`${report.suite}: ${report.status}`, ...summaryLines(report))
  for (const reason of report.reasons) print(`  ${oneLine(reason, WHY_CHARS)}`)
  const bad = report.cases.flatMap(({ id, trials }) =>
    trials.filter(({ verdict }) => verdict !== 'passed').map((trial) => ({ id, ...trial })),
  )
  for (const { id, n, verdict, session, ...trial } of bad) {
    print(`${verdict} ${id} ${n}: ${oneLine(whyOf(trial), WHY_CHARS)}`)
    if (report.mode !== 'recorded') print(`  ${terretCommand`inspect ${session}`}`)
  }
}

const REPORT_ENDS = ['.json', '.md', '.xml']

function checkReportName(path: string): void {
  if (REPORT_ENDS.includes(extname(path))) return
  throw new CliError(EXIT.usage, `--report is a file that ends in ${REPORT_ENDS.join(', ')}, not "${path}".`)
}

async function writeReports(call: CommandArgs, report: EvalReport): Promise<void> {
  const { reportJunit, reportMarkdown } = await import('../../evals/index.ts')
  for (const path of call.texts('report')) {
    const kind = extname(path)
    const text =
      kind === '.json'
        ? `${JSON.stringify(report, null, 2)}\n`
        : kind === '.md'
          ? reportMarkdown(report)
          : reportJunit(report)
    try {
      writeFileSync(path, text)
    } catch (error) {
      throw new CliError(EXIT.store, `The report ${path} cannot be written (${describeError(error)}).`)
    }
  }
}

function readJsonFile(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new CliError(EXIT.missing, `The report ${path} cannot be read (${describeError(error)}).`)
  }
}

function addCase(call: CommandArgs, file: string, name: string): Promise<number> {
  return withStoreToRead(async (place) => {
    const { session } = await findSession(place, name)
    const { caseOf } = await import('../../evals/index.ts')
    const found = await withoutDriving(place, (harness) =>
      caseOf(harness.session(session, { stored: true }), call.text('id')),
    )
    const recording = `recordings/${found.id}.json`
    await addCaseToFile(file, { ...found, recording }, () => writeRecording(place.store, file, session, recording))
    if (call.is('json')) printJson(found)
    else print(clean(`Added case ${found.id} to ${file}.`))
    if (!call.is('json')) warn('The recording beside it has all that the session said. Look at it before you share it.')
    return EXIT.ok
  })
}

async function compareReports(call: CommandArgs, before: string, after: string): Promise<number> {
  const { compare, readReport } = await import('../../evals/index.ts')
  const [first, second] = [readReport(readJsonFile(before)), readReport(readJsonFile(after))]
  const compared = compare(first, second)
  if (call.is('json')) printJson(compared)
  else {
    print(`${first.suite}: ${compared.text}`)
    for (const { id, before: was, after: is } of compared.cases)
      if (was !== is) print(`  ${id}: ${share(was)} → ${share(is)}`)
    print(`cost $${compared.cost.before.toFixed(4)} → $${compared.cost.after.toFixed(4)}`)
  }
  return compared.word === 'worse' ? EXIT.failed : EXIT.ok
}

function share(rate: number | null): string {
  return rate === null ? 'none' : `${Math.round(rate * 100)} %`
}
