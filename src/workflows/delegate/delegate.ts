// Delegation: plan, execute, review and, with findings, execute again; then finalize. Child agents do the work, and this graph alone
// decides how often. Stopped on the way, finalize says how far it came.
import type { Graph } from '../../graphs/definition.ts'
import { last, type StateOf } from '../../graphs/channel.ts'
import { withState } from '../../graphs/graph.ts'
import { END, START } from '../../graphs/step.ts'
import { graphTool } from '../../graphs/tool.ts'
import { integer, object, optional, text } from '../../tools/core/schema.ts'
import type { TypedTool } from '../../tools/core/tool.ts'
import { counted } from '../../view/text.ts'
import { isBlank } from '../block.ts'
import { executeTask, planTask, reviewIn, reviewTask } from './agents.ts'

export { delegateAgents } from './agents.ts'

const REVISIONS = 2
const REVISIONS_MAX = 10

const CHANNELS = {
  goal: last(''),
  /** How often the work may be done again after a review. */
  max_revisions: last(REVISIONS),
  plan: last(''),
  /** What the last execution answered. */
  result: last(''),
  executions: last(0),
  reviews: last(0),
  revisions: last(0),
  /** Of the last review. */
  findings: last<readonly string[]>([]),
  approved: last(false),
  /** The reviewer did not approve, and no revision was left. */
  forced: last(false),
  cancelled: last(false),
  /** How it ended, in a sentence. */
  summary: last(''),
}
export type DelegateState = StateOf<typeof CHANNELS>

const { node, agentNode, graph } = withState(CHANNELS)

const DESCRIPTION =
  'Hands over a task that is worth a plan and a review: one agent plans it, one does it, one reviews it and sends it back with findings. Not for what one call or one answer does.'

/** `name` is what it is called as an agent. The names of its agents begin with `prefix`. */
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
        task: (state) => planTask(asked(state)),
        take: (plan) => ({ ...ANEW, plan }),
      }),
      execute: agentNode({
        description: 'does it, and mends what the review found',
        agent: `${prefix}executor`,
        task: executeTask,
        take: (result, { executions, findings, revisions }) => ({
          result,
          executions: executions + 1,
          revisions: findings.length > 0 ? revisions + 1 : revisions,
        }),
      }),
      review: agentNode({
        description: 'approves it, or says what must be changed',
        agent: `${prefix}reviewer`,
        task: reviewTask,
        take: reviewed,
      }),
      finalize: node({
        description: 'says how it ended',
        effect: 'read',
        reads: ({ approved, forced, executions, findings }) => ({ approved, forced, executions, findings }),
        run: ended,
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

/** The same as a tool of a model. The harness needs the graph in `graphs`, and `delegateAgents` among its `subagents`. */
export function delegateTool(): TypedTool<'delegate', { readonly goal: string; readonly max_revisions?: number }> {
  return graphTool(
    { name: 'delegate' },
    {
      name: 'delegate',
      description: DESCRIPTION,
      input: object({
        goal: text('The whole task, complete in itself, and how to see that it is done.', { min: 1 }),
        max_revisions: optional(
          integer(`How often the work may be sent back. Default ${REVISIONS}.`, { max: REVISIONS_MAX }),
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

function asked({ goal, max_revisions: most }: DelegateState): string {
  if (typeof goal !== 'string' || isBlank(goal)) throw new TypeError('say what is to be done: {"goal": "…"}')
  if (!Number.isSafeInteger(most) || most < 0 || most > REVISIONS_MAX)
    throw new RangeError(`max_revisions must be a whole number from 0 to ${REVISIONS_MAX}`)
  return goal
}

function reviewed(answer: string, { reviews, revisions, max_revisions: most }: DelegateState) {
  const { approved, findings } = reviewIn(answer)
  const forced = !approved && revisions >= most
  return { reviews: reviews + 1, approved: approved || forced, forced, findings: approved ? [] : findings }
}

/** Only a stop comes here before the work was approved. */
function ended({
  approved,
  forced,
  executions,
  findings,
}: Pick<DelegateState, 'approved' | 'forced' | 'executions' | 'findings'>) {
  const times = counted(executions, 'execution')
  if (!approved) return { cancelled: true, summary: `cancelled after ${times}` }
  const open = `approval was forced after ${times}; findings left open: ${findings.length}`
  return { cancelled: false, summary: forced ? open : `approved after ${times}` }
}
