// The arguments of a call, changed by the person who decides it: the text, what is wrong with it, and how it differs from what was asked.
import { useState } from 'react'
import type { Json } from '../../../kernel/index.ts'
import { editTexts } from '../../../view/edited.ts'
import { isObject, type JsonObject } from '../../../view/json.ts'
import { Diff } from '../../parts/diff.tsx'

/** Longer arguments are not written in a field: `terret approve --args` takes them. */
const EDIT_CHARS_MAX = 200_000

type Edit = {
  readonly isOffered: boolean
  readonly isOpen: boolean
  readonly text: string
  /** Null: the call stays as it was asked. */
  readonly args: JsonObject | null
  readonly trouble: string | null
  readonly toggle: () => void
  readonly write: (text: string) => void
}

export function useEdit(asked: Json, onEdit: (isEdited: boolean) => void): Edit {
  const [text, setText] = useState<string | null>(null)
  const read = text === null ? {} : argsIn(text)
  const isChanged = read.args !== undefined && JSON.stringify(read.args) !== JSON.stringify(asked)
  const write = (next: string | null): void => {
    setText(next)
    onEdit(next !== null && next !== formatArgs(asked))
  }
  return {
    isOffered: isObject(asked) && JSON.stringify(asked).length <= EDIT_CHARS_MAX,
    isOpen: text !== null,
    text: text ?? '',
    args: isChanged ? (read.args ?? null) : null,
    trouble: read.trouble ?? null,
    toggle: () => write(text === null ? formatArgs(asked) : null),
    write,
  }
}

function formatArgs(args: Json): string {
  return JSON.stringify(args, null, 2)
}

function argsIn(text: string): { readonly args?: JsonObject; readonly trouble?: string } {
  try {
    const args: unknown = JSON.parse(text)
    return isObject(args) ? { args } : { trouble: 'The arguments of a call are a JSON object.' }
  } catch {
    return { trouble: 'This is no JSON yet.' }
  }
}

export function Editing({ edit, asked }: { readonly edit: Edit; readonly asked: Json }) {
  const { text, args, trouble, write } = edit
  return (
    <div className="decision-edit">
      <label className="decision-why">
        Arguments as JSON
        <textarea
          className="field"
          spellCheck={false}
          value={text}
          aria-invalid={trouble !== null}
          onChange={(event) => write(event.target.value)}
        />
      </label>
      {trouble === null ? null : <p className="form-trouble">{trouble}</p>}
      {args === null ? null : <Diff {...editTexts(asked, args)} />}
    </div>
  )
}
