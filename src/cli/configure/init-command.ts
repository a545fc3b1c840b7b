// `terret init`: writes a user configuration once, and prints where the key goes.
import { existsSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import type { CommandArgs } from '../args.ts'
import { canPick } from '../chat/pick-once.ts'
import type { ChosenModel } from './choose-model.ts'
import { clean } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'
import { makeFolder } from '../../stores/plan/make-folder.ts'
import { refuseEmpty } from '../state/config.ts'
import { findHome, type Home, makeHome, replaceFile } from '../state/cli-home.ts'
import { readUserEnvironment } from '../state/folder-setup.ts'
import { findTroubleHere } from '../state/own-folders.ts'
import { fileErrorCode, isOutOfRoom, readPlainFile } from '../state/plain-file.ts'
import { askPerson, isAttended, print, printJson, terretCommand, warn } from '../present/print.ts'

const MODEL = 'anthropic:claude-sonnet-4-5'

export async function initCommand(call: CommandArgs): Promise<number> {
  const home = findHome()
  const file = join(home.config, 'config.json')
  const made = !existsSync(file)
  if (!made) refuseEmpty(file, readPlainFile(file) ?? '')
  if (!made && call.text('model') !== undefined)
    throw new CliError(EXIT.config, `${file} exists already and was not changed. Edit "model" in it by hand.`)
  if (!made && call.text('window') !== undefined)
    throw new CliError(
      EXIT.config,
      `${file} exists already and was not changed. Edit "context.compaction.windowTokens" in it by hand.`,
    )
  const chosen = made && asksPerson(call) ? await askForModel(home) : undefined
  if (chosen === null) {
    warn('Nothing was written.')
    return EXIT.interrupted
  }
  const model = chosen?.name ?? call.text('model') ?? MODEL
  const { keys, ...found } = await lookUpModel(model)
  const isWindowFound = found.isWindowFound || chosen?.contextTokens !== undefined
  const window =
    call.count('window', 1) ??
    (found.isWindowFound ? undefined : chosen?.contextTokens) ??
    (made && !isWindowFound && !call.is('json') ? await askForWindow(model) : undefined)
  makeHome(home)
  const named = chosen?.endpoints ? { endpoints: chosen.endpoints } : {}
  const context = window === undefined ? {} : { context: { compaction: { windowTokens: window } } }
  if (made) writeConfig(home.config, file, { model, mode: 'ask', bash: true, ...context, ...named })
  const env = join(home.config, '.env')
  const unknown = made && !isWindowFound && window === undefined
  if (call.is('json')) printJson({ config: file, made, env, home: home.folder, keys, windowKnown: !unknown })
  else {
    print(made ? `Wrote ${clean(file)}.` : `${clean(file)} is there already, and is left as it is.`)
    if (made && chosen === undefined && call.text('model') === undefined)
      print(`It names ${model}. Another one: ${terretCommand`model PROVIDER:MODEL`}`)
    if (keys.length > 0 && !chosen)
      print(`The key goes into the environment, or as a line into ${clean(env)}: ${keys[0] ?? ''}=…`)
    if (unknown)
      print(`How many tokens ${clean(model)} takes is not known: set "context.compaction.windowTokens" in that file.`)
    const trouble = findTroubleHere()
    print(
      `Then: ${terretCommand`doctor`}${trouble === null ? `, and ${terretCommand`run ${'What is in this folder?'}`}` : `. ${trouble}`}`,
    )
  }
  return EXIT.ok
}

/** True if a person is at the terminal who has not said which model. */
function asksPerson(call: CommandArgs): boolean {
  return call.text('model') === undefined && !call.is('json') && canPick()
}

async function askForModel(home: Home): Promise<ChosenModel | null> {
  const { chooseModel } = await import('./choose-model.ts')
  return chooseModel(await readUserEnvironment(home))
}

type ModelFacts = { readonly keys: readonly string[]; readonly isWindowFound: boolean }

/**
 * The variables that may hold the key, and whether a table or the host says how many tokens the model takes. Throws if
 * there is no such model.
 */
async function lookUpModel(name: string): Promise<ModelFacts> {
  const { endpoints, model } = await import('../../index.ts')
  const { contextTokens } = await model(name).profile()
  const { keys = [], windows } = endpoints[name.split(':')[0] ?? ''] ?? {}
  const isOffline = name.split(':')[0] === 'offline'
  return { keys, isWindowFound: contextTokens !== null || windows !== undefined || isOffline }
}

/** Undefined: there is no person to ask, or they leave it open. */
async function askForWindow(model: string): Promise<number | undefined> {
  if (!isAttended()) return undefined
  for (;;) {
    const said = await askPerson(`How many tokens does ${clean(model)} take, such as 32000? Enter leaves it open: `)
    const text = said?.trim().replace(/[_,.]/g, '') ?? ''
    if (text === '') return undefined
    const tokens = /^\d+k$/i.test(text) ? Number.parseInt(text, 10) * 1_000 : Number(text)
    if (Number.isSafeInteger(tokens) && tokens >= 1_000) return tokens
    warn('Write a whole number of tokens, 1000 or more.')
  }
}

/** Replaces the file whole, so that a process that reads it never sees a part. */
export function writeConfig(folder: string, file: string, config: object): void {
  const hadFolder = existsSync(folder)
  try {
    makeFolder(folder)
    replaceFile(file, `${JSON.stringify(config, null, 2)}\n`)
  } catch (error) {
    if (!hadFolder) removeEmptyFolder(folder)
    if (isOutOfRoom(error))
      throw new CliError(
        EXIT.store,
        `The disk is full, and ${file} was not written. Make room, and try again. (disk_full)`,
      )
    throw new CliError(EXIT.config, `${file} cannot be written (${fileErrorCode(error)}). Make its folder writable.`)
  }
}

function removeEmptyFolder(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {
    // The folder does not exist, or another program uses it.
  }
}
