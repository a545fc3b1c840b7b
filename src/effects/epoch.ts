// The prefix of a session: instructions and tools are made for its first run and shown to later ones byte for byte, in any process, so
// that a provider reads them from its cache. A new epoch, with what there is by then, begins for another model, with plan mode on or off,
// after a compaction, and where the agent follows. What changed meanwhile is told in a note. Only these bytes are kept: which tools may
// be called, on which terms and with which arguments is always the word of now.
import type { Hash, Prefix } from '../kernel/content.ts'
import type { Setup } from '../kernel/event.ts'
import type { ToolSchema } from '../ports/model.ts'
import type { Blob } from '../ports/store.ts'
import type { SessionCache } from '../engine/session-cache.ts'
import type { Agent, Services } from '../engine/wiring.ts'
import type { FrozenRuns } from './frozen-run.ts'
import { lastStart, type Started, startAt } from './last-start.ts'
import type { Chosen } from './run-options.ts'

type Made = { readonly toolset: Hash; readonly instructions: Hash }
/** What `run.started` says of it, over the setup of now; and what the model is told of what changed, if it did. */
export type Kept = { readonly prefix: Prefix & Partial<Made>; readonly note: string | null }
/** What a run would be frozen to if nothing were kept, with its blobs. */
type Fresh = { readonly setup: Setup; readonly blobs: readonly Blob[] }
type Doors = { readonly services: Services; readonly runs: FrozenRuns }

const decoder = new TextDecoder()
const TAKEN_BACK =
  'Your instructions and tools are shown anew, as they are now. Notes before this one that say what changed count no longer.'
const NOTHING_KEPT: Kept = { prefix: {}, note: null }

export async function keptPrefix(doors: Doors, cache: SessionCache, chosen: Chosen, fresh: Fresh): Promise<Kept> {
  const { agent, own } = chosen
  const { setup: now } = fresh
  // Prefixes are for language models alone.
  if (agent.planner !== null) return NOTHING_KEPT
  const { store } = doors.services
  const last = await lastStart(store, cache)
  const epoch = last && (await epochOf(doors, cache.id, last))
  if (own) return { prefix: epoch ? { since: epoch.seq, ...(last.now ? { now: last.now } : {}) } : {}, note: null }
  if (!epoch || !fits(epoch, agent) || (cache.session.cut ?? 0) > epoch.seq) return begun(agent, last, now)
  const same = isSame(epoch, now)
  if (!same && (agent.prefix === 'follow' || (await holdsSecret(doors, epoch)))) return begun(agent, last, now)
  const told = last.now ?? epoch
  const note = isSame(told, now) ? null : await noted(doors, told, fresh)
  if (same) return { prefix: { since: epoch.seq }, note }
  const { toolset, instructions } = epoch
  // What is held for the first request counts these: they may be longer than what there is now.
  cache.frame = { run: 0, frame: await doors.runs.read(toolset, instructions) }
  return { prefix: { toolset, instructions, since: epoch.seq, now: madeOf(now) }, note }
}

/** The start of the run that what is shown was made for; null if there is none. */
async function epochOf({ services }: Doors, session: string, last: Started): Promise<Started | null> {
  const start = last.since === undefined ? last : await startAt(services.store, session, last.since)
  return start?.model === undefined ? null : start
}

function fits(epoch: Started, { model, tools }: Agent): boolean {
  return epoch.model === model.name && (epoch.plan ?? false) === tools.plan
}

/** Notes of the epoch before may say what holds no longer: then they are taken back. */
function begun({ model, tools }: Agent, last: Started | null, now: Made): Kept {
  const stale = last?.now !== undefined && !isSame(last.now, now)
  return { prefix: { model: model.name, ...(tools.plan ? { plan: true } : {}) }, note: stale ? TAKEN_BACK : null }
}

function madeOf({ toolset, instructions }: Made): Made {
  return { toolset, instructions }
}

function isSame(one: Made, other: Made): boolean {
  return one.toolset === other.toolset && one.instructions === other.instructions
}

/** What was made before a secret was known may hold it. It must not be sent again. */
async function holdsSecret({ services, runs }: Doors, { toolset, instructions }: Made): Promise<boolean> {
  if (services.redactor.idle) return false
  const { tools, instructions: said } = await runs.read(toolset, instructions)
  return services.redactor.find([said, tools]) !== null
}

/** What there is now is not in the store yet. */
async function noted({ runs }: Doors, told: Made, now: Fresh): Promise<string | null> {
  const { changeNote } = await import('./epoch-note.ts')
  const text = (hashed: Hash): string => decoder.decode(now.blobs.find(({ hash }) => hash === hashed)?.data)
  const tools = JSON.parse(text(now.setup.toolset)) as readonly ToolSchema[]
  const after = { tools, instructions: text(now.setup.instructions) }
  return changeNote(await runs.read(told.toolset, told.instructions), after)
}
