// The agent of a queue: a planner that answers the messages of its session with calls, one for each item. Its code is
// loaded with the first message.
import type { Json } from '../kernel/content.ts'
import type { CompleteStore } from '../ports/store.ts'
import type { Clock } from '../ports/system.ts'
import type { Agent } from '../runtime/state/agent.ts'
import { completeLimits } from '../runtime/state/limits.ts'
import { Toolbox } from '../runtime/state/toolbox.ts'
import { output } from '../tools/core/tool-output.ts'
import { defineTool, type StandardSchema, type Tool, type ToolContext } from '../tools/core/tool.ts'
import { parsePolicy } from '../tools/policy/policy.ts'
import type { TryResult, WaitingItem } from './item-queue.ts'

/** One try. `key` is the same in every try of an item, and `signal` is aborted when the time is over. */
export type QueueWork = (item: { readonly key: string; readonly data: Json }, context: WorkContext) => Promise<void>
export type WorkContext = Pick<ToolContext, 'askModel' | 'clock'> & {
  readonly signal: AbortSignal
  /** An earlier try of this item began, and may have taken effect. */
  readonly repeated: boolean
}
export type FailedTry = Exclude<TryResult, { type: 'done' }> & { readonly tries: number }

export type QueueOptions = {
  /** The agent and the planner of the queue's sessions. */
  readonly name: string
  readonly work: QueueWork
  readonly timeoutMs: number
  readonly attempts: number
  /** In dollars a day, for models that the work asks. Null: no limit. */
  readonly usd: number | null
  readonly store: CompleteStore
  readonly clock: Clock
  /** `false`: an item is dropped after its last try, and failed tries are reported to nobody. */
  readonly deadLetters: boolean
  /** Called after each failed try. */
  readonly failed: (session: string, key: string, result: FailedTry) => void
}

/** The tools of a queue's agent: one works on an item, and one looks again later. */
export const WORK = 'work'
export const SLEEP = 'sleep'
/** So many calls are made at once. */
export const QUEUE_WIDTH = 16
const NO_LIMIT = 1_000_000_000
const DAYS_20_MS = 20 * 24 * 3_600_000
/** The work's own time limit comes first. */
const TIMEOUT_SLACK_MS = 10_000

export function queueAgent(options: QueueOptions): Agent {
  const { name, clock, usd } = options
  return {
    name,
    model: {
      name,
      call: async ({ messages, seq }, context) => {
        const { replyFromQueue } = await import('./queue-planner.ts')
        return replyFromQueue(messages, context.now ? context.now() : context.clock.now(), seq)
      },
    },
    tools: new Toolbox({ tools: [workTool(options), sleepTool()], plan: false, clock }),
    instructions: '',
    limits: completeLimits({
      modelRequests: NO_LIMIT,
      activeMs: DAYS_20_MS,
      lossesMax: NO_LIMIT,
      wakes: NO_LIMIT,
      parallel: QUEUE_WIDTH,
    }),
    approvalMs: null,
    policy: parsePolicy({ rules: [] }),
    environment: null,
    output: null,
    budget: usd === null ? null : { dayUsd: usd },
    children: [],
    planner: {
      name,
      verdict: ({ calls }) => (calls.length > 0 ? { type: 'continue' } : { type: 'final', output: null }),
      // Its other replies have no text.
      isCheckpoint: (parts) => parts.length > 0,
    },
  }
}

/** The planner wrote the arguments, so they are not checked again. */
function asWritten<Args>(): StandardSchema<Args> {
  return {
    '~standard': {
      validate: (value) => ({ value: value as Args }),
      jsonSchema: { input: () => ({ type: 'object' }) },
    },
  }
}

/** A wake when the next item is due. The next reply ends the run. */
function sleepTool(): Tool {
  return defineTool({
    name: SLEEP,
    description: 'Looks again at this time.',
    input: asWritten<{ readonly until: string }>(),
    effect: 'idempotent',
    execute: ({ until }) => {
      const wake = { type: 'wake.scheduled', due: Number(until), reason: 'An item is tried again.' } as const
      return output({ content: until, follows: [{ ...wake, key: `again:${until}` }] })
    },
  })
}

export type WorkArgs = Pick<WaitingItem, 'key' | 'data' | 'tries'> & Partial<Pick<WaitingItem, 'reason' | 'repeated'>>

function workTool(options: QueueOptions): Tool {
  return defineTool({
    name: WORK,
    description: 'Works on one item.',
    input: asWritten<WorkArgs>(),
    effect: 'idempotent',
    attempts: 1,
    timeoutMs: options.timeoutMs + TIMEOUT_SLACK_MS,
    execute: async (args, context) => {
      const { workOnItem } = await import('./queue-work.ts')
      return workOnItem(options, args, context)
    },
  })
}
