// How many tokens the models of a session take, if that is known without a request: from the configuration and the
// table that comes with the package.
import type { Event } from '../../kernel/index.ts'
import { CliError } from '../exit.ts'
import { endpointsOf } from './folder-agent.ts'
import type { CommandContext } from './command-context.ts'
import { type FolderSetup, readSetup } from './folder-setup.ts'

/** `tokens` is infinity if it is unknown. `compacts`: a full context is made shorter. */
export type ContextLimit = { readonly tokens: number; readonly compacts: boolean }

/** The limit for a session in this folder; unknown if the configuration of the folder cannot be read. */
export async function sessionWindow(
  { home }: CommandContext,
  folder: string | null,
  events: readonly Event[],
): Promise<ContextLimit> {
  const setup = folder === null ? null : await readSetup(home, folder).catch(nullIfUnreadable)
  const chain = setup?.settings.model ?? []
  const answered = events.findLast((event) => event.type === 'agent.message' && event.route !== undefined)
  const { route } = answered?.type === 'agent.message' ? answered : {}
  // A model that is not in the configuration answered, so it was chosen for that run.
  return smallestWindow(setup, route === undefined || chain.includes(route) ? chain : [route])
}

/** The smallest limit of these models, because any of them may have to take the request. */
export async function smallestWindow(setup: FolderSetup | null, names: readonly string[]): Promise<ContextLimit> {
  const { compaction = {} } = setup?.settings.context ?? {}
  const { windowTokens = Number.POSITIVE_INFINITY } = compaction || {}
  const sizes = await Promise.all(names.map((name) => windowTokensOf(setup, name)))
  return { tokens: Math.min(windowTokens, ...sizes), compacts: compaction !== false }
}

async function windowTokensOf(setup: FolderSetup | null, name: string): Promise<number> {
  const { model } = await import('../../index.ts')
  try {
    const known = setup ? { endpoints: await endpointsOf(setup.settings), env: setup.env } : {}
    return (await model(name, known).profile()).contextTokens ?? Number.POSITIVE_INFINITY
  } catch {
    // This version does not know the name.
    return Number.POSITIVE_INFINITY
  }
}

function nullIfUnreadable(error: unknown): null {
  if (error instanceof CliError) return null
  throw error
}
