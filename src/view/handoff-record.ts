// Lists the handoffs between the agents of a tree: sender, receiver, content and time. Every handoff is an inbox event
// in the receiver's log: a task, a report, a question, an answer, a message, or a stop. Pure.
import type { BlobRef, CallKey, Frozen, Part } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { isObject } from './untrusted-json.ts'
import { textOf } from './shown-text.ts'

/** One thing that a session gave to another: a task, a report, a question, an answer. */
export type Handoff = Frozen<{
  /** When the receiver's log got it, in ms since 1970. */
  at: number
  /** What was handed over. */
  kind: 'task' | 'report' | 'question' | 'answer' | 'message' | 'stop'
  /** Agents, or the name that a person gave. */
  from: string
  /** The agent of the receiver. */
  to: string
  /** Null for a person. */
  fromSession: string | null
  /** The session of the receiver. */
  toSession: string
  /** The event in the log of the receiver. */
  seq: number
  /** The receiver's call that it answers. */
  call?: CallKey
  /** For a report: how the child ended, as `completed` or `incomplete`. */
  status?: string
  /** The content. */
  text: string
  /** Files that came with it, by reference. */
  files: readonly BlobRef[]
}>

/** The session whose log is read. */
export type Receiver = {
  readonly session: string
  readonly agent: string
  /** Null for a root. */
  readonly parent: string | null
  readonly agentOf: (session: string) => string
}

type HandoffContent = Pick<Handoff, 'kind' | 'text'> & Partial<Pick<Handoff, 'call' | 'status' | 'files'>>

/**
 * Null if the event hands nothing over. Messages of people to a root are a conversation; to a child they are handoffs.
 */
export function handoffIn(event: Event, { session, agent, parent, agentOf }: Receiver): Handoff | null {
  const sender = senderOf(event, parent)
  const given = sender === null && parent === null ? null : contentOfHandoff(event, sender, parent)
  if (given === null) return null
  const by = 'by' in event && event.by !== undefined ? event.by : 'user'
  const from = sender === null ? by : agentOf(sender)
  const ends = { from, to: agent, fromSession: sender, toSession: session }
  return { at: event.at, ...ends, seq: event.seq, files: [], ...given }
}

/** By time. Handoffs of the same moment keep their order. */
export function sortHandoffs(handoffs: readonly Handoff[]): readonly Handoff[] {
  return handoffs.toSorted((a, b) => a.at - b.at)
}

const SESSION = 'session:'

/** The session that sent it, or null. */
function senderOf(event: Event, parent: string | null): string | null {
  if (event.type === 'user.interrupt') return isFromParent(event.id) ? parent : null
  const { by = '' } = event.type === 'user.message' || event.type === 'user.custom_tool_result' ? event : {}
  return by.startsWith(SESSION) ? by.slice(SESSION.length) : null
}

/** Older logs have these ids without the harness's prefix. */
function isFromParent(id: string): boolean {
  return id.startsWith('terret:parent:') || id.startsWith('parent:')
}

function contentOfHandoff(event: Event, sender: string | null, parent: string | null): HandoffContent | null {
  const fromBelow = sender !== null && sender !== parent
  switch (event.type) {
    case 'user.message': {
      if (event.report !== undefined) return reportIn(textOf(event.parts), event.parts)
      const isTask = sender !== null && (event.id === 'terret:task' || event.id === 'task')
      const kind = fromBelow ? 'report' : isTask ? 'task' : 'message'
      return { kind, text: textOf(event.parts), files: filesIn(event.parts), ...statusIn(event.metadata) }
    }
    case 'user.custom_tool_result': {
      const { call, content: text, metadata } = event
      if (!fromBelow) return { kind: 'answer', call, text }
      const { status } = statusIn(metadata)
      if (status === 'awaiting') return { kind: 'question', call, text: questionIn(metadata) ?? text }
      return { kind: 'report', call, text, status: status ?? (event.ok ? 'completed' : 'incomplete') }
    }
    case 'user.interrupt':
      return sender === null ? null : { kind: 'stop', text: event.why ?? '' }
    default:
      return null
  }
}

/** The harness's text around the report of a detached child. */
const REPORT = /^<subagent_report [^\n]*\bstatus="(\w*)">\n([\s\S]*)\n<\/subagent_report>$/

function reportIn(said: string, parts: readonly Part[]): HandoffContent {
  const [, status = '', text = said] = REPORT.exec(said) ?? []
  const files = filesIn(parts)
  if (status === 'awaiting') return { kind: 'question', text, files }
  return { kind: 'report', text, files, ...(status === '' ? {} : { status }) }
}

function filesIn(parts: readonly Part[]): readonly BlobRef[] {
  return parts.filter((part) => part.type === 'blob')
}

function statusIn(metadata: unknown): { readonly status?: string } {
  const status = isObject(metadata) ? metadata['status'] : undefined
  return typeof status === 'string' ? { status } : {}
}

function questionIn(metadata: unknown): string | undefined {
  const question = isObject(metadata) ? metadata['question'] : undefined
  return typeof question === 'string' ? question : undefined
}
