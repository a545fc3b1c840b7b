// The arguments of `jsonl_search`: their shape, what the model is told about them, and the one other shape that is taken.
import type { Json } from '../../kernel/content.ts'
import { COMPARED_AS, OPERATORS } from './filter.ts'
import { type Field, flag, type Infer, integer, list, object, optional, text } from '../core/schema.ts'
import { isObject } from '../../view/json.ts'

const where = object({
  field: text('Field path: a.b, a[0], a[-1] or a["any key"].', { min: 1 }),
  op: choice('exists takes no value, in takes values, gt/gte/lt/lte need a type.', OPERATORS),
  value: optional(text('Compared with the field. Numbers too are written as text, so that large ones stay exact.')),
  values: optional(list('For in: the texts to choose from.', text('One of them.'))),
  type: optional(choice('Compare as number or date. For gt, gte, lt, lte, eq and ne.', COMPARED_AS)),
})

const fieldSearch = object({
  field: text('Path of a text field.', { min: 1 }),
  query: text('What its lines must hold.', { min: 1 }),
  regex: optional(flag('The query is a JavaScript regex; repeated groups that repeat or branch are refused.')),
  case_sensitive: optional(flag('Default false.')),
  context_lines: optional(integer('Lines shown before and after a match. Default 0.', { max: 100 })),
  max_matches: optional(integer('Default 20.', { min: 1, max: 1_000 })),
  max_line_chars: optional(integer('Longer lines are cut around the match. Default 300.', { min: 1, max: 10_000 })),
})

export const input = object({
  path: optional(text('A file, a folder (searched with all below it) or a glob. Default: everything.', { min: 1 })),
  query: optional(text('A ripgrep regex that the raw line must match. Default: every line.')),
  where: optional(list('Filters; a row must pass all of them.', where, { max: 50 })),
  fields: optional(lengths('Field path to the most characters shown of it, 0 for no cut. Default: the whole row.')),
  field_searches: optional(list('Show the matching lines inside long text fields.', fieldSearch, { max: 20 })),
  max_files: optional(integer('Files shown. Default 100.', { min: 1, max: 1_000 })),
  max_matches_per_file: optional(integer('Rows shown of each file. Default 25.', { min: 1, max: 1_000 })),
})

export type Args = Infer<typeof input>

/** Models like to write numbers and truth values as such. Those that a double holds exactly become the text they are. */
export function writtenValues(args: Json): Json {
  if (!isObject(args) || !Array.isArray(args['where'])) return args
  return { ...args, where: args['where'].map((one) => writtenValue(one as Json)) }
}

function writtenValue(filter: Json): Json {
  if (!isObject(filter)) return filter
  const { value, values } = filter
  if (Array.isArray(values)) return { ...filter, values: values.map(writtenOf) }
  return value === undefined ? filter : { ...filter, value: writtenOf(value) }
}

function writtenOf(value: Json): Json {
  if (typeof value === 'boolean') return String(value)
  const exact = typeof value === 'number' && (!Number.isInteger(value) || Number.isSafeInteger(value))
  return exact ? String(value) : value
}

/** An object from any key to a length: the one shape that schema.ts has no word for. */
function lengths(description: string): Field<Readonly<Record<string, number>>> {
  const length = integer(description)
  return {
    schema: { type: 'object', description, additionalProperties: length.schema },
    required: true,
    check: (value) => {
      if (value === null || typeof value !== 'object' || Array.isArray(value)) {
        return { issues: [{ path: [], message: 'must be an object from field paths to numbers, like {"id": 0}' }] }
      }
      const entries = Object.entries(value)
      const issues = entries.flatMap(([key, one]) =>
        (length.check(one).issues ?? []).map((issue) => ({ ...issue, path: [key] })),
      )
      return issues.length > 0 ? { issues } : { value: Object.fromEntries(entries) }
    },
  }
}

function choice<const T extends string>(description: string, values: readonly T[]): Field<T> {
  return {
    schema: { type: 'string', description, enum: values },
    required: true,
    check: (value) => {
      const found = values.find((one) => one === value)
      return found === undefined
        ? { issues: [{ path: [], message: `must be one of ${values.join(', ')}` }] }
        : { value: found }
    },
  }
}
