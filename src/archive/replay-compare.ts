// Compares two logs of the same run: same events in the same order, same calls, same results? Seqs and times may
// differ, so events are compared by position. It does not know how the second log was made.
import type { Json } from '../kernel/content.ts'
import { callKey, type Event } from '../kernel/event.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { isChildKey } from '../stores/plan/store-ids.ts'

/** A recorded session that was run again, and where it went another way. */
export type Rerun = {
  /** The events of the new session. */
  readonly events: readonly Event[]
  /** The events have the same types in the same order. */
  readonly sameTypes: boolean
  /** The same calls were asked for, in the same order. */
  readonly sameCalls: boolean
  /** The calls had the same results. */
  readonly sameResults: boolean
  /** The first position where the logs differ; null if they do not. `seq` is in the old log, `now` in the new one. */
  readonly divergence: {
    readonly seq: number | null
    readonly now: number | null
    readonly expected: Json
    readonly found: Json
  } | null
}

/** `names` maps the ids of the second log's children to the ids of their counterparts in the first log. */
export function compareRuns(
  before: readonly Event[],
  events: readonly Event[],
  names: ReadonlyMap<string, string> = new Map(),
): Rerun {
  const [old, now] = [comparableEvents(before), comparableEvents(renameSessions(events, names))]
  const length = Math.max(old.length, now.length)
  const parted = Array.from({ length }, (_, i) => [old[i], now[i]] as const).find(
    ([a, b]) => !isSameContent(a?.fields, b?.fields),
  )
  const [was, is] = parted ?? []
  const divergence = {
    seq: was?.seq ?? null,
    now: is?.seq ?? null,
    expected: was?.fields ?? null,
    found: is?.fields ?? null,
  }
  return {
    events,
    sameTypes: isSameContent(old.map(typeOf), now.map(typeOf)),
    sameCalls: isSameContent(old.flatMap(callsOf), now.flatMap(callsOf)),
    sameResults: isSameContent(old.flatMap(resultsOf), now.flatMap(resultsOf)),
    divergence: parted ? divergence : null,
  }
}

/** The same value with session ids replaced wherever they appear. */
export function renameSessions<T>(value: T, names: ReadonlyMap<string, string>): T {
  const written = (text: string): string => JSON.stringify(text).slice(1, -1)
  const others = new Map([...names].map(([from, to]) => [written(from), written(to)]))
  if (others.size === 0) return value
  // Longer names first: the id of a grandchild begins with its parent's id, and `~10` begins with `~1`.
  const longest = [...others.keys()].sort((a, b) => b.length - a.length)
  const any = new RegExp(`(?:${longest.map((name) => name.replace(/\W/g, '\\$&')).join('|')})(?!\\d)`, 'g')
  return JSON.parse(JSON.stringify(value).replace(any, (name) => others.get(name) ?? name)) as T
}

/** A model call that was lost with its worker, or stopped with its process. No input asked for that stop. */
export function isLoss(event: Event, events: readonly Event[]): boolean {
  if (event.type !== 'model.failed') return false
  if (event.class === 'lost') return true
  if (event.class !== 'superseded' && event.class !== 'interrupted') return false
  return events[event.seq - 2]?.type === 'model.started'
}

type ComparableEvent = { readonly seq: number; readonly fields: Readonly<Record<string, Json>> }

function isSameContent(a: unknown, b: unknown): boolean {
  return canonicalJson(a ?? null) === canonicalJson(b ?? null)
}

function typeOf({ fields: { type } }: ComparableEvent): Json {
  return type ?? null
}

function callsOf({ fields: { type, calls } }: ComparableEvent): readonly Json[] {
  return type === 'agent.message' ? [calls ?? null] : []
}

function resultsOf({ fields: { type, ok, content, parts } }: ComparableEvent): readonly Json[] {
  return type === 'agent.tool_result' ? [{ ok: ok ?? null, content: content ?? null, parts: parts ?? null }] : []
}

/** The comparable events: without those that only a crash added, and with positions instead of seqs. */
function comparableEvents(events: readonly Event[]): readonly ComparableEvent[] {
  const kept = sortResults(withoutLosses(events))
  const places = new Map(kept.map(({ seq }, i) => [seq, i + 1]))
  return kept.map((event) => ({ seq: event.seq, fields: comparableFields(event, (seq) => places.get(seq) ?? 0) }))
}

/**
 * A request that was lost and made again counts as one, and so does a call that was started again. A child's message
 * after its call has closed changes nothing and may come at any time. The work of a verb between runs is not replayed:
 * an undo, or an import with its review.
 */
function withoutLosses(events: readonly Event[]): Event[] {
  const kept: Event[] = []
  const begun = new Set<string>()
  const closed = new Set<string>()
  let shown: readonly number[] = []
  const undone = new Set(events.flatMap((event) => (isNotReplayed(event) ? [event.seq] : [])))
  for (const event of events) {
    if (undone.has(event.seq)) continue
    if (isLoss(event, events)) {
      const at = kept.findLastIndex(({ type }) => type === 'model.started')
      for (const asked of at < 0 ? [] : kept.splice(at, 1)) if (asked.type === 'model.started') shown = asked.shows
    } else if (event.type === 'model.started') {
      kept.push({ ...event, shows: [...shown, ...event.shows.filter((seq) => !undone.has(seq))] })
      shown = []
    } else if (event.type === 'agent.tool_use') {
      if (!begun.has(event.call)) kept.push(event)
      begun.add(event.call)
    } else if (event.type !== 'user.custom_tool_result' || !isChildKey(event.id) || !closed.has(event.call))
      kept.push(event)
    if (event.type === 'agent.tool_result') closed.add(event.call)
  }
  return kept
}

function isNotReplayed(event: Event): boolean {
  if (event.type === 'note.added') return event.kind === 'undo'
  // The cause of the delay in the recording may be gone now.
  if (event.type === 'run.deferred') return true
  return event.type === 'session.imported' || event.type === 'run.reviewed' || event.type === 'call.reviewed'
}

/** Adjacent results may come in any order, and so may the answers of children. */
function sortResults(events: Event[]): Event[] {
  for (let from = 0; from < events.length; from++) {
    const results: LandedResult[] = []
    for (const event of events.slice(from)) {
      if (!isLandedResult(event)) break
      results.push(event)
    }
    results.sort((a, b) => indexOf(a.call) - indexOf(b.call))
    events.splice(from, results.length, ...results)
    from += results.length
  }
  return events
}

type LandedResult = Extract<Event, { type: 'agent.tool_result' | 'user.custom_tool_result' }>

function isLandedResult(event: Event): event is LandedResult {
  return event.type === 'agent.tool_result' || (event.type === 'user.custom_tool_result' && isChildKey(event.id))
}

function indexOf(call: string): number {
  return Number(call.slice(call.indexOf('.') + 1))
}

function comparableFields(event: Event, place: (seq: number) => number): ComparableEvent['fields'] {
  const { type } = event
  const moved = (call: string): string => callKey(place(Number(call.split('.')[0])), indexOf(call))
  switch (event.type) {
    case 'session.created':
    case 'context.compacted':
      return { type }
    case 'run.started':
      return { type, inputs: event.inputs.map(place), wakes: event.wakes }
    case 'model.started':
      return { type, shows: event.shows.map(place), boost: event.boost ?? false }
    case 'agent.message':
      return { type, calls: event.calls.map(callOf), parts: event.parts, verdict: event.verdict }
    case 'model.failed':
      return { type, class: event.class }
    case 'agent.tool_use':
    case 'agent.custom_tool_use':
      return { type, call: moved(event.call) }
    case 'agent.tool_result': {
      const from = event.from === undefined ? {} : { from: place(event.from) }
      const { content, parts } = event
      const shown = parts ? { content, parts } : { content }
      return { type, call: moved(event.call), ok: event.status === 'ok', ...shown, ...from }
    }
    case 'wake.scheduled':
      return { type, key: event.key }
    case 'run.settled':
      return { type, outcome: event.outcome, inputs: (event.inputs ?? []).map(place) }
    default: {
      const { seq: _seq, at: _at, wall: _wall, epoch: _epoch, ...body } = event
      if (!('call' in body)) return body
      // A child's answer has an id made of positions in the child's own log.
      return { ...body, call: moved(body.call), ...('id' in body && isChildKey(body.id) ? { id: 'child' } : {}) }
    }
  }
}

/** A call as admitted, without the time at which its question expires. */
function callOf({ id, tool, args, gate, digest }: Extract<Event, { type: 'agent.message' }>['calls'][number]): Json {
  return { id, tool, args, gate: gate?.type ?? null, digest: digest ?? null }
}
