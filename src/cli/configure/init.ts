// `terret init`: writes a user configuration once, and prints where the key goes.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Call } from '../args.ts'
import { clean } from '../../view/clean.ts'
import { EXIT, Refusal } from '../exit.ts'
import { makeFolder } from '../../stores/plan/folder.ts'
import { homeOf, makeHome } from '../state/home.ts'
import { codeOf } from '../state/plain-file.ts'
import { print, printJson } from '../present/print.ts'

const MODEL = 'anthropic:claude-sonnet-4-5'

export async function init(call: Call): Promise<number> {
  const home = homeOf()
  const file = join(home.config, 'config.json')
  const model = call.text('model') ?? MODEL
  const made = !existsSync(file)
  if (!made && call.text('model') !== undefined)
    throw new Refusal(EXIT.config, `${file} exists already and was not changed. Edit "model" in it by hand.`)
  const keys = await keysOf(model)
  makeHome(home)
  if (made) write(home.config, file, { model, mode: 'ask' })
  const env = join(home.config, '.env')
  if (call.is('json')) printJson({ config: file, made, env, home: home.folder, keys })
  else {
    print(made ? `Wrote ${clean(file)}.` : `${clean(file)} is there already, and is left as it is.`)
    if (keys.length > 0) print(`The key goes into the environment, or as a line into ${clean(env)}: ${keys[0] ?? ''}=…`)
    print('Then: terret doctor, and terret run "What is in this folder?"')
  }
  return EXIT.ok
}

/** The variables that may hold the key of this model. Throws if there is no such model. */
async function keysOf(name: string): Promise<readonly string[]> {
  const { endpoints, model } = await import('../../index.ts')
  model(name)
  return endpoints[name.split(':')[0] ?? '']?.keys ?? []
}

function write(folder: string, file: string, config: object): void {
  try {
    makeFolder(folder)
    writeFileSync(file, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    throw new Refusal(EXIT.config, `${file} cannot be written (${codeOf(error)}). Make its folder writable.`)
  }
}
