// The goal of a session: what it is there for until it is done. `goal` sets it, and its hook keeps a run with an active goal going, a few
// times. Like the board, the goal is in the result of the last call.
import { count, having, needed, optionsOf } from '../options.ts'
import type { Hook } from '../riders/hooks/hooks.ts'
import { type Output, output } from '../tools/core/output.ts'
import { choice, type Infer, object, optional, text } from '../tools/core/schema.ts'
import { defineTool, type Tool } from '../tools/core/tool.ts'
import { GOAL, type Goal, goalText } from './board.ts'
import { newestFirst, type Reads, readBoard } from './read.ts'

const NUDGES_MAX = 3
const SIGN = 'The goal of this session is not complete:'

const input = object({
  action: choice('set a goal, pause or resume it, complete it, or show it.', [
    'set',
    'pause',
    'resume',
    'complete',
    'show',
  ]),
  text: optional(text('set: what must be true when it is complete.', { min: 1, max: 2_000 })),
  note: optional(text('Why it is paused, or what shows that it is complete.', { min: 1, max: 500 })),
})
type Args = Infer<typeof input>

/** Give it the store of the harness, like `todoTool`. */
export function goalTool(options: { readonly store: Reads }): Tool {
  checkStore(options)
  return defineTool<Args>({
    name: GOAL,
    description: 'The goal of this session. While it is active, runs go on until it is complete or paused.',
    input,
    effect: 'read',
    sequential: ({ action }) => action !== 'show',
    execute: async (args, { session }) => answerTo((await readBoard(options.store, session)).goal, args),
  })
}

const checkStore = optionsOf<{ readonly store: Reads }>('goalTool', {
  store: needed(having('give the store of the harness', 'read', 'card')),
})

function answerTo(goal: Goal | null, { action, text: said, note }: Args): Output {
  const refused = (why: string): Output =>
    output({ ok: false, content: `${why} ${goalText(goal)}`, metadata: { error_type: 'Refused' } })
  if (action === 'show') return output({ content: goalText(goal), metadata: goal ? { goal } : {} })
  if (action === 'set' && said === undefined) return refused('Give the text of the goal.')
  if (action !== 'set' && goal === null) return refused(`There is nothing to ${action}: set a goal first.`)
  if (action !== 'set' && goal?.status === 'complete') return refused('It is complete. Set another goal.')
  const status = action === 'pause' ? 'paused' : action === 'complete' ? 'complete' : 'active'
  const kept = action === 'set' ? said : goal?.text
  const next: Goal = { text: kept ?? '', status, ...(note === undefined ? {} : { note }) }
  return output({ content: goalText(next), metadata: { goal: next } })
}

export type GoalHookOptions = {
  readonly store: Reads
  /** How often one run is told to go on. Default 3. Its limits hold all the same. */
  readonly nudgesMax?: number
}

/** A run whose session has an active goal does not end with words alone: the model is told to go on, a few times. */
export function goalHook(options: GoalHookOptions): Hook {
  checkHook(options)
  const { store, nudgesMax = NUDGES_MAX } = options
  return {
    type: 'continue_turn',
    run: async ({ session }) => {
      const { goal } = await readBoard(store, session)
      if (goal?.status !== 'active' || (await nudgesIn(store, session)) >= nudgesMax) return undefined
      return {
        continue: `${SIGN} ${goal.text}\nGo on with it. If it is complete, or cannot go on now, say so with ${GOAL}.`,
      }
    },
  }
}

const checkHook = optionsOf<GoalHookOptions>('goalHook', {
  store: needed(having('give the store of the harness', 'read', 'card')),
  nudgesMax: count(0, 100),
})

/** How often the open run was told so already. */
async function nudgesIn(store: Reads, session: string): Promise<number> {
  let nudges = 0
  for await (const event of newestFirst(store, session)) {
    if (event.type === 'run.started') break
    if (event.type === 'note.added' && event.text.includes(SIGN)) nudges += 1
  }
  return nudges
}
