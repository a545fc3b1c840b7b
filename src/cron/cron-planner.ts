// The planner `cron`. A job is a session: its messages are changes, its next time is a wake in the store, and its replies
// hold the job's state. It runs nothing and keeps nothing; its calls begin the runs (run-tools.ts).
import type { Json } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Message } from '../kernel/transcript.ts'
import { plannerGraph, type Graph } from '../graphs/graph-definition.ts'
import type { Reply } from '../ports/model.ts'
import { agentApprovals } from '../runtime/state/agent-approvals.ts'
import type { Agent } from '../runtime/state/agent.ts'
import { completeLimits } from '../runtime/state/limits.ts'
import { Toolbox } from '../runtime/state/toolbox.ts'
import type { SharedAgentOptions } from '../sessions/agent.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { parsePolicy } from '../tools/policy/policy.ts'
import { textOf } from '../view/shown-text.ts'
import { isObject, parseJson } from '../view/untrusted-json.ts'
import {
  applyCronChange,
  applyRunOutcome,
  CRON_RUN,
  CRON_WAKE,
  type CronOutcome,
  type CronState,
  EMPTY_JOB,
  planCronCalls,
  type RunOutcome,
  takeDueTimes,
} from './cron-job.ts'
import { readCronMessage, readCronState } from './read-job.ts'
import { runTool, wakeTool } from './run-tools.ts'

export const CRON = 'cron'

/** For `graphs` of a harness. Every process that drives jobs needs it. */
export function cronPlanner(): Graph {
  return plannerGraph(CRON, cronAgent)
}

/** A burst of changes and runs is answered in one run. */
const TURNS_MAX = 500
/** The last reply holds the whole state, so the rest of the log need not be read again. */
const MESSAGES_KEPT = 200

function cronAgent(shared: SharedAgentOptions): Agent {
  return {
    name: CRON,
    model: {
      name: CRON,
      call: async ({ messages, seq }, context) =>
        cronReply(answerCron(messages, context.now?.() ?? context.clock.now()), seq),
    },
    tools: new Toolbox({ tools: [wakeTool(), runTool(shared)], plan: false, clock: shared.clock }),
    instructions: '',
    limits: completeLimits({ modelRequests: TURNS_MAX, wakes: TURNS_MAX }),
    ...agentApprovals(shared.approvals),
    // The rules of the host are for what its agents do. A job begins a run, and nothing else.
    policy: parsePolicy({ rules: [] }),
    output: null,
    budget: null,
    children: [],
    planner: {
      name: CRON,
      keeps: MESSAGES_KEPT,
      verdict: ({ parts, calls }) =>
        calls.length > 0 ? { type: 'continue' } : { type: 'final', output: parseJson(textOf(parts)) ?? null },
    },
  }
}

/** A reply of the planner. Its answers are for the messages since the last reply, by the ids of their changes. */
export type CronReply = {
  readonly state: CronState
  readonly answers: Readonly<Record<string, CronOutcome>>
}
type PlannedReply = CronReply & { readonly calls: ReturnType<typeof planCronCalls> }

function cronReply({ state, answers, calls }: PlannedReply, seq: number): Reply {
  return {
    type: 'reply',
    parts: [{ type: 'text', text: canonicalJson({ state, answers }) }],
    calls: calls.map(({ tool, args }, i) => ({ id: `call_${seq}_${i}`, tool, args: JSON.stringify(args) })),
    finish: calls.length > 0 ? 'calls' : 'stop',
    usage: null,
  }
}

function answerCron(messages: readonly Message[], now: number): PlannedReply {
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  const reply = messages[last]
  let state = (reply?.role === 'assistant' ? cronReplyIn(textOf(reply.parts))?.state : null) ?? EMPTY_JOB
  const answers = new Map<string, CronOutcome>()
  for (const message of messages.slice(last + 1)) {
    if (message.role === 'tool') state = applyCallResult(state, message, reply, now)
    if (message.role !== 'user') continue
    const said = textOf(message.parts)
    // An interrupt before the message has dropped the wakes of the session.
    state = { ...state, wakes: [] }
    const read = readMessage(said, state)
    if ('type' in read) answers.set(`#${message.seq}`, read)
    else if (!answers.has(read.id)) {
      const earlier = read.again ? findEarlierAnswer(messages, read.id) : undefined
      const applied = earlier ? { state, outcome: earlier } : applyCronChange(state, read.cron, now)
      state = applied.state
      answers.set(read.id, applied.outcome)
    }
  }
  state = takeDueTimes(state, now)
  return { state, answers: Object.fromEntries(answers), calls: planCronCalls(state, now) }
}

function readMessage(said: string, { job }: CronState) {
  try {
    const message = readCronMessage(parseJson(said))
    const { cron } = message
    if (cron.action !== 'set' || job === null || cron.job.name === job.name) return message
    throw new Fault('invalid_input', `This session is the job "${job.name}": open another for "${cron.job.name}".`)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { type: 'Refused', message: error.message } as const
  }
}

function findEarlierAnswer(messages: readonly Message[], id: string): CronOutcome | undefined {
  for (const message of messages.toReversed()) {
    const answers = message.role === 'assistant' ? cronReplyIn(textOf(message.parts))?.answers : undefined
    if (answers && Object.hasOwn(answers, id)) return answers[id]
  }
  return undefined
}

type ToolMessage = Extract<Message, { role: 'tool' }>

function applyCallResult(
  state: CronState,
  { tool, call, ok, content }: ToolMessage,
  reply: Message | undefined,
  now: number,
): CronState {
  const asked = reply?.role === 'assistant' ? reply.calls.find(({ key }) => key === call)?.args : undefined
  const args = isObject(asked) ? asked : {}
  if (tool === CRON_WAKE) {
    const { due } = args
    return ok && typeof due === 'number' ? { ...state, wakes: [...state.wakes, due] } : state
  }
  const { at } = args
  if (tool !== CRON_RUN || typeof at !== 'number') return state
  const text = typeof content === 'string' ? content : ''
  const outcome = ok ? (parseJson(text) as unknown as RunOutcome) : null
  return applyRunOutcome(state, outcome ?? { type: 'failed', at, ended: [], reason: text.slice(0, 300) }, now)
}

/** Null if the text is not a reply of this planner. */
export function cronReplyIn(said: string): CronReply | null {
  const value: Json | undefined = parseJson(said)
  if (!isObject(value) || !isObject(value['answers'])) return null
  const state = readCronState(value['state'])
  return state && { state, answers: value['answers'] as unknown as CronReply['answers'] }
}
