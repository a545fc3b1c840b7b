// The memory of a folder's agent: runtime files of its sessions and its learnings, all in the data folder. Learnings never reach
// another folder, so an untrusted folder teaches only itself.
import { hash } from 'node:crypto'
import { basename, join } from 'node:path'
import type { HarnessOptions, Store } from '../../index.ts'
import type { Memory } from '../../memory/index.ts'
import { clean, visible } from '../present/clean.ts'
import { endOf } from '../exit.ts'
import { sessionsIn } from './folders.ts'
import type { Home } from './home.ts'
import { readPlain } from './plain-file.ts'
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

/** Adds memory to the agent unless the configuration turns it off. Close it after the harness. */
export async function remembering(options: Options, setup: Setup, store: Store): Promise<Remembering> {
  if (setup.settings.memory === false) return { options, close: () => Promise.resolve() }
  const { home, folder } = setup
  const [{ memory, promoted }, { directiveTool, memoryHooks }] = await Promise.all([
    memoryOf(home, folder, store),
    import('../../memory/index.ts'),
  ])
  const onError = (error: unknown): void => warn(`Nothing was recalled: ${clean(endOf(error).text)}`)
  const { tools = [], hooks = [], instructions = '' } = options
  const kept = keptText(promoted)
  const said = kept === '' ? instructions : `${instructions}\n\n${kept}`
  return {
    options: {
      ...options,
      tools: [...tools, directiveTool({ store })],
      hooks: [...hooks, ...memoryHooks(memory, { dir: runtimeDir(home), onError })],
      instructions: said,
    },
    close: () => memory.close(),
  }
}

const KEPT_CHARS_MAX = 16_000

/** Only what a person promoted or wrote there. */
function keptText(file: string): string {
  const text = visible(readPlain(file) ?? '').text.trim()
  // Only the title is left after the last entry was removed.
  if (/^(# Memory)?$/.test(text)) return ''
  if (text.length > KEPT_CHARS_MAX) warn(`${file} is long: the agent is told its first ${KEPT_CHARS_MAX} characters.`)
  return `What was learned in this folder, and kept by the user (MEMORY.md):\n\n${text.slice(0, KEPT_CHARS_MAX).replace(/[\uD800-\uDBFF]$/, '')}`
}
