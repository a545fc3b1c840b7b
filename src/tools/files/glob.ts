// `glob`: files by name pattern, the newest first. It looks at names only: search looks inside.
import { join } from 'node:path'
import { bound } from '../core/bound.ts'
import { inFolder } from './disk.ts'
import { output, ToolFailure } from '../core/output.ts'
import { type Guard, FOLDER_ALIASES, isShown, leftOut, locateFor } from './paths.ts'
import { failedSearch, ignoring, ripgrep, troubleOf } from './ripgrep.ts'
import { flag, type Infer, integer, object, optional, text } from '../core/schema.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'

const FILES_MAX = 200

const input = object({
  pattern: text('For example "*.ts" (at any depth), "src/**/*.{ts,tsx}" or "docs/*.md".', { min: 1, max: 1000 }),
  path: optional(text('The folder to look in; the workspace root if left out.', { min: 1 })),
  limit: optional(integer(`How many files at most. Default ${FILES_MAX}.`, { min: 1, max: FILES_MAX })),
  include_ignored: optional(flag('Also look in node_modules, .git, dist, build and the like.')),
})

export function globTool(guarded: Guard, charsMax: number, binary: string | null): Tool {
  const tool = defineTool({
    name: 'glob',
    description: 'Finds files by a name pattern, most recently changed first. Links are not followed.',
    input,
    aliases: { ...FOLDER_ALIASES, glob: 'pattern' },
    effect: 'read',
    timeoutMs: 30_000,
    execute: async (args, context) => {
      const { files, more, warning, hidden } = await find(guarded, binary, args, context)
      const lines = files.length > 0 ? [...files] : ['(no files)']
      if (more) lines.push(`(there are more; these are the ${files.length} newest)`)
      if (warning !== null) lines.push(`(incomplete: ${warning})`)
      lines.push(...leftOut(hidden))
      const said = bound(lines.join('\n'), context, charsMax)
      const metadata = { ...said.metadata, files: files.length, more, ...(warning === null ? {} : { warning }) }
      return output({ content: said.content, metadata })
    },
  })
  return { ...tool, root: guarded.root }
}

async function find(guarded: Guard, binary: string | null, args: Infer<typeof input>, context: ToolContext) {
  const { pattern, path = '.', limit = FILES_MAX, include_ignored = false } = args
  // ripgrep would read it as "everything but".
  if (pattern.startsWith('!')) throw new ToolFailure('InvalidInput', 'A pattern must not start with "!".')
  const place = await locateFor(guarded, path, 'read', context)
  const ignored = include_ignored ? [] : ignoring([pattern, path])
  const files: string[] = []
  let hidden = 0
  const ran = await inFolder(place, (folder) =>
    ripgrep({
      file: binary,
      args: [
        '--files',
        '--hidden',
        '--no-ignore',
        '--null',
        '--sortr=modified',
        `--glob=${pattern}`,
        ...ignored,
        '--',
        '.',
      ],
      cwd: folder.at('.'),
      stdin: null,
      separator: '\0',
      signal: context.signal,
      record: (name) => {
        if (isShown(join(place.path, name), context)) files.push(join(place.shown, name))
        else hidden += 1
        return files.length <= limit
      },
    }),
  )
  const warning = troubleOf(ran)
  if (warning !== null && files.length === 0) throw failedSearch(warning)
  return { files: files.slice(0, limit), more: files.length > limit, warning, hidden }
}
