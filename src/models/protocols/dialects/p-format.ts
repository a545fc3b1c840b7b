// Reads P-Format: `name[a|b]`. The values are in the order of the parameter names, sorted by code unit. `\|`, `\]` and
// `\\` stand for the characters themselves; every other backslash is one. Nothing writes this format. Pure, and linear.
import { type CallReading, fieldsJson, parametersOf, type ReadCall, readValue } from './call-reader.ts'

const HEAD = /^([\w.:-]{1,200})\[/

/** Null if the text is something else, or calls no tool of the run. Values without a parameter are dropped. */
export function readPFormat(body: string, { tools }: CallReading): ReadCall | null {
  const [head = '', name = ''] = HEAD.exec(body) ?? []
  const tool = tools.get(name)
  const values = tool ? splitValues(body, head.length) : null
  if (!tool || values === null) return null
  const parameters = parametersOf(tool)
  const names = [...parameters.keys()].sort()
  const given = names.slice(0, values.length)
  const entries = given.map((each, i) => [each, readValue(values[i] as string, parameters.get(each))] as const)
  return { tool: name, args: fieldsJson(entries) }
}

/** Null if the bracket does not close exactly at the end of the text. */
function splitValues(body: string, from: number): readonly string[] | null {
  const values: string[] = []
  let value = ''
  let begun = from
  for (let at = from; at < body.length; at++) {
    const char = body[at] as string
    if (char === '\\' && '|]\\'.includes(body[at + 1] ?? ' ')) {
      value += body.slice(begun, at)
      begun = at + 1
      at += 1
    } else if (char === '|' || char === ']') {
      values.push(value + body.slice(begun, at))
      value = ''
      begun = at + 1
      if (char === ']') return at === body.length - 1 ? (at === from ? [] : values) : null
    }
  }
  return null
}
