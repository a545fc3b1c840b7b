// `terret import`: a session from an exported file. The file is checked before anything is written. The session is held: the command
// shows what it would do, and it does not go on by itself.
import { readFileSync } from 'node:fs'
import type { Call } from '../args.ts'
import { EXIT, Refusal } from '../exit.ts'
import { recordFolder } from '../state/folders.ts'
import { heldIn, heldLines } from '../present/held.ts'
import { inPlace } from '../state/place.ts'
import { codeOf } from '../state/plain-file.ts'
import { print, printJson, seatOf } from '../present/print.ts'

export function importFrom(call: Call): Promise<number> {
  const [file = ''] = call.words
  const value = read(file)
  const id = call.text('id')
  return inPlace(async (place) => {
    const { importSession } = await import('../../replay.ts')
    const card = await importSession(place.store, value, id === undefined ? {} : { id })
    // After the import, so that a refused import leaves nothing.
    recordFolder(place.home, { session: card.session, folder: place.folder })
    const held = await heldIn(place.store, card.session)
    if (call.is('json')) printJson(held ? { ...card, would: held } : card)
    else {
      print(`Imported ${card.session}: ${card.seq} events.`)
      if (held) print((await heldLines(held, { folder: place.folder, ...seatOf(process.stdout) })).join('\n'))
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
    const why = error instanceof Error ? error.message : String(error)
    throw new Refusal(EXIT.usage, `${file} is not valid JSON: ${why}. Export it again with --format json.`)
  }
}
