// Checks that the events of an exported session are a log that a store could have written, and that nothing in it was
// exchanged. schema-check.ts has checked the shape of each event before. Each check refuses with one sentence and
// changes nothing.
import type { Proposal } from '../kernel/content.ts'
import { callKey, type Event } from '../kernel/event.ts'
import { Bug } from '../kernel/failure.ts'
import { open, take } from '../kernel/fold.ts'
import { EMPTY } from '../kernel/session.ts'
import { LIFE } from '../stores/plan/plan-writes.ts'
import { digestOf } from '../tools/core/admit.ts'
import type { PortableLog } from '../stores/move/portable-tree.ts'
import type { Blob } from '../ports/store.ts'
import { requiredBlobs } from '../view/readable-blobs.ts'
import { invalidImport } from './schema-check.ts'
import { isInbox } from './replay-decide.ts'

type Blobs = ReadonlyMap<string, Blob>

/** Refuses a log that is not complete, in order and foldable. */
export function verifyLog({ session, events }: PortableLog, blobs: Blobs): void {
  const [first] = events
  if (first?.type !== 'session.created' || first.epoch !== 0)
    throw invalidImport(`the log of ${session} does not begin with session.created.`)
  const state = open(EMPTY)
  const ids = new Set<string>()
  for (const event of events) {
    const where = `event ${event.seq} of ${session}`
    if (event.seq !== state.seq + 1) throw invalidImport(`${where} does not follow event ${state.seq}.`)
    if (event.at < state.at) throw invalidImport(`${where} is older than the event before it.`)
    if (event.type === 'session.created' && event.seq > 1) throw invalidImport(`${where} creates the session again.`)
    if (isInbox(event)) {
      if (event.epoch !== 0) throw invalidImport(`${where} is of the inbox and has an epoch.`)
      if (ids.has(event.id)) throw invalidImport(`${where} has the id of an earlier event.`)
      ids.add(event.id)
    } else if (event.epoch < state.epoch) throw invalidImport(`${where} has an older epoch than the event before it.`)
    checkNumbers(event, where)
    if (event.type === 'context.compacted') checkCompaction(event, where)
    try {
      take(state, event)
    } catch (error) {
      if (!(error instanceof Bug)) throw error
      throw invalidImport(`${where} cannot happen there (${error.message}).`)
    }
    for (const needed of requiredBlobs(event))
      if (!blobs.has(needed)) throw invalidImport(`${where} refers to the blob ${needed}, which is missing.`)
  }
  checkDigests({ session, events }, blobs)
}

/** No request is that long. */
const TOKENS_MAX = 100_000_000

/**
 * More than one worker a second for thirty years. A store counts on from this number and cannot go beyond the largest
 * integer.
 */
const EPOCH_MAX = 1_000_000_000
/** How often the id may have been removed and used again. */
const LIVES_MAX = 1_000_000
/** In millionths of a dollar. */
const COST_MAX = 1_000_000_000_000

/** Numbers that are summed over a log, or over all sessions of a store, must not overflow. */
function checkNumbers(event: Event, where: string): void {
  if (event.epoch % LIFE > EPOCH_MAX || event.epoch > LIVES_MAX * LIFE)
    throw invalidImport(`${where} has an epoch that no session comes to.`)
  if ('cost' in event && (event.cost ?? 0) > COST_MAX) throw invalidImport(`${where} cost more than any request does.`)
  const used = 'usage' in event ? Object.values(event.usage ?? {}) : []
  if (used.some((tokens) => (tokens ?? 0) > TOKENS_MAX))
    throw invalidImport(`${where} has more tokens than any model takes.`)
}

/** A compaction can only refer to earlier events, and a cut needs a summary in its place. */
function checkCompaction(event: Extract<Event, { type: 'context.compacted' }>, where: string): void {
  const { seq, cut, cleared, summary, pins = [], before = 0, after = 0 } = event
  if (Math.max(before, after) > TOKENS_MAX) throw invalidImport(`${where} has more tokens than any model takes.`)
  if (cut !== undefined && summary === undefined) throw invalidImport(`${where} cuts without a summary.`)
  if (cut === undefined && summary !== undefined) throw invalidImport(`${where} has a summary and cuts nothing.`)
  const later = [cut, cleared, ...pins].find((place) => place !== undefined && place > seq)
  if (later !== undefined) throw invalidImport(`${where} speaks of event ${later}, which comes after it.`)
}

/**
 * An approval is for one tool as it was defined then, with exactly these arguments. So exchanged arguments are refused,
 * even with a valid checksum.
 */
function checkDigests({ session, events }: PortableLog, blobs: Blobs): void {
  let tools: ReadonlyMap<string, string> = new Map()
  const edits = new Map<number, Extract<Event, { type: 'user.tool_confirmation' }>>()
  const asked = new Map<string, Proposal>()
  for (const event of events) {
    if (event.type === 'user.tool_confirmation' && event.edit) edits.set(event.seq, event)
    if (event.type === 'call.reviewed' && event.edit !== undefined) {
      const { edit } = edits.get(event.edit) ?? {}
      const { tool = '' } = asked.get(event.call) ?? {}
      const definition = tools.get(tool) ?? ''
      // A call that a review refused has no digest.
      if (
        event.digest !== undefined &&
        event.digest !== digestOf({ name: tool, definition }, { ...event, args: edit?.args ?? null })
      )
        throw invalidImport(
          `event ${event.seq} of ${session} admits an edit of "${tool}" that its digest does not fit.`,
        )
    }
    if (event.type === 'agent.message')
      for (const [i, proposal] of event.calls.entries()) asked.set(callKey(event.seq, i), proposal)
    if (event.type === 'run.started') tools = definitionsIn(event.now?.toolset ?? event.toolset, blobs)
    if (event.type !== 'agent.message') continue
    for (const call of event.calls) {
      const { tool, gate, digest } = call
      const definition = tools.get(tool)
      if (gate?.type !== 'ask' && digest === undefined) continue
      if (definition === undefined || digest !== digestOf({ name: tool, definition }, call))
        throw invalidImport(
          `event ${event.seq} of ${session} asks for a call of "${tool}" that its digest does not fit.`,
        )
    }
  }
}

/** The definitions of the tools that a run froze. */
function definitionsIn(toolset: string, blobs: Blobs): ReadonlyMap<string, string> {
  const text = Buffer.from(blobs.get(toolset)?.data ?? []).toString()
  const found = new Map<string, string>()
  for (const tool of parseList(text)) {
    const { name, definition } = (tool ?? {}) as { readonly name?: unknown; readonly definition?: unknown }
    if (typeof name !== 'string' || typeof definition !== 'string')
      throw invalidImport(`the toolset ${toolset} is no list of tools.`)
    found.set(name, definition)
  }
  return found
}

function parseList(text: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(text)
    if (Array.isArray(value)) return value
  } catch {
    // Invalid JSON is not a list.
  }
  throw invalidImport('a toolset is no list of tools.')
}
