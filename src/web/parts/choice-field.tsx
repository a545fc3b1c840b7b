// A choice between a few options, as radio buttons.
import { useId } from 'react'

export type ChoiceFieldProps<T extends string> = {
  readonly name: string
  readonly value: T
  readonly options: readonly T[]
  readonly onChange: (next: T) => void
}

export function ChoiceField<T extends string>({ name, value, options, onChange }: ChoiceFieldProps<T>) {
  const id = useId()
  return (
    <fieldset className="choice">
      <legend>{name}</legend>
      <div className="choice-words">
        {options.map((each) => (
          <label key={each} className={each === value ? 'chosen' : ''}>
            <input type="radio" name={id} value={each} checked={each === value} onChange={() => onChange(each)} />
            {each}
          </label>
        ))}
      </div>
    </fieldset>
  )
}
