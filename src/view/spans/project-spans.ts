// The projection: turns the logs of a session and its children into spans. Pure, so the same logs give the same bytes,
// at any time and anywhere. It knows no store and no sink.
import type { Event, EventOf } from '../../kernel/event.ts'
import { promptParts } from './span-content.ts'
import * as draft from './span-draft.ts'
import type { SpanDraft, RunDraft } from './span-draft.ts'
import { type Capture, type CapturedContent, expandCapture, callSpanIdOf, childIdOf } from './span.ts'
import { type SessionLog, type Span, spanIdOf, traceIdOf } from './span.ts'
import { isSampled, readTraceparent } from './traceparent.ts'

/** One run and its spans. */
export type TracedRun = {
  /** The session of the run. */
  readonly session: string
  /** The seq of its `run.started`. */
  readonly run: number
  /** When it settled, in ms since 1970. Null while it is open; some spans have no end then. */
  readonly settledAt: number | null
  /** False: its given `traceparent` is not sampled, so it is not exported. */
  readonly sampled: boolean
  /** Its spans, that of the run first. */
  readonly spans: readonly Span[]
}

/**
 * The spans of these logs, run by run: parents before children, and each session's runs in order. Give a root session
 * with all its children: a log whose parent is missing counts as a root.
 */
export function runsOf(logs: readonly SessionLog[], capture: Capture): readonly TracedRun[] {
  const given = new Set(logs.map((log) => log.session))
  const children = new Map<string, SessionLog>()
  const roots: SessionLog[] = []
  for (const log of logs) {
    const parent = createdOf(log)?.parent
    if (parent && given.has(parent.session)) children.set(childIdOf(parent.session, parent.call), log)
    else roots.push(log)
  }
  const captured = expandCapture(capture)
  const runs: TracedRun[] = []
  const visit = (log: SessionLog, above: ParentSpan | null): void => {
    const walk = newWalk(log, above, captured)
    for (const event of log.events) takeEvent(walk, event)
    for (const run of walk.runs) runs.push(finishRun(log.session, run))
    for (const [call, traceId] of walk.handed) {
      const child = children.get(childIdOf(log.session, call))
      if (child) visit(child, { traceId, spanId: callSpanIdOf(log.session, call) })
    }
  }
  for (const log of roots.toSorted((a, b) => (a.session < b.session ? -1 : 1))) visit(log, null)
  return runs
}

/** The parent's call that a child works for, and the trace of that call. */
type ParentSpan = { readonly traceId: string; readonly spanId: string }

type LogWalk = {
  readonly session: string
  readonly above: ParentSpan | null
  readonly capture: CapturedContent
  /** The seq of the last import. The trace of an earlier run is only a claim of the file. */
  readonly imported: number
  created: EventOf<'session.created'> | null
  run: RunDraft | null
  readonly runs: RunDraft[]
  /** Calls that are answered from outside, perhaps by a child, and their traces. */
  readonly handed: Map<string, string>
  /** Messages that no request has shown yet. Kept only if prompts are captured. */
  readonly unshown: Map<number, NonNullable<ReturnType<typeof promptParts>>>
}

function newWalk({ session, events }: SessionLog, above: ParentSpan | null, capture: CapturedContent): LogWalk {
  const kept = { handed: new Map(), unshown: new Map() }
  const imported = events.findLast(({ type }) => type === 'session.imported')?.seq ?? 0
  return { session, above, capture, imported, created: null, run: null, runs: [], ...kept }
}

function takeEvent(walk: LogWalk, e: Event): void {
  if (walk.capture.prompts) keepPrompt(walk, e)
  if (e.type === 'session.created') walk.created = e
  else if (e.type === 'run.started') beginRun(walk, e)
  else if (walk.run) takeRunEvent(walk, walk.run, e)
}

function keepPrompt(walk: LogWalk, e: Event): void {
  const said = promptParts(e)
  if (said) walk.unshown.set(e.seq, said)
}

function beginRun(walk: LogWalk, e: EventOf<'run.started'>): void {
  const { session, above, created, capture } = walk
  const given = e.seq < walk.imported ? null : readTraceparent(e.traceparent)
  const outer = above ?? given
  const ids = { traceId: outer?.traceId ?? traceIdOf(session, e.seq), spanId: spanIdOf(session, e.seq) }
  const sampled = given === null || isSampled(given)
  walk.run = draft.openRunSpan({ ...ids, parentId: outer?.spanId ?? null, session, created, capture, sampled }, e)
  walk.runs.push(walk.run)
}

function takeRunEvent(walk: LogWalk, run: RunDraft, e: Event): void {
  if (e.epoch > 0) run.epochs.add(e.epoch)
  const [call] = run.calls.take(e)
  switch (e.type) {
    case 'model.started':
      return openRequest(walk, run, e)
    case 'agent.message':
      return draft.closeModelSpan(run, e)
    case 'model.failed':
      return draft.failModelSpan(run, e)
    case 'agent.tool_use':
    case 'agent.custom_tool_use':
      if (e.type === 'agent.custom_tool_use') walk.handed.set(e.call, run.traceId)
      if (call) draft.openCallSpan(run, call, e.at)
      return
    case 'agent.tool_result':
      run.cost += e.cost ?? 0
      if (call) draft.closeCallSpan(run, call, e)
      return
    case 'context.compacted':
      run.cost += e.cost ?? 0
      return
    case 'run.settled':
      draft.closeRunSpan(run, e)
      walk.run = null
      return
    default:
      return
  }
}

function openRequest(walk: LogWalk, run: RunDraft, e: EventOf<'model.started'>): void {
  const shown = e.shows.flatMap((seq) => {
    const said = walk.unshown.get(seq)
    walk.unshown.delete(seq)
    return said ? [said] : []
  })
  draft.openModelSpan(run, e, spanIdOf(walk.session, e.seq), shown)
}

function createdOf(log: SessionLog): EventOf<'session.created'> | null {
  const first = log.events[0]
  return first?.type === 'session.created' ? first : null
}

function finishRun(session: string, run: RunDraft): TracedRun {
  const own = draft.totalRunSpan(run)
  const spans = [own, ...run.drafts].map(({ traceId, spanId, parentId, name, kind, ...rest }: SpanDraft): Span => {
    const { startedAt, endedAt, attributes, status, exceptions } = rest
    return { traceId, spanId, parentId, name, kind, startedAt, endedAt, attributes, status, exceptions }
  })
  return { session, run: run.seq, settledAt: own.endedAt, sampled: run.sampled, spans }
}
