// `terret init`: writes a user configuration once, and prints where the key goes.
import { existsSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Call } from '../args.ts'
import { clean } from '../../view/clean.ts'
import { EXIT, Refusal } from '../exit.ts'
import { makeFolder } from '../../stores/plan/folder.ts'
import { refuseEmpty } from '../state/config.ts'
import { homeOf, makeHome, replaceFile } from '../state/home.ts'
import { findTroubleHere } from '../state/own-folders.ts'
import { codeOf, isOutOfRoom, readPlain } from '../state/plain-file.ts'
import { ask, isAttended, print, printJson, typed, warn } from '../present/print.ts'

const MODEL = 'anthropic:claude-sonnet-4-5'

export async function init(call: Call): Promise<number> {
  const home = homeOf()
  const file = join(home.config, 'config.json')
  const model = call.text('model') ?? MODEL
  const made = !existsSync(file)
  if (!made) refuseEmpty(file, readPlain(file) ?? '')
  if (!made && call.text('model') !== undefined)
    throw new Refusal(EXIT.config, `${file} exists already and was not changed. Edit "model" in it by hand.`)
  if (!made && call.text('window') !== undefined)
    throw new Refusal(
      EXIT.config,
      `${file} exists already and was not changed. Edit "compaction.windowTokens" in it by hand.`,
    )
  const { keys, isWindowFound } = await aboutModel(model)
  const window =
    call.count('window', 1) ?? (made && !isWindowFound && !call.is('json') ? await askForWindow(model) : undefined)
  makeHome(home)
  const compaction = window === undefined ? {} : { compaction: { windowTokens: window } }
  if (made) write(home.config, file, { model, mode: 'ask', ...compaction })
  const env = join(home.config, '.env')
  const unknown = made && !isWindowFound && window === undefined
  if (call.is('json')) printJson({ config: file, made, env, home: home.folder, keys, windowKnown: !unknown })
  else {
    print(made ? `Wrote ${clean(file)}.` : `${clean(file)} is there already, and is left as it is.`)
    if (keys.length > 0) print(`The key goes into the environment, or as a line into ${clean(env)}: ${keys[0] ?? ''}=…`)
    if (unknown)
      print(`How many tokens ${clean(model)} takes is not known: set "compaction.windowTokens" in that file.`)
    const trouble = findTroubleHere()
    print(
      `Then: ${typed`doctor`}${trouble === null ? `, and ${typed`run ${'What is in this folder?'}`}` : `. ${trouble}`}`,
    )
  }
  return EXIT.ok
}

type AboutModel = { readonly keys: readonly string[]; readonly isWindowFound: boolean }

/** The variables that may hold its key, and whether a table or its host says how many tokens it takes. Throws if there is no such model. */
async function aboutModel(name: string): Promise<AboutModel> {
  const { endpoints, model } = await import('../../index.ts')
  const { contextTokens } = await model(name).profile()
  const { keys = [], windows } = endpoints[name.split(':')[0] ?? ''] ?? {}
  const isOffline = name.split(':')[0] === 'offline'
  return { keys, isWindowFound: contextTokens !== null || windows !== undefined || isOffline }
}

/** Undefined: nobody is there, or nobody knows. */
async function askForWindow(model: string): Promise<number | undefined> {
  if (!isAttended()) return undefined
  for (;;) {
    const said = await ask(`How many tokens does ${clean(model)} take, such as 32000? Enter leaves it open: `)
    const text = said?.trim().replace(/[_,.]/g, '') ?? ''
    if (text === '') return undefined
    const tokens = /^\d+k$/i.test(text) ? Number.parseInt(text, 10) * 1_000 : Number(text)
    if (Number.isSafeInteger(tokens) && tokens >= 1_000) return tokens
    warn('Write a whole number of tokens, 1000 or more.')
  }
}

function write(folder: string, file: string, config: object): void {
  const hadFolder = existsSync(folder)
  try {
    makeFolder(folder)
    replaceFile(file, `${JSON.stringify(config, null, 2)}\n`)
  } catch (error) {
    if (!hadFolder) removeEmpty(folder)
    if (isOutOfRoom(error))
      throw new Refusal(
        EXIT.store,
        `The disk is full, and ${file} was not written. Make room, and try again. (disk_full)`,
      )
    throw new Refusal(EXIT.config, `${file} cannot be written (${codeOf(error)}). Make its folder writable.`)
  }
}

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {
    // It was not made, or another program uses it.
  }
}
