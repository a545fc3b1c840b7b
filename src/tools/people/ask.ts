// `ask_user`: a question to a person. It is a call like any other, answered from outside with `session.answer`;
// the run parks meanwhile and holds no process.
import { list, object, optional, text } from '../core/schema.ts'
import { defineTool, type Tool } from '../core/tool.ts'

export function askUserTool(): Tool {
  return defineTool({
    name: 'ask_user',
    description: 'Asks the user one question and waits for the answer. Ask only what you cannot find out yourself.',
    input: object({
      question: text('The question, complete in itself.', { min: 1 }),
      choices: optional(
        list('Answers to choose from, if there are only a few.', text('One possible answer.', { min: 1 })),
      ),
    }),
    effect: 'once',
  })
}
