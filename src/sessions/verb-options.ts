// The options of verbs, of sessions and of a harness, and the one check of each. What the verbs do is src/session.ts.
import type { CallKey, Labels, Metadata } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import {
  anything,
  type Checks,
  count,
  filled,
  flag,
  needed,
  oneOf,
  optionsOf,
  shown,
  text,
  nameTrouble,
} from '../options.ts'
import { RUN_CHOICES, type RunChoices, SEND_OPTIONS, type SendOptions } from './command.ts'
import { RUN_SETTINGS } from '../models/http/hosted.ts'
import { SHOWN } from './approval-decision.ts'
import { BRING_MESSAGES } from './input.ts'
import { traceparentCheck } from '../tracing/traceparent.ts'
import type { AnySchema } from '../tools/core/typed.ts'
import type { Status } from '../ports/store.ts'
import type { PendingCall } from './look/pending.ts'
import { labelsCheck, metadataCheck } from './metadata.ts'
import type { ListOptions } from './meter.ts'
import type { ActiveFilter, EventsFilter } from './reading.ts'

export type RunOptions<Schema extends AnySchema = AnySchema> = Pick<SendOptions, 'patienceMs' | 'traceparent'> &
  RunChoices<Schema> & {
    /** The result also has each reply of the model, as the log has it. */
    readonly raw?: boolean
    /**
     * `complete`: the promise rejects with `RunFailed`, which has the result, unless the run completed with a whole answer. A refusal
     * and an answer that was cut are no whole answers.
     */
    readonly require?: 'complete'
  }

export type StreamOptions<Schema extends AnySchema = AnySchema> = Omit<RunOptions<Schema>, 'require'> & {
  /**
   * Events after this seq. Or, to go on where a stream broke off: the last seq that was seen of each session, by its id, children
   * too. Default: from the beginning, or from the input that the stream sends.
   */
  readonly after?: number | Readonly<Record<string, number>>
  readonly deltas?: boolean
  /** Also what children do. Default: true. */
  readonly subagents?: boolean
  /** Leaving a stream that started a run interrupts it, unless this is set. */
  readonly detach?: boolean
}

export type Answer = {
  readonly callId: CallKey
  readonly content: string
  readonly ok?: boolean
  readonly by?: string
  /** The session that asked, as `pending` names it. Default: this one. */
  readonly sessionId?: string
}
/** `id` is your own: the same interrupt again is answered like the first, and stops nothing that began since. `by`: who it is, for the log. */
export type InterruptOptions = { readonly id?: string; readonly by?: string }
export type CloseOptions = Pick<InterruptOptions, 'by'>
/** `id` is your own: the same batch again is answered like the first, and nothing of it is said twice. */
export type SteerOptions = { readonly id?: string; readonly by?: string }
/** `stored`: the id is one that the store gave, and may be older than the rule for ids. */
export type SessionChoice = { readonly stored?: boolean }
/** `waitMs`: how long to wait for a session that works. Default: not at all. */
export type ResultOptions = { readonly waitMs?: number }
export type ForkOptions = {
  /** From this event on. Default: from the end. */
  readonly at?: number
  /** The id of the new session. The same fork again, with the same id, is the same session. */
  readonly id?: string
  /** Where the fork works. Default: where this session does. */
  readonly folder?: string
  /** Another agent goes on: its instructions, tools, model and limits. Only where a language model drives both. */
  readonly agent?: string
  /** Another model answers in all runs of the fork, unless a run chooses its own: one of the harness's `models`, or `provider:model`. */
  readonly model?: string
  /** Beside those of this session, instead of those with the same name. */
  readonly labels?: Labels
  readonly metadata?: Metadata
}

const COMMON: Checks<Omit<RunOptions, 'require'>> = {
  ...RUN_CHOICES,
  raw: flag,
  patienceMs: count(),
  traceparent: traceparentCheck,
}
export const RUN_OPTIONS: Checks<RunOptions> = { ...COMMON, require: oneOf<'complete'>({ complete: true }) }
// `after` is checked where the log is read.
export const STREAM_OPTIONS: Checks<StreamOptions> = {
  ...COMMON,
  after: anything,
  deltas: flag,
  subagents: flag,
  detach: flag,
}
const IN_SETTINGS = 'It is a setting of the model: write settings: { … } for this run.'
/** Where options belong that other libraries have here. */
export const ELSEWHERE: Readonly<Record<string, string>> = {
  messages: BRING_MESSAGES,
  ...Object.fromEntries(Object.keys(RUN_SETTINGS).map((name) => [name, IN_SETTINGS])),
  maxTokens: 'Write settings: { outputTokensMax } for this run.',
  maxOutputTokens: 'Write settings: { outputTokensMax } for this run.',
  system: 'Write instructions.',
  maxSteps: 'Write limits: { modelRequests }.',
}
export const checkRunOf = optionsOf<SendOptions & RunOptions>('run', { ...SEND_OPTIONS, ...RUN_OPTIONS }, ELSEWHERE)
export const checkStream = optionsOf<StreamOptions & SendOptions>(
  'stream',
  { ...SEND_OPTIONS, ...STREAM_OPTIONS },
  ELSEWHERE,
)
export const checkSend = optionsOf<SendOptions>('send', SEND_OPTIONS, ELSEWHERE)
export const checkInterrupt = optionsOf<InterruptOptions>('interrupt', { id: text, by: nameTrouble })
export const checkClose = optionsOf<CloseOptions>('close', { by: nameTrouble })
export const checkSteer = optionsOf<SteerOptions>('steer', { id: text, by: nameTrouble })
export const checkResult = optionsOf<ResultOptions>('result', { waitMs: count() })
export const checkFork = optionsOf<ForkOptions>('fork', {
  at: anything,
  id: text,
  folder: text,
  agent: filled,
  model: RUN_CHOICES.model,
  labels: labelsCheck,
  metadata: metadataCheck,
})
export const checkAnswer = optionsOf<Answer & Partial<PendingCall>>('answer', {
  ...SHOWN,
  args: anything,
  digest: anything,
  callId: needed(text, 'Name the call as `pending` does.'),
  content: needed(anything),
  ok: anything,
  by: nameTrouble,
  sessionId: text,
})

export const checkSessionChoice = optionsOf<SessionChoice>('session', { stored: flag })

export function checkSession(id: unknown): void {
  if (typeof id !== 'string' || id.trim() === '')
    throw new Fault('invalid_input', 'A session id must be a text that is not empty.')
}

export function checkBlob(ref: unknown): string {
  const hash = typeof ref === 'string' ? ref : ((ref ?? {}) as { readonly hash?: unknown }).hash
  if (typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash)) return hash
  throw new Fault(
    'invalid_input',
    'A blob is read by its hash, or by its reference, { hash }, as a result or an event of the log has it.',
  )
}

// Which sessions, events and calls a harness is asked for. What is found is reading.ts and look/.

export type RemoveOptions = { readonly by?: string }
export type PendingFilter = {
  readonly where?: Labels
  /** At most so many, or some more of the last session. Default: all. */
  readonly limit?: number
  /** The next page begins after this session: the `sessionId` of the last one. */
  readonly after?: string
}

export const WANTED: Checks<Pick<ListOptions, 'status' | 'parent' | 'folder' | 'where' | 'context' | 'runs'>> = {
  status: oneOf<Status>({ idle: true, running: true, rescheduling: true, requires_action: true, terminated: true }),
  parent: text,
  folder: text,
  where: labelsCheck,
  context: flag,
  runs: flag,
}
export const checkList = optionsOf<ListOptions>('list', {
  ...WANTED,
  root: text,
  after: text,
  waiting: flag,
  newest: (value) =>
    value === 'made' || typeof value === 'boolean' ? null : `must be true, false or "made", not ${shown(value)}`,
  limit: count(),
})
export const checkEvents = optionsOf<EventsFilter>('events', {
  session: needed(filled),
  run: count(1),
  after: count(),
  limit: count(),
})
export const checkActive = optionsOf<ActiveFilter>('active', { root: filled, parent: filled })
export const checkPending = optionsOf<PendingFilter>('pending', {
  where: labelsCheck,
  limit: count(1),
  after: text,
})
export const checkRemove = optionsOf<RemoveOptions>('remove', { by: nameTrouble })
