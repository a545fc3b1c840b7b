// The tools of the server: the verbs of sessions, each for the role that may use it. Who decides and answers is the caller, and a
// decision needs the digest of what was shown.
import { createHash } from 'node:crypto'
import type { Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { PendingCall } from '../sessions/look/pending.ts'
import type { Session } from '../sessions/verbs.ts'
import { choice, flag, type Infer, integer, object, type ObjectField, optional, text } from '../tools/core/schema.ts'
import { BUDGET } from '../view/pending.ts'
import { ANY_ROLE, type Caller, type Role } from './caller.ts'
import { type Desk, missing } from './desk.ts'
import { type Result, RESULTS } from './results.ts'
import { type Fields, fitting, isCut } from './shown.ts'
import { shellCommand } from '../view/shell.ts'

export type Place = { readonly desk: Desk; readonly caller: Caller; readonly signal: AbortSignal }

export type ServerTool = {
  readonly name: string
  readonly role: Role
  readonly description: string
  readonly fields: ObjectField<unknown>
  /** The JSON Schema of what `run` gives, with the notice that stands before it. */
  readonly output: Result
  readonly run: (place: Place, args: unknown) => Promise<Fields>
}

const INPUT_CHARS_MAX = 500_000
const EVENTS_MAX = 200
const WAIT_MS_MAX = 30_000
/** How often the log is looked at for a caller that waits, and how many of these looks are at the state too. */
const LOOK_MS = 200
const LOOKS_A_STATE = 5

const session = text('The session.', { min: 1, max: 512 })
const call = text('The call, as `pending` names it.', { min: 1, max: 100 })
const input = text('The message.', { min: 1, max: INPUT_CHARS_MAX })
const key = optional(text('Your own key: the same one twice is done once.', { min: 1, max: 200 }))

const START = object({
  input,
  agent: optional(text('The agent. Default: that of this server.', { min: 1, max: 200 })),
  key,
})
const SEND = object({
  session,
  input,
  when: optional(
    choice(
      'While a run is open: next steers it, after starts a run of its own later, now supersedes the open request.',
      ['next', 'after', 'now'],
    ),
  ),
  key,
})
const EVENTS = object({
  session,
  after: optional(integer('Only events after this one. Default: from the beginning.')),
  limit: optional(integer(`At most so many. Default: ${EVENTS_MAX}.`, { min: 1, max: EVENTS_MAX })),
  wait_ms: optional(integer('How long to wait for such an event while the session works.', { max: WAIT_MS_MAX })),
})
const PENDING = object({ session: optional(session) })
const DECIDE = object({
  session,
  call,
  allow: flag('true allows it, false denies it.'),
  digest: text('The digest of the call, from `pending`.', { min: 64, max: 64 }),
  args: optional(
    text('Other arguments for the call, as JSON: it runs with these, if its schema and the policy take them.', {
      max: INPUT_CHARS_MAX,
    }),
  ),
  why: optional(text('The reason, kept in the log and told to the model.', { max: 2_000 })),
  role: optional(text('In which of your roles, where a rule wants one.', { min: 1, max: 200 })),
})
const ANSWER = object({
  session,
  call,
  content: text('The answer.', { max: INPUT_CHARS_MAX }),
  ok: optional(flag('false: the call failed, and content says why.')),
})
const INTERRUPT = object({ session, mode: optional(choice('Default: stop.', ['stop', 'pause'])) })

export const TOOLS: readonly ServerTool[] = [
  {
    name: 'start',
    role: 'operator',
    description: 'Starts a new session of an agent with a first message. It works on its own; follow it with `events`.',
    ...checked(START, RESULTS.start, start),
  },
  {
    name: 'send',
    role: 'operator',
    description: 'Sends a message to a session.',
    ...checked(SEND, RESULTS.send, send),
  },
  {
    name: 'events',
    role: 'viewer',
    description: 'The events of a session after a position, and how it stands. With wait_ms it waits for news.',
    ...checked(EVENTS, RESULTS.events, events),
  },
  {
    name: 'pending',
    role: 'viewer',
    description: 'What waits for a person: calls to decide, with their digests, and questions to answer.',
    ...checked(PENDING, RESULTS.pending, pending),
  },
  {
    name: 'decide',
    role: 'approver',
    description:
      'Allows or denies one pending call exactly as `pending` showed it, by its digest, or allows it with other arguments.',
    ...checked(DECIDE, RESULTS.decide, decide),
  },
  {
    name: 'answer',
    role: 'operator',
    description: 'Answers a question of a session, or another call that is answered from outside.',
    ...checked(ANSWER, RESULTS.answer, answer),
  },
  {
    name: 'interrupt',
    role: 'operator',
    description: 'Stops a session, or pauses it.',
    ...checked(INTERRUPT, RESULTS.interrupt, interrupt),
  },
]

function checked<T>(
  fields: ObjectField<T>,
  output: Result,
  run: (place: Place, args: T) => Promise<Fields>,
): Pick<ServerTool, 'fields' | 'output' | 'run'> {
  // Sound: it is only called with what these very fields have checked.
  return { fields, output, run: run as ServerTool['run'] }
}

/** With a key the session's id follows from it: a repeat after a crash finds the session, and sends what was not sent. */
async function start({ desk, caller }: Place, args: Infer<typeof START>): Promise<Fields> {
  const named = args.key === undefined ? {} : { id: ownId(caller, args.key) }
  const made = await desk.start({ ...named, ...(args.agent === undefined ? {} : { agent: args.agent }) }, caller)
  const { seq, duplicate } = await made.send(args.input, { by: caller.name, ...named })
  return { session: made.id, seq, duplicate }
}

async function send(place: Place, args: Infer<typeof SEND>): Promise<Fields> {
  const { caller } = place
  const named = args.key === undefined ? {} : { id: ownId(caller, args.key) }
  const reached = await reach(place, args.session)
  const { seq, duplicate, queued, elsewhere } = await reached.send(args.input, {
    when: args.when ?? 'next',
    by: caller.name,
    ...named,
  })
  return { session: args.session, seq, duplicate, queued, ...(elsewhere === undefined ? {} : { elsewhere }) }
}

async function events(place: Place, args: Infer<typeof EVENTS>): Promise<Fields> {
  const { after = 0, limit = EVENTS_MAX, wait_ms: waitMs = 0 } = args
  const reached = await reach(place, args.session)
  await news(reached, after, waitMs, place.signal)
  const { events: found, damaged } = await reached.read(after, limit)
  const { status, phase, waitsFor, outcome, seq: head, text: said } = await reached.state()
  const kept = fitting(found)
  const last = found[kept.length - 1]?.seq ?? after
  const stands = { status, phase, waitsFor, outcome, ...(RESTS.has(phase) ? { text: said } : {}) }
  return { session: args.session, events: kept, next: last, head, ...stands, ...(damaged ? { damaged } : {}) }
}

const RESTS: ReadonlySet<string> = new Set(['idle', 'waiting', 'closed'])

/** Waits until there is an event after this one, or the session rests. How it stands is read less often: that costs more. */
async function news(reached: Session, after: number, waitMs: number, signal: AbortSignal): Promise<void> {
  const until = performance.now() + waitMs
  for (let look = 0; performance.now() < until && !signal.aborted; look++) {
    const { events: found, damaged } = await reached.read(after, 1)
    if (found.length > 0 || damaged) return
    if (look % LOOKS_A_STATE === 0 && RESTS.has((await reached.state()).phase)) return
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}

async function pending(place: Place, args: Infer<typeof PENDING>): Promise<Fields> {
  const { desk, caller } = place
  if (args.session !== undefined) await reach(place, args.session)
  const all = await desk.pending(caller)
  const found = args.session === undefined ? all : all.filter(({ path }) => path.includes(args.session ?? ''))
  const kept = fitting(found.map(waitingCall))
  return { pending: kept, more: found.length - kept.length }
}

/** Without the drawn preview. `cut`: not all of the arguments is shown, and the event of the call has all of it. */
function waitingCall(each: PendingCall): object {
  const { preview, labels: _host, ...shown } = each
  const { trouble, warnings } = preview
  return { ...shown, trouble, warnings, ...(isCut(each.args) ? { cut: true } : {}) }
}

async function decide(place: Place, args: Infer<typeof DECIDE>): Promise<Fields> {
  const { caller } = place
  const { approvalRoles = [] } = caller
  if (args.call === BUDGET)
    throw new Fault(
      'invalid_input',
      `Money is not decided here. Raise it with: ${shellCommand`terret approve ${args.session} budget`}`,
    )
  const any = approvalRoles.includes(ANY_ROLE)
  if (args.role !== undefined && !any && !approvalRoles.includes(args.role))
    throw new Fault(
      'invalid_input',
      `You may not decide as "${args.role}". Your roles: ${approvalRoles.join(', ') || 'none'}.`,
    )
  const role = args.role ?? (approvalRoles.length === 1 && !any ? approvalRoles[0] : undefined)
  const reached = await reach(place, args.session)
  const { seq, duplicate } = await reached.decide({
    callId: args.call,
    allow: args.allow,
    digest: args.digest,
    by: caller.name,
    ...(args.args === undefined ? {} : { args: parsedArgs(args.args) }),
    ...(args.why === undefined ? {} : { why: args.why }),
    ...(role === undefined ? {} : { role }),
  })
  return { session: args.session, call: args.call, allow: args.allow, seq, duplicate }
}

function parsedArgs(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    throw new Fault('invalid_input', 'The arguments of an edit are written as JSON, such as {"path": "a.txt"}.')
  }
}

async function answer(place: Place, args: Infer<typeof ANSWER>): Promise<Fields> {
  const reached = await reach(place, args.session)
  const { content, ok = true } = args
  const { seq, duplicate } = await reached.answer({ callId: args.call, content, ok, by: place.caller.name })
  return { session: args.session, call: args.call, seq, duplicate }
}

async function interrupt(place: Place, { session: id, mode = 'stop' }: Infer<typeof INTERRUPT>): Promise<Fields> {
  const { seq, duplicate } = await (await reach(place, id)).interrupt(mode, { by: place.caller.name })
  return { session: id, mode, seq, duplicate }
}

async function reach({ desk, caller }: Place, id: string): Promise<Session> {
  const found = await desk.session(id, caller)
  if (found === null) throw missing(id)
  return found
}

/** Of the caller and the key: the keys of one caller do not meet those of another. */
function ownId({ name }: Caller, own: string): string {
  return `mcp-${createHash('sha256')
    .update(JSON.stringify([name, own]))
    .digest('hex')
    .slice(0, 32)}`
}
