// The planner `board`. A shared board is a session: its messages are changes, and its replies hold the board and the
// outcome of each change. It runs nothing and keeps nothing: the same messages give the same answer in any process.
import { completeLimits } from '../runtime/state/limits.ts'
import { Toolbox } from '../runtime/state/toolbox.ts'
import type { Agent } from '../runtime/state/agent.ts'
import { plannerGraph, type Graph } from '../graphs/graph-definition.ts'
import type { Json } from '../kernel/content.ts'
import type { Message } from '../kernel/transcript.ts'
import type { Reply } from '../ports/model.ts'
import type { SharedAgentOptions } from '../sessions/agent.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { TELL, tellTool } from '../tools/agents/order-tools.ts'
import {
  choiceField,
  flagField,
  integerField,
  listField,
  objectField,
  optionalField,
  textField,
} from '../tools/core/argument-schema.ts'
import { parsePolicy } from '../tools/policy/policy.ts'
import { isObject, parseJson } from '../view/untrusted-json.ts'
import { textOf } from '../view/shown-text.ts'
import { CARDS_MAX } from './board.ts'
import {
  applyBoardChange,
  type BoardChange,
  type BoardOutcome,
  type EndedRun,
  type SharedBoard,
  readSharedBoard,
  tellRestingMembers,
  endMemberRun,
} from './shared-board.ts'

export const BOARD = 'board'

/** For `graphs` of a harness. Every process whose members use a board needs it. */
export function boardPlanner(): Graph {
  return plannerGraph(BOARD, boardAgent)
}

function boardAgent(shared: SharedAgentOptions): Agent {
  return {
    name: BOARD,
    model: { name: BOARD, call: async ({ messages, seq }) => boardReply(answerChanges(messages), seq) },
    tools: new Toolbox({ tools: [tellTool()], plan: false, clock: shared.clock }),
    instructions: '',
    limits: completeLimits({ modelRequests: 10_000 }),
    approvalMs: null,
    policy: parsePolicy({ rules: [] }),
    environment: shared.approvals?.environment ?? null,
    output: null,
    budget: null,
    children: [],
    planner: {
      name: BOARD,
      leads: true,
      verdict: ({ parts, calls }) =>
        calls.length > 0 ? { type: 'continue' } : { type: 'final', output: parseJson(textOf(parts)) ?? null },
    },
  }
}

/** A reply of the planner. Its answers are for the messages since the last reply, by the ids of their changes. */
export type BoardReply = {
  readonly board: SharedBoard | null
  readonly answers: Readonly<Record<string, BoardOutcome>>
}

/** Tells resting members about free cards, in the same commit as the reply. */
function boardReply({ board, answers }: BoardReply, seq: number): Reply {
  const next = board === null ? { board, told: [] } : tellRestingMembers(board)
  const parts = [{ type: 'text', text: canonicalJson({ board: next.board, answers }) }] as const
  const calls = next.told.map(({ session = '' }, i) => {
    return { id: `call_${seq}_${i}`, tool: TELL, args: JSON.stringify({ session, message: GO_ON }) }
  })
  return { type: 'reply', parts, calls, finish: calls.length > 0 ? 'calls' : 'stop', usage: null }
}

export const GO_ON = `A card of the ${BOARD} is free. Claim it and go on.`

export function answerChanges(messages: readonly Message[]): BoardReply {
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  const reply = messages[last]
  let board = reply?.role === 'assistant' ? (boardReplyIn(textOf(reply.parts))?.board ?? null) : null
  const answers = new Map<string, BoardOutcome>()
  for (const message of messages.slice(last + 1)) {
    if (message.role !== 'user') continue
    const ended = readEndedRun(textOf(message.parts))
    if (ended !== null) {
      if (board !== null) board = endMemberRun(board, ended)
      continue
    }
    const read = readChange(textOf(message.parts))
    if ('unreadable' in read) answers.set(`#${message.seq}`, unreadableOutcome(read.unreadable))
    else if (!answers.has(read.id)) {
      const before = read.again === true ? findEarlierAnswer(messages, read.id) : null
      const next = before === null ? applyBoardChange(board, read) : { board, outcome: before }
      board = next.board
      answers.set(read.id, next.outcome)
    }
  }
  return { board, answers: Object.fromEntries(answers) }
}

/** The outcome of a change that was sent again: an earlier reply may have answered it. */
function findEarlierAnswer(messages: readonly Message[], id: string): BoardOutcome | null {
  for (const message of messages.toReversed()) {
    const answers = message.role === 'assistant' ? boardReplyIn(textOf(message.parts))?.answers : undefined
    if (answers && Object.hasOwn(answers, id)) return answers[id] ?? null
  }
  return null
}

function unreadableOutcome(what: string): BoardOutcome {
  return { type: 'Refused', why: 'Unreadable', message: `The message is no change of a board: ${what}` }
}

/** Null if the text is not a reply of this planner. */
export function boardReplyIn(said: string): BoardReply | null {
  const value = parseJson(said)
  if (!isObject(value) || !isObject(value['answers'])) return null
  return { board: readSharedBoard(value['board']), answers: value['answers'] as unknown as BoardReply['answers'] }
}

const NAME_CHARS_MAX = 200
const name = textField('', { min: 1, max: NAME_CHARS_MAX })
const card = textField('', { min: 1, max: 40 })
const child = objectField({ parent: textField('', { min: 1, max: 512 }), task: name })
const member = objectField({
  name,
  role: choiceField('', ['lead', 'worker']),
  session: optionalField(name),
  child: optionalField(child),
})
const task = objectField({
  text: textField('', { max: 10_000 }),
  needs: optionalField(listField('', card, { max: CARDS_MAX })),
})
const cards = listField('', task, { max: 10_000 })
const envelope = {
  id: name,
  by: name,
  version: optionalField(integerField('')),
  again: optionalField(flagField('')),
  ended: optionalField(
    listField('', objectField({ card, attempt: integerField('', { min: 1 }), why: textField('', { max: 300 }) }), {
      max: CARDS_MAX,
    }),
  ),
}
const attempt = integerField('', { min: 1 })
const claimEndSchema = (action: 'complete' | 'fail' | 'release') =>
  objectField({
    ...envelope,
    action: choiceField('', [action]),
    card,
    attempt,
    note: optionalField(textField('', { max: 10_000 })),
  })
const CHANGES = {
  open: objectField({
    ...envelope,
    action: choiceField('', ['open']),
    members: listField('', member),
    cards,
    attemptsMax: optionalField(integerField('', { min: 1, max: 100 })),
  }),
  add: objectField({ ...envelope, action: choiceField('', ['add']), cards }),
  join: objectField({ ...envelope, action: choiceField('', ['join']), member }),
  leave: objectField({ ...envelope, action: choiceField('', ['leave']), name }),
  seat: objectField({ ...envelope, action: choiceField('', ['seat']), session: name }),
  claim: objectField({ ...envelope, action: choiceField('', ['claim']), card: optionalField(card) }),
  complete: claimEndSchema('complete'),
  fail: claimEndSchema('fail'),
  release: claimEndSchema('release'),
  look: objectField({ ...envelope, action: choiceField('', ['look']) }),
}

const id = textField('', { min: 1, max: 512 })
const runEnded = objectField({
  run_ended: objectField({ session: id, parent: id, task: optionalField(name), outcome: name }),
})

/** The harness's message about a member whose run has ended; null for any other message. */
function readEndedRun(said: string): EndedRun | null {
  const checked = runEnded.check(parseJson(said))
  return checked.issues ? null : checked.value.run_ended
}

/** Anyone may have sent the message, so its content is checked. */
function readChange(said: string): BoardChange | { readonly unreadable: string } {
  const value: Json | undefined = parseJson(said)
  const action = isObject(value) ? value['action'] : undefined
  const known = typeof action === 'string' && Object.hasOwn(CHANGES, action)
  if (!known) return { unreadable: `"action" must be one of ${Object.keys(CHANGES).join(', ')}.` }
  const checked = CHANGES[action as keyof typeof CHANGES].check(value)
  if (!checked.issues) return checked.value
  const [issue] = checked.issues
  return { unreadable: `${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}.` }
}
