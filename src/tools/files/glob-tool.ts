// The tool `glob`: finds files by a name pattern, the newest first. It looks at names only; search reads contents.
import { join } from 'node:path'
import { boundContent } from '../core/bound-content.ts'
import { withFolder } from './guarded-disk.ts'
import { output, ToolFailure } from '../core/tool-output.ts'
import { type PathGuard, FOLDER_ALIASES, isListable, leftOutNote, locateForCall } from './path-guard.ts'
import { searchFailure, ignoreGlobs, runRipgrep, ripgrepTrouble } from './ripgrep.ts'
import { flagField, type Infer, integerField, objectField, optionalField, textField } from '../core/argument-schema.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'

const FILES_MAX = 200

const input = objectField({
  pattern: textField('For example "*.ts" (at any depth), "src/**/*.{ts,tsx}" or "docs/*.md".', { min: 1, max: 1000 }),
  path: optionalField(textField('The folder to look in; the workspace root if left out.', { min: 1 })),
  limit: optionalField(integerField(`How many files at most. Default ${FILES_MAX}.`, { min: 1, max: FILES_MAX })),
  include_ignored: optionalField(flagField('Also look in node_modules, .git, dist, build and the like.')),
})

export function globTool(guarded: PathGuard, charsMax: number, binary: string | null): Tool {
  const tool = defineTool({
    name: 'glob',
    description: 'Finds files by a name pattern, most recently changed first. Links are not followed.',
    input,
    aliases: { ...FOLDER_ALIASES, glob: 'pattern' },
    effect: 'read',
    timeoutMs: 30_000,
    execute: async (args, context) => {
      const { files, more, warning, hidden } = await findFiles(guarded, binary, args, context)
      const lines = files.length > 0 ? [...files] : ['(no files)']
      if (more) lines.push(`(there are more; these are the ${files.length} newest)`)
      if (warning !== null) lines.push(`(incomplete: ${warning})`)
      lines.push(...leftOutNote(hidden))
      const said = boundContent(lines.join('\n'), context, charsMax)
      const metadata = { ...said.metadata, files: files.length, more, ...(warning === null ? {} : { warning }) }
      return output({ content: said.content, metadata })
    },
  })
  return { ...tool, root: guarded.root }
}

async function findFiles(guarded: PathGuard, binary: string | null, args: Infer<typeof input>, context: ToolContext) {
  const { pattern, path = '.', limit = FILES_MAX, include_ignored = false } = args
  // ripgrep would read it as an exclusion.
  if (pattern.startsWith('!')) throw new ToolFailure('InvalidInput', 'A pattern must not start with "!".')
  const place = await locateForCall(guarded, path, 'read', context)
  const ignored = include_ignored ? [] : ignoreGlobs([pattern, path])
  const files: string[] = []
  let hidden = 0
  const ran = await withFolder(place, (folder) =>
    runRipgrep({
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
        if (isListable(join(place.path, name), context)) files.push(join(place.shown, name))
        else hidden += 1
        return files.length <= limit
      },
    }),
  )
  const warning = ripgrepTrouble(ran)
  if (warning !== null && files.length === 0) throw searchFailure(warning)
  return { files: files.slice(0, limit), more: files.length > limit, warning, hidden }
}
