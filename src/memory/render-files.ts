// The three runtime files of a session as text: pure functions of its log. Times are those of events, so the same log
// gives the same bytes on every machine. It writes no files.
import type { Event } from '../kernel/event.ts'
import type { Learning } from '../tools/core/directive.ts'
import { type PendingWake, SessionView } from './session-view.ts'
import { clean, safeJson } from '../view/clean.ts'
import { eventId, clipText } from '../view/shown-text.ts'

/** The names of the files that show what a session is doing. */
export type RuntimeFile = 'checkpoint.json' | 'session-state.md' | 'working-buffer.md'

const CHECKPOINT_VERSION = 1
const EXCERPT_CHARS = 280

/** All three, by name. */
export function runtimeFiles(view: SessionView): Readonly<Record<RuntimeFile, string>> {
  return {
    'checkpoint.json': renderCheckpoint(view),
    'session-state.md': renderSessionState(view),
    'working-buffer.md': renderWorkingBuffer(view),
  }
}

/** A session's state as `checkpoint.json`, made from its log. */
export function checkpointOf(session: string, events: readonly Event[]): string {
  return renderCheckpoint(new SessionView(session, events))
}

/** What a session is doing, in Markdown, made from its log. */
export function sessionStateOf(session: string, events: readonly Event[]): string {
  return renderSessionState(new SessionView(session, events))
}

/** The last things a session did, in Markdown, made from its log. */
export function workingBufferOf(session: string, events: readonly Event[]): string {
  return renderWorkingBuffer(new SessionView(session, events))
}

function renderCheckpoint(view: SessionView): string {
  const { session, state, run, cursor, counts } = view
  const id = (seq: number): string | null => (seq > 0 ? eventId(session, seq) : null)
  const body = {
    version: CHECKPOINT_VERSION,
    sessionId: session,
    agentId: state.agent,
    updatedAt: isoTime(state.at),
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
    nextWakeAt: isoTime(view.wakes[0]?.due ?? null),
    consecutiveFollowUps: view.followUps,
    queuedWakes: view.wakes.map(({ key, due, reason }) => ({ key, dueAt: isoTime(due), reason })),
    waitingFor: view.waiting,
    stopReason: view.status,
    lastAgentSetup: run ? { instructions: run.instructions, toolset: run.toolset, code: run.code ?? null } : null,
    counts: { events: state.seq, ...counts, costMicroUsd: state.cost },
  }
  return `${safeJson(body, 2)}\n`
}

function renderSessionState(view: SessionView): string {
  const { session, state, run, cursor, counts } = view
  const at = (seq: number): string => (seq > 0 ? eventId(session, seq) : 'none')
  const facts: readonly (readonly [string, string])[] = [
    ['Agent', state.agent],
    ['Session', session],
    ['Updated', isoTime(state.at) ?? 'never'],
    ['Last run', run ? `${at(run.seq)} at ${isoTime(run.at)}` : 'none'],
    ['Outcome', view.outcome],
    ['Stop reason', view.status],
    ['Last run ended', runEndText(view)],
    ['Next wake', isoTime(view.wakes[0]?.due ?? null) ?? 'none'],
    ['Follow-ups in a row', String(view.followUps)],
    ['Last event shown, processed, produced', [cursor.shown, cursor.processed, cursor.produced].map(at).join(', ')],
    ['Runs, requests, calls, failed calls', Object.values(counts).join(', ')],
  ]
  return renderDocument('Session state', [
    facts.map(([name, value]) => `- ${name}: ${oneLine(value)}`).join('\n'),
    renderSection('Latest summary', quoteLines(view.summary?.text)),
    renderSection('New learnings', learningLines(view.learnings)),
    renderSection('Queued wakes', wakeLines(view.wakes)),
    renderSection('Latest response', quoteLines(view.response?.text)),
  ])
}

function renderWorkingBuffer(view: SessionView): string {
  const { focus, notes, counts } = view
  return renderDocument('Working buffer', [
    renderSection('Current focus', quoteLines(focus.join('\n'))),
    renderSection('Suggested next move', suggestNextMove(view)),
    `- Stop reason: ${view.status}\n- Runs, requests, calls, failed calls: ${Object.values(counts).join(', ')}`,
    renderSection('Runtime notes', bulletList(notes)),
    renderSection('New learnings', learningLines(view.learnings)),
    renderSection('Revisits', wakeLines(view.wakes)),
    renderSection('Response excerpt', quoteLines(clipText(view.response?.text ?? '', EXCERPT_CHARS))),
  ])
}

function suggestNextMove(view: SessionView): string {
  const { waiting, wakes, state, status } = view
  if (status === 'terminated') return 'None: the session is closed.'
  if (status === 'running' && waiting.length > 0) return 'Wait for its subagents, or send a message.'
  if (waiting.length > 0) {
    return bulletList(
      waiting.map(({ call, tool, needs }) => `${needs === 'approval' ? 'Decide' : 'Answer'} call ${call} of ${tool}.`),
    )
  }
  if (status === 'requires_action') return 'Resume the session, or send it a message.'
  if (status === 'running') return 'Wake the session: work is open.'
  if (wakes.length > 0) return `Wait until ${isoTime(wakes[0]?.due ?? null)}, or send a message.`
  if (state.last !== null && state.last.type !== 'completed')
    return `See why the last run ended as ${runEndText(view)}.`
  return 'Send the next message.'
}

function runEndText({ state: { last } }: SessionView): string {
  if (last === null) return 'none'
  if (last.type === 'failed') return `failed (${last.reason}): ${last.failure.message}`
  if (last.type === 'limit') return `limit (${last.limit})`
  return last.type === 'halted' ? `halted: ${last.reason}` : last.type
}

function renderDocument(title: string, blocks: readonly string[]): string {
  // Removes anything that moves a cursor, or hides or reverses text.
  return clean(`${[`# ${title}`, ...blocks].join('\n\n')}\n`)
}

function renderSection(title: string, body: string): string {
  return `## ${title}\n\n${body}`
}

function learningLines(learnings: readonly Learning[]): string {
  return bulletList(learnings.map(({ kind, title, detail }) => `${kind}: ${title}: ${detail}`))
}

function wakeLines(wakes: readonly PendingWake[]): string {
  return bulletList(wakes.map(({ due, reason, key }) => `${isoTime(due)}: ${reason} (${key})`))
}

function bulletList(lines: readonly string[]): string {
  return lines.length === 0 ? 'None.' : lines.map((line) => `- ${oneLine(line)}`).join('\n')
}

/** Quotes every line, so that no heading in it becomes one of this file. */
function quoteLines(text: string | undefined): string {
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

function isoTime(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString()
}
