// The prompt prefix of a session: instructions and tools are made for its first run and shown to later runs byte for
// byte, in any process, so that a provider reads them from its cache. A new prefix with the current instructions and
// tools begins for another model, when plan mode changes, after a compaction, and for an agent with `prefix: 'follow'`.
// A note tells the model what changed meanwhile. Only the bytes are kept: which tools may be called, on which terms and
// with which arguments, always follows the current setup.
import type { Hash, PrefixHashes } from '../../kernel/content.ts'
import type { EventOf, FrozenRunSetup, RunStarted } from '../../kernel/event.ts'
import type { ToolSchema } from '../../ports/model.ts'
import type { Blob } from '../../ports/store.ts'
import type { SessionCache } from '../state/session-cache.ts'
import type { Services } from '../state/runtime-ports.ts'
import type { Agent } from '../state/agent.ts'
import type { FrozenRuns } from '../state/frozen-run.ts'
import { lastStart, readRunStart } from '../state/last-start.ts'
import type { ChosenOptions } from './run-options.ts'

type RunStart = EventOf<'run.started'>
type Prefix = Pick<RunStarted, 'model' | 'plan' | 'since' | 'now'>
/** The prefix fields of `run.started`, over the current setup, and the note about changes, if there are any. */
export type PrefixChoice = { readonly prefix: Prefix & Partial<PrefixHashes>; readonly note: string | null }
/** The setup that a run would be frozen to without a kept prefix, with its blobs. */
type FreshSetup = { readonly setup: FrozenRunSetup; readonly blobs: readonly Blob[] }
type PrefixDeps = { readonly services: Services; readonly runs: FrozenRuns }

const decoder = new TextDecoder()
const TAKEN_BACK =
  'Your instructions and tools are shown anew, as they are now. Notes before this one that say what changed count no longer.'
const NOTHING_KEPT: PrefixChoice = { prefix: {}, note: null }

export async function choosePrefix(
  doors: PrefixDeps,
  cache: SessionCache,
  chosen: ChosenOptions,
  fresh: FreshSetup,
): Promise<PrefixChoice> {
  const { agent, own } = chosen
  const { setup: now } = fresh
  // Only language models have a prefix.
  if (agent.planner !== null) return NOTHING_KEPT
  const { store } = doors.services
  const last = await lastStart(store, cache)
  const epoch = last && (await prefixStart(doors, cache.id, last))
  if (own) return { prefix: epoch ? { since: epoch.seq, ...(last.now ? { now: last.now } : {}) } : {}, note: null }
  if (!epoch || !fitsAgent(epoch, agent) || (cache.session.cut ?? 0) > epoch.seq) return beginPrefix(agent, last, now)
  const same = hasSameHashes(epoch, now)
  if (!same && (agent.prefix === 'follow' || (await holdsSecret(doors, epoch)))) return beginPrefix(agent, last, now)
  const told = last.now ?? epoch
  const note = hasSameHashes(told, now) ? null : await noteChanges(doors, told, fresh)
  if (same) return { prefix: { since: epoch.seq }, note }
  const { toolset, instructions } = epoch
  // The money held for the first request is computed from these: they may be longer than the current ones.
  cache.frozenRun = { run: 0, frozen: await doors.runs.read(toolset, instructions) }
  return { prefix: { toolset, instructions, since: epoch.seq, now: prefixHashes(now) }, note }
}

/** The start of the run that the shown prefix was made for; null if there is none. */
async function prefixStart({ services }: PrefixDeps, session: string, last: RunStart): Promise<RunStart | null> {
  const start = last.since === undefined ? last : await readRunStart(services.store, session, last.since)
  return start?.model === undefined ? null : start
}

function fitsAgent(epoch: RunStart, { model, tools }: Agent): boolean {
  return epoch.model === model.name && (epoch.plan ?? false) === tools.plan
}

/** Notes about the previous prefix may be outdated. The model is then told to ignore them. */
function beginPrefix({ model, tools }: Agent, last: RunStart | null, now: PrefixHashes): PrefixChoice {
  const stale = last?.now !== undefined && !hasSameHashes(last.now, now)
  return { prefix: { model: model.name, ...(tools.plan ? { plan: true } : {}) }, note: stale ? TAKEN_BACK : null }
}

function prefixHashes({ toolset, instructions }: PrefixHashes): PrefixHashes {
  return { toolset, instructions }
}

function hasSameHashes(one: PrefixHashes, other: PrefixHashes): boolean {
  return one.toolset === other.toolset && one.instructions === other.instructions
}

/** A prefix that was made before a secret was known may contain it. It must not be sent again. */
async function holdsSecret({ services, runs }: PrefixDeps, { toolset, instructions }: PrefixHashes): Promise<boolean> {
  if (services.redactor.idle) return false
  const { tools, instructions: said } = await runs.read(toolset, instructions)
  return services.redactor.find([said, tools]) !== null
}

/** The current instructions and tools are not in the store yet, so they are read from the blobs. */
async function noteChanges({ runs }: PrefixDeps, told: PrefixHashes, now: FreshSetup): Promise<string | null> {
  const { changeNote } = await import('./prefix-note.ts')
  const text = (hashed: Hash): string => decoder.decode(now.blobs.find(({ hash }) => hash === hashed)?.data)
  const tools = JSON.parse(text(now.setup.toolset)) as readonly ToolSchema[]
  const after = { tools, instructions: text(now.setup.instructions) }
  return changeNote(await runs.read(told.toolset, told.instructions), after)
}
