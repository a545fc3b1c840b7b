// Editing of a call's arguments by the deciding person: the text, its errors, and the difference from the original.
import { useState } from 'react'
import type { Json } from '../../../kernel/index.ts'
import { editTexts } from '../../../view/argument-changes.ts'
import { isObject, type JsonObject } from '../../../view/untrusted-json.ts'
import { Diff } from '../../parts/diff-view.tsx'

/** Longer arguments are not edited in a text field: use `terret approve --args`. */
const EDIT_CHARS_MAX = 200_000

type ArgumentEdit = {
  readonly isOffered: boolean
  readonly isOpen: boolean
  readonly text: string
  /** Null while the arguments are unchanged. */
  readonly args: JsonObject | null
  readonly trouble: string | null
  readonly toggle: () => void
  readonly write: (text: string) => void
}

export function useArgumentEdit(asked: Json, onEdit: (isEdited: boolean) => void): ArgumentEdit {
  const [text, setText] = useState<string | null>(null)
  const read = text === null ? {} : parseEditText(text)
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

function parseEditText(text: string): { readonly args?: JsonObject; readonly trouble?: string } {
  try {
    const args: unknown = JSON.parse(text)
    return isObject(args) ? { args } : { trouble: 'The arguments of a call are a JSON object.' }
  } catch {
    return { trouble: 'This is no JSON yet.' }
  }
}

export function ArgumentEditor({ edit, asked }: { readonly edit: ArgumentEdit; readonly asked: Json }) {
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
