// Describes a failure for people: a class, a plain cause, the next action, and whether trying again may help. Pure.
// Facts that the harness recorded come first; text is read only after them. It changes nothing that a model sees.
import type { Failure, Json, Outcome } from '../../kernel/content.ts'
import type { AgentToolResult, ModelFailed } from '../../kernel/event.ts'

/** What went wrong, as far as that is known. `Unknown` stands for everything else. */
export type FailureClass =
  | ('MissingPermission' | 'MissingApp' | 'ServiceUnavailable' | 'BadCredentials' | 'BlockedByPolicy')
  | ('ModelConnection' | 'Timeout' | 'Denied' | 'ApprovalExpired' | 'Unknown')
/** What can be done about a failure: try again, change a rule, ask somebody, or accept a no. */
export type FailureCategory = 'recoverable' | 'blocked_by_policy' | 'needs_confirmation' | 'declined' | 'unknown'

/** A failure in words for people: its cause, what to do next, and whether trying again may help. */
export type ClassifiedFailure = {
  /** What went wrong, as far as that is known. */
  readonly class: FailureClass
  /** What can be done about it. */
  readonly category: FailureCategory
  /** What went wrong, as a plain sentence. */
  readonly cause: string
  /** What the user can do now, as a plain sentence. */
  readonly nextAction: string
  /** The same action may succeed when it is tried again. */
  readonly recoverable: boolean
}

/**
 * A result that repeats an answer from outside (`from`) has no content and no metadata of its own: pass the answer's.
 */
type CallResult = Pick<AgentToolResult, 'type' | 'status' | 'failure' | 'content' | 'metadata'>
type FailedRequest = Pick<ModelFailed, 'type' | 'class' | 'retryable'>
type FailedOutcome = Extract<Outcome, { type: 'failed' }>

export function classify(what: FailedOutcome | FailedRequest): ClassifiedFailure
/** Returns null for a result that is not a failure. */
export function classify(what: CallResult): ClassifiedFailure | null
export function classify(what: CallResult | FailedOutcome | FailedRequest): ClassifiedFailure | null {
  switch (what.type) {
    case 'agent.tool_result':
      return classifyResult(what)
    case 'model.failed':
      return classifyModelFailure(what)
    case 'failed':
      return classifyRun(what)
  }
}

/** Longer texts name the failure in their first lines, or not at all. */
const TEXT_CHARS_MAX = 1_000

function classifyResult(result: CallResult): ClassifiedFailure | null {
  const { status, failure } = result
  const exit = classOfExit(result.metadata)
  // A failed command has run, so its result is ok. Only a certain sign in its exit is a failure.
  if (status === 'ok') return exit && explainFailure(exit)
  const text = errorText(result)
  if (status === 'denied') return classifyDenial(text)
  if (status === 'aborted' || failure?.kind === 'Interrupted') return explainFailure('Unknown', STOPPED)
  if (status === 'unknown' || failure?.kind === 'Unknown') return explainFailure('Unknown', UNCLEAR)
  if (status === 'timeout' || failure?.kind === 'Timeout') return explainFailure('Timeout')
  if (failure?.kind === 'Denied') return explainFailure(classOfRefusal(text))
  if (failure?.kind === 'InvalidInput') return explainFailure('Unknown', INVALID)
  if (failure?.kind === 'NotFound')
    return ABSENT_APP.test(text) ? explainFailure('MissingApp') : explainFailure('Unknown', ABSENT)
  const read = exit ?? classOfText(text, failure)
  if (read !== 'Unknown') return explainFailure(read)
  return failure?.recoverable ? explainFailure('Unknown', PASSING) : explainFailure('Unknown')
}

function classifyRun({ reason, failure, class: kind }: FailedOutcome): ClassifiedFailure {
  const text = failure.message.slice(0, TEXT_CHARS_MAX)
  if (kind !== undefined) return classifyModelFailure({ type: 'model.failed', class: kind, retryable: false })
  if (reason === 'provider_error') return classifyProviderText(text)
  if (reason !== 'prepare_failed') return explainFailure('Unknown', ENDINGS[reason])
  if (failure.kind === 'Timeout') return explainFailure('Timeout', SLOW_START)
  const read = classOfText(text, failure)
  return read === 'Unknown' ? explainFailure('Unknown', ENDINGS.prepare_failed) : explainFailure(read)
}

function classifyModelFailure({ class: kind, retryable }: FailedRequest): ClassifiedFailure {
  switch (kind) {
    case 'auth':
      return explainFailure('BadCredentials', REFUSED_KEY)
    case 'timeout':
      return explainFailure('Timeout', SILENT)
    case 'rate_limit':
    case 'server':
    case 'network':
      return explainFailure('ModelConnection')
    case 'overflow':
      return explainFailure('Unknown', TOO_LONG)
    case 'bad_request':
      return explainFailure('Unknown', UNREADABLE)
    case 'lost':
    case 'superseded':
    case 'interrupted':
      return explainFailure('Unknown', STOPPED)
    case 'other':
      return retryable ? explainFailure('ModelConnection') : explainFailure('Unknown')
  }
}

/** The class that the exit of a command shows for certain. */
function classOfExit(metadata: Json | undefined): FailureClass | null {
  if (metadata === null || typeof metadata !== 'object') return null
  const { timed_out: late, exit_code: code } = metadata as { readonly [key: string]: Json }
  if (late === true) return 'Timeout'
  return code === 127 ? 'MissingApp' : code === 126 ? 'MissingPermission' : null
}

/**
 * The approval expired, or a person, a rule or a hook denied the call. A person's reason may contain any text, so it is
 * not read.
 */
function classifyDenial(text: string): ClassifiedFailure {
  if (text.startsWith('Tool call was rejected by a human')) return explainFailure('Denied')
  return explainFailure(
    /\bapproval\b.{0,80}\b(?:expired|expiry|ttl)\b/i.test(text) ? 'ApprovalExpired' : 'BlockedByPolicy',
  )
}

/** The source of a refusal: our own rules name themselves; otherwise the system or another service may have refused. */
function classOfRefusal(text: string): FailureClass {
  if (POLICY.test(text)) return 'BlockedByPolicy'
  if (SYSTEM.test(text)) return 'MissingPermission'
  return CREDENTIALS.test(text) || REFUSED.test(text) ? 'BadCredentials' : 'BlockedByPolicy'
}

/**
 * The order matters: a time-out counts first whatever else the text says, and a 403 of another service is about
 * credentials.
 */
function classOfText(text: string, failure?: Failure): FailureClass {
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

/** A status code is a whole number: not a part of a longer one, a line of a file or an amount. */
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

function classifyProviderText(text: string): ClassifiedFailure {
  if (USED_UP.test(text)) return explainFailure('BadCredentials', NO_QUOTA)
  if (CREDENTIALS.test(text) || REFUSED.test(text)) return explainFailure('BadCredentials', REFUSED_KEY)
  if (LATE.test(text)) return explainFailure('Timeout', SILENT)
  return ASKED_WRONG.test(text) ? explainFailure('Unknown', UNREADABLE) : explainFailure('ModelConnection')
}

function errorText({ failure, content }: CallResult): string {
  const text = failure?.message ?? (typeof content === 'string' ? content : '')
  return text.length > TEXT_CHARS_MAX ? text.slice(0, TEXT_CHARS_MAX) : text
}

type Explanation = Omit<ClassifiedFailure, 'class'>
const RECOVERABLE = { category: 'recoverable', recoverable: true } as const
const UNKNOWN = { category: 'unknown', recoverable: false } as const
const CONFIRM = { category: 'needs_confirmation', recoverable: false } as const

function explainFailure(kind: FailureClass, said: Explanation = SAID[kind]): ClassifiedFailure {
  return { class: kind, ...said }
}

const SAID: Readonly<Record<FailureClass, Explanation>> = {
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

const STOPPED: Explanation = {
  ...RECOVERABLE,
  cause: 'It was stopped before it ended.',
  nextAction: 'Send a message to go on.',
}
const PASSING: Explanation = {
  ...RECOVERABLE,
  cause: 'It failed, and may work later.',
  nextAction: 'Try again in a moment.',
}
const SILENT: Explanation = { ...RECOVERABLE, cause: 'The model did not answer in time.', nextAction: 'Try again.' }
const SLOW_START: Explanation = {
  ...RECOVERABLE,
  cause: 'Getting ready took too long.',
  nextAction: 'Check the servers it connects to, then try again.',
}
const UNCLEAR: Explanation = {
  ...UNKNOWN,
  cause: 'It is not known whether this happened.',
  nextAction: 'Look whether it did before it is tried again.',
}
const INVALID: Explanation = {
  ...UNKNOWN,
  cause: 'The model called the tool in a way it does not accept.',
  nextAction: 'Nothing to do: the model was told how to correct it.',
}
const ABSENT: Explanation = {
  ...UNKNOWN,
  cause: 'What was asked for is not there.',
  nextAction: 'Check the name, or make it first.',
}
const REFUSED_KEY: Explanation = {
  ...CONFIRM,
  cause: 'The provider of the model did not accept the key or the account.',
  nextAction: 'Check the key and the account, then try again.',
}
const NO_QUOTA: Explanation = {
  ...CONFIRM,
  cause: 'The quota of the account is used up.',
  nextAction: 'Add credit or raise the limit at the provider of the model, then try again.',
}
const TOO_LONG: Explanation = {
  ...UNKNOWN,
  cause: 'The session is too long for the model.',
  nextAction: 'Start a new session, or use a model that reads more.',
}
const UNREADABLE: Explanation = {
  ...UNKNOWN,
  cause: 'The provider of the model did not accept the request.',
  nextAction: 'Check the name of the model and its settings.',
}

const ENDINGS: Readonly<Record<Exclude<FailedOutcome['reason'], 'provider_error'>, Explanation>> = {
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
