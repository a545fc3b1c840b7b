// `terret crash-test`: crashes the agent of a file at every point, and says which rules did not hold. It uses no store of
// the data folder.
import { resolve } from 'node:path'
import { oneLine } from '../../view/clean.ts'
import type { CommandArgs } from '../args.ts'
import { EXIT } from '../exit.ts'
import { print, printJson, terretCommand, warn } from '../present/print.ts'

export async function crashTestCommand(call: CommandArgs): Promise<number> {
  const [file = ''] = call.words
  const inProcesses = call.is('process')
  const { crashTestOfFile } = await import('../../testing/crash-test/crash-test-file.ts')
  const endGuard = guardAgainstExit(file)
  const report = await crashTestOfFile({
    file,
    at: call.count('at', 0) ?? null,
    command: inProcesses ? [...thisProgram(), 'crash-test', resolve(file)] : null,
    replay: (n) => {
      const at = String(n)
      return inProcesses
        ? terretCommand`crash-test ${file} --process --at ${at}`
        : terretCommand`crash-test ${file} --at ${at}`
    },
  }).finally(endGuard)
  // A process that lived one life ends here, whatever the file left open.
  if (report === null) process.exit(EXIT.ok)
  if (call.is('json')) printJson(report)
  else print(...report.text.split('\n'))
  return report.passed ? EXIT.ok : EXIT.failed
}

function thisProgram(): readonly string[] {
  const [, script = ''] = process.argv
  return [process.execPath, ...process.execArgv, script]
}

/** A file that ends the process, or waits for what never comes, must not look like a test that passed. */
function guardAgainstExit(file: string): () => void {
  const say = (): void => {
    warn(
      `terret: ${oneLine(file)} ended the process before the test was done. Remove its process.exit() or endless await.`,
    )
    process.exitCode = EXIT.config
  }
  process.on('exit', say)
  return () => process.off('exit', say)
}
