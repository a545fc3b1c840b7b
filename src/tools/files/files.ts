// The six file tools, made together: one guard, so that what one may do is what all may do.
import { type Checks, count, filled, optionsOf } from '../../options.ts'
import { CONTENT_CHARS_MAX } from '../core/bound.ts'
import { editTool } from './edit.ts'
import { globTool } from './glob.ts'
import { listTool } from './list.ts'
import { guard, GUARD_OPTIONS, type GuardOptions } from './paths.ts'
import { readTool } from './read.ts'
import { searchTool } from './search.ts'
import type { Tool } from '../core/tool.ts'
import { writeTool } from './write.ts'

export type FileToolsOptions = GuardOptions & {
  /** A ripgrep binary of one's own. */
  readonly ripgrep?: string
  /** How much of a result the model sees at once. */
  readonly contentCharsMax?: number
}

export const FILE_OPTIONS: Checks<FileToolsOptions> = { ...GUARD_OPTIONS, ripgrep: filled, contentCharsMax: count(1) }
const checkOptions = optionsOf<FileToolsOptions>('fileTools', FILE_OPTIONS)

/** `read`, `write`, `edit`, `list`, `glob` and `search`, confined to the given folders. */
export function fileTools(options: FileToolsOptions): readonly Tool[] {
  checkOptions(options)
  const { ripgrep = null, contentCharsMax = CONTENT_CHARS_MAX } = options
  const guarded = guard(options)
  const read = readTool(guarded, contentCharsMax)
  return [
    { ...read, instructions: `Workspace root: ${guarded.root}` },
    writeTool(guarded),
    editTool(guarded, contentCharsMax),
    listTool(guarded, contentCharsMax),
    globTool(guarded, contentCharsMax, ripgrep),
    searchTool(guarded, contentCharsMax, ripgrep),
  ]
}
