// `terret import`: adds a session from an exported file. The file is checked before anything is written. The session is
// held: the command shows its pending work, and the session does not continue by itself. With `--format` the file is a
// transcript of another program.
import { readFileSync } from 'node:fs'
import type { CommandArgs } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { jsonTrouble } from '../state/config.ts'
import { recordFolder } from '../state/session-folders.ts'
import { readHeldSession, heldLines } from '../present/held-session.ts'
import { type CommandContext, withStore } from '../state/command-context.ts'
import { PROGRAM } from '../state/own-program.ts'
import { fileErrorCode } from '../state/plain-file.ts'
import { print, printJson, outputStyle } from '../present/print.ts'
import type { TranscriptReport } from '../../replay.ts'
import { shownId } from '../../view/clean.ts'
import { countNoun } from '../../view/shown-text.ts'

export function importCommand(call: CommandArgs): Promise<number> {
  const [file = ''] = call.words
  const format = call.text('format')
  const id = call.text('id')
  if (format !== undefined) return importForeign(call, file, format)
  const value = readJsonFile(file)
  return withStore(async (place) => {
    const { importSession } = await import('../../replay.ts')
    const { folder, store } = place
    const { where, record } = await folderForSession(place)
    const card = await importSession(store, value, { program: PROGRAM, ...where, ...(id === undefined ? {} : { id }) })
    record(card.session)
    const held = await readHeldSession(store, card.session)
    if (call.is('json')) printJson(held ? { ...card, would: held } : card)
    else {
      print(`Imported ${shownId(card.session)}: ${card.seq} events.`)
      if (held) print(...(await heldLines(held, { folder, ...outputStyle(process.stdout) })))
    }
    return EXIT.ok
  })
}

/** A transcript of another program becomes the history of a new session. */
function importForeign(call: CommandArgs, file: string, format: string): Promise<number> {
  const id = call.text('id')
  const text = readTextFile(file)
  return withStore(async (place) => {
    const [{ importTranscript, TRANSCRIPT_FORMATS }, { environmentSecrets }] = await Promise.all([
      import('../../replay.ts'),
      import('../../index.ts'),
    ])
    const known = TRANSCRIPT_FORMATS.find((each) => each === format)
    if (known === undefined)
      throw new CliError(EXIT.usage, `There is no format "${format}". Choose one of: ${TRANSCRIPT_FORMATS.join(', ')}.`)
    const { where, record } = await folderForSession(place)
    const named = id === undefined ? {} : { id }
    const options = { format: known, program: PROGRAM, secrets: environmentSecrets(), ...where, ...named }
    const { card, from } = await importTranscript(place.store, text, options)
    record(card.session)
    if (call.is('json')) printJson({ ...card, from })
    else print(`Imported ${shownId(card.session)}: ${card.seq} events.`, ...reportLines(from))
    return EXIT.ok
  })
}

function reportLines(from: TranscriptReport): readonly string[] {
  const { entries, leftOut, unanswered, unmatched } = from
  return [
    `${entries} ${entries === 1 ? 'entry' : 'entries'} of the format ${from.format}, ${leftOut} left out.`,
    ...(unanswered > 0 ? [`${countNoun(unanswered, 'call')} without a result: shown as interrupted.`] : []),
    ...(unmatched > 0 ? [`${countNoun(unmatched, 'result')} without a call: left out.`] : []),
    'It is history: nothing of it was run.',
  ]
}

/** The session works in this folder from now on, whatever the file says. A folder with a secret in it is not written. */
async function folderForSession({ home, folder }: Pick<CommandContext, 'home' | 'folder'>) {
  const { environmentSecrets } = await import('../../index.ts')
  const isSaid = !Object.values(environmentSecrets()).some((secret) => folder.includes(secret))
  const record = (session: string): void => {
    if (!isSaid) recordFolder(home, { session, folder })
  }
  return { where: isSaid ? { folder } : {}, record }
}

function readTextFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new CliError(
      EXIT.missing,
      `${file} cannot be read (${fileErrorCode(error)}). Check the path and its permissions.`,
    )
  }
}

function readJsonFile(file: string): unknown {
  const text = readTextFile(file)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new CliError(
      EXIT.usage,
      `${file} is not valid JSON: ${jsonTrouble(text, error)}. Export it again with --format json, or say with --format which other program wrote it.`,
    )
  }
}
