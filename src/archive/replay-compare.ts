// Two logs of one story, compared: same events in the same order, same calls, same results? Seqs and times may differ; what
// stands at the same place is compared. It knows nothing of how the second one came to be.
import type { Json } from '../kernel/content.ts'
import { callKey, type Event } from '../kernel/event.ts'
import { canonicalJson } from '../tools/core/canonical.ts'
import { isChildKey } from '../stores/plan/id.ts'

export type Rerun = {
  readonly events: readonly Event[]
  readonly sameTypes: boolean
  readonly sameCalls: boolean
  readonly sameResults: boolean
  /** The first place where the stories part; null if they do not. `seq` is in the old log, `now` in the new one. */
  readonly divergence: {
    readonly seq: number | null
    readonly now: number | null
    readonly expected: Json
    readonly found: Json
  } | null
}

/** `names`: what the children of the second are called, and what those of the first were called in their place. */
export function compareRuns(
  before: readonly Event[],
  events: readonly Event[],
  names: ReadonlyMap<string, string> = new Map(),
): Rerun {
  const [old, now] = [told(before), told(renamed(events, names))]
  const length = Math.max(old.length, now.length)
  const parted = Array.from({ length }, (_, i) => [old[i], now[i]] as const).find(([a, b]) => !same(a?.told, b?.told))
  const [was, is] = parted ?? []
  const divergence = {
    seq: was?.seq ?? null,
    now: is?.seq ?? null,
    expected: was?.told ?? null,
    found: is?.told ?? null,
  }
  return {
    events,
    sameTypes: same(old.map(typeOf), now.map(typeOf)),
    sameCalls: same(old.flatMap(callsOf), now.flatMap(callsOf)),
    sameResults: same(old.flatMap(resultsOf), now.flatMap(resultsOf)),
    divergence: parted ? divergence : null,
  }
}

/** The same, with other names of sessions wherever one is mentioned. */
export function renamed<T>(value: T, names: ReadonlyMap<string, string>): T {
  const written = (text: string): string => JSON.stringify(text).slice(1, -1)
  const others = new Map([...names].map(([from, to]) => [written(from), written(to)]))
  if (others.size === 0) return value
  // A child of a child begins with the name of its parent, and the tenth with that of the first.
  const longest = [...others.keys()].sort((a, b) => b.length - a.length)
  const any = new RegExp(`(?:${longest.map((name) => name.replace(/\W/g, '\\$&')).join('|')})(?!\\d)`, 'g')
  return JSON.parse(JSON.stringify(value).replace(any, (name) => others.get(name) ?? name)) as T
}

/** A call of the model that was lost with its worker, or stopped with its process: no input asked for that. */
export function isLoss(event: Event, events: readonly Event[]): boolean {
  if (event.type !== 'model.failed') return false
  if (event.class === 'lost') return true
  if (event.class !== 'superseded' && event.class !== 'interrupted') return false
  return events[event.seq - 2]?.type === 'model.started'
}

type Fact = { readonly seq: number; readonly told: Readonly<Record<string, Json>> }

function same(a: unknown, b: unknown): boolean {
  return canonicalJson(a ?? null) === canonicalJson(b ?? null)
}

function typeOf({ told: { type } }: Fact): Json {
  return type ?? null
}

function callsOf({ told: { type, calls } }: Fact): readonly Json[] {
  return type === 'agent.message' ? [calls ?? null] : []
}

function resultsOf({ told: { type, ok, content, parts } }: Fact): readonly Json[] {
  return type === 'agent.tool_result' ? [{ ok: ok ?? null, content: content ?? null, parts: parts ?? null }] : []
}

/** What happened, without what only a crash added, and with places instead of seqs. */
function told(events: readonly Event[]): readonly Fact[] {
  const kept = ordered(withoutLosses(events))
  const places = new Map(kept.map(({ seq }, i) => [seq, i + 1]))
  return kept.map((event) => ({ seq: event.seq, told: essence(event, (seq) => places.get(seq) ?? 0) }))
}

/**
 * A request that was lost and asked again is one request; a call that was begun again is one call. What a child says after its
 * call was closed changes nothing, and may come whenever it comes. What a verb did between runs is not done again: an undo, and
 * an import with its review.
 */
function withoutLosses(events: readonly Event[]): Event[] {
  const kept: Event[] = []
  const begun = new Set<string>()
  const closed = new Set<string>()
  let shown: readonly number[] = []
  const undone = new Set(events.flatMap((event) => (isVerb(event) ? [event.seq] : [])))
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

function isVerb(event: Event): boolean {
  if (event.type === 'note.added') return event.kind === 'undo'
  // What was away when it was recorded need not be away now.
  if (event.type === 'run.deferred') return true
  return event.type === 'session.imported' || event.type === 'run.reviewed' || event.type === 'call.reviewed'
}

/** Results that came one after the other may come in any order, and so may what children answer. */
function ordered(events: Event[]): Event[] {
  for (let from = 0; from < events.length; from++) {
    const results: Landed[] = []
    for (const event of events.slice(from)) {
      if (!isLanded(event)) break
      results.push(event)
    }
    results.sort((a, b) => indexOf(a.call) - indexOf(b.call))
    events.splice(from, results.length, ...results)
    from += results.length
  }
  return events
}

type Landed = Extract<Event, { type: 'agent.tool_result' | 'user.custom_tool_result' }>

function isLanded(event: Event): event is Landed {
  return event.type === 'agent.tool_result' || (event.type === 'user.custom_tool_result' && isChildKey(event.id))
}

function indexOf(call: string): number {
  return Number(call.slice(call.indexOf('.') + 1))
}

function essence(event: Event, place: (seq: number) => number): Fact['told'] {
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
      // A child names its answer by the places in its own log.
      return { ...body, call: moved(body.call), ...('id' in body && isChildKey(body.id) ? { id: 'child' } : {}) }
    }
  }
}

/** A call as it was admitted, without when its question ends. */
function callOf({ id, tool, args, gate, digest }: Extract<Event, { type: 'agent.message' }>['calls'][number]): Json {
  return { id, tool, args, gate: gate?.type ?? null, digest: digest ?? null }
}
