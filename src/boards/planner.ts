// The planner `board`: a shared board is a session whose messages are changes, and whose replies hold the board and what became of each
// change. It runs nothing and keeps nothing: asked the same again, also by another process, it says the same.
import { limitsOf } from '../effects/limits.ts'
import { Toolbox } from '../effects/toolbox.ts'
import type { Agent } from '../engine/wiring.ts'
import { AS_AGENT, type Graph } from '../graphs/definition.ts'
import type { Json } from '../kernel/content.ts'
import type { Message } from '../kernel/transcript.ts'
import type { Reply } from '../ports/model.ts'
import type { Shared } from '../sessions/agent.ts'
import { canonicalJson } from '../tools/core/canonical.ts'
import { TELL, tellTool } from '../tools/agents/orders.ts'
import { choice, flag, integer, list, object, optional, text } from '../tools/core/schema.ts'
import { parsePolicy } from '../tools/policy/policy.ts'
import { isObject, parsed } from '../view/json.ts'
import { textOf } from '../view/text.ts'
import { CARDS_MAX } from './board.ts'
import {
  applied,
  type BoardChange,
  type BoardOutcome,
  type EndedRun,
  type SharedBoard,
  sharedIn,
  tellResting,
  withEndedRun,
} from './shared.ts'

export const BOARD = 'board'

/** For `graphs` of a harness: every process whose members use a board has it. */
export function boardPlanner(): Graph {
  return {
    name: BOARD,
    description: '',
    channels: {},
    nodes: new Map(),
    edges: [],
    limits: {},
    visitsMax: null,
    onInterrupt: null,
    onFailure: new Map(),
    input: null,
    [AS_AGENT]: boardAgent,
  }
}

function boardAgent(shared: Shared): Agent {
  return {
    name: BOARD,
    model: { name: BOARD, call: async ({ messages, seq }) => replyOf(answersTo(messages), seq) },
    tools: new Toolbox({ tools: [tellTool()], plan: false, clock: shared.clock }),
    instructions: '',
    limits: limitsOf({ modelRequests: 10_000 }),
    approvalMs: null,
    policy: parsePolicy({ rules: [] }),
    environment: shared.environment ?? null,
    output: null,
    budget: null,
    children: [],
    planner: {
      name: BOARD,
      leads: true,
      verdict: ({ parts, calls }) =>
        calls.length > 0 ? { type: 'continue' } : { type: 'final', output: parsed(textOf(parts)) ?? null },
    },
  }
}

/** What a reply of the planner says. The answers are those to the messages since its last reply, by the ids of their changes. */
export type BoardReply = {
  readonly board: SharedBoard | null
  readonly answers: Readonly<Record<string, BoardOutcome>>
}

/** Members that rest are told of cards that are free, in the commit of the reply that says so. */
function replyOf({ board, answers }: BoardReply, seq: number): Reply {
  const next = board === null ? { board, told: [] } : tellResting(board)
  const parts = [{ type: 'text', text: canonicalJson({ board: next.board, answers }) }] as const
  const calls = next.told.map(({ session = '' }, i) => {
    return { id: `call_${seq}_${i}`, tool: TELL, args: JSON.stringify({ session, message: GO_ON }) }
  })
  return { type: 'reply', parts, calls, finish: calls.length > 0 ? 'calls' : 'stop', usage: null }
}

export const GO_ON = `A card of the ${BOARD} is free. Claim it and go on.`

export function answersTo(messages: readonly Message[]): BoardReply {
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  const reply = messages[last]
  let board = reply?.role === 'assistant' ? (boardReplyIn(textOf(reply.parts))?.board ?? null) : null
  const answers = new Map<string, BoardOutcome>()
  for (const message of messages.slice(last + 1)) {
    if (message.role !== 'user') continue
    const ended = endedIn(textOf(message.parts))
    if (ended !== null) {
      if (board !== null) board = withEndedRun(board, ended)
      continue
    }
    const read = changeIn(textOf(message.parts))
    if ('unreadable' in read) answers.set(`#${message.seq}`, unreadable(read.unreadable))
    else if (!answers.has(read.id)) {
      const before = read.again === true ? answeredIn(messages, read.id) : null
      const next = before === null ? applied(board, read) : { board, outcome: before }
      board = next.board
      answers.set(read.id, next.outcome)
    }
  }
  return { board, answers: Object.fromEntries(answers) }
}

/** What became of a change that is said again: it may have been read meanwhile. */
function answeredIn(messages: readonly Message[], id: string): BoardOutcome | null {
  for (const message of messages.toReversed()) {
    const answers = message.role === 'assistant' ? boardReplyIn(textOf(message.parts))?.answers : undefined
    if (answers && Object.hasOwn(answers, id)) return answers[id] ?? null
  }
  return null
}

function unreadable(what: string): BoardOutcome {
  return { type: 'Refused', why: 'Unreadable', message: `The message is no change of a board: ${what}` }
}

/** Null for a text that is no reply of this planner. */
export function boardReplyIn(said: string): BoardReply | null {
  const value = parsed(said)
  if (!isObject(value) || !isObject(value['answers'])) return null
  return { board: sharedIn(value['board']), answers: value['answers'] as unknown as BoardReply['answers'] }
}

const NAME_CHARS_MAX = 200
const name = text('', { min: 1, max: NAME_CHARS_MAX })
const card = text('', { min: 1, max: 40 })
const child = object({ parent: text('', { min: 1, max: 512 }), task: name })
const member = object({
  name,
  role: choice('', ['lead', 'worker']),
  session: optional(name),
  child: optional(child),
})
const task = object({ text: text('', { max: 10_000 }), needs: optional(list('', card, { max: CARDS_MAX })) })
const cards = list('', task, { max: 10_000 })
const envelope = {
  id: name,
  by: name,
  version: optional(integer('')),
  again: optional(flag('')),
  ended: optional(
    list('', object({ card, attempt: integer('', { min: 1 }), why: text('', { max: 300 }) }), { max: CARDS_MAX }),
  ),
}
const attempt = integer('', { min: 1 })
const held = (action: 'complete' | 'fail' | 'release') =>
  object({ ...envelope, action: choice('', [action]), card, attempt, note: optional(text('', { max: 10_000 })) })
const CHANGES = {
  open: object({
    ...envelope,
    action: choice('', ['open']),
    members: list('', member),
    cards,
    attemptsMax: optional(integer('', { min: 1, max: 100 })),
  }),
  add: object({ ...envelope, action: choice('', ['add']), cards }),
  join: object({ ...envelope, action: choice('', ['join']), member }),
  leave: object({ ...envelope, action: choice('', ['leave']), name }),
  seat: object({ ...envelope, action: choice('', ['seat']), session: name }),
  claim: object({ ...envelope, action: choice('', ['claim']), card: optional(card) }),
  complete: held('complete'),
  fail: held('fail'),
  release: held('release'),
  look: object({ ...envelope, action: choice('', ['look']) }),
}

const id = text('', { min: 1, max: 512 })
const runEnded = object({
  run_ended: object({ session: id, parent: id, task: optional(name), outcome: name }),
})

/** What the harness says of a member whose run has ended; null for any other message. */
function endedIn(said: string): EndedRun | null {
  const checked = runEnded.check(parsed(said))
  return checked.issues ? null : checked.value.run_ended
}

/** A message may be anything that somebody sent to the session. */
function changeIn(said: string): BoardChange | { readonly unreadable: string } {
  const value: Json | undefined = parsed(said)
  const action = isObject(value) ? value['action'] : undefined
  const known = typeof action === 'string' && Object.hasOwn(CHANGES, action)
  if (!known) return { unreadable: `"action" must be one of ${Object.keys(CHANGES).join(', ')}.` }
  const checked = CHANGES[action as keyof typeof CHANGES].check(value)
  if (!checked.issues) return checked.value
  const [issue] = checked.issues
  return { unreadable: `${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}.` }
}
