// `plan_exit`: the plan is shown to a person, word for word as the arguments of the call. Approved, its steps are the board. Another plan
// is another call, so the person is asked again.
import { having, needed, optionsOf } from '../options.ts'
import { output, ToolFailure } from '../tools/core/output.ts'
import { type Infer, list, object, optional, text } from '../tools/core/schema.ts'
import { defineTool, type Tool } from '../tools/core/tool.ts'
import { boardText, CARDS_MAX, PLAN_EXIT, TEXT_CHARS_MAX } from './board.ts'
import { type Reads, readBoard } from './read.ts'
import { withCards } from './todo.ts'

const input = object({
  plan: optional(text('What is to be done and why, as the person should read it.', { min: 1, max: 20_000 })),
  steps: list('The steps, in order.', text('One step, in one line.', { min: 1, max: TEXT_CHARS_MAX }), {
    min: 1,
    max: CARDS_MAX,
  }),
})

/** Give it the store of the harness, like `todoTool`. A person is asked whatever a policy allows. */
export function planExitTool(options: { readonly store: Reads }): Tool {
  checkStore(options)
  return defineTool<Infer<typeof input>>({
    name: PLAN_EXIT,
    description:
      'Shows your plan to a person and waits for a yes. Approved, its steps become the board. A changed plan must be shown again.',
    input,
    effect: 'read',
    sequential: true,
    approval: 'always',
    execute: async ({ steps }, { session, approved }) => {
      if (!approved) throw new ToolFailure('Denied', 'No person has approved this plan.')
      const { board } = await readBoard(options.store, session)
      const cards = steps.map((step) => ({ text: step, status: 'ready', planned: true }) as const)
      const next = { ...withCards(board, [], cards), version: board.version + 1 }
      return output({ content: `The plan is approved. ${boardText(next)}`, metadata: { board: next } })
    },
  })
}

const checkStore = optionsOf<{ readonly store: Reads }>('planExitTool', {
  store: needed(having('give the store of the harness', 'read', 'card')),
})
