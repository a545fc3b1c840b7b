// What went wrong, for people: a class, a plain cause, what to do next, and whether trying again may help. Pure.
// What the harness itself recorded is believed first; only then is text read. It changes nothing about what a model sees.
import type { Failure, Json, Outcome } from '../kernel/content.ts'
import type { OwnerBody } from '../kernel/event.ts'

export type FailureClass =
  | ('MissingPermission' | 'MissingApp' | 'ServiceUnavailable' | 'BadCredentials' | 'BlockedByPolicy')
  | ('ModelConnection' | 'Timeout' | 'Denied' | 'ApprovalExpired' | 'Unknown')
export type FailureCategory = 'recoverable' | 'blocked_by_policy' | 'needs_confirmation' | 'declined' | 'unknown'

export type ClassifiedFailure = {
  readonly class: FailureClass
  readonly category: FailureCategory
  readonly cause: string
  readonly nextAction: string
  /** The very same may work when it is tried again. */
  readonly recoverable: boolean
}

/** A result that repeats an answer from outside (`from`) has no content and no metadata of its own: give it the answer's. */
type CallResult = Pick<Of<'agent.tool_result'>, 'type' | 'status' | 'failure' | 'content' | 'metadata'>
type ModelFailed = Pick<Of<'model.failed'>, 'type' | 'class' | 'retryable'>
type RunFailed = Extract<Outcome, { type: 'failed' }>
type Of<T extends OwnerBody['type']> = Extract<OwnerBody, { type: T }>

export function classify(what: RunFailed | ModelFailed): ClassifiedFailure
/** Null for a result that is no failure. */
export function classify(what: CallResult): ClassifiedFailure | null
export function classify(what: CallResult | RunFailed | ModelFailed): ClassifiedFailure | null {
  switch (what.type) {
    case 'agent.tool_result':
      return ofResult(what)
    case 'model.failed':
      return ofModel(what)
    case 'failed':
      return ofRun(what)
  }
}

/** Longer texts say what went wrong in their first lines, or not at all. */
const TEXT_CHARS_MAX = 1_000

function ofResult(result: CallResult): ClassifiedFailure | null {
  const { status, failure } = result
  const exit = exitOf(result.metadata)
  // A command that failed has run, so its result is ok. Only what its end says for certain is a failure.
  if (status === 'ok') return exit && as(exit)
  const text = errorText(result)
  if (status === 'denied') return ofDenial(text)
  if (status === 'aborted' || failure?.kind === 'Interrupted') return as('Unknown', STOPPED)
  if (status === 'unknown' || failure?.kind === 'Unknown') return as('Unknown', UNCLEAR)
  if (status === 'timeout' || failure?.kind === 'Timeout') return as('Timeout')
  if (failure?.kind === 'Denied') return as(refusalIn(text))
  if (failure?.kind === 'InvalidInput') return as('Unknown', INVALID)
  if (failure?.kind === 'NotFound') return ABSENT_APP.test(text) ? as('MissingApp') : as('Unknown', ABSENT)
  const read = exit ?? classIn(text, failure)
  if (read !== 'Unknown') return as(read)
  return failure?.recoverable ? as('Unknown', PASSING) : as('Unknown')
}

function ofRun({ reason, failure, class: kind }: RunFailed): ClassifiedFailure {
  const text = failure.message.slice(0, TEXT_CHARS_MAX)
  if (kind !== undefined) return ofModel({ type: 'model.failed', class: kind, retryable: false })
  if (reason === 'provider_error') return ofProvider(text)
  if (reason !== 'prepare_failed') return as('Unknown', ENDINGS[reason])
  if (failure.kind === 'Timeout') return as('Timeout', SLOW_START)
  const read = classIn(text, failure)
  return read === 'Unknown' ? as('Unknown', ENDINGS.prepare_failed) : as(read)
}

function ofModel({ class: kind, retryable }: ModelFailed): ClassifiedFailure {
  switch (kind) {
    case 'auth':
      return as('BadCredentials', REFUSED_KEY)
    case 'timeout':
      return as('Timeout', SILENT)
    case 'rate_limit':
    case 'server':
    case 'network':
      return as('ModelConnection')
    case 'overflow':
      return as('Unknown', TOO_LONG)
    case 'bad_request':
      return as('Unknown', UNREADABLE)
    case 'lost':
    case 'superseded':
    case 'interrupted':
      return as('Unknown', STOPPED)
    case 'other':
      return retryable ? as('ModelConnection') : as('Unknown')
  }
}

/** What the end of a command says for certain. */
function exitOf(metadata: Json | undefined): FailureClass | null {
  if (metadata === null || typeof metadata !== 'object') return null
  const { timed_out: late, exit_code: code } = metadata as { readonly [key: string]: Json }
  if (late === true) return 'Timeout'
  return code === 127 ? 'MissingApp' : code === 126 ? 'MissingPermission' : null
}

/** It expired, a person decided, or a rule or a hook did. A person's reason may say anything, so it is not read. */
function ofDenial(text: string): ClassifiedFailure {
  if (text.startsWith('Tool call was rejected by a human')) return as('Denied')
  return as(/\bapproval\b.{0,80}\b(?:expired|expiry|ttl)\b/i.test(text) ? 'ApprovalExpired' : 'BlockedByPolicy')
}

/** What refused: a rule of ours says so, else it may be the system or another service. */
function refusalIn(text: string): FailureClass {
  if (POLICY.test(text)) return 'BlockedByPolicy'
  if (SYSTEM.test(text)) return 'MissingPermission'
  return CREDENTIALS.test(text) || REFUSED.test(text) ? 'BadCredentials' : 'BlockedByPolicy'
}

/** The order matters: a time-out is one whatever else it says, and a 403 of another service is about credentials. */
function classIn(text: string, failure?: Failure): FailureClass {
  if (LATE.test(text)) return 'Timeout'
  if (POLICY.test(text)) return 'BlockedByPolicy'
  if (CREDENTIALS.test(text) || REFUSED.test(text)) return 'BadCredentials'
  if (SYSTEM.test(text)) return 'MissingPermission'
  if (ABSENT_APP.test(text)) return 'MissingApp'
  if (MODEL.test(text)) return 'ModelConnection'
  if (failure?.kind === 'Unavailable' || SERVICE.test(text) || BUSY.test(text)) return 'ServiceUnavailable'
  return 'Unknown'
}

const LATE =
  /\btimed[ -]?out\b|\btime-?out\b|\bETIMEDOUT\b|\bdeadline exceeded\b|\bdid not answer (?:in time|within)\b/i
const POLICY =
  /\b(?:blocked|denied|refused|forbidden|not allowed) by (?:the )?(?:[\w-]+ )?policy\b|\bnobody can be asked here\b/i
const CREDENTIALS = new RegExp(
  [
    '\\bunauthori[sz]ed\\b|\\bunauthenticated\\b|\\bauthentication (?:failed|required)\\b|\\bnot logged in\\b',
    '\\b(?:invalid|wrong|missing|expired|bad|revoked) (?:api[ _-]?key|access token|token|credentials?|password)\\b',
    '\\binvalid_api_key\\b|\\binvalid_grant\\b|\\b(?:token|credentials?) (?:has |have |is |are )?expired\\b',
  ].join('|'),
  'i',
)
const SYSTEM =
  /\bEACCES\b|\bEPERM\b|\bpermission denied\b|\boperation not permitted\b|\boperating system does not allow\b/i
const ABSENT_APP = new RegExp(
  [
    '\\bcommand not found\\b|\\bspawn \\S+ ENOENT\\b|\\bno such (?:command|program|executable)\\b',
    '\\bis not recognized as an? \\b|\\b(?:is|are) not installed\\b|\\bexit code 127\\b',
  ].join('|'),
  'i',
)
const MODEL =
  /\b(?:model|inference|provider)\b.{0,60}\b(?:connection|unreachable|overloaded|unavailable|could not be reached|failed too often)\b/i
const SERVICE = new RegExp(
  [
    '\\bECONN(?:RESET|REFUSED|ABORTED)\\b|\\bEPIPE\\b|\\bEAI_AGAIN\\b|\\bENOTFOUND\\b|\\bE(?:HOST|NET)UNREACH\\b',
    '\\bconnection (?:was )?(?:reset|refused|closed|lost)\\b|\\bsocket hang up\\b|\\bnetwork error\\b',
    '\\brate[ -]?limit(?:ed)?\\b|\\btoo many requests\\b|\\bbad gateway\\b|\\bservice unavailable\\b',
    '\\btemporarily unavailable\\b|\\boverloaded\\b',
  ].join('|'),
  'i',
)

/** A status is a whole number: no part of a longer one, no line of a file, no amount of something. */
function statusPattern(codes: string): RegExp {
  const named = '\\b(?:http|status|code|error)(?: code)?[ :=/(]{1,3}'
  const apart = '(?<![\\w.:,#$/+-]|\\bline )'
  const amount =
    ' ?(?:%|[kmg]?b\\b|m?s\\b|bytes?|tokens?|lines?|rows?|items?|files?|results?|actions?|seconds?|minutes?|times?\\b)'
  return new RegExp(`(?:${named}|${apart})(?:${codes})(?![\\w-]|[.,:]\\d|${amount})`, 'i')
}

const REFUSED = statusPattern('401|403')
const BUSY = statusPattern('429|502|503|504')
const ASKED_WRONG = statusPattern('400|404|413|422')

const USED_UP = /\binsufficient_quota\b|\bexceeded your current quota\b|\bcredit balance is too low\b/i

function ofProvider(text: string): ClassifiedFailure {
  if (USED_UP.test(text)) return as('BadCredentials', NO_QUOTA)
  if (CREDENTIALS.test(text) || REFUSED.test(text)) return as('BadCredentials', REFUSED_KEY)
  if (LATE.test(text)) return as('Timeout', SILENT)
  return ASKED_WRONG.test(text) ? as('Unknown', UNREADABLE) : as('ModelConnection')
}

function errorText({ failure, content }: CallResult): string {
  const text = failure?.message ?? (typeof content === 'string' ? content : '')
  return text.length > TEXT_CHARS_MAX ? text.slice(0, TEXT_CHARS_MAX) : text
}

type Said = Omit<ClassifiedFailure, 'class'>
const RECOVERABLE = { category: 'recoverable', recoverable: true } as const
const UNKNOWN = { category: 'unknown', recoverable: false } as const
const CONFIRM = { category: 'needs_confirmation', recoverable: false } as const

function as(kind: FailureClass, said: Said = SAID[kind]): ClassifiedFailure {
  return { class: kind, ...said }
}

const SAID: Readonly<Record<FailureClass, Said>> = {
  MissingPermission: {
    ...CONFIRM,
    cause: 'The system does not permit this.',
    nextAction: 'Give the permission, or choose another place.',
  },
  MissingApp: {
    ...CONFIRM,
    cause: 'A program that is needed is not there.',
    nextAction: 'Install it, then try again.',
  },
  ServiceUnavailable: {
    ...RECOVERABLE,
    cause: 'A service could not be reached, or is busy.',
    nextAction: 'Try again in a moment.',
  },
  BadCredentials: {
    ...CONFIRM,
    cause: 'A service did not accept the credentials.',
    nextAction: 'Check the key or sign in again, then try again.',
  },
  BlockedByPolicy: {
    category: 'blocked_by_policy',
    recoverable: false,
    cause: 'A rule of this harness does not allow this.',
    nextAction: 'Change the rule if this should be allowed.',
  },
  ModelConnection: {
    ...RECOVERABLE,
    cause: 'The model could not be reached, or is busy.',
    nextAction: 'Try again in a moment.',
  },
  Timeout: { ...RECOVERABLE, cause: 'It took too long.', nextAction: 'Try again, or allow it more time.' },
  Denied: {
    category: 'declined',
    recoverable: false,
    cause: 'A person said no.',
    nextAction: 'Do something else, or ask them why.',
  },
  ApprovalExpired: {
    ...CONFIRM,
    cause: 'Nobody decided before the approval expired.',
    nextAction: 'Ask again when somebody is there to decide.',
  },
  Unknown: { ...UNKNOWN, cause: 'It failed, and the reason is not a known one.', nextAction: 'Read the error.' },
}

const STOPPED: Said = {
  ...RECOVERABLE,
  cause: 'It was stopped before it ended.',
  nextAction: 'Send a message to go on.',
}
const PASSING: Said = { ...RECOVERABLE, cause: 'It failed, and may work later.', nextAction: 'Try again in a moment.' }
const SILENT: Said = { ...RECOVERABLE, cause: 'The model did not answer in time.', nextAction: 'Try again.' }
const SLOW_START: Said = {
  ...RECOVERABLE,
  cause: 'Getting ready took too long.',
  nextAction: 'Check the servers it connects to, then try again.',
}
const UNCLEAR: Said = {
  ...UNKNOWN,
  cause: 'It is not known whether this happened.',
  nextAction: 'Look whether it did before it is tried again.',
}
const INVALID: Said = {
  ...UNKNOWN,
  cause: 'The model called the tool in a way it does not accept.',
  nextAction: 'Nothing to do: the model was told how to correct it.',
}
const ABSENT: Said = {
  ...UNKNOWN,
  cause: 'What was asked for is not there.',
  nextAction: 'Check the name, or make it first.',
}
const REFUSED_KEY: Said = {
  ...CONFIRM,
  cause: 'The provider of the model did not accept the key or the account.',
  nextAction: 'Check the key and the account, then try again.',
}
const NO_QUOTA: Said = {
  ...CONFIRM,
  cause: 'The quota of the account is used up.',
  nextAction: 'Add credit or raise the limit at the provider of the model, then try again.',
}
const TOO_LONG: Said = {
  ...UNKNOWN,
  cause: 'The session is too long for the model.',
  nextAction: 'Start a new session, or use a model that reads more.',
}
const UNREADABLE: Said = {
  ...UNKNOWN,
  cause: 'The provider of the model did not accept the request.',
  nextAction: 'Check the name of the model and its settings.',
}

const ENDINGS: Readonly<Record<Exclude<RunFailed['reason'], 'provider_error'>, Said>> = {
  output_validation_failed: {
    ...UNKNOWN,
    cause: 'The model did not give an answer in the form that was asked for.',
    nextAction: 'Make the form simpler, or allow more output retries.',
  },
  tool_retries_exceeded: {
    ...UNKNOWN,
    cause: 'The model called a tool wrongly too often.',
    nextAction: 'Describe the tool better, or allow it more retries.',
  },
  unexpected_model_behavior: {
    ...UNKNOWN,
    cause: 'The model answered in a way that makes no sense here.',
    nextAction: 'Try again, or use another model.',
  },
  empty_answer: {
    ...UNKNOWN,
    cause: 'The model gave an empty answer.',
    nextAction: 'Try again, or ask in another way.',
  },
  refusal: {
    ...UNKNOWN,
    cause: 'The model refused to answer.',
    nextAction: 'Ask in another way, or use another model.',
  },
  crashed_too_often: {
    ...UNKNOWN,
    cause: 'The worker was lost again and again during one turn of this run.',
    nextAction: 'Find out why the process ends, then send a message to go on.',
  },
  prepare_failed: {
    ...UNKNOWN,
    cause: 'The run could not be prepared.',
    nextAction: 'Read the error, then try again.',
  },
  tool_error: { ...UNKNOWN, cause: 'A tool failed.', nextAction: 'Repair what the tool needs, then try again.' },
  hook_error: { ...UNKNOWN, cause: 'A hook failed.', nextAction: 'Repair the hook, then try again.' },
  planner_failed: {
    ...UNKNOWN,
    cause: 'The workflow could not go on.',
    nextAction: 'Read the error, then let it run again what failed.',
  },
}
