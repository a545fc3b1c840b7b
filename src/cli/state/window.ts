// How much the models of a session take, as far as that is known without asking anybody: from the configuration and the table that
// comes with the package.
import type { Event } from '../../kernel/index.ts'
import { Refusal } from '../exit.ts'
import { endpointsOf } from './agent.ts'
import type { Place } from './place.ts'
import { type Setup, setupFor } from './setup.ts'

/** Without end where it is unknown. `compacts`: what is full is made shorter. */
export type Window = { readonly tokens: number; readonly compacts: boolean }

/** Of a session that works in this folder. A folder whose configuration cannot be read tells nothing. */
export async function windowIn({ home }: Place, folder: string | null, events: readonly Event[]): Promise<Window> {
  const setup = folder === null ? null : await setupFor(home, folder).catch(unreadable)
  const chain = setup?.settings.model ?? []
  const answered = events.findLast((event) => event.type === 'agent.message' && event.route !== undefined)
  const { route } = answered?.type === 'agent.message' ? answered : {}
  // Another model than those of the configuration answered: it was chosen for that run.
  return windowOf(setup, route === undefined || chain.includes(route) ? chain : [route])
}

/** The smallest of them: whichever answers must take it. */
export async function windowOf(setup: Setup | null, names: readonly string[]): Promise<Window> {
  const { compaction = {} } = setup?.settings ?? {}
  const { windowTokens = Number.POSITIVE_INFINITY } = compaction || {}
  const sizes = await Promise.all(names.map((name) => sizeOf(setup, name)))
  return { tokens: Math.min(windowTokens, ...sizes), compacts: compaction !== false }
}

async function sizeOf(setup: Setup | null, name: string): Promise<number> {
  const { model } = await import('../../index.ts')
  try {
    const known = setup ? { endpoints: await endpointsOf(setup.settings), env: setup.env } : {}
    return (await model(name, known).profile()).contextTokens ?? Number.POSITIVE_INFINITY
  } catch {
    // A name that this version does not know.
    return Number.POSITIVE_INFINITY
  }
}

function unreadable(error: unknown): null {
  if (error instanceof Refusal) return null
  throw error
}
