// Whether the events of an exported session are a log that a store could have written, and whether nothing of it was exchanged.
// The shape of each event was checked before (schema-check.ts). Everything here refuses with one sentence and changes nothing.
import { hash } from 'node:crypto'
import type { Proposal } from '../kernel/content.ts'
import { callKey, type Event } from '../kernel/event.ts'
import { Bug } from '../kernel/failure.ts'
import { open, take } from '../kernel/fold.ts'
import { EMPTY, type Session } from '../kernel/session.ts'
import { LIFE } from '../stores/plan/plan.ts'
import { digestOf } from '../tools/core/admit.ts'
import type { PortableBlob, PortableLog } from './portable-file.ts'
import { invalid } from './schema-check.ts'
import { isInbox } from './replay-decide.ts'

export type Blobs = Readonly<Record<string, PortableBlob>>

/** The state at the end of a log that is whole, in order, and foldable. */
export function soundLog({ session, events }: PortableLog, blobs: Blobs): Session {
  const [first] = events
  if (first?.type !== 'session.created' || first.epoch !== 0)
    throw invalid(`the log of ${session} does not begin with session.created.`)
  const state = open(EMPTY)
  const ids = new Set<string>()
  for (const event of events) {
    const where = `event ${event.seq} of ${session}`
    if (event.seq !== state.seq + 1) throw invalid(`${where} does not follow event ${state.seq}.`)
    if (event.at < state.at) throw invalid(`${where} is older than the event before it.`)
    if (event.type === 'session.created' && event.seq > 1) throw invalid(`${where} creates the session again.`)
    if (isInbox(event)) {
      if (event.epoch !== 0) throw invalid(`${where} is of the inbox and has an epoch.`)
      if (ids.has(event.id)) throw invalid(`${where} has the id of an earlier event.`)
      ids.add(event.id)
    } else if (event.epoch < state.epoch) throw invalid(`${where} has an older epoch than the event before it.`)
    checkNumbers(event, where)
    if (event.type === 'context.compacted') checkCompacted(event, where)
    try {
      take(state, event)
    } catch (error) {
      if (!(error instanceof Bug)) throw error
      throw invalid(`${where} cannot happen there (${error.message}).`)
    }
    for (const needed of needs(event))
      if (!Object.hasOwn(blobs, needed)) throw invalid(`${where} refers to the blob ${needed}, which is missing.`)
  }
  checkDigests({ session, events }, blobs)
  return state
}

/** No request is as long. */
const TOKENS_MAX = 100_000_000

/** More than a worker a second for thirty years. A store counts on from it, and has no number after the largest. */
const EPOCH_MAX = 1_000_000_000
/** So often its id was removed and used again. */
const LIVES_MAX = 1_000_000
/** In millionths of a dollar. */
const COST_MAX = 1_000_000_000_000

/** What is summed over a log, or over all sessions of a store, must have a sum. */
function checkNumbers(event: Event, where: string): void {
  if (event.epoch % LIFE > EPOCH_MAX || event.epoch > LIVES_MAX * LIFE)
    throw invalid(`${where} has an epoch that no session comes to.`)
  if ('cost' in event && (event.cost ?? 0) > COST_MAX) throw invalid(`${where} cost more than any request does.`)
  const used = 'usage' in event ? Object.values(event.usage ?? {}) : []
  if (used.some((tokens) => (tokens ?? 0) > TOKENS_MAX)) throw invalid(`${where} has more tokens than any model takes.`)
}

/** It can only speak of what stands before it, and what is cut needs a summary in its place. */
function checkCompacted(event: Extract<Event, { type: 'context.compacted' }>, where: string): void {
  const { seq, cut, cleared, summary, pins = [], before = 0, after = 0 } = event
  if (Math.max(before, after) > TOKENS_MAX) throw invalid(`${where} has more tokens than any model takes.`)
  if (cut !== undefined && summary === undefined) throw invalid(`${where} cuts without a summary.`)
  if (cut === undefined && summary !== undefined) throw invalid(`${where} has a summary and cuts nothing.`)
  const later = [cut, cleared, ...pins].find((place) => place !== undefined && place > seq)
  if (later !== undefined) throw invalid(`${where} speaks of event ${later}, which comes after it.`)
}

/** What an event cannot do without. */
export function needs(event: Event): readonly string[] {
  if (event.type === 'run.started') {
    const { toolset, instructions, policy, options, now } = event
    const hashes = [toolset, instructions, policy, options, now?.toolset, now?.instructions]
    return hashes.filter((hashed) => hashed !== undefined)
  }
  if (event.type === 'session.created') return (event.attachments ?? []).map(({ hash }) => hash)
  const content = event.type === 'agent.tool_result' && typeof event.content !== 'string' ? [event.content.hash] : []
  const parts = 'parts' in event ? (event.parts ?? []) : []
  return [...content, ...parts.flatMap((part) => (part.type === 'blob' ? [part.hash] : []))]
}

export function bytesOf(hashed: string, { data }: PortableBlob): Uint8Array {
  const bytes = Buffer.from(data, 'base64')
  if (bytes.toString('base64') !== data) throw invalid(`the blob ${hashed} is not base64.`)
  if (hash('sha256', bytes) !== hashed) throw invalid(`the blob ${hashed} has other bytes than its hash says.`)
  return bytes
}

/**
 * What was asked is what is in the log: an approval is for one tool as defined then, with exactly these arguments. So arguments
 * that were exchanged do not pass, even with a valid checksum.
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
      // What a review refused has no digest.
      if (
        event.digest !== undefined &&
        event.digest !== digestOf({ name: tool, definition }, { ...event, args: edit?.args ?? null })
      )
        throw invalid(`event ${event.seq} of ${session} admits an edit of "${tool}" that its digest does not fit.`)
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
        throw invalid(`event ${event.seq} of ${session} asks for a call of "${tool}" that its digest does not fit.`)
    }
  }
}

/** The definition of each tool that a run froze. */
function definitionsIn(toolset: string, blobs: Blobs): ReadonlyMap<string, string> {
  const text = Buffer.from(blobs[toolset]?.data ?? '', 'base64').toString()
  const found = new Map<string, string>()
  for (const tool of parsedList(text)) {
    const { name, definition } = (tool ?? {}) as { readonly name?: unknown; readonly definition?: unknown }
    if (typeof name !== 'string' || typeof definition !== 'string')
      throw invalid(`the toolset ${toolset} is no list of tools.`)
    found.set(name, definition)
  }
  return found
}

function parsedList(text: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(text)
    if (Array.isArray(value)) return value
  } catch {
    // No JSON is no list either.
  }
  throw invalid('a toolset is no list of tools.')
}
