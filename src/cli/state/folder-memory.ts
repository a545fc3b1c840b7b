// The memory of a folder's agent: runtime files of its sessions and its learnings, all in the data folder. Learnings
// never reach another folder, so an untrusted folder affects only itself.
import { hash } from 'node:crypto'
import { basename, join } from 'node:path'
import type { HarnessOptions, CompleteStore, Tool } from '../../index.ts'
import type { ExtractOptions, Memory } from '../../memory/index.ts'
import { clean } from '../../view/clean.ts'
import { exitForError } from '../exit.ts'
import { sessionIdsIn } from './session-folders.ts'
import type { Home } from './cli-home.ts'
import { warn } from '../present/print.ts'
import type { MemoryEntry } from './config.ts'
import type { FolderSetup } from './folder-setup.ts'

/** The name of the default agent of the command line in the log. */
export const CLI_AGENT = 'default'

export type FolderMemory = {
  readonly memory: Memory
  /** The file with learnings that a person promoted; every run of the folder gets it. */
  readonly promoted: string
}

/** The folder with the runtime files of each session. */
export function runtimeDir({ folder }: Home): string {
  return join(folder, 'sessions')
}

/** Opens no file before the first query. */
export async function openFolderMemory(home: Home, folder: string, store: CompleteStore): Promise<FolderMemory> {
  const { openMemory } = await import('../../memory/index.ts')
  const own = memoryFolder(home, folder)
  const sessions = async (): Promise<readonly string[]> => [...(await sessionIdsIn({ home, folder, store }))].reverse()
  const memory = openMemory({ file: join(own, 'learnings.db'), store, sessions, report: (line) => warn(clean(line)) })
  return { memory, promoted: promotedFile(home, folder) }
}

/** The name is made from the folder's name and a hash of its path. */
function memoryFolder({ folder: data }: Home, folder: string): string {
  const name = basename(folder).replace(/[^\w-]+/g, '-')
  return join(data, 'memory', `${name.slice(0, 48) || 'root'}-${hash('sha256', folder).slice(0, 16)}`)
}

function promotedFile(home: Home, folder: string): string {
  return join(memoryFolder(home, folder), 'MEMORY.md')
}

type Options = Omit<HarnessOptions, 'store'>
export type OptionsWithMemory = { readonly options: Options; readonly close: () => Promise<void> }

/** The memory tools for the model. */
export async function memoryTools({ settings }: FolderSetup, store: CompleteStore): Promise<readonly Tool[]> {
  if (settings.memory === false) return []
  const { directiveTool } = await import('../../memory/index.ts')
  return [directiveTool({ store })]
}

/** Adds memory to the agent unless the configuration turns it off. Close it after the harness. */
export async function addMemory(
  options: Options,
  setup: FolderSetup,
  store: CompleteStore,
): Promise<OptionsWithMemory> {
  if (setup.settings.memory === false) return { options, close: () => Promise.resolve() }
  const { home, folder } = setup
  const [{ memory, promoted }, { memoryPlugin }] = await Promise.all([
    openFolderMemory(home, folder, store),
    import('../../memory/index.ts'),
  ])
  let isClosed = false
  // A request that was interrupted by closing is not an error of the memory.
  const onError = (error: unknown): void => {
    if (!isClosed) warn(`Memory: ${clean(memoryTrouble(error))}`)
  }
  const { tools = [], plugins = [] } = options
  const { memory: entry } = setup.settings
  const { extract: extracts = false, episodes = false } = typeof entry === 'object' ? entry : {}
  const extract = await extractionOptions(setup, extracts)
  const kept = { dir: runtimeDir(home), file: promoted, extract, episodes, onError }
  return {
    options: {
      ...options,
      tools: [...tools, ...(await memoryTools(setup, store))],
      plugins: [...plugins, memoryPlugin(memory, kept)],
    },
    close: () => {
      isClosed = true
      return memory.close()
    },
  }
}

/**
 * An expected problem, such as a failed extraction or an unreadable file, is reported by its message and not as a bug.
 */
function memoryTrouble(error: unknown): string {
  return error instanceof Error && error.name === 'Error' ? error.message : exitForError(error).text
}

/** A separate extraction model gets its key in the same way as the others. */
async function extractionOptions(
  setup: FolderSetup,
  extract: NonNullable<MemoryEntry['extract']>,
): Promise<ExtractOptions | boolean> {
  if (typeof extract === 'boolean') return extract
  const { model: name, ...least } = extract
  if (name === undefined) return least
  const { modelsFor } = await import('./folder-agent.ts')
  const [model] = await modelsFor(setup, { models: [name] })
  return model ? { ...least, model } : least
}
