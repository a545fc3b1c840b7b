// The tool `list`: shows the entries of one folder. It does not go deeper: glob does.
import { opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { boundContent } from '../core/bound-content.ts'
import { withFolder } from './guarded-disk.ts'
import { output } from '../core/tool-output.ts'
import { type PathGuard, FOLDER_ALIASES, isListable, leftOutNote, locateForCall } from './path-guard.ts'
import { objectField, optionalField, textField } from '../core/argument-schema.ts'
import { defineTool, type Tool } from '../core/tool.ts'

const ENTRIES_MAX = 10_000

export function listTool(guarded: PathGuard, charsMax: number): Tool {
  const tool = defineTool({
    name: 'list',
    description: 'Lists a folder, sorted by name. Folders end with "/", links with "@".',
    input: objectField({ path: optionalField(textField('A folder; the workspace root if left out.', { min: 1 })) }),
    aliases: FOLDER_ALIASES,
    effect: 'read',
    execute: async ({ path = '.' }, context) => {
      const place = await locateForCall(guarded, path, 'read', context)
      const shows = (name: string): boolean => isListable(join(place.path, name), context)
      const { names, more, hidden } = await withFolder(place, (folder) => readEntries(folder.at('.'), shows))
      const last = [...(more ? [`(only ${ENTRIES_MAX} entries were looked at)`] : []), ...leftOutNote(hidden)]
      const said = boundContent([...names.toSorted(), ...last].join('\n') || '(empty)', context, charsMax)
      const metadata = {
        ...said.metadata,
        path: place.shown,
        entries: names.length,
        ...(more ? { partial: true } : {}),
      }
      return output({ content: said.content, metadata })
    },
  })
  return { ...tool, root: guarded.root }
}

type Entries = { readonly names: readonly string[]; readonly more: boolean; readonly hidden: number }

async function readEntries(folder: string, shows: (name: string) => boolean): Promise<Entries> {
  const names: string[] = []
  let hidden = 0
  for await (const entry of await opendir(folder)) {
    if (names.length + hidden === ENTRIES_MAX) return { names, more: true, hidden }
    if (!shows(entry.name)) {
      hidden += 1
      continue
    }
    // A name may hold a line end. Quoted, it stays one entry.
    const name = /[\n\r]/.test(entry.name) ? JSON.stringify(entry.name) : entry.name
    names.push(`${name}${entry.isDirectory() ? '/' : entry.isSymbolicLink() ? '@' : ''}`)
  }
  return { names, more: false, hidden }
}
