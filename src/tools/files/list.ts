// `list`: what is in one folder. It does not go deeper: glob does.
import { opendir } from 'node:fs/promises'
import { join } from 'node:path'
import { bound } from '../core/bound.ts'
import { inFolder } from './disk.ts'
import { output } from '../core/output.ts'
import { type Guard, FOLDER_ALIASES, isShown, leftOut, locateFor } from './paths.ts'
import { object, optional, text } from '../core/schema.ts'
import { defineTool, type Tool } from '../core/tool.ts'

const ENTRIES_MAX = 10_000

export function listTool(guarded: Guard, charsMax: number): Tool {
  const tool = defineTool({
    name: 'list',
    description: 'Lists a folder, sorted by name. Folders end with "/", links with "@".',
    input: object({ path: optional(text('A folder; the workspace root if left out.', { min: 1 })) }),
    aliases: FOLDER_ALIASES,
    effect: 'read',
    execute: async ({ path = '.' }, context) => {
      const place = await locateFor(guarded, path, 'read', context)
      const shows = (name: string): boolean => isShown(join(place.path, name), context)
      const { names, more, hidden } = await inFolder(place, (folder) => entriesOf(folder.at('.'), shows))
      const last = [...(more ? [`(only ${ENTRIES_MAX} entries were looked at)`] : []), ...leftOut(hidden)]
      const said = bound([...names.toSorted(), ...last].join('\n') || '(empty)', context, charsMax)
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

async function entriesOf(folder: string, shows: (name: string) => boolean): Promise<Entries> {
  const names: string[] = []
  let hidden = 0
  for await (const entry of await opendir(folder)) {
    if (names.length + hidden === ENTRIES_MAX) return { names, more: true, hidden }
    if (!shows(entry.name)) {
      hidden += 1
      continue
    }
    // A name may hold a line end; quoted, it stays one entry.
    const name = /[\n\r]/.test(entry.name) ? JSON.stringify(entry.name) : entry.name
    names.push(`${name}${entry.isDirectory() ? '/' : entry.isSymbolicLink() ? '@' : ''}`)
  }
  return { names, more: false, hidden }
}
