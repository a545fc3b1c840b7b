// The name of a model, with those of the server's agents to choose from.
import { useId } from 'react'
import { useAgents } from '../data/queries.ts'

export type ModelFieldProps = {
  readonly value: string
  /** What an empty field means. */
  readonly placeholder: string
  readonly onChange: (name: string) => void
}

export function ModelField({ value, placeholder, onChange }: ModelFieldProps) {
  const agents = useAgents().data?.agents ?? []
  const models = [...new Set(agents.map(({ model }) => model).filter((name) => name !== ''))]
  const list = useId()
  return (
    <label>
      Model
      <input
        className="field"
        list={list}
        placeholder={placeholder}
        spellCheck={false}
        autoComplete="off"
        value={value}
        onChange={({ target }) => onChange(target.value)}
      />
      <datalist id={list}>
        {models.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </label>
  )
}
