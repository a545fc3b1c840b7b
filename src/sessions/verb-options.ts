// The options of the verbs of sessions and of a harness, each with its one check. src/session.ts has the verbs.
import type { CallKey, Labels, Metadata } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import {
  anyCheck,
  type Checks,
  countCheck,
  nonEmptyCheck,
  flagCheck,
  listCheck,
  requiredCheck,
  oneOf,
  optionsChecker,
  textCheck,
  whyNameInvalid,
} from '../options.ts'
import { type LaterOptions, RUN_CHOICES, type RunChoices, SEND_OPTIONS, type SendOptions } from './command.ts'
import { RUN_SETTINGS } from '../models/http/hosted-model.ts'
import { SHOWN } from './approval-decision.ts'
import { BRING_MESSAGES } from './input.ts'
import { traceparentCheck } from '../tracing/traceparent-check.ts'
import type { AnySchema } from '../tools/core/tool-types.ts'
import type { PendingCall } from './look/pending.ts'
import { labelsCheck, metadataCheck } from './metadata.ts'
import type { EventsFilter } from './event-page.ts'
import type { RunCard } from './reading.ts'
import type { ContextReport } from '../context/context-report.ts'
import type { ChildRow } from './children.ts'
import type { PursuitStatus } from './pursuit.ts'
import type { MoneyAccount } from './look/accounts.ts'

/** Options of one run: its output, limits, budget, tools and settings, and the message that it begins with. */
export type RunOptions<Schema extends AnySchema = AnySchema> = Pick<SendOptions, 'patienceMs' | 'traceparent'> &
  RunChoices<Schema> & {
    /** Adds each reply of the model to the result, as the log has it. */
    readonly raw?: boolean
    /**
     * `complete`: the promise rejects with `RunFailed`, which carries the result, unless the run completed with a whole
     * answer. A refusal or a cut answer is not a whole answer.
     */
    readonly require?: 'complete'
  }

/** Options of `stream`: those of a run, and which events come. */
export type StreamOptions<Schema extends AnySchema = AnySchema> = Omit<RunOptions<Schema>, 'require'> & {
  /**
   * Gives events after this seq. To continue a broken stream, give the last seq seen of each session by its id,
   * children included. Default: from the beginning, or from the input that the stream sends.
   */
  readonly after?: number | Readonly<Record<string, number>>
  /** Also the pieces of a reply in progress. Default false. */
  readonly deltas?: boolean
  /** Also gives the events of children. Default: true. */
  readonly subagents?: boolean
  /** Leaving a stream that started a run interrupts it, unless this is set. */
  readonly detach?: boolean
}

/** The answer to a call that is answered outside, by a program or a person. */
export type Answer = {
  /** The call that is answered, as `pending` names it. */
  readonly callId: CallKey
  /** What the model reads as the result. */
  readonly content: string
  /** False: the model reads it as a failure. Default true. */
  readonly ok?: boolean
  /** Who answers, for the log. */
  readonly by?: string
  /** The session that asked, as `pending` names it. Default: this one. */
  readonly sessionId?: string
}
/**
 * `id` is your own: a repeated interrupt gets the same answer as the first, and stops nothing that began since. `by`
 * names the sender in the log.
 */
export type InterruptOptions = {
  /** An id of your own. The same interrupt again under it stops nothing that began since. */
  readonly id?: string
  /** Who stops it, for the log. */
  readonly by?: string
}
/** When a session is to be looked at again, and what its model is told then. Give `at` or `inMs`. */
export type ScheduleOptions = {
  /** When: a Date, or milliseconds since 1970. A past time is due at once. */
  readonly at?: Date | number
  /** Or in how many milliseconds from now. */
  readonly inMs?: number
  /** The model reads it when the time has come. Default: "a look at this session". */
  readonly reason?: string
  /** While a wake with this key waits, it stands, and scheduling it again changes nothing. Default: a new key. */
  readonly key?: string
  /** Your own id. The same id twice is one request, also when its wake has begun a run already. */
  readonly id?: string
  /** Names the sender in the log. */
  readonly by?: string
}
/** Options of `unschedule`: who drops the wake. */
export type UnscheduleOptions = {
  /** Who drops it, for the log. */
  readonly by?: string
}

/** The wake that waits under a key now. */
export type ScheduledWake = {
  /** The key of the wake: your own, or a new one. */
  readonly key: string
  /** When the session looks again, in ms since 1970. */
  readonly due: number
  /** The event that asked for it. */
  readonly seq: number
  /** A wake waited under this key before, so nothing changed. */
  readonly duplicate: boolean
  /** No worker of this program drives the session: a sentence for people about who does. */
  readonly elsewhere?: string
}

/** Options of `rename`: an id of your own, and who gives the title. */
export type RenameOptions = {
  /** Your own id. The same id twice is one request: a title that was given since then stays. */
  readonly id?: string
  /** Who gives the title, for the log. */
  readonly by?: string
}
/** The title that a session was given. */
export type RenamedSession = {
  /** The title as lists show it. */
  readonly title: string
  /** The position of its event in the session's log. */
  readonly seq: number
  /** It was given before under this id. */
  readonly duplicate: boolean
}

/** Options of `close`: who closes the session. */
export type CloseOptions = Pick<InterruptOptions, 'by'>
/** `id` is your own: a repeated batch gets the same answer as the first, and is not sent twice. */
export type CommandOptions = {
  /** An id of your own. The same commands again under it have no second effect. */
  readonly id?: string
  /** Who sends them, for the log. */
  readonly by?: string
}
/** Where the id of a session comes from. */
export type SessionChoice = {
  /** The id came from the store, and may be older than the present rule for ids, which it then need not meet. */
  readonly stored?: boolean
}
/** `waitMs`: how long to wait for a working session. Default: not at all. */
export type ResultOptions = {
  /** Waits so long, in ms, for the end of an open run. Default: it does not wait. */
  readonly waitMs?: number
}
/** Options of `fork`: the event after which the new session goes its own way, and what is different in it. */
export type ForkOptions = {
  /** The event to fork at. Default: the end. */
  readonly at?: number
  /** The id of the new session. Repeating the same fork with the same id gives the same session. */
  readonly id?: string
  /** The folder of the fork. Default: that of this session. */
  readonly folder?: string
  /** Another agent continues, with its instructions, tools, model and limits. Only if a language model drives both. */
  readonly agent?: string
  /**
   * The model for all runs of the fork, unless a run chooses its own: one of the harness's `models.named`, or
   * `provider:model`.
   */
  readonly model?: string
  /** Added to those of this session; the same name replaces the value. */
  readonly labels?: Labels
  /** Metadata of the fork, over that of the session. */
  readonly metadata?: Metadata
}

const COMMON: Checks<Omit<RunOptions, 'require'>> = {
  ...RUN_CHOICES,
  raw: flagCheck,
  patienceMs: countCheck(),
  traceparent: traceparentCheck,
}
export const RUN_OPTIONS: Checks<RunOptions> = { ...COMMON, require: oneOf<'complete'>({ complete: true }) }
// `after` is checked where the log is read.
export const STREAM_OPTIONS: Checks<StreamOptions> = {
  ...COMMON,
  after: anyCheck,
  deltas: flagCheck,
  subagents: flagCheck,
  detach: flagCheck,
}
const IN_SETTINGS = 'It is a setting of the model: write settings: { … } for this run.'
/** Hints for options that other libraries have here. */
export const ELSEWHERE: Readonly<Record<string, string>> = {
  messages: BRING_MESSAGES,
  ...Object.fromEntries(Object.keys(RUN_SETTINGS).map((name) => [name, IN_SETTINGS])),
  maxTokens: 'Write settings: { outputTokensMax } for this run.',
  maxOutputTokens: 'Write settings: { outputTokensMax } for this run.',
  system: 'Write instructions.',
  maxSteps: 'Write limits: { modelRequests }.',
  at: 'Write session.send(input, { at }), which waits for no run.',
}
export const checkRunOf = optionsChecker<SendOptions & RunOptions>(
  'run',
  { ...SEND_OPTIONS, ...RUN_OPTIONS },
  ELSEWHERE,
)
export const checkStream = optionsChecker<StreamOptions & SendOptions>(
  'stream',
  { ...SEND_OPTIONS, ...STREAM_OPTIONS },
  ELSEWHERE,
)
export const checkSend = optionsChecker<SendOptions & LaterOptions>(
  'send',
  { ...SEND_OPTIONS, at: anyCheck },
  ELSEWHERE,
)
export const checkInterrupt = optionsChecker<InterruptOptions>('interrupt', { id: textCheck, by: whyNameInvalid })
export const checkSchedule = optionsChecker<ScheduleOptions>('schedule', {
  at: anyCheck,
  inMs: anyCheck,
  reason: anyCheck,
  key: anyCheck,
  id: textCheck,
  by: whyNameInvalid,
})
export const checkRename = optionsChecker<RenameOptions>('rename', { id: textCheck, by: whyNameInvalid })
export const checkUnschedule = optionsChecker<UnscheduleOptions>('unschedule', { by: whyNameInvalid })
export const checkClose = optionsChecker<CloseOptions>('close', { by: whyNameInvalid })
export const checkCommands = optionsChecker<CommandOptions>('send', { id: textCheck, by: whyNameInvalid })
const PARTS: Readonly<Record<keyof StatusParts, true>> = {
  card: true,
  contextReport: true,
  pins: true,
  children: true,
  accounts: true,
  pursuit: true,
}
export const checkStatus = optionsChecker<StatusOptions & { readonly at?: number }>('status', {
  at: anyCheck,
  include: listCheck(oneOf(PARTS)),
})
export const checkPin = optionsChecker<PinOptions>('pin', { off: flagCheck })
export const checkResult = optionsChecker<ResultOptions>('result', { waitMs: countCheck() })
export const checkFork = optionsChecker<ForkOptions>('fork', {
  at: anyCheck,
  id: textCheck,
  folder: textCheck,
  agent: nonEmptyCheck,
  model: RUN_CHOICES.model,
  labels: labelsCheck,
  metadata: metadataCheck,
})
export const checkAnswer = optionsChecker<Answer & Partial<PendingCall>>('answer', {
  ...SHOWN,
  args: anyCheck,
  digest: anyCheck,
  callId: requiredCheck(textCheck, 'Name the call as `pending` does.'),
  content: requiredCheck(anyCheck),
  ok: anyCheck,
  by: whyNameInvalid,
  sessionId: textCheck,
})

export const checkSessionChoice = optionsChecker<SessionChoice>('session', { stored: flagCheck })

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

// Filters for sessions, events and calls of a harness. reading.ts and look/ read them.

/** Options of `remove`: who removes the session. */
export type RemoveOptions = {
  /** Who removes it, for the log of removals. */
  readonly by?: string
}
/** Which waiting calls `pending` returns, and from where on. */
export type PendingFilter = {
  /** Only calls of sessions that have all these labels. */
  readonly where?: Labels
  /** At most this many, plus the rest of the last session. Default: all. */
  readonly limit?: number
  /** The next page begins after this session: the `sessionId` of the last call. */
  readonly after?: string
}

export const checkEvents = optionsChecker<EventsFilter>('events', {
  run: countCheck(1),
  after: countCheck(),
  limit: countCheck(),
})
export const checkPending = optionsChecker<PendingFilter>('pending', {
  where: labelsCheck,
  limit: countCheck(1),
  after: textCheck,
})
export const checkRemove = optionsChecker<RemoveOptions>('remove', { by: whyNameInvalid })

/** The parts that `include` of `status` may add. */
export type StatusParts = {
  /** Its card, with its last run and that run's phase. */
  readonly card: RunCard
  /** The contents of the next request, by source and tokens, and the earlier cuts. */
  readonly contextReport: ContextReport
  /** The pinned messages, in the order in which the model reads them. */
  readonly pins: readonly PinnedMessage[]
  /** Its children: those that its model started, and those that were spawned. */
  readonly children: readonly ChildRow[]
  /** The money accounts that pay for it. Empty accounts are left out. */
  readonly accounts: readonly MoneyAccount[]
  /** The outcome that it pursues, or pursued last. */
  readonly pursuit: PursuitStatus
}
/** Which parts of a session's status are read beside the usual ones. Each costs a look at the log. */
export type StatusOptions<Part extends keyof StatusParts = keyof StatusParts> = {
  /** Parts that cost a read of their own, and are left out unless they are named. */
  readonly include?: readonly Part[]
}

/** Options of `pin`: `off` lets the pin go. */
export type PinOptions = {
  /** Lets the pin go instead. */
  readonly off?: boolean
}

/** A pinned message, as the model reads it. */
export type PinnedMessage = PinReceipt & {
  /** The words of the message. */
  readonly text: string
  /** It comes from the session of which this one is a fork, and `seq` counts there. */
  readonly inherited?: true
  /** Releases an inherited pin: one `^` for each fork since, then its number. */
  readonly name?: string
}

/** The seq of the pinned message; of a released one too. */
export type PinReceipt = {
  /** The seq of the pinned message; of a released one too. */
  readonly seq: number
}
