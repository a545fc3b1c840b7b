// Makes the six file tools together: they share one guard, so all have the same rights.
import { type Checks, countCheck, nonEmptyCheck, optionsChecker } from '../../options.ts'
import { CONTENT_CHARS_MAX } from '../core/bound-content.ts'
import { editTool } from './edit-tool.ts'
import { globTool } from './glob-tool.ts'
import { listTool } from './list-tool.ts'
import { type PathGuard, createPathGuard, guardInFolder, GUARD_OPTIONS, type PathGuardOptions } from './path-guard.ts'
import { readTool } from './read-tool.ts'
import { searchTool } from './search-tool.ts'
import type { ToolRoot } from '../core/tool-context.ts'
import type { Tool } from '../core/tool.ts'
import { writeTool } from './write-tool.ts'

/** Options of `fileTools`: the folder they work in, and what in it may be read and written. */
export type FileToolsOptions = PathGuardOptions & {
  /** The path of your own ripgrep binary. */
  readonly ripgrep?: string
  /** How many characters of a result the model sees at once. */
  readonly contentCharsMax?: number
}

export const FILE_OPTIONS: Checks<FileToolsOptions> = {
  ...GUARD_OPTIONS,
  ripgrep: nonEmptyCheck,
  contentCharsMax: countCheck(1),
}
const checkOptions = optionsChecker<FileToolsOptions>('fileTools', FILE_OPTIONS)

/** `read`, `write`, `edit`, `list`, `glob` and `search`, confined to the given folders. */
export function fileTools(options: FileToolsOptions): readonly Tool[] {
  checkOptions(options)
  return makeFileTools(createPathGuard(options), options)
}

function makeFileTools(guarded: PathGuard, options: FileToolsOptions): readonly Tool[] {
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
  // In another folder the tools share one guard too.
  const elsewhere = new WeakMap<ToolRoot, readonly Tool[]>()
  const rooted = (root: ToolRoot, name: string): Tool | null => {
    const all = elsewhere.get(root) ?? makeFileTools(guardInFolder(guarded, root), options)
    elsewhere.set(root, all)
    return all.find((tool) => tool.name === name) ?? null
  }
  return tools.map((tool) => ({ ...tool, rooted: (root) => rooted(root, tool.name) }))
}
