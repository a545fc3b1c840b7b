// `terret import`: adds a session from an exported file. The file is checked before anything is written. The session is
// held: the command shows its pending work, and the session does not continue by itself.
import { readFileSync } from 'node:fs'
import type { CommandArgs } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { jsonTrouble } from '../state/config.ts'
import { recordFolder } from '../state/session-folders.ts'
import { readHeldSession, heldLines } from '../present/held-session.ts'
import { withStore } from '../state/command-context.ts'
import { PROGRAM } from '../state/own-program.ts'
import { fileErrorCode } from '../state/plain-file.ts'
import { print, printJson, outputStyle } from '../present/print.ts'
import { shownId } from '../../view/clean.ts'

export function importCommand(call: CommandArgs): Promise<number> {
  const [file = ''] = call.words
  const value = readJsonFile(file)
  const id = call.text('id')
  return withStore(async (place) => {
    const [{ importSession }, { environmentSecrets }] = await Promise.all([
      import('../../replay.ts'),
      import('../../index.ts'),
    ])
    // The session works in this folder from now on, whatever the file says.
    const { home, folder, store } = place
    const isSaid = !Object.values(environmentSecrets()).some((secret) => folder.includes(secret))
    const where = isSaid ? { folder } : {}
    const card = await importSession(store, value, { program: PROGRAM, ...where, ...(id === undefined ? {} : { id }) })
    if (!isSaid) recordFolder(home, { session: card.session, folder })
    const held = await readHeldSession(store, card.session)
    if (call.is('json')) printJson(held ? { ...card, would: held } : card)
    else {
      print(`Imported ${shownId(card.session)}: ${card.seq} events.`)
      if (held) print(...(await heldLines(held, { folder, ...outputStyle(process.stdout) })))
    }
    return EXIT.ok
  })
}

function readJsonFile(file: string): unknown {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new CliError(
      EXIT.missing,
      `${file} cannot be read (${fileErrorCode(error)}). Check the path and its permissions.`,
    )
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new CliError(
      EXIT.usage,
      `${file} is not valid JSON: ${jsonTrouble(text, error)}. Export it again with --format json.`,
    )
  }
}
