// What a span is, and how its ids come about. Types and small pure functions; making spans is project.ts, where they go is tracing's.
import type { CallKey, Frozen } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import { sha256 } from '../sha256.ts'
import { eventId } from '../text.ts'

/** `none`: no prompt, argument or result. `content`: their texts too, bounded. Or each by itself. */
export type Capture = 'none' | 'content' | CaptureFlags
export type CaptureFlags = {
  /** What the model is told and what it answers, with instructions and toolsets. */
  readonly prompts?: boolean
  /** What tools are given. */
  readonly arguments?: boolean
  /** What tools return. */
  readonly results?: boolean
}

/** What is captured, each by itself. */
export type Captured = Frozen<{ prompts: boolean; args: boolean; results: boolean }>

export function capturedBy(capture: Capture): Captured {
  if (typeof capture === 'string') {
    const all = capture === 'content'
    return { prompts: all, args: all, results: all }
  }
  const { prompts = false, arguments: args = false, results = false } = capture
  return { prompts, args, results }
}

export type Attributes = Readonly<Record<string, string | number | boolean>>

/** `message` only where all that it may repeat is captured. */
export type Exception = Frozen<{ at: number; type: string; message?: string }>

export type Span = Frozen<{
  traceId: string
  spanId: string
  parentId: string | null
  name: string
  kind: 'internal' | 'client'
  /** Milliseconds. `endedAt` is null while it is open. */
  startedAt: number
  endedAt: number | null
  attributes: Attributes
  status: 'unset' | 'error'
  exceptions: readonly Exception[]
}>

/** The events of one session, in order: all of them, or `session.created` and the runs one wants. */
export type SessionLog = Frozen<{ session: string; events: readonly Event[] }>

/** One trace per run of a root session, and of everything below it. */
export function traceIdOf(root: string, run: number): string {
  return sha256(eventId(root, run)).slice(0, 32)
}

export function spanIdOf(session: string, seq: number): string {
  return sha256(eventId(session, seq)).slice(-16)
}

/** By the call's key, which a child session knows: so a child finds its parent span without the parent's log. */
export function callSpanIdOf(session: string, call: CallKey): string {
  return sha256(`${session}:${call}`).slice(-16)
}

export function childIdOf(session: string, call: CallKey): string {
  return `${session}~${call}`
}
