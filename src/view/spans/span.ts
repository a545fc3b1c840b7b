// The span type, and how span ids are made. Types and small pure functions; project-spans.ts makes spans, and tracing
// sends them.
import type { CallKey, Frozen } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import { sha256 } from '../sha256.ts'
import { eventId } from '../shown-text.ts'

/** `none`: no prompt, argument or result. `content`: their texts too, up to a length. Or each by itself. */
export type Capture = 'none' | 'content' | CaptureFlags
export type CaptureFlags = {
  /** The model's input and answers, with instructions and toolsets. */
  readonly prompts?: boolean
  /** The input of tools. */
  readonly arguments?: boolean
  /** The output of tools. */
  readonly results?: boolean
}

/** The captured kinds of content. */
export type CapturedContent = Frozen<{ prompts: boolean; args: boolean; results: boolean }>

export function expandCapture(capture: Capture): CapturedContent {
  if (typeof capture === 'string') {
    const all = capture === 'content'
    return { prompts: all, args: all, results: all }
  }
  const { prompts = false, arguments: args = false, results = false } = capture
  return { prompts, args, results }
}

/** The attributes of a span, by name. */
export type Attributes = Readonly<Record<string, string | number | boolean>>

/** Something that went wrong in a span. */
export type Exception = Frozen<{
  /** When, in ms since 1970. */
  at: number
  /** The kind of trouble. */
  type: string
  /** What went wrong. Absent unless everything that it may repeat is captured. */
  message?: string
}>

/** One stretch of a session in a trace: the session, a run, a request to a model, or a call. */
export type Span = Frozen<{
  /** The trace: one for each run of a root session with everything below it. */
  traceId: string
  /** The id of the span, which follows from the session and the event that began it. */
  spanId: string
  /** The span that it is a part of. Null for the first of a trace. */
  parentId: string | null
  /** What the span is about, such as a model or a tool. */
  name: string
  /** `client` for requests to a model, `internal` for everything else. */
  kind: 'internal' | 'client'
  /** In milliseconds. `endedAt` is null while the span is open. */
  startedAt: number
  /** When it ended, in ms since 1970. Null while it is open. */
  endedAt: number | null
  /** Facts about the span, by the names of OpenTelemetry. */
  attributes: Attributes
  /** `error` if it failed. */
  status: 'unset' | 'error'
  /** What went wrong in it, in order. */
  exceptions: readonly Exception[]
}>

/** The events of one session, in order: all of them, or `session.created` and the wanted runs. */
export type SessionLog = Frozen<{
  /** The id of the session. */
  session: string
  /** All of its events, or `session.created` and the wanted runs, in order. */
  events: readonly Event[]
}>

/** One trace for each run of a root session and everything below it. */
export function traceIdOf(root: string, run: number): string {
  return sha256(eventId(root, run)).slice(0, 32)
}

export function spanIdOf(session: string, seq: number): string {
  return sha256(eventId(session, seq)).slice(-16)
}

/** By the call's key, which a child session knows. So a child finds its parent span without the parent's log. */
export function callSpanIdOf(session: string, call: CallKey): string {
  return sha256(`${session}:${call}`).slice(-16)
}

export function childIdOf(session: string, call: CallKey): string {
  return `${session}~${call}`
}
