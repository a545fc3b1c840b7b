// JSON as a collapsible tree. Texts are shown exactly; long lists are shown in parts.
import { ChevronRight } from './icons.ts'
import { useState } from 'react'
import type { Json as JsonValue } from '../../kernel/content.ts'
import { countNoun } from '../../view/shown-text.ts'
import { Button } from './button.tsx'
import { Text } from './exact-text.tsx'

const SHOWN = 100
const DEPTH_MAX = 60

/** `open`: the number of levels that are open at first. */
export function JsonTree({ value, open = 1 }: { readonly value: JsonValue; readonly open?: number }) {
  return (
    <div className="json mono">
      <Value value={value} open={open} depth={0} />
    </div>
  )
}

type JsonValueProps = {
  readonly value: JsonValue
  readonly name?: string
  readonly open: number
  readonly depth: number
}

function Value({ value, name, open, depth }: JsonValueProps) {
  if (value === null || typeof value !== 'object')
    return (
      <div className="json-row">
        <Name name={name} />
        <Leaf value={value} />
      </div>
    )
  return <Branch value={value} {...(name === undefined ? {} : { name })} open={open} depth={depth} />
}

function Branch({ value, name, open, depth }: JsonValueProps & { readonly value: object }) {
  const [isOpen, setOpen] = useState(depth < open)
  const [shown, setShown] = useState(SHOWN)
  const entries = Object.entries(value as Record<string, JsonValue>)
  const isList = Array.isArray(value)
  const [left, right] = isList ? ['[', ']'] : ['{', '}']
  const size = countNoun(entries.length, isList ? 'item' : 'field')
  if (depth > DEPTH_MAX) return <Text mono text={JSON.stringify(value)} />
  return (
    <div className="json-branch">
      <button type="button" className="json-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <ChevronRight size={13} aria-hidden className={isOpen ? 'turned' : ''} />
        <Name name={name} />
        <span className="json-mark">
          {left}
          {isOpen ? '' : ` ${size} ${right}`}
        </span>
      </button>
      {isOpen ? (
        <div className="json-children">
          {entries.slice(0, shown).map(([key, item]) => (
            <Value key={key} value={item} name={isList ? '' : key} open={open} depth={depth + 1} />
          ))}
          {entries.length > shown ? (
            <Button size="small" onPress={() => setShown(shown + SHOWN)}>
              {entries.length - shown} more
            </Button>
          ) : null}
          <span className="json-mark">{right}</span>
        </div>
      ) : null}
    </div>
  )
}

function Name({ name }: { readonly name?: string | undefined }) {
  if (name === undefined || name === '') return null
  return (
    <>
      <span className="json-name">
        <Text text={name} />
      </span>
      <span className="json-mark">: </span>
    </>
  )
}

function Leaf({ value }: { readonly value: null | boolean | number | string }) {
  if (typeof value === 'string')
    return value.length > 200 || value.includes('\n') ? (
      <div className="json-text">
        <Text as="block" mono text={value} />
      </div>
    ) : (
      <span className="json-string">
        "<Text text={value} />"
      </span>
    )
  return <span className="json-word">{String(value)}</span>
}
