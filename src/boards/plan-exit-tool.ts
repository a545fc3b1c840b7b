// `plan_exit`: shows the plan to a person, word for word as the arguments of the call. Once approved, its steps become
// the board. Another plan is another call, so the person is asked again.
import { methodsCheck, requiredCheck, optionsChecker } from '../options.ts'
import { output, ToolFailure } from '../tools/core/tool-output.ts'
import { type Infer, listField, objectField, optionalField, textField } from '../tools/core/argument-schema.ts'
import { defineTool, type Tool } from '../tools/core/tool.ts'
import { boardText, CARDS_MAX, PLAN_EXIT, TEXT_CHARS_MAX } from './board.ts'
import { type BoardStore, readBoard } from './read-board.ts'
import { withCards } from './todo-tool.ts'

const input = objectField({
  plan: optionalField(textField('What is to be done and why, as the person should read it.', { min: 1, max: 20_000 })),
  steps: listField('The steps, in order.', textField('One step, in one line.', { min: 1, max: TEXT_CHARS_MAX }), {
    min: 1,
    max: CARDS_MAX,
  }),
})

/** Give it the store of the harness, as for `todoTool`. A person is always asked, whatever the policy allows. */
export function planExitTool(options: { readonly store: BoardStore }): Tool {
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

const checkStore = optionsChecker<{ readonly store: BoardStore }>('planExitTool', {
  store: requiredCheck(methodsCheck('give the store of the harness', 'read', 'card')),
})
