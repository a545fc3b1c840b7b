// A call that is answered from outside: one of the choices it names, or words of one's own. A question of a model, or any other call.
import { useState } from 'react'
import { fieldLine, fieldsIn, type FormField, formTrouble, readField } from '../../../view/form.ts'
import { isObject, listOf, stringOf } from '../../../view/json.ts'
import { acts } from '../../data/api.ts'
import { useRefusal } from '../../data/may.ts'
import { Button } from '../../parts/button.tsx'
import { Choice } from '../../parts/choice.tsx'
import { Text } from '../../parts/text.tsx'
import { type ActProps, useAct } from './act.ts'
import { Acts } from './acts.tsx'

export function Question(props: ActProps) {
  const { callId, sessionId, args, tool } = props.pending
  const [text, setText] = useState('')
  const [typed, setTyped] = useState<Typed>({})
  const [how, setHow] = useState<'It worked' | 'It failed'>('It worked')
  const { busy, trouble, act } = useAct(props)
  const refusal = useRefusal('operator')
  const { question, choices } = isObject(args) ? args : {}
  const isAsked = tool === 'ask_user'
  const offered = isAsked
    ? listOf(choices)
        .map(stringOf)
        .filter((choice) => choice !== '')
    : []
  const answer = (content: string): void => {
    const body = { callId, sessionId, content, ...(isAsked ? {} : { ok: how === 'It worked' }) }
    void act({ body, send: (sent, key) => acts.answer(sessionId, sent, key), done: 'Answered' })
  }
  const isDead = busy || refusal !== null
  const fields = isAsked ? fieldsIn(args) : []
  const values = fields.flatMap((field) => {
    const value = readField(field, typed[field.name] ?? '')
    return value === undefined ? [] : [[field.name, value] as const]
  })
  const form = JSON.stringify(Object.fromEntries(values))
  return (
    <Acts trouble={trouble} refusal={refusal}>
      {isAsked ? (
        <div className="question">
          <Text as="block" text={stringOf(question)} />
        </div>
      ) : (
        <Choice name="What it came to" value={how} options={['It worked', 'It failed']} onChange={setHow} />
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
      <Fields fields={fields} typed={typed} onType={setTyped} />
      {fields.length > 0 ? null : (
        <label className="decision-why">
          {offered.length > 0 ? 'Or in your own words' : 'Answer'}
          <textarea className="field" rows={3} value={text} onChange={(event) => setText(event.target.value)} />
        </label>
      )}
      <div className="decision-acts">
        <Button
          kind="primary"
          disabled={isDead || (fields.length > 0 ? formTrouble(fields, form) !== null : text.trim() === '')}
          onPress={() => answer(fields.length > 0 ? form : text)}
        >
          Send the answer
        </Button>
      </div>
    </Acts>
  )
}

type Typed = Readonly<Record<string, string>>
type FieldsProps = {
  readonly fields: readonly FormField[]
  readonly typed: Typed
  readonly onType: (typed: Typed) => void
}

/** One input for each field of a question. */
function Fields({ fields, typed, onType }: FieldsProps) {
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
