// What may be said to a session: messages and commands, read into inbox events. What is not understood is refused here, before
// anything is written; nothing is written here.
import type { InboxBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Blob } from '../ports/store.ts'
import type { Random } from '../ports/system.ts'
import { anything, type Checks, count, filled, needed, optionsOf, shown, text } from '../options.ts'
import { checkCallersId } from '../stores/plan/id.ts'
import { type Input, readInput } from './input.ts'

export type SendOptions = {
  /**
   * What happens while a run is open: `next` steers it at its next request (default), `after` starts a run of its own later,
   * `now` supersedes the open request, `idle` is refused.
   */
  readonly when?: 'next' | 'after' | 'now' | 'idle'
  /** Your own id: sending the same one twice is one message. */
  readonly id?: string
  readonly by?: string
  /** How long a provider may be unavailable before the run that this message opens fails. Default: the limit `patienceMs`. */
  readonly patienceMs?: number
}

/** What `when` may be is said with the message. */
export const SEND_OPTIONS: Checks<SendOptions> = { when: anything, id: text, by: text, patienceMs: count() }

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
type MessageBody = Extract<InboxBody, { type: 'user.message' }>

export function messageOf(input: Input, options: SendOptions, random: Random): Said<MessageBody> {
  const { when = 'next', id = random.id(), by, patienceMs } = options
  // A caller without a type checker may pass a value that does not exist, and it would stay in the log.
  if (!['next', 'after', 'now', 'idle'].includes(when))
    throw new Fault('invalid_input', `A message cannot come ${shown(when)}: say next, after, now or idle.`)
  checkCallersId(id)
  const { parts, blobs } = readInput(input)
  if (parts.every((part) => part.type === 'text' && part.text.trim() === ''))
    throw new Fault('invalid_input', 'A message must not be empty.')
  const event = { type: 'user.message', id, parts, when: when === 'idle' ? 'next' : when } as const
  const more = { ...(by === undefined ? {} : { by }), ...(patienceMs === undefined ? {} : { patienceMs }) }
  return { event: { ...event, ...more }, blobs }
}

export function interruptOf(mode: 'stop' | 'pause', random: Random): Said {
  // Any other word would stand in the log, and end a pause.
  if (mode !== 'stop' && mode !== 'pause')
    throw new Fault('invalid_input', `An interrupt is stop or pause, not ${shown(mode)}. To go on, steer with resume.`)
  return { event: { type: 'user.interrupt', id: random.id(), mode }, blobs: [] }
}

/** In order. A cancel ends all of it, wherever it stands among the others. */
export function commandsOf(commands: readonly Command[], random: Random): readonly Said[] {
  if (!(commands?.length > 0)) throw new Fault('invalid_input', 'There is nothing to say: give at least one command.')
  const said = commands.map((command) => commandOf(command, random))
  const cancels = commands.some(({ type }) => type === 'cancel')
  return cancels ? said.filter((_, i) => commands[i]?.type === 'cancel') : said
}

/** Steering needs a session that works: a message that must open its own run contradicts it. */
function steeringTime(when: SendOptions['when'] = 'next'): 'next' | 'after' | 'now' {
  if (when !== 'idle') return when
  throw new Fault('invalid_input', 'A message that steers comes next, after or now. Use send or run for idle.')
}

function commandOf(command: Command, random: Random): Said {
  const said = spoken(command, random)
  COMMANDS[command.type](command)
  return said
}

function spoken(command: Command, random: Random): Said {
  const id = random.id()
  switch (command?.type) {
    case 'message':
      return messageOf(command.input, { when: steeringTime(command.when) }, random)
    case 'redirect':
      if (typeof command.text !== 'string' || command.text.trim() === '')
        throw new Fault('invalid_input', 'Say what to do instead: a redirect has a text.')
      return messageOf(`[steering:redirect] ${command.text}`, { when: 'now' }, random)
    case 'cancel':
      return { event: { type: 'user.interrupt', id, mode: 'stop' }, blobs: [] }
    case 'resume':
      return { event: { type: 'user.interrupt', id, mode: 'resume' }, blobs: [] }
    case 'pause': {
      const { reason: why } = command
      return { event: { type: 'user.interrupt', id, mode: 'pause', ...(why === undefined ? {} : { why }) }, blobs: [] }
    }
    default:
      throw new Fault(
        'invalid_input',
        `There is no command ${shown((command as Partial<Command> | null)?.type)}. There are: ${Object.keys(COMMANDS).join(', ')}.`,
      )
  }
}
