// The memory of a folder's agent: runtime files of its sessions and its learnings, all in the data folder. Learnings never reach
// another folder, so an untrusted folder teaches only itself.
import { hash } from 'node:crypto'
import { basename, join } from 'node:path'
import type { HarnessOptions, Store, Tool } from '../../index.ts'
import type { ExtractOptions, Memory } from '../../memory/index.ts'
import { clean } from '../../view/clean.ts'
import { endOf } from '../exit.ts'
import { sessionsIn } from './folders.ts'
import type { Home } from './home.ts'
import { warn } from '../present/print.ts'
import type { Setup } from './setup.ts'

/** The agent of the command line, as the log names it. */
export const AGENT = 'default'

export type Remembered = {
  readonly memory: Memory
  /** Promoted by a person; every run of the folder gets it. */
  readonly promoted: string
}

/** The folder with the runtime files of each session. */
export function runtimeDir({ folder }: Home): string {
  return join(folder, 'sessions')
}

/** Opens no file before the first query. */
export async function memoryOf(home: Home, folder: string, store: Store): Promise<Remembered> {
  const { openMemory } = await import('../../memory/index.ts')
  const own = placeOf(home, folder)
  const sessions = async (): Promise<readonly string[]> => [...(await sessionsIn({ home, folder, store }))].reverse()
  const memory = openMemory({ file: join(own, 'learnings.db'), store, sessions, report: (line) => warn(clean(line)) })
  return { memory, promoted: promotedIn(home, folder) }
}

/** From the folder's name and a hash of its path. */
function placeOf({ folder: data }: Home, folder: string): string {
  const name = basename(folder).replace(/[^\w-]+/g, '-')
  return join(data, 'memory', `${name.slice(0, 48) || 'root'}-${hash('sha256', folder).slice(0, 16)}`)
}

function promotedIn(home: Home, folder: string): string {
  return join(placeOf(home, folder), 'MEMORY.md')
}

type Options = Omit<HarnessOptions, 'store'>
export type Remembering = { readonly options: Options; readonly close: () => Promise<void> }

/** The tools of the memory that the model gets. */
export async function memoryTools({ settings }: Setup, store: Store): Promise<readonly Tool[]> {
  if (settings.memory === false) return []
  const { directiveTool } = await import('../../memory/index.ts')
  return [directiveTool({ store })]
}

/** Adds memory to the agent unless the configuration turns it off. Close it after the harness. */
export async function remembering(options: Options, setup: Setup, store: Store): Promise<Remembering> {
  if (setup.settings.memory === false) return { options, close: () => Promise.resolve() }
  const { home, folder } = setup
  const [{ memory, promoted }, { memoryHooks }] = await Promise.all([
    memoryOf(home, folder, store),
    import('../../memory/index.ts'),
  ])
  let isClosed = false
  // A question that was under way when the process was told to stop is no trouble of the memory.
  const onError = (error: unknown): void => {
    if (!isClosed) warn(`Memory: ${clean(troubleIn(error))}`)
  }
  const { tools = [], hooks = [] } = options
  const extract = await extractionFor(setup)
  return {
    options: {
      ...options,
      tools: [...tools, ...(await memoryTools(setup, store))],
      hooks: [...hooks, ...memoryHooks(memory, { dir: runtimeDir(home), file: promoted, extract, onError })],
    },
    close: () => {
      isClosed = true
      return memory.close()
    },
  }
}

/** What is reported in words is no bug: an extraction that failed, a file that cannot be read. */
function troubleIn(error: unknown): string {
  return error instanceof Error && error.name === 'Error' ? error.message : endOf(error).text
}

/** Another model for it has its key from where the others have theirs. */
async function extractionFor(setup: Setup): Promise<ExtractOptions | boolean> {
  const { memory } = setup.settings
  const { extract = false } = typeof memory === 'object' ? memory : {}
  if (typeof extract === 'boolean') return extract
  const { model: name, ...least } = extract
  if (name === undefined) return least
  const { modelsFor } = await import('./agent.ts')
  const [model] = await modelsFor(setup, { models: [name] })
  return model ? { ...least, model } : least
}
