// Delegation: plan, execute, review, execute again if there are findings, then finalize. Child agents do the work, and
// this graph alone decides how often. If it is stopped, finalize reports how far it came.
import type { Graph } from '../../graphs/graph-definition.ts'
import { last, type StateOf } from '../../graphs/channel.ts'
import { withState } from '../../graphs/with-state.ts'
import { END, START } from '../../graphs/planner-node.ts'
import { graphTool } from '../../graphs/graph-tool.ts'
import { integerField, objectField, optionalField, textField } from '../../tools/core/argument-schema.ts'
import type { TypedTool } from '../../tools/core/tool.ts'
import { countNoun } from '../../view/shown-text.ts'
import { isBlank } from '../prompt-block.ts'
import { delegateExecuteTask, delegatePlanTask, readDelegateReview, delegateReviewTask } from './delegate-agents.ts'

export { delegateAgents } from './delegate-agents.ts'

const REVISIONS = 2
const REVISIONS_MAX = 10

const CHANNELS = {
  goal: last(''),
  /** How often the work may be done again after a review. */
  max_revisions: last(REVISIONS),
  plan: last(''),
  /** The answer of the last execution. */
  result: last(''),
  executions: last(0),
  reviews: last(0),
  revisions: last(0),
  /** The findings of the last review. */
  findings: last<readonly string[]>([]),
  approved: last(false),
  /** The reviewer did not approve, and no revision was left. */
  forced: last(false),
  cancelled: last(false),
  /** The outcome in one sentence. */
  summary: last(''),
}
/** The state of a delegation: the plan, what was done, and the review. */
export type DelegateState = StateOf<typeof CHANNELS>

const { node, agentNode, graph } = withState(CHANNELS)

const DESCRIPTION =
  'Hands over a task that is worth a plan and a review: one agent plans it, one does it, one reviews it and sends it back with findings. Not for what one call or one answer does.'

/** `name` is its name as an agent. The names of its agents begin with `prefix`. */
export function delegateGraph({
  name = 'delegate',
  prefix = 'delegate_',
}: {
  readonly name?: string
  readonly prefix?: string
} = {}): Graph {
  return graph({
    name,
    description: DESCRIPTION,
    input: (goal) => ({ goal }),
    nodes: {
      plan: agentNode({
        description: 'says what is to be done',
        agent: `${prefix}planner`,
        retries: 1,
        task: (state) => delegatePlanTask(checkGoal(state)),
        take: (plan) => ({ ...ANEW, plan }),
      }),
      execute: agentNode({
        description: 'does it, and mends what the review found',
        agent: `${prefix}executor`,
        task: delegateExecuteTask,
        take: (result, { executions, findings, revisions }) => ({
          result,
          executions: executions + 1,
          revisions: findings.length > 0 ? revisions + 1 : revisions,
        }),
      }),
      review: agentNode({
        description: 'approves it, or says what must be changed',
        agent: `${prefix}reviewer`,
        task: delegateReviewTask,
        take: takeReview,
      }),
      finalize: node({
        description: 'says how it ended',
        effect: 'read',
        reads: ({ approved, forced, executions, findings }) => ({ approved, forced, executions, findings }),
        run: summarizeEnd,
      }),
    },
    edges: [
      [START, 'plan'],
      ['plan', 'execute'],
      ['execute', 'review'],
      { from: 'review', to: ['execute', 'finalize'], by: ({ approved }) => (approved ? 'finalize' : 'execute') },
      ['finalize', END],
    ],
    onInterrupt: 'finalize',
  })
}

/**
 * The same workflow as a tool of a model. The harness needs the graph in `graphs`, and `delegateAgents` in `subagents`.
 */
export function delegateTool(): TypedTool<'delegate', { readonly goal: string; readonly max_revisions?: number }> {
  return graphTool(
    { name: 'delegate' },
    {
      name: 'delegate',
      description: DESCRIPTION,
      input: objectField({
        goal: textField('The whole task, complete in itself, and how to see that it is done.', { min: 1 }),
        max_revisions: optionalField(
          integerField(`How often the work may be sent back. Default ${REVISIONS}.`, { max: REVISIONS_MAX }),
        ),
      }),
    },
  )
}

/** A plan begins a delegation and clears an earlier one. */
const ANEW = {
  result: '',
  executions: 0,
  reviews: 0,
  revisions: 0,
  findings: [],
  approved: false,
  forced: false,
  cancelled: false,
  summary: '',
} as const

function checkGoal({ goal, max_revisions: most }: DelegateState): string {
  if (typeof goal !== 'string' || isBlank(goal)) throw new TypeError('say what is to be done: {"goal": "…"}')
  if (!Number.isSafeInteger(most) || most < 0 || most > REVISIONS_MAX)
    throw new RangeError(`max_revisions must be a whole number from 0 to ${REVISIONS_MAX}`)
  return goal
}

function takeReview(answer: string, { reviews, revisions, max_revisions: most }: DelegateState) {
  const { approved, findings } = readDelegateReview(answer)
  const forced = !approved && revisions >= most
  return { reviews: reviews + 1, approved: approved || forced, forced, findings: approved ? [] : findings }
}

/** Only a stop leads here before the work was approved. */
function summarizeEnd({
  approved,
  forced,
  executions,
  findings,
}: Pick<DelegateState, 'approved' | 'forced' | 'executions' | 'findings'>) {
  const times = countNoun(executions, 'execution')
  if (!approved) return { cancelled: true, summary: `cancelled after ${times}` }
  const open = `approval was forced after ${times}; findings left open: ${findings.length}`
  return { cancelled: false, summary: forced ? open : `approved after ${times}` }
}
