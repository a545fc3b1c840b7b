// The three runtime files of a session as text: pure functions of its log. Times are those of events, so the same log gives the
// same bytes on every machine. Nothing is written here.
import type { Event } from '../kernel/event.ts'
import type { Learning } from '../tools/core/directive.ts'
import { type PendingWake, View } from './view.ts'
import { clean, safeJson } from '../view/clean.ts'
import { eventId, clipped } from '../view/text.ts'

export type RuntimeFile = 'checkpoint.json' | 'session-state.md' | 'working-buffer.md'

const CHECKPOINT_VERSION = 1
const EXCERPT_CHARS = 280

/** All three, by name. */
export function runtimeFiles(view: View): Readonly<Record<RuntimeFile, string>> {
  return {
    'checkpoint.json': checkpoint(view),
    'session-state.md': sessionState(view),
    'working-buffer.md': workingBuffer(view),
  }
}

export function checkpointOf(session: string, events: readonly Event[]): string {
  return checkpoint(new View(session, events))
}

export function sessionStateOf(session: string, events: readonly Event[]): string {
  return sessionState(new View(session, events))
}

export function workingBufferOf(session: string, events: readonly Event[]): string {
  return workingBuffer(new View(session, events))
}

function checkpoint(view: View): string {
  const { session, state, run, cursor, counts } = view
  const id = (seq: number): string | null => (seq > 0 ? eventId(session, seq) : null)
  const body = {
    version: CHECKPOINT_VERSION,
    sessionId: session,
    agentId: state.agent,
    updatedAt: timeOf(state.at),
    lastRunId: id(run?.seq ?? 0),
    lastEventIds: (run?.inputs ?? []).map((seq) => eventId(session, seq)),
    eventCursor: {
      lastContextEventId: id(cursor.shown),
      lastProcessedEventId: id(cursor.processed),
      lastProducedEventId: id(cursor.produced),
    },
    lastOutcome: view.outcome,
    lastSummary: view.summary?.text ?? null,
    responseMessage: view.response?.text ?? null,
    lastRunEnded: state.last,
    nextWakeAt: timeOf(view.wakes[0]?.due ?? null),
    consecutiveFollowUps: view.followUps,
    queuedWakes: view.wakes.map(({ key, due, reason }) => ({ key, dueAt: timeOf(due), reason })),
    waitingFor: view.waiting,
    stopReason: view.status,
    lastAgentSetup: run ? { instructions: run.instructions, toolset: run.toolset, code: run.code ?? null } : null,
    counts: { events: state.seq, ...counts, costMicroUsd: state.cost },
  }
  return `${safeJson(body, 2)}\n`
}

function sessionState(view: View): string {
  const { session, state, run, cursor, counts } = view
  const at = (seq: number): string => (seq > 0 ? eventId(session, seq) : 'none')
  const facts: readonly (readonly [string, string])[] = [
    ['Agent', state.agent],
    ['Session', session],
    ['Updated', timeOf(state.at) ?? 'never'],
    ['Last run', run ? `${at(run.seq)} at ${timeOf(run.at)}` : 'none'],
    ['Outcome', view.outcome],
    ['Stop reason', view.status],
    ['Last run ended', endOf(view)],
    ['Next wake', timeOf(view.wakes[0]?.due ?? null) ?? 'none'],
    ['Follow-ups in a row', String(view.followUps)],
    ['Last event shown, processed, produced', [cursor.shown, cursor.processed, cursor.produced].map(at).join(', ')],
    ['Runs, requests, calls, failed calls', Object.values(counts).join(', ')],
  ]
  return document('Session state', [
    facts.map(([name, value]) => `- ${name}: ${oneLine(value)}`).join('\n'),
    section('Latest summary', quoted(view.summary?.text)),
    section('New learnings', learningLines(view.learnings)),
    section('Queued wakes', wakeLines(view.wakes)),
    section('Latest response', quoted(view.response?.text)),
  ])
}

function workingBuffer(view: View): string {
  const { focus, notes, counts } = view
  return document('Working buffer', [
    section('Current focus', quoted(focus.join('\n'))),
    section('Suggested next move', nextMove(view)),
    `- Stop reason: ${view.status}\n- Runs, requests, calls, failed calls: ${Object.values(counts).join(', ')}`,
    section('Runtime notes', bullets(notes)),
    section('New learnings', learningLines(view.learnings)),
    section('Revisits', wakeLines(view.wakes)),
    section('Response excerpt', quoted(clipped(view.response?.text ?? '', EXCERPT_CHARS))),
  ])
}

function nextMove(view: View): string {
  const { waiting, wakes, state, status } = view
  if (status === 'terminated') return 'None: the session is closed.'
  if (status === 'running' && waiting.length > 0) return 'Wait for its subagents, or send a message.'
  if (waiting.length > 0) {
    return bullets(
      waiting.map(({ call, tool, needs }) => `${needs === 'approval' ? 'Decide' : 'Answer'} call ${call} of ${tool}.`),
    )
  }
  if (status === 'requires_action') return 'Resume the session, or send it a message.'
  if (status === 'running') return 'Wake the session: work is open.'
  if (wakes.length > 0) return `Wait until ${timeOf(wakes[0]?.due ?? null)}, or send a message.`
  if (state.last !== null && state.last.type !== 'completed') return `See why the last run ended as ${endOf(view)}.`
  return 'Send the next message.'
}

function endOf({ state: { last } }: View): string {
  if (last === null) return 'none'
  if (last.type === 'failed') return `failed (${last.reason}): ${last.failure.message}`
  if (last.type === 'limit') return `limit (${last.limit})`
  return last.type === 'halted' ? `halted: ${last.reason}` : last.type
}

function document(title: string, blocks: readonly string[]): string {
  // Nothing in it moves a cursor, hides or reverses text, whatever was said.
  return clean(`${[`# ${title}`, ...blocks].join('\n\n')}\n`)
}

function section(title: string, body: string): string {
  return `## ${title}\n\n${body}`
}

function learningLines(learnings: readonly Learning[]): string {
  return bullets(learnings.map(({ kind, title, detail }) => `${kind}: ${title}: ${detail}`))
}

function wakeLines(wakes: readonly PendingWake[]): string {
  return bullets(wakes.map(({ due, reason, key }) => `${timeOf(due)}: ${reason} (${key})`))
}

function bullets(lines: readonly string[]): string {
  return lines.length === 0 ? 'None.' : lines.map((line) => `- ${oneLine(line)}`).join('\n')
}

/** What was said stands as a quotation: no heading of it becomes one of this file. */
function quoted(text: string | undefined): string {
  const said = text?.trim() ?? ''
  return said === ''
    ? 'None.'
    : said
        .split(/\r\n|\r|\n/)
        .map((line) => `> ${line}`.trimEnd())
        .join('\n')
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

function timeOf(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString()
}
