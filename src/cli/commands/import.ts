// `terret import`: a session from an exported file. The file is checked before anything is written. The session is held: the command
// shows what it would do, and it does not go on by itself.
import { readFileSync } from 'node:fs'
import type { Call } from '../args.ts'
import { EXIT, Refusal } from '../exit.ts'
import { jsonTrouble } from '../state/config.ts'
import { recordFolder } from '../state/folders.ts'
import { heldIn, heldLines } from '../present/held.ts'
import { inPlace } from '../state/place.ts'
import { PROGRAM } from '../state/program.ts'
import { codeOf } from '../state/plain-file.ts'
import { print, printJson, seatOf } from '../present/print.ts'
import { shownId } from '../../view/clean.ts'

export function importFrom(call: Call): Promise<number> {
  const [file = ''] = call.words
  const value = read(file)
  const id = call.text('id')
  return inPlace(async (place) => {
    const [{ importSession }, { environmentSecrets }] = await Promise.all([
      import('../../replay.ts'),
      import('../../index.ts'),
    ])
    // It works here from now on, whatever the file says.
    const { home, folder, store } = place
    const isSaid = !Object.values(environmentSecrets()).some((secret) => folder.includes(secret))
    const where = isSaid ? { folder } : {}
    const card = await importSession(store, value, { program: PROGRAM, ...where, ...(id === undefined ? {} : { id }) })
    if (!isSaid) recordFolder(home, { session: card.session, folder })
    const held = await heldIn(store, card.session)
    if (call.is('json')) printJson(held ? { ...card, would: held } : card)
    else {
      print(`Imported ${shownId(card.session)}: ${card.seq} events.`)
      if (held) print(...(await heldLines(held, { folder, ...seatOf(process.stdout) })))
    }
    return EXIT.ok
  })
}

function read(file: string): unknown {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new Refusal(EXIT.missing, `${file} cannot be read (${codeOf(error)}). Check the path and its permissions.`)
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Refusal(
      EXIT.usage,
      `${file} is not valid JSON: ${jsonTrouble(text, error)}. Export it again with --format json.`,
    )
  }
}
