// The six file tools, made together: one guard, so that what one may do is what all may do.
import { type Checks, count, filled, optionsOf } from '../../options.ts'
import { CONTENT_CHARS_MAX } from '../core/bound.ts'
import { editTool } from './edit.ts'
import { globTool } from './glob.ts'
import { listTool } from './list.ts'
import { type Guard, guard, guardIn, GUARD_OPTIONS, type GuardOptions } from './paths.ts'
import { readTool } from './read.ts'
import { searchTool } from './search.ts'
import type { ToolRoot } from '../core/context.ts'
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
  return made(guard(options), options)
}

function made(guarded: Guard, options: FileToolsOptions): readonly Tool[] {
  const { ripgrep = null, contentCharsMax = CONTENT_CHARS_MAX } = options
  const read = readTool(guarded, contentCharsMax)
  const tools = [
    { ...read, instructions: `Workspace root: ${guarded.root}` },
    writeTool(guarded),
    editTool(guarded, contentCharsMax),
    listTool(guarded, contentCharsMax),
    globTool(guarded, contentCharsMax, ripgrep),
    searchTool(guarded, contentCharsMax, ripgrep),
  ]
  // Elsewhere too they have one guard together.
  const elsewhere = new WeakMap<ToolRoot, readonly Tool[]>()
  const rooted = (root: ToolRoot, name: string): Tool | null => {
    const all = elsewhere.get(root) ?? made(guardIn(guarded, root), options)
    elsewhere.set(root, all)
    return all.find((tool) => tool.name === name) ?? null
  }
  return tools.map((tool) => ({ ...tool, rooted: (root) => rooted(root, tool.name) }))
}
