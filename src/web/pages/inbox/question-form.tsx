// A form for a call that is answered from outside: one of its choices, or free text. It serves questions of a model and
// all other calls.
import { useState } from 'react'
import { fieldLine, fieldsIn, type FormField, whyFormRefused, readField } from '../../../view/form-fields.ts'
import { isObject, asList, asString } from '../../../view/untrusted-json.ts'
import { apiActions } from '../../data/api.ts'
import { useRefusal } from '../../data/use-refusal.ts'
import { Button } from '../../parts/button.tsx'
import { ChoiceField } from '../../parts/choice-field.tsx'
import { Text } from '../../parts/exact-text.tsx'
import { type ActionProps, useAction } from './use-action.ts'
import { ActionFooter } from './action-footer.tsx'

export function QuestionForm(props: ActionProps) {
  const { callId, sessionId, args, tool } = props.pending
  const [text, setText] = useState('')
  const [typed, setTyped] = useState<TypedFields>({})
  const [how, setHow] = useState<'It worked' | 'It failed'>('It worked')
  const { busy, trouble, act } = useAction(props)
  const refusal = useRefusal('operator')
  const { question, choices } = isObject(args) ? args : {}
  const isAsked = tool === 'ask_user'
  const offered = isAsked
    ? asList(choices)
        .map(asString)
        .filter((choice) => choice !== '')
    : []
  const answer = (content: string): void => {
    const body = { callId, sessionId, content, ...(isAsked ? {} : { ok: how === 'It worked' }) }
    void act({ body, send: (sent, key) => apiActions.answer(sessionId, sent, key), done: 'Answered' })
  }
  const isDead = busy || refusal !== null
  const fields = isAsked ? fieldsIn(args) : []
  const values = fields.flatMap((field) => {
    const value = readField(field, typed[field.name] ?? '')
    return value === undefined ? [] : [[field.name, value] as const]
  })
  const form = JSON.stringify(Object.fromEntries(values))
  return (
    <ActionFooter trouble={trouble} refusal={refusal}>
      {isAsked ? (
        <div className="question">
          <Text as="block" text={asString(question)} />
        </div>
      ) : (
        <ChoiceField name="What it came to" value={how} options={['It worked', 'It failed']} onChange={setHow} />
      )}
      {offered.length === 0 ? null : (
        <div className="question-choices">
          {offered.map((choice) => (
            <Button key={choice} disabled={isDead} onPress={() => answer(choice)}>
              <Text text={choice} />
            </Button>
          ))}
        </div>
      )}
      <QuestionFields fields={fields} typed={typed} onType={setTyped} />
      {fields.length > 0 ? null : (
        <label className="decision-why">
          {offered.length > 0 ? 'Or in your own words' : 'Answer'}
          <textarea className="field" rows={3} value={text} onChange={(event) => setText(event.target.value)} />
        </label>
      )}
      <div className="decision-acts">
        <Button
          kind="primary"
          disabled={isDead || (fields.length > 0 ? whyFormRefused(fields, form) !== null : text.trim() === '')}
          onPress={() => answer(fields.length > 0 ? form : text)}
        >
          Send the answer
        </Button>
      </div>
    </ActionFooter>
  )
}

type TypedFields = Readonly<Record<string, string>>
type QuestionFieldsProps = {
  readonly fields: readonly FormField[]
  readonly typed: TypedFields
  readonly onType: (typed: TypedFields) => void
}

/** One input per field of a question. */
function QuestionFields({ fields, typed, onType }: QuestionFieldsProps) {
  return fields.map((field) => (
    <label className="decision-why" key={field.name}>
      <Text text={fieldLine(field)} />
      <input
        className="field"
        value={typed[field.name] ?? ''}
        onChange={(event) => onType({ ...typed, [field.name]: event.target.value })}
      />
    </label>
  ))
}
