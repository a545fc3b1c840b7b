// `terret model`: prints the model of the user's configuration, or chooses another one. All else in the file stays.
import { join } from 'node:path'
import type { CommandArgs } from '../args.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'
import { findHome } from '../state/cli-home.ts'
import { parseFields, readSettings } from '../state/config.ts'
import { readUserEnvironment } from '../state/folder-setup.ts'
import { readPlainFile } from '../state/plain-file.ts'
import { print, printJson, terretCommand, warn } from '../present/print.ts'
import { writeConfig } from './init-command.ts'

export async function modelCommand(call: CommandArgs): Promise<number> {
  const home = findHome()
  const file = join(home.config, 'config.json')
  const settings = readSettings(file)
  const [name] = call.words
  if (name === undefined) return printModel(call, settings?.model ?? [])
  const { endpointsOf } = await import('../state/folder-agent.ts')
  const { endpoints, model } = await import('../../index.ts')
  const own = await endpointsOf(settings ?? {})
  const host = name.split(':')[0] ?? ''
  // Throws if there is no such host. A route of the configuration is checked when it is used.
  if (!name.startsWith('hint:')) model(name, { endpoints: own })
  const fields = settings ? parseFields(file, readPlainFile(file) ?? '{}') : { mode: 'ask', bash: true }
  writeConfig(home.config, file, { ...fields, model: name })
  const { keys = [] } = own.find((each) => each.name === host) ?? endpoints[host] ?? {}
  const env = await readUserEnvironment(home)
  const isKeyMissing = keys.length > 0 && !keys.some((key) => env[key])
  if (call.is('json')) printJson({ config: file, model: name, keyMissing: isKeyMissing })
  else {
    print(`${oneLine(name, 200)} answers from now on. Sessions that go on use it too.`)
    if (isKeyMissing) warn(`Its key is missing: set ${keys.join(' or ')}, or write it into ${clean(home.config)}/.env.`)
  }
  return EXIT.ok
}

function printModel(call: CommandArgs, names: readonly string[]): number {
  if (names.length === 0)
    throw new CliError(
      EXIT.config,
      `No model is chosen. \`${terretCommand`init`}\` finds one, or name it: terret model PROVIDER:MODEL`,
    )
  if (call.is('json')) printJson({ model: names })
  else print(names.map((name) => oneLine(name, 200)).join(', then '))
  return EXIT.ok
}
