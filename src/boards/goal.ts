// The goal of a session. `goal` sets it, and its hook makes a run with an active goal go on, a few times. Like the
// board, the goal is stored in the result of the last call.
import { countCheck, methodsCheck, requiredCheck, optionsChecker } from '../options.ts'
import type { Hook } from '../runtime/state/hook-events.ts'
import { type Output, output } from '../tools/core/tool-output.ts'
import { choiceField, type Infer, objectField, optionalField, textField } from '../tools/core/argument-schema.ts'
import { defineTool, type Tool } from '../tools/core/tool.ts'
import { GOAL, type Goal, goalText } from './board.ts'
import { newestFirst, type BoardStore, readBoard } from './read-board.ts'

const NUDGES_MAX = 3
const SIGN = 'The goal of this session is not complete:'

const input = objectField({
  action: choiceField('set a goal, pause or resume it, complete it, or show it.', [
    'set',
    'pause',
    'resume',
    'complete',
    'show',
  ]),
  text: optionalField(textField('set: what must be true when it is complete.', { min: 1, max: 2_000 })),
  note: optionalField(textField('Why it is paused, or what shows that it is complete.', { min: 1, max: 500 })),
})
type Args = Infer<typeof input>

/** Give it the store of the harness, as for `todoTool`. */
export function goalTool(options: { readonly store: BoardStore }): Tool {
  checkStore(options)
  return defineTool<Args>({
    name: GOAL,
    description: 'The goal of this session. While it is active, runs go on until it is complete or paused.',
    input,
    effect: 'read',
    sequential: ({ action }) => action !== 'show',
    execute: async (args, { session }) => applyGoalAction((await readBoard(options.store, session)).goal, args),
  })
}

const checkStore = optionsChecker<{ readonly store: BoardStore }>('goalTool', {
  store: requiredCheck(methodsCheck('give the store of the harness', 'read', 'card')),
})

function applyGoalAction(goal: Goal | null, { action, text: said, note }: Args): Output {
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

/** Options of `goalHook`: the store, and how often a model that stops early is reminded. */
export type GoalHookOptions = {
  /** The store of the harness: the goal is read from the log of the session. */
  readonly store: BoardStore
  /** How often one run is told to go on. Default 3. The run's limits still apply. */
  readonly nudgesMax?: number
}

/** A run with an active goal does not end with a text answer: the model is told to go on, a few times. */
export function goalHook(options: GoalHookOptions): Hook {
  checkHook(options)
  const { store, nudgesMax = NUDGES_MAX } = options
  return {
    type: 'continue_turn',
    run: async ({ session }) => {
      const { goal } = await readBoard(store, session)
      if (goal?.status !== 'active' || (await countNudges(store, session)) >= nudgesMax) return undefined
      return {
        continue: `${SIGN} ${goal.text}\nGo on with it. If it is complete, or cannot go on now, say so with ${GOAL}.`,
      }
    },
  }
}

const checkHook = optionsChecker<GoalHookOptions>('goalHook', {
  store: requiredCheck(methodsCheck('give the store of the harness', 'read', 'card')),
  nudgesMax: countCheck(0, 100),
})

/** How often the open run was already told to go on. */
async function countNudges(store: BoardStore, session: string): Promise<number> {
  let nudges = 0
  for await (const event of newestFirst(store, session)) {
    if (event.type === 'run.started') break
    if (event.type === 'note.added' && event.text.includes(SIGN)) nudges += 1
  }
  return nudges
}
