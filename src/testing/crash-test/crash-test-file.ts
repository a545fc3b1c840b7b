// A crash test in a file of its own, for `terret crash-test FILE`: it is loaded here, and in each process that is killed.
import { existsSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Fault } from '../../kernel/failure.ts'
import { checkCrashTest, type CrashTestOptions } from './crash-options.ts'
import type { CrashReport } from './crash-report.ts'
import { trialsInMemory } from './crash-trial.ts'
import { lifeOrder, liveInProcess, trialsInProcesses } from './process-trial.ts'
import { testPoints } from './run-crash-test.ts'

type FileTest = {
  readonly file: string
  /** The only point to test. */
  readonly at: number | null
  /** The command of a process that lives one life. Null: all lives are in this process. */
  readonly command: readonly string[] | null
  readonly replay: (at: number) => string
}

/** Null: this process was started to live one life, and it has. */
export async function crashTestOfFile({ file, at, command, replay }: FileTest): Promise<CrashReport | null> {
  const order = lifeOrder()
  if (order !== null) {
    await liveInProcess(() => loadCrashTest(file), order)
    return null
  }
  const test = await loadCrashTest(file)
  const run = command === null ? trialsInMemory(test) : trialsInProcesses(command, test)
  return testPoints(run, { at: at ?? test.at ?? null, replay })
}

async function loadCrashTest(file: string): Promise<CrashTestOptions> {
  const path = resolve(file)
  const name = basename(path)
  if (!existsSync(path)) throw new Fault('invalid_input', `There is no file ${file}.`)
  let loaded: Readonly<Record<string, unknown>>
  try {
    loaded = (await import(pathToFileURL(path).href)) as Readonly<Record<string, unknown>>
  } catch (error) {
    throw new Fault(
      'invalid_config',
      `${name} could not be loaded: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  const test = loaded['default'] ?? loaded['agent']
  if (test === undefined)
    throw new Fault('invalid_config', `${name} exports no crash test. Write: export default { world, options, run }`)
  checkCrashTest(test)
  return test as CrashTestOptions
}
