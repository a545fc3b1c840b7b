// The tool `ask_user`: a question to a person. It is a call like any other, answered from outside with
// `session.answer`; meanwhile the run waits without holding a process.
import { FIELD_TYPES } from '../view/form-fields.ts'
import {
  addCheck,
  choiceField,
  flagField,
  type Issue,
  listField,
  objectField,
  optionalField,
  textField,
} from './core/argument-schema.ts'
import { defineTool, type Tool } from './core/tool.ts'

/** A tool by which the model asks the user a question. The run parks until somebody answers. */
export function askUserTool(): Tool {
  return defineTool({
    name: 'ask_user',
    description: 'Asks the user one question and waits for the answer. Ask only what you cannot find out yourself.',
    input: objectField({
      question: textField('The question, complete in itself.', { min: 1 }),
      choices: optionalField(
        listField('Answers to choose from, if there are only a few.', textField('One possible answer.', { min: 1 })),
      ),
      fields: optionalField(addCheck(FIELDS, findSameNames)),
    }),
    effect: 'once',
  })
}

const FIELD = objectField({
  name: textField('The name of the field.', { min: 1, max: 64 }),
  description: optionalField(textField('What it is.')),
  type: choiceField('What it holds.', FIELD_TYPES),
  choices: optionalField(listField('What may be chosen, for the type choice.', textField('One of them.', { min: 1 }))),
  optional: optionalField(flagField('It may be left out.')),
})

const FIELDS = listField(
  'What you need to know, if it is several things or must have a type. The answer is then one JSON object with these fields, and is checked.',
  addCheck(FIELD, findMissingChoices),
  { max: 20 },
)

type QuestionField = { readonly name: string; readonly type: string; readonly choices?: readonly string[] }

/** A choice without choices has no valid answer. */
function findMissingChoices({ type, choices = [] }: QuestionField): readonly Issue[] {
  if (type !== 'choice' || choices.length > 0) return []
  return [{ path: ['choices'], message: 'must name at least one choice for the type choice' }]
}

/** One value of the answer cannot belong to two fields. */
function findSameNames(fields: readonly QuestionField[]): readonly Issue[] {
  return fields.flatMap(({ name }, at): readonly Issue[] => {
    const first = fields.findIndex((field) => field.name === name)
    const message = `must differ from the name of field ${first}: each field needs its own name`
    return first === at ? [] : [{ path: [at, 'name'], message }]
  })
}
