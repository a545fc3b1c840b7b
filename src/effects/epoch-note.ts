// What a model is told of what changed since it was told last: its instructions and its tools. Loaded by the first run that has to.
import type { ToolSchema } from '../ports/model.ts'
import { CHANGED } from '../context/summary.ts'
import { diffLines } from '../view/diff.ts'

type Told = { readonly instructions: string; readonly tools: readonly ToolSchema[] }

/** Null: nothing that the model is told of, such as how a tool is approved. */
export function changeNote(before: Told, now: Told): string | null {
  const lines = [...instructionLines(before.instructions, now.instructions), ...toolLines(before.tools, now.tools)]
  return lines.length === 0 ? null : [CHANGED, ...lines].join('\n')
}

/** The lines that changed, or all of them where that is shorter. */
function instructionLines(before: string, now: string): readonly string[] {
  if (before === now) return []
  if (now === '') return ['There are no instructions any more.']
  const lines = diffLines(before, now).filter(({ mark }) => mark === '+' || mark === '-')
  const gone = textOf(lines, '-')
  const came = textOf(lines, '+')
  if (gone.length + came.length > now.length) return ['The instructions are now, in place of all before:', now]
  return [
    ...(gone === '' ? [] : ['No longer in the instructions:', gone]),
    ...(came === '' ? [] : ['New in the instructions:', came]),
  ]
}

function textOf(lines: ReturnType<typeof diffLines>, wanted: '+' | '-'): string {
  const texts = lines.flatMap(({ mark, text }) => (mark === wanted ? [text] : []))
  return texts.filter((text) => text.trim() !== '').join('\n')
}

function toolLines(before: readonly ToolSchema[], now: readonly ToolSchema[]): readonly string[] {
  const old = new Map(before.map((tool) => [tool.name, tool]))
  const left = new Set(now.map(({ name }) => name))
  const gone = before.flatMap(({ name }) => (left.has(name) ? [] : [name]))
  const came = now.flatMap(({ name }) => (old.has(name) ? [] : [name]))
  const changed = now.filter((tool) => {
    const known = old.get(tool.name)
    return known !== undefined && asJson(known) !== asJson(tool)
  })
  return [
    ...(gone.length === 0 ? [] : [`Tools that are no longer there, and cannot be called: ${gone.join(', ')}`]),
    ...(came.length === 0 ? [] : [`Tools that came, and cannot be called yet: ${came.join(', ')}`]),
    ...changed.map((tool) => `A tool that changed, as it is called now: ${asJson(tool)}`),
  ]
}

/** The words of a server must not end the note. */
function asJson({ name, description, parameters }: ToolSchema): string {
  return JSON.stringify({ name, description, parameters }).replaceAll('<', '\\u003c')
}
