// `ask_user`: a question to a person. It is a call like any other, answered from outside with `session.answer`;
// the run parks meanwhile and holds no process.
import { FIELD_TYPES } from '../../view/form.ts'
import { addCheck, choice, flag, type Issue, list, object, optional, text } from '../core/schema.ts'
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
      fields: optional(addCheck(FIELDS, findSameNames)),
    }),
    effect: 'once',
  })
}

const FIELD = object({
  name: text('The name of the field.', { min: 1, max: 64 }),
  description: optional(text('What it is.')),
  type: choice('What it holds.', FIELD_TYPES),
  choices: optional(list('What may be chosen, for the type choice.', text('One of them.', { min: 1 }))),
  optional: optional(flag('It may be left out.')),
})

const FIELDS = list(
  'What you need to know, if it is several things or must have a type. The answer is then one JSON object with these fields, and is checked.',
  addCheck(FIELD, findMissingChoices),
  { max: 20 },
)

type FieldAsked = { readonly name: string; readonly type: string; readonly choices?: readonly string[] }

/** No answer fits a choice between nothing. */
function findMissingChoices({ type, choices = [] }: FieldAsked): readonly Issue[] {
  if (type !== 'choice' || choices.length > 0) return []
  return [{ path: ['choices'], message: 'must name at least one choice for the type choice' }]
}

/** One value of the answer cannot be for two fields. */
function findSameNames(fields: readonly FieldAsked[]): readonly Issue[] {
  return fields.flatMap(({ name }, at): readonly Issue[] => {
    const first = fields.findIndex((field) => field.name === name)
    const message = `must differ from the name of field ${first}: each field needs its own name`
    return first === at ? [] : [{ path: [at, 'name'], message }]
  })
}
