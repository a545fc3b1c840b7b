// Slash commands that a person wrote: `commands/NAME.md` in the user's configuration folder, and `.terret/commands` of a
// trusted folder. Each is a message with places for what is entered behind its name. It only reads files.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { splitFrontMatter, FRONT_CHARS_MAX } from '../../tools/skills/front-matter.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { removeInvisible } from '../../view/invisible.ts'
import { isObject } from '../../view/untrusted-json.ts'
import { exitForError } from '../exit.ts'
import type { FolderSetup } from './folder-setup.ts'
import { hasErrorCode, readPlainFile } from './plain-file.ts'

export type OwnCommand = { readonly name: string; readonly says: string; readonly text: string }
/** `notes`: files that are no commands, a line each. */
export type OwnCommands = { readonly commands: readonly OwnCommand[]; readonly notes: readonly string[] }

const FILES_MAX = 200
const TEXT_CHARS_MAX = 100_000
const NAME = /^[a-z][a-z0-9_-]{0,39}$/

/** `taken`: the names of the commands that the chat has. A command of the folder comes before one of the user. */
export async function readOwnCommands(
  { home, folder, trusted }: Pick<FolderSetup, 'home' | 'folder' | 'trusted'>,
  taken: readonly string[],
): Promise<OwnCommands> {
  const commands = new Map<string, OwnCommand>()
  const notes: string[] = []
  const places = [
    { path: join(home.config, 'commands'), within: undefined },
    ...(trusted ? [{ path: join(folder, '.terret', 'commands'), within: folder }] : []),
  ]
  for (const { path, within } of places) {
    for (const file of listFiles(path)) {
      const name = file.slice(0, -'.md'.length)
      const shown = oneLine(join(path, file), 300)
      const read = await readCommand(join(path, file), name, { within, taken })
      if (typeof read === 'string') notes.push(`${shown} is no command: ${read}`)
      else commands.set(name, read)
    }
  }
  return { commands: [...commands.values()], notes }
}

function listFiles(folder: string): readonly string[] {
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith('.md'))
    return names.toSorted().slice(0, FILES_MAX)
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT') || hasErrorCode(error, 'ENOTDIR')) return []
    throw error
  }
}

type ReadFrom = { readonly within: string | undefined; readonly taken: readonly string[] }

/** A text says why the file is no command. */
async function readCommand(file: string, name: string, { within, taken }: ReadFrom): Promise<OwnCommand | string> {
  if (!NAME.test(name)) return 'its name must be small letters, digits, - and _, such as fix-tests.md.'
  if (taken.includes(name)) return `/${name} is a command of the chat. Give it another name.`
  try {
    const { text: given } = removeInvisible(readPlainFile(file, within) ?? '')
    const parts = splitFrontMatter(given, FRONT_CHARS_MAX)
    if (parts === 'open') return 'its front matter has no second line of dashes.'
    const { front, body } = parts === 'none' ? { front: '', body: given } : parts
    const text = body.trim()
    if (text === '') return 'it has no text.'
    if (text.length > TEXT_CHARS_MAX) return `it has more than ${TEXT_CHARS_MAX.toLocaleString('en')} characters.`
    const said = front.trim() === '' ? null : await readDescription(front)
    return { name, says: said ?? oneLine(text.split('\n')[0] ?? '', 80), text: clean(text) }
  } catch (error) {
    return oneLine(exitForError(error).text, 300)
  }
}

async function readDescription(front: string): Promise<string | null> {
  const { parse } = await import('yaml')
  const fields: unknown = parse(front)
  const description = isObject(fields) ? fields['description'] : undefined
  return typeof description === 'string' && description.trim() !== '' ? oneLine(description, 80) : null
}

/**
 * The message: `$ARGUMENTS` is all that was entered behind the name, `$1` to `$9` are its words. A text without a place
 * for them gets them at its end.
 */
export function fillCommand({ text }: OwnCommand, given: string): string {
  const words = given.split(/\s+/).filter((word) => word !== '')
  // One pass: what was entered is not filled again.
  const filled = text.replace(/\$(ARGUMENTS\b|[1-9](?!\d))/g, (_, place: string) =>
    place === 'ARGUMENTS' ? given : (words[Number(place) - 1] ?? ''),
  )
  return filled === text && given !== '' ? `${text}\n\n${given}` : filled
}
