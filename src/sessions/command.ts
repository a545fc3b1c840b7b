// Reads messages and commands to a session into inbox events. Invalid ones are refused here, before anything is
// written; nothing is written here.
import type { Limits, Metadata, RunChoice } from '../kernel/content.ts'
import type { InboxBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Blob } from '../ports/store.ts'
import type { AnswerSettings } from '../ports/model.ts'
import type { Random } from '../ports/system.ts'
import {
  anyCheck,
  type Check,
  type Checks,
  countCheck,
  nonEmptyCheck,
  flagCheck,
  withoutUndefined,
  listCheck,
  requiredCheck,
  optionsChecker,
  describeValue,
  textCheck,
  whyNameInvalid,
  optionsCheck,
} from '../options.ts'
import { LIMITS } from '../runtime/state/limits.ts'
import { checkCallersId, idInBatch } from '../stores/plan/store-ids.ts'
import { traceparentCheck } from '../tracing/traceparent-check.ts'
import { PIN_CHARS_MAX, textOf } from '../view/shown-text.ts'
import { RUN_SETTINGS } from '../models/http/hosted-model.ts'
import { type HarnessOutput, outputCheck, schemaOfAnswer } from '../runtime/state/agent-output.ts'
import { type Input, readInput } from './input.ts'
import type { AnySchema } from '../tools/core/tool-types.ts'
import { metadataCheck } from './metadata.ts'
import { laterWithSignal, readMoment } from './moment.ts'

/** Options of `send`: when the message is read, and what holds for the run that reads it. */
export type SendOptions<Schema extends AnySchema = AnySchema> = {
  /**
   * When the message is read while a run is open: `next` steers the run at its next request (default), `after` starts
   * its own run later, `now` supersedes the open request, `idle` is refused.
   */
  readonly when?: 'next' | 'after' | 'now' | 'idle'
  /** Your own id. The same id twice is one message. */
  readonly id?: string
  /** Who sends it, for the log. */
  readonly by?: string
  /** Pins the message as a rule: it stays in every later request, word for word, also when the context is compacted. */
  readonly pin?: boolean
  /**
   * How long to wait for this message's run while its provider is unavailable. The session keeps trying after that, for
   * as long as the limit `outageMs`. Default: the limit `patienceMs`.
   */
  readonly patienceMs?: number
  /**
   * The W3C `traceparent` of the parent span of this message's run. It is in the log, so another worker can continue
   * the trace.
   */
  readonly traceparent?: string
} & RunChoices<Schema>

/** A message for later opens a run of its own: while another run is open at that time it waits, like `after`. */
export type LaterOptions = {
  /**
   * When the message is read, and not before: a Date, or milliseconds since 1970. It is on disk at once. A past time is
   * now.
   */
  readonly at?: Date | number
}

/**
 * Options of the run that a message opens, in place of its agent's. They are recorded with the message, so any worker
 * prepares the same run. A message with any of the first six opens a run of its own: while another run is open it
 * waits, like `after`.
 */
export type RunChoices<Schema extends AnySchema = AnySchema> = {
  /** The name of a model: one of the harness's `models.named`, or `provider:model`. */
  readonly model?: string
  /** Replaces the agent's own instructions. Those of its tools stay. */
  readonly instructions?: string
  /** Limits of the run that the message opens, over those of its agent. */
  readonly limits?: Partial<Omit<Limits, 'hold'>>
  /** The form of this run's answer. Your own schema parses it here; other processes know it as JSON Schema. */
  readonly output?: HarnessOutput<Schema>
  /** Only these of the agent's tools. */
  readonly tools?: readonly string[]
  /**
   * Settings of the model for this run, over those it was made with: `temperature`, `outputTokensMax`, `stop` and
   * others.
   */
  readonly settings?: AnswerSettings
  /**
   * Data for your own code: tools, hooks, traces and results have it, over that of the session. The model does not see
   * it.
   */
  readonly metadata?: Metadata
  /** Interrupts the run when it is aborted. */
  readonly signal?: AbortSignal
}

const { hold: _hold, ...RUN_LIMITS } = LIMITS
const modelName: Check = (value, name, of) =>
  typeof value === 'object'
    ? 'is no name: put the model into `models.named` of the harness, and name it here'
    : nonEmptyCheck(value, name, of)
export const signalCheck: Check = (value) =>
  value instanceof AbortSignal ? null : `must be an AbortSignal, not ${describeValue(value)}`
export const RUN_CHOICES: Checks<RunChoices> = {
  model: modelName,
  instructions: textCheck,
  limits: optionsCheck<NonNullable<RunChoices['limits']>>(RUN_LIMITS),
  output: outputCheck,
  tools: listCheck(nonEmptyCheck),
  settings: optionsCheck<AnswerSettings>(RUN_SETTINGS),
  metadata: metadataCheck,
  signal: signalCheck,
}

/** The values of `when` are checked with the message. */
export const SEND_OPTIONS: Checks<SendOptions> = {
  when: anyCheck,
  id: textCheck,
  by: whyNameInvalid,
  pin: flagCheck,
  patienceMs: countCheck(),
  traceparent: traceparentCheck,
  ...RUN_CHOICES,
}

/** The choice as the message stores it; undefined if the run follows its agent. */
function buildRunChoice({ model, instructions, limits, output, tools, settings }: RunChoices): RunChoice | undefined {
  const own = settings && Object.keys(withoutUndefined(settings)).length > 0 ? withoutUndefined(settings) : undefined
  const named = {
    model,
    instructions,
    limits: limits && withoutUndefined(limits),
    tools,
    output: output && outputChoice(output),
  }
  const choice = withoutUndefined({ ...named, settings: own })
  return Object.keys(choice).length === 0 ? undefined : (choice as RunChoice)
}

function outputChoice({ schema, mode }: HarnessOutput): NonNullable<RunChoice['output']> {
  return { schema: schemaOfAnswer(schema), ...(mode === undefined ? {} : { mode }) }
}

/** The commands that steer a session while it works. A batch is taken whole or not at all. */
export type Command =
  | { readonly type: 'message'; readonly input: Input; readonly when?: 'next' | 'after' | 'now' }
  /** A message that changes the task: it supersedes the open request and tells the model so. */
  | { readonly type: 'redirect'; readonly text: string }
  /** `reason` is for people: the result of a paused run has it. The first reason stands. */
  | { readonly type: 'pause'; readonly reason?: string }
  | { readonly type: 'resume' }
  | { readonly type: 'cancel' }
  /**
   * Takes back a message that came after the open run began, by its seq, unless a request has shown it. The log says
   * which came first.
   */
  | { readonly type: 'withdraw'; readonly message: number }

type CommandOf<T extends Command['type']> = Extract<Command, { type: T }>
const type = requiredCheck(anyCheck)
const COMMANDS: Readonly<Record<Command['type'], (command: unknown) => void>> = {
  message: optionsChecker<CommandOf<'message'>>('a message', { type, input: requiredCheck(anyCheck), when: anyCheck }),
  redirect: optionsChecker<CommandOf<'redirect'>>('a redirect', { type, text: requiredCheck(anyCheck) }),
  pause: optionsChecker<CommandOf<'pause'>>('a pause', { type, reason: nonEmptyCheck }),
  resume: optionsChecker<CommandOf<'resume'>>('a resume', { type }),
  cancel: optionsChecker<CommandOf<'cancel'>>('a cancel', { type }),
  withdraw: optionsChecker<CommandOf<'withdraw'>>('a withdrawal', { type, message: requiredCheck(countCheck(1)) }),
}

export type ParsedCommand<Body extends InboxBody = InboxBody> = {
  readonly event: Body
  readonly blobs: readonly Blob[]
}
export type UserMessageBody = Extract<InboxBody, { type: 'user.message' }>

export function buildMessage(
  input: Input,
  options: SendOptions & LaterOptions,
  random: Pick<Random, 'id'>,
): ParsedCommand<UserMessageBody> {
  const { id = random.id() } = options
  checkCallersId(id)
  return parseMessage(input, options, id)
}

function parseMessage(input: Input, options: SendOptions & LaterOptions, id: string): ParsedCommand<UserMessageBody> {
  const { when = 'next', by, pin, patienceMs, traceparent } = options
  // A caller without a type checker may pass an invalid value, which would stay in the log.
  if (!['next', 'after', 'now', 'idle'].includes(when))
    throw new Fault('invalid_input', `A message cannot come ${describeValue(when)}: say next, after, now or idle.`)
  const { metadata } = options
  const choice = buildRunChoice(options)
  if (choice && when === 'now')
    throw new Fault('invalid_input', 'A message with options opens a run of its own: say next, after or idle, not now.')
  const later = options.at === undefined ? {} : { notBefore: readMoment(options.at, 'at') }
  if ('notBefore' in later) checkLater(options)
  const { parts, blobs } = readInput(input)
  if (parts.every((part) => part.type === 'text' && part.text.trim() === ''))
    throw new Fault('invalid_input', 'A message must not be empty.')
  if (pin && textOf(parts).length > PIN_CHARS_MAX)
    throw new Fault('invalid_input', `A pinned message has at most ${PIN_CHARS_MAX} characters. Pin only the rule.`)
  const waits = choice !== undefined || 'notBefore' in later
  const event = { type: 'user.message', id, parts, when: waits ? 'after' : when === 'idle' ? 'next' : when } as const
  const more = { ...(by === undefined ? {} : { by }), ...(patienceMs === undefined ? {} : { patienceMs }) }
  const own = { ...(choice ? { options: choice } : {}), ...(metadata === undefined ? {} : { metadata }) }
  const trace = traceparent === undefined ? {} : { traceparent }
  return { event: { ...event, ...more, ...own, ...trace, ...later, ...(pin ? { pin } : {}) }, blobs }
}

function checkLater({ when, signal }: SendOptions): void {
  if (when === 'now' || when === 'idle')
    throw new Fault('invalid_input', `A message with "at" is read later: leave out when: "${when}".`)
  if (signal) throw laterWithSignal()
}

/** `id` is the caller's own, if given. `by` names the sender in the log. */
type SenderOptions = { readonly id?: string; readonly by?: string }

export function buildInterrupt(
  mode: 'stop' | 'pause',
  random: Random,
  { id = random.id(), by }: SenderOptions = {},
): Extract<InboxBody, { type: 'user.interrupt' }> {
  checkCallersId(id)
  // Any other mode would stand in the log, and end a pause.
  if (mode !== 'stop' && mode !== 'pause')
    throw new Fault(
      'invalid_input',
      `An interrupt is stop or pause, not ${describeValue(mode)}. To go on, send the command resume.`,
    )
  return { type: 'user.interrupt', id, mode, ...(by === undefined ? {} : { by }) }
}

/** Parses commands in order. A cancel replaces the whole batch, wherever it stands in it. */
export function parseCommands(
  commands: readonly Command[],
  random: Random,
  { id, by }: SenderOptions = {},
): readonly ParsedCommand[] {
  if (!(commands?.length > 0)) throw new Fault('invalid_input', 'There is nothing to say: give at least one command.')
  if (id !== undefined) checkCallersId(id)
  const said = commands.map((command, i) =>
    parseCommand(command, id === undefined ? random.id() : idInBatch(id, i), by),
  )
  const cancels = commands.some(({ type }) => type === 'cancel')
  return cancels ? said.filter((_, i) => commands[i]?.type === 'cancel') : said
}

/** Steering addresses a working session, so a message that must open its own run contradicts it. */
function steeringWhen(when: SendOptions['when'] = 'next'): 'next' | 'after' | 'now' {
  if (when !== 'idle') return when
  throw new Fault('invalid_input', 'A message that steers comes next, after or now. Use send or run for idle.')
}

function parseCommand(command: Command, id: string, by: string | undefined): ParsedCommand {
  const said = readCommand(command, id, by === undefined ? {} : { by })
  COMMANDS[command.type](command)
  return said
}

function readCommand(command: Command, id: string, who: { readonly by?: string }): ParsedCommand {
  switch (command?.type) {
    case 'message':
      return parseMessage(command.input, { when: steeringWhen(command.when), ...who }, id)
    case 'redirect':
      if (typeof command.text !== 'string' || command.text.trim() === '')
        throw new Fault('invalid_input', 'Say what to do instead: a redirect has a text.')
      return parseMessage(`[steering:redirect] ${command.text}`, { when: 'now', ...who }, id)
    case 'cancel':
      return { event: { type: 'user.interrupt', id, mode: 'stop', ...who }, blobs: [] }
    case 'withdraw':
      return { event: { type: 'user.withdraw', id, message: command.message, ...who }, blobs: [] }
    case 'resume':
      return { event: { type: 'user.interrupt', id, mode: 'resume', ...who }, blobs: [] }
    case 'pause': {
      const { reason: why } = command
      const said = why === undefined ? who : { ...who, why }
      return { event: { type: 'user.interrupt', id, mode: 'pause', ...said }, blobs: [] }
    }
    default:
      throw new Fault(
        'invalid_input',
        `There is no command ${describeValue((command as Partial<Command> | null)?.type)}. There are: ${Object.keys(COMMANDS).join(', ')}.`,
      )
  }
}
