// `list`: what is in one folder. It does not go deeper: glob does.
import { opendir } from 'node:fs/promises'
import { bound } from '../core/bound.ts'
import { inFolder } from './disk.ts'
import { output } from '../core/output.ts'
import { type Guard, locate, FOLDER_ALIASES } from './paths.ts'
import { object, optional, text } from '../core/schema.ts'
import { defineTool, type Tool } from '../core/tool.ts'

const ENTRIES_MAX = 10_000

export function listTool(guarded: Guard, charsMax: number): Tool {
  return defineTool({
    name: 'list',
    description: 'Lists a folder, sorted by name. Folders end with "/", links with "@".',
    input: object({ path: optional(text('A folder; the workspace root if left out.', { min: 1 })) }),
    aliases: FOLDER_ALIASES,
    effect: 'read',
    execute: async ({ path = '.' }, context) => {
      const place = await locate(guarded, path, 'read')
      const { names, more } = await inFolder(place, (folder) => entriesOf(folder.at('.')))
      const last = more ? [`(only ${ENTRIES_MAX} entries were looked at)`] : []
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
}

async function entriesOf(folder: string): Promise<{ readonly names: readonly string[]; readonly more: boolean }> {
  const names: string[] = []
  for await (const entry of await opendir(folder)) {
    if (names.length === ENTRIES_MAX) return { names, more: true }
    // A name may hold a line end; quoted, it stays one entry.
    const name = /[\n\r]/.test(entry.name) ? JSON.stringify(entry.name) : entry.name
    names.push(`${name}${entry.isDirectory() ? '/' : entry.isSymbolicLink() ? '@' : ''}`)
  }
  return { names, more: false }
}
