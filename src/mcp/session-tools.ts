// The tools of the server: the operations on sessions, each for the role that may use it. The caller is recorded as the
// person who decides or answers, and a decision needs the digest of the call as it was shown.
import { createHash } from 'node:crypto'
import type { Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { PendingCall } from '../sessions/look/pending.ts'
import type { Session } from '../sessions/verbs.ts'
import {
  choiceField,
  flagField,
  type Infer,
  integerField,
  objectField,
  type ObjectField,
  optionalField,
  textField,
} from '../tools/core/argument-schema.ts'
import { BUDGET } from '../view/pending-calls.ts'
import { ANY_ROLE, type Caller, type CallerRole } from './caller.ts'
import { type McpSessionHost, missingSessionFault } from './mcp-session-host.ts'
import { type ResultSchema, RESULT_SCHEMAS } from './result-schemas.ts'
import { type ResultFields, takeFitting, isCut } from './bounded-result.ts'
import { shellCommand } from '../view/shell-command.ts'

export type ToolCallContext = { readonly desk: McpSessionHost; readonly caller: Caller; readonly signal: AbortSignal }

export type ServerTool = {
  readonly name: string
  readonly role: CallerRole
  readonly description: string
  readonly fields: ObjectField<unknown>
  /** The JSON Schema of the result of `run`, with the notice before it. */
  readonly output: ResultSchema
  readonly run: (place: ToolCallContext, args: unknown) => Promise<ResultFields>
}

const INPUT_CHARS_MAX = 500_000
const EVENTS_MAX = 200
const WAIT_MS_MAX = 30_000
/** How often the log is read for a waiting caller. Every fifth time the state is read too. */
const LOOK_MS = 200
const LOOKS_A_STATE = 5

const session = textField('The session.', { min: 1, max: 512 })
const call = textField('The call, as `pending` names it.', { min: 1, max: 100 })
const input = textField('The message.', { min: 1, max: INPUT_CHARS_MAX })
const key = optionalField(textField('Your own key: the same one twice is done once.', { min: 1, max: 200 }))

const START = objectField({
  input,
  agent: optionalField(textField('The agent. Default: that of this server.', { min: 1, max: 200 })),
  key,
})
const SEND = objectField({
  session,
  input,
  when: optionalField(
    choiceField(
      'While a run is open: next steers it, after starts a run of its own later, now supersedes the open request.',
      ['next', 'after', 'now'],
    ),
  ),
  key,
})
const EVENTS = objectField({
  session,
  after: optionalField(integerField('Only events after this one. Default: from the beginning.')),
  limit: optionalField(integerField(`At most so many. Default: ${EVENTS_MAX}.`, { min: 1, max: EVENTS_MAX })),
  wait_ms: optionalField(
    integerField('How long to wait for such an event while the session works.', { max: WAIT_MS_MAX }),
  ),
})
const PENDING = objectField({ session: optionalField(session) })
const DECIDE = objectField({
  session,
  call,
  allow: flagField('true allows it, false denies it.'),
  digest: textField('The digest of the call, from `pending`.', { min: 64, max: 64 }),
  args: optionalField(
    textField('Other arguments for the call, as JSON: it runs with these, if its schema and the policy take them.', {
      max: INPUT_CHARS_MAX,
    }),
  ),
  why: optionalField(textField('The reason, kept in the log and told to the model.', { max: 2_000 })),
  role: optionalField(textField('In which of your roles, where a rule wants one.', { min: 1, max: 200 })),
})
const ANSWER = objectField({
  session,
  call,
  content: textField('The answer.', { max: INPUT_CHARS_MAX }),
  ok: optionalField(flagField('false: the call failed, and content says why.')),
})
const INTERRUPT = objectField({ session, mode: optionalField(choiceField('Default: stop.', ['stop', 'pause'])) })

export const TOOLS: readonly ServerTool[] = [
  {
    name: 'start',
    role: 'operator',
    description: 'Starts a new session of an agent with a first message. It works on its own; follow it with `events`.',
    ...toolParts(START, RESULT_SCHEMAS.start, startSession),
  },
  {
    name: 'send',
    role: 'operator',
    description: 'Sends a message to a session.',
    ...toolParts(SEND, RESULT_SCHEMAS.send, sendInput),
  },
  {
    name: 'events',
    role: 'viewer',
    description: 'The events of a session after a position, and how it stands. With wait_ms it waits for news.',
    ...toolParts(EVENTS, RESULT_SCHEMAS.events, pollEvents),
  },
  {
    name: 'pending',
    role: 'viewer',
    description: 'What waits for a person: calls to decide, with their digests, and questions to answer.',
    ...toolParts(PENDING, RESULT_SCHEMAS.pending, listPending),
  },
  {
    name: 'decide',
    role: 'approver',
    description:
      'Allows or denies one pending call exactly as `pending` showed it, by its digest, or allows it with other arguments.',
    ...toolParts(DECIDE, RESULT_SCHEMAS.decide, decideCall),
  },
  {
    name: 'answer',
    role: 'operator',
    description: 'Answers a question of a session, or another call that is answered from outside.',
    ...toolParts(ANSWER, RESULT_SCHEMAS.answer, answerCall),
  },
  {
    name: 'interrupt',
    role: 'operator',
    description: 'Stops a session, or pauses it.',
    ...toolParts(INTERRUPT, RESULT_SCHEMAS.interrupt, interruptSession),
  },
]

function toolParts<T>(
  fields: ObjectField<T>,
  output: ResultSchema,
  run: (place: ToolCallContext, args: T) => Promise<ResultFields>,
): Pick<ServerTool, 'fields' | 'output' | 'run'> {
  // The cast is sound: `run` is only called with arguments that these fields have checked.
  return { fields, output, run: run as ServerTool['run'] }
}

/**
 * With a key the session's id is derived from it, so a retry after a crash finds the session and sends the message if
 * it is missing.
 */
async function startSession({ desk, caller }: ToolCallContext, args: Infer<typeof START>): Promise<ResultFields> {
  const named = args.key === undefined ? {} : { id: idFromKey(caller, args.key) }
  const made = await desk.start({ ...named, ...(args.agent === undefined ? {} : { agent: args.agent }) }, caller)
  const { seq, duplicate } = await made.send(args.input, { by: caller.name, ...named })
  return { session: made.id, seq, duplicate }
}

async function sendInput(place: ToolCallContext, args: Infer<typeof SEND>): Promise<ResultFields> {
  const { caller } = place
  const named = args.key === undefined ? {} : { id: idFromKey(caller, args.key) }
  const reached = await requireSession(place, args.session)
  const { seq, duplicate, queued, elsewhere } = await reached.send(args.input, {
    when: args.when ?? 'next',
    by: caller.name,
    ...named,
  })
  return { session: args.session, seq, duplicate, queued, ...(elsewhere === undefined ? {} : { elsewhere }) }
}

async function pollEvents(place: ToolCallContext, args: Infer<typeof EVENTS>): Promise<ResultFields> {
  const { after = 0, limit = EVENTS_MAX, wait_ms: waitMs = 0 } = args
  const reached = await requireSession(place, args.session)
  await waitForNews(reached, after, waitMs, place.signal)
  const { events: found, damaged } = await reached.events({ after, limit })
  const { status, phase, waitsFor, outcome, seq: head, text: said } = await reached.status()
  const kept = takeFitting(found)
  const last = found[kept.length - 1]?.seq ?? after
  const stands = { status, phase, waitsFor, outcome, ...(RESTS.has(phase) ? { text: said } : {}) }
  return { session: args.session, events: kept, next: last, head, ...stands, ...(damaged ? { damaged } : {}) }
}

const RESTS: ReadonlySet<string> = new Set(['idle', 'waiting', 'closed'])

/**
 * Waits until there is an event after this one, or the session rests. The state is read less often, because that costs
 * more.
 */
async function waitForNews(reached: Session, after: number, waitMs: number, signal: AbortSignal): Promise<void> {
  const until = performance.now() + waitMs
  for (let look = 0; performance.now() < until && !signal.aborted; look++) {
    const { events: found, damaged } = await reached.events({ after, limit: 1 })
    if (found.length > 0 || damaged) return
    if (look % LOOKS_A_STATE === 0 && RESTS.has((await reached.status()).phase)) return
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}

async function listPending(place: ToolCallContext, args: Infer<typeof PENDING>): Promise<ResultFields> {
  const { desk, caller } = place
  if (args.session !== undefined) await requireSession(place, args.session)
  const all = await desk.pending(caller)
  const found = args.session === undefined ? all : all.filter(({ path }) => path.includes(args.session ?? ''))
  const kept = takeFitting(found.map(describePending))
  return { pending: kept, more: found.length - kept.length }
}

/** Leaves out the rendered preview. `cut`: the arguments are not shown in full; the call's event has them. */
function describePending(each: PendingCall): object {
  const { preview, labels: _host, ...shown } = each
  const { trouble, warnings } = preview
  return { ...shown, trouble, warnings, ...(isCut(each.args) ? { cut: true } : {}) }
}

async function decideCall(place: ToolCallContext, args: Infer<typeof DECIDE>): Promise<ResultFields> {
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
  const reached = await requireSession(place, args.session)
  const { seq, duplicate } = await reached.decide({
    callId: args.call,
    allow: args.allow,
    digest: args.digest,
    by: caller.name,
    ...(args.args === undefined ? {} : { args: parseEditedArgs(args.args) }),
    ...(args.why === undefined ? {} : { why: args.why }),
    ...(role === undefined ? {} : { role }),
  })
  return { session: args.session, call: args.call, allow: args.allow, seq, duplicate }
}

function parseEditedArgs(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    throw new Fault('invalid_input', 'The arguments of an edit are written as JSON, such as {"path": "a.txt"}.')
  }
}

async function answerCall(place: ToolCallContext, args: Infer<typeof ANSWER>): Promise<ResultFields> {
  const reached = await requireSession(place, args.session)
  const { content, ok = true } = args
  const { seq, duplicate } = await reached.answer({ callId: args.call, content, ok, by: place.caller.name })
  return { session: args.session, call: args.call, seq, duplicate }
}

async function interruptSession(
  place: ToolCallContext,
  { session: id, mode = 'stop' }: Infer<typeof INTERRUPT>,
): Promise<ResultFields> {
  const { seq, duplicate } = await (await requireSession(place, id)).interrupt(mode, { by: place.caller.name })
  return { session: id, mode, seq, duplicate }
}

async function requireSession({ desk, caller }: ToolCallContext, id: string): Promise<Session> {
  const found = await desk.session(id, caller)
  if (found === null) throw missingSessionFault(id)
  return found
}

/** Derived from the caller and the key, so that the keys of two callers never collide. */
function idFromKey({ name }: Caller, own: string): string {
  return `mcp-${createHash('sha256')
    .update(JSON.stringify([name, own]))
    .digest('hex')
    .slice(0, 32)}`
}
