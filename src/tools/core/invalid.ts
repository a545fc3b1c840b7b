// What the model is told about arguments that were refused: the tool, each problem, what was received and what is expected.
// Names, types, lengths and short previews only: content is never repeated.
import type { Json } from '../../kernel/content.ts'
import type { Reading } from '../repair/reading.ts'
import { objectShape, type Shape, shapesOf } from '../repair/shape.ts'
import type { Tool } from './tool.ts'
import { isObject, type JsonObject } from '../../view/json.ts'
import { clipped } from '../../view/text.ts'

type Issue = { readonly message: string; readonly path?: readonly unknown[] | undefined }

const TEXT_BYTES_MAX = 2048
const PREVIEW_MAX = 40
const MESSAGE_MAX = 160
const ISSUES_MAX = 8
const FIELDS_MAX = 12

export function invalidText(tool: Tool, reading: Reading, issues: readonly Issue[]): string {
  const { written } = reading
  const head = `Invalid arguments for "${tool.name}":`
  const problem = problemOf(reading)
  const bullets = issues.slice(0, ISSUES_MAX).map((issue) => bullet(issue, written))
  if (issues.length > ISSUES_MAX) bullets.push(`- and ${issues.length - ISSUES_MAX} more problems`)
  const first = problem === '' ? head : `${head} ${problem}`
  return bounded([first, ...bullets, ...received(written), ...expected(tool)].join('\n'))
}

/** At most 2 KB, and no half character at the end. */
export function bounded(text: string): string {
  if (text.length * 3 <= TEXT_BYTES_MAX || Buffer.byteLength(text) <= TEXT_BYTES_MAX) return text
  const cut = Buffer.from(text).subarray(0, TEXT_BYTES_MAX - 3)
  return `${cut.toString().replace(/\uFFFD+$/, '')}…`
}

function problemOf({ closed, written }: Reading): string {
  if (closed === null) return written === null ? 'not a JSON object.' : ''
  if (closed === 'unreadable') return 'not valid JSON. Nothing was run; send one JSON object.'
  const where = { none: 'is not closed', tail: 'does not end as it should', value: 'ends inside a value' }[closed.lost]
  return `not valid JSON: the text ${where}, so a part may be missing. Nothing was run; send the whole object again.`
}

function bullet(issue: Issue, written: JsonObject | null): string {
  const path = (issue.path ?? []).map((step) =>
    String(step !== null && typeof step === 'object' && 'key' in step ? step.key : step),
  )
  const at = path.length > 0 ? clipped(path.join('.'), 80) : '<root>'
  const got = path.length > 0 ? valueAt(written, path) : undefined
  return `- ${at}: ${clipped(issue.message, MESSAGE_MAX)}${got === undefined ? '' : ` (got ${preview(got)})`}`
}

function valueAt(value: Json, path: readonly string[]): Json | undefined {
  let found: Json | undefined = value
  for (const step of path) {
    if (found === null || typeof found !== 'object' || !Object.hasOwn(found, step)) return undefined
    found = (found as JsonObject)[step]
  }
  return found
}

function received(written: JsonObject | null): readonly string[] {
  if (written === null) return []
  const names = Object.keys(written)
  if (names.length === 0) return ['Received: no fields']
  const fields = names
    .slice(0, FIELDS_MAX)
    .map((name) => `${clipped(name, PREVIEW_MAX)} ${summary(written[name] ?? null)}`)
  const more = names.length > FIELDS_MAX ? `, and ${names.length - FIELDS_MAX} more` : ''
  return [`Received: ${fields.join(', ')}${more}`]
}

function summary(value: Json): string {
  if (typeof value === 'string') return `(string, ${value.length} characters: ${preview(value)})`
  return value === null || typeof value === 'object' ? `(${preview(value)})` : `(${typeof value}: ${preview(value)})`
}

/** Never more than the first characters of a text, and nothing of what is inside of a list or an object. */
function preview(value: Json): string {
  if (Array.isArray(value)) return `array, ${value.length} items`
  if (isObject(value)) return `object, ${Object.keys(value).length} fields`
  return clipped(JSON.stringify(typeof value === 'string' ? value.slice(0, PREVIEW_MAX) : value), PREVIEW_MAX)
}

function expected(tool: Tool): readonly string[] {
  const shape = objectShape(shapesOf(tool.parameters, tool.parameters) ?? [], {})
  if (!shape?.fields) return []
  const names = [...shape.fields].slice(0, FIELDS_MAX).map(([name, schema]) => {
    const shapes: readonly Shape[] = shapesOf(schema, tool.parameters) ?? []
    const types = new Set(shapes.flatMap(({ types: own }) => [...own]))
    return `${clipped(name, PREVIEW_MAX)}${shape.required.has(name) ? '' : '?'}: ${[...types].join('|') || 'any'}`
  })
  const more = shape.fields.size > FIELDS_MAX ? ', …' : ''
  return [`Expected: {${names.join(', ')}${more}}`]
}
