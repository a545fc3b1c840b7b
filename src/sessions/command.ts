// What may be said to a session: messages and commands, read into inbox events. What is not understood is refused here, before
// anything is written; nothing is written here.
import type { Limits, Metadata, RunChoice } from '../kernel/content.ts'
import type { InboxBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Blob } from '../ports/store.ts'
import type { AnswerSettings } from '../ports/model.ts'
import type { Random } from '../ports/system.ts'
import {
  anything,
  type Check,
  type Checks,
  count,
  filled,
  flag,
  given,
  listOf,
  needed,
  optionsOf,
  shown,
  text,
  nameTrouble,
  within,
} from '../options.ts'
import { LIMITS } from '../effects/limits.ts'
import { checkCallersId, idInBatch } from '../stores/plan/id.ts'
import { traceparentCheck } from '../tracing/traceparent.ts'
import { PIN_CHARS_MAX, textOf } from '../view/text.ts'
import { RUN_SETTINGS } from '../models/http/hosted.ts'
import { type HarnessOutput, outputCheck, shapeOf } from './agent.ts'
import { type Input, readInput } from './input.ts'
import type { AnySchema } from '../tools/core/typed.ts'
import { metadataCheck } from './metadata.ts'

export type SendOptions<Schema extends AnySchema = AnySchema> = {
  /**
   * What happens while a run is open: `next` steers it at its next request (default), `after` starts a run of its own later,
   * `now` supersedes the open request, `idle` is refused.
   */
  readonly when?: 'next' | 'after' | 'now' | 'idle'
  /** Your own id: sending the same one twice is one message. */
  readonly id?: string
  readonly by?: string
  /** A rule that must not be forgotten: it stays in every later request, word for word, also when the context is compacted. */
  readonly pin?: boolean
  /**
   * How long to wait for the run that this message opens while its provider is unavailable. The session tries on after that, for as long
   * as the limit `outageMs`. Default: the limit `patienceMs`.
   */
  readonly patienceMs?: number
  /** The W3C `traceparent` of the span that the run which this message opens stands under. It is in the log: another worker goes on with it. */
  readonly traceparent?: string
} & RunChoices<Schema>

/**
 * What the run that a message opens has instead of what its agent has. It is recorded with the message, so any worker prepares the
 * same run. A message with any of the first six opens a run of its own: while another run is open it waits, like `after`.
 */
export type RunChoices<Schema extends AnySchema = AnySchema> = {
  /** The name of a model: one of the harness's `models`, or `provider:model`. */
  readonly model?: string
  /** Instead of the agent's own. What its tools say stays. */
  readonly instructions?: string
  readonly limits?: Partial<Omit<Limits, 'hold'>>
  /** What the answer of this run must be. Your own schema parses it here; other processes know it as JSON Schema. */
  readonly output?: HarnessOutput<Schema>
  /** Of the agent's tools, only these. */
  readonly tools?: readonly string[]
  /** How the model answers in this run, over how it was made: `temperature`, `outputTokensMax`, `stop` and others. */
  readonly settings?: AnswerSettings
  /** For your own code: tools, hooks, traces and results have it, over that of the session. The model does not see it. */
  readonly metadata?: Metadata
  /** Interrupts the run when it is aborted. */
  readonly signal?: AbortSignal
}

const { hold: _hold, ...RUN_LIMITS } = LIMITS
const modelName: Check = (value, name, of) =>
  typeof value === 'object'
    ? 'is no name: put the model into `models` of the harness, and name it here'
    : filled(value, name, of)
export const signalCheck: Check = (value) =>
  value instanceof AbortSignal ? null : `must be an AbortSignal, not ${shown(value)}`
export const RUN_CHOICES: Checks<RunChoices> = {
  model: modelName,
  instructions: text,
  limits: within<NonNullable<RunChoices['limits']>>(RUN_LIMITS),
  output: outputCheck,
  tools: listOf(filled),
  settings: within<AnswerSettings>(RUN_SETTINGS),
  metadata: metadataCheck,
  signal: signalCheck,
}

/** What `when` may be is said with the message. */
export const SEND_OPTIONS: Checks<SendOptions> = {
  when: anything,
  id: text,
  by: nameTrouble,
  pin: flag,
  patienceMs: count(),
  traceparent: traceparentCheck,
  ...RUN_CHOICES,
}

/** As the message has it; undefined if the run is as its agent is. */
function choiceIn({ model, instructions, limits, output, tools, settings }: RunChoices): RunChoice | undefined {
  const own = settings && Object.keys(given(settings)).length > 0 ? given(settings) : undefined
  const named = { model, instructions, limits: limits && given(limits), tools, output: output && asked(output) }
  const choice = given({ ...named, settings: own })
  return Object.keys(choice).length === 0 ? undefined : (choice as RunChoice)
}

function asked({ schema, mode }: HarnessOutput): NonNullable<RunChoice['output']> {
  return { schema: shapeOf(schema), ...(mode === undefined ? {} : { mode }) }
}

/** What may be said to a session while it works. A batch is taken whole or not at all. */
export type Command =
  | { readonly type: 'message'; readonly input: Input; readonly when?: 'next' | 'after' | 'now' }
  /** A message that changes the task: it supersedes the open request, and says so to the model. */
  | { readonly type: 'redirect'; readonly text: string }
  /** `reason` is for people: a paused result says it. The first one stands. */
  | { readonly type: 'pause'; readonly reason?: string }
  | { readonly type: 'resume' }
  | { readonly type: 'cancel' }

type Kind<T extends Command['type']> = Extract<Command, { type: T }>
const type = needed(anything)
const COMMANDS: Readonly<Record<Command['type'], (command: unknown) => void>> = {
  message: optionsOf<Kind<'message'>>('a message', { type, input: needed(anything), when: anything }),
  redirect: optionsOf<Kind<'redirect'>>('a redirect', { type, text: needed(anything) }),
  pause: optionsOf<Kind<'pause'>>('a pause', { type, reason: filled }),
  resume: optionsOf<Kind<'resume'>>('a resume', { type }),
  cancel: optionsOf<Kind<'cancel'>>('a cancel', { type }),
}

export type Said<Body extends InboxBody = InboxBody> = { readonly event: Body; readonly blobs: readonly Blob[] }
export type MessageBody = Extract<InboxBody, { type: 'user.message' }>

export function messageOf(input: Input, options: SendOptions, random: Pick<Random, 'id'>): Said<MessageBody> {
  const { id = random.id() } = options
  checkCallersId(id)
  return messageIn(input, options, id)
}

function messageIn(input: Input, options: SendOptions, id: string): Said<MessageBody> {
  const { when = 'next', by, pin, patienceMs, traceparent } = options
  // A caller without a type checker may pass a value that does not exist, and it would stay in the log.
  if (!['next', 'after', 'now', 'idle'].includes(when))
    throw new Fault('invalid_input', `A message cannot come ${shown(when)}: say next, after, now or idle.`)
  const { metadata } = options
  const choice = choiceIn(options)
  if (choice && when === 'now')
    throw new Fault('invalid_input', 'A message with options opens a run of its own: say next, after or idle, not now.')
  const { parts, blobs } = readInput(input)
  if (parts.every((part) => part.type === 'text' && part.text.trim() === ''))
    throw new Fault('invalid_input', 'A message must not be empty.')
  if (pin && textOf(parts).length > PIN_CHARS_MAX)
    throw new Fault('invalid_input', `A pinned message has at most ${PIN_CHARS_MAX} characters. Pin only the rule.`)
  const event = { type: 'user.message', id, parts, when: choice ? 'after' : when === 'idle' ? 'next' : when } as const
  const more = { ...(by === undefined ? {} : { by }), ...(patienceMs === undefined ? {} : { patienceMs }) }
  const own = { ...(choice ? { options: choice } : {}), ...(metadata === undefined ? {} : { metadata }) }
  const trace = traceparent === undefined ? {} : { traceparent }
  return { event: { ...event, ...more, ...own, ...trace, ...(pin ? { pin } : {}) }, blobs }
}

/** `id` is the caller's own, if it gave one. `by`: who it is, for the log. */
type Whose = { readonly id?: string; readonly by?: string }

export function interruptOf(
  mode: 'stop' | 'pause',
  random: Random,
  { id = random.id(), by }: Whose = {},
): Extract<InboxBody, { type: 'user.interrupt' }> {
  checkCallersId(id)
  // Any other word would stand in the log, and end a pause.
  if (mode !== 'stop' && mode !== 'pause')
    throw new Fault('invalid_input', `An interrupt is stop or pause, not ${shown(mode)}. To go on, steer with resume.`)
  return { type: 'user.interrupt', id, mode, ...(by === undefined ? {} : { by }) }
}

/** In order. A cancel ends all of it, wherever it stands among the others. */
export function commandsOf(commands: readonly Command[], random: Random, { id, by }: Whose = {}): readonly Said[] {
  if (!(commands?.length > 0)) throw new Fault('invalid_input', 'There is nothing to say: give at least one command.')
  if (id !== undefined) checkCallersId(id)
  const said = commands.map((command, i) => commandOf(command, id === undefined ? random.id() : idInBatch(id, i), by))
  const cancels = commands.some(({ type }) => type === 'cancel')
  return cancels ? said.filter((_, i) => commands[i]?.type === 'cancel') : said
}

/** Steering needs a session that works: a message that must open its own run contradicts it. */
function steeringTime(when: SendOptions['when'] = 'next'): 'next' | 'after' | 'now' {
  if (when !== 'idle') return when
  throw new Fault('invalid_input', 'A message that steers comes next, after or now. Use send or run for idle.')
}

function commandOf(command: Command, id: string, by: string | undefined): Said {
  const said = spoken(command, id, by === undefined ? {} : { by })
  COMMANDS[command.type](command)
  return said
}

function spoken(command: Command, id: string, who: { readonly by?: string }): Said {
  switch (command?.type) {
    case 'message':
      return messageIn(command.input, { when: steeringTime(command.when), ...who }, id)
    case 'redirect':
      if (typeof command.text !== 'string' || command.text.trim() === '')
        throw new Fault('invalid_input', 'Say what to do instead: a redirect has a text.')
      return messageIn(`[steering:redirect] ${command.text}`, { when: 'now', ...who }, id)
    case 'cancel':
      return { event: { type: 'user.interrupt', id, mode: 'stop', ...who }, blobs: [] }
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
        `There is no command ${shown((command as Partial<Command> | null)?.type)}. There are: ${Object.keys(COMMANDS).join(', ')}.`,
      )
  }
}
