// The note that tells a model which of its instructions and tools changed since it was told last. Loaded by the first
// run that needs one.
import type { ToolSchema } from '../../ports/model.ts'
import { CHANGED } from '../../context/summary.ts'
import { diffLines } from '../../view/line-diff.ts'

type ShownPrefix = { readonly instructions: string; readonly tools: readonly ToolSchema[] }

/** Null: the change is in nothing that the model is told, such as how a tool is approved. */
export function changeNote(before: ShownPrefix, now: ShownPrefix): string | null {
  const lines = [...instructionLines(before.instructions, now.instructions), ...toolLines(before.tools, now.tools)]
  return lines.length === 0 ? null : [CHANGED, ...lines].join('\n')
}

/** The changed lines, or all lines where that is shorter. */
function instructionLines(before: string, now: string): readonly string[] {
  if (before === now) return []
  if (now === '') return ['There are no instructions any more.']
  const lines = diffLines(before, now).filter(({ mark }) => mark === '+' || mark === '-')
  const gone = changedText(lines, '-')
  const came = changedText(lines, '+')
  if (gone.length + came.length > now.length) return ['The instructions are now, in place of all before:', now]
  return [
    ...(gone === '' ? [] : ['No longer in the instructions:', gone]),
    ...(came === '' ? [] : ['New in the instructions:', came]),
  ]
}

function changedText(lines: ReturnType<typeof diffLines>, wanted: '+' | '-'): string {
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
    return known !== undefined && toolAsJson(known) !== toolAsJson(tool)
  })
  return [
    ...(gone.length === 0 ? [] : [`Tools that are no longer there, and cannot be called: ${gone.join(', ')}`]),
    ...(came.length === 0 ? [] : [`Tools that came, and cannot be called yet: ${came.join(', ')}`]),
    ...changed.map((tool) => `A tool that changed, as it is called now: ${toolAsJson(tool)}`),
  ]
}

/** Text that comes from a server must not end the note. */
function toolAsJson({ name, description, parameters }: ToolSchema): string {
  return JSON.stringify({ name, description, parameters }).replaceAll('<', '\\u003c')
}
