// The repair table as a pure function: examples for each kind, then properties over all of them.
// What admission does with them is admit.test.ts.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Json } from '../../src/kernel/content.ts'
import { repairArguments } from '../../src/tools/repair/repair.ts'
import { runs } from '../runs.ts'

const SCHEMA = z.strictObject({
  path: z.string(),
  command: z.string().optional(),
  replace_all: z.boolean().optional(),
  limit: z.int().optional(),
  ratio: z.number().optional(),
  names: z.array(z.string()).optional(),
  counts: z.array(z.int()).optional(),
  note: z.string().nullable().optional(),
  mode: z.union([z.string(), z.boolean()]).optional(),
  edits: z
    .array(z.strictObject({ path: z.string(), old_string: z.string(), replace_all: z.boolean().optional() }))
    .optional(),
  options: z.strictObject({ cwd: z.string().optional(), deep: z.boolean().optional() }).optional(),
  labels: z.record(z.string(), z.int()).optional(),
})
const PARAMETERS = jsonOf(SCHEMA)

function jsonOf(schema: z.ZodType): Json {
  return z.toJSONSchema(schema, { io: 'input' }) as Json
}

const mend = (args: Json, parameters = PARAMETERS): Json => repairArguments(parameters, args)

describe('repair: each kind', () => {
  const table: readonly (readonly [string, Json, Json])[] = [
    ['field_alias', { filePath: 'a', cmd: 'ls', replaceAll: true }, { path: 'a', command: 'ls', replace_all: true }],
    ['semantic_boolean_string', { path: 'a', replace_all: 'false' }, { path: 'a', replace_all: false }],
    ['semantic_integer_string', { path: 'a', limit: '-12', ratio: '3' }, { path: 'a', limit: -12, ratio: 3 }],
    ['stringified_array', { path: 'a', names: '["x", "y"]' }, { path: 'a', names: ['x', 'y'] }],
    ['bare_string_to_array', { path: 'a', names: '[ab]*.ts' }, { path: 'a', names: ['[ab]*.ts'] }],
    ['empty_object_to_array', { path: 'a', names: {} }, { path: 'a', names: [] }],
    ['null_optional_omitted', { path: 'a', limit: null, command: null, note: null }, { path: 'a', note: null }],
    ['markdown_autolink_path', { path: '[src/a.ts](src/a.ts)' }, { path: 'src/a.ts' }],
    ['inside of lists', { path: 'a', counts: ['1', 2] }, { path: 'a', counts: [1, 2] }],
    [
      'inside of lists of objects',
      { path: 'a', edits: [{ filePath: '[b](b)', oldString: 'x', replaceAll: 'true' }] },
      { path: 'a', edits: [{ path: 'b', old_string: 'x', replace_all: true }] },
    ],
    [
      'inside of stringified objects',
      { path: 'a', options: '{"deep":"true"}' },
      { path: 'a', options: { deep: true } },
    ],
    ['inside of records', { path: 'a', labels: { x: '1' } }, { path: 'a', labels: { x: 1 } }],
  ]
  it.each(table)('B-ADMIT-2: %s is repaired by the schema', (_kind, args, expected) => {
    expect(mend(args)).toEqual(expected)
    expect(SCHEMA.safeParse(mend(args)).success).toBe(true)
  })

  const left: readonly (readonly [string, Json])[] = [
    ['an alias whose field is there already', { path: 'a', filePath: 'b' }],
    ['an alias whose field the tool does not have', { path: 'a', newString: 'b' }],
    ['an alias beside an unknown field', { filePath: 'a', colour: 'red' }],
    ['an unknown field deep inside', { filePath: 'a', edits: [{ path: 'b', old_string: 'c', why: 1 }] }],
    ['a link whose text is not its target', { path: '[a](b)' }],
    ['an inexact integer', { path: 'a', limit: '1.0' }],
    ['an integer beyond the exact ones', { path: 'a', limit: '9007199254740993' }],
    ['an integer with other signs', { path: 'a', limit: ' 7' }],
    ['a word for true', { path: 'a', replace_all: 'yes' }],
    ['no text for a list', { path: 'a', names: '' }],
    ['a broken list', { path: 'a', names: '["x", "y' }],
    ['an object that is not empty for a list', { path: 'a', names: { x: 1 } }],
    ['null for a required field', { path: null }],
    ['a value that one alternative takes', { path: 'a', mode: 'true' }],
  ]
  it.each(left)('B-ADMIT-3: %s is left untouched', (_what, args) => {
    expect(mend(args)).toBe(args)
  })

  it('B-ADMIT-3: alternatives of objects are told apart by their constants, and left alone if they cannot be', () => {
    const one = z.strictObject({ type: z.literal('one'), deep: z.boolean() })
    const two = z.strictObject({ type: z.literal('two'), deep: z.string() })
    const parameters = jsonOf(z.strictObject({ what: z.union([one, two]) }))
    expect(mend({ what: { type: 'one', deep: 'true' } }, parameters)).toEqual({ what: { type: 'one', deep: true } })
    const vague = { what: { deep: 'true' } }
    expect(mend(vague, parameters)).toBe(vague)
    const two2 = { what: { type: 'two', deep: 'true' } }
    expect(mend(two2, parameters)).toBe(two2)
  })

  it('B-ADMIT-2: schemas that refer to themselves are followed', () => {
    type Tree = { deep: boolean; children?: readonly Tree[] | undefined }
    const tree: z.ZodType<Tree> = z.strictObject({
      deep: z.boolean(),
      get children() {
        return z.array(tree).optional()
      },
    })
    const args = { deep: 'true', children: [{ deep: 'false', children: '[]' }] }
    expect(mend(args, jsonOf(tree))).toEqual({ deep: true, children: [{ deep: false, children: [] }] })
  })
})

// ---- Properties ----------------------------------------------------------------------------------------------------

const leaf = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.constantFrom(
    null,
    'true',
    'false',
    '0',
    '-5',
    '9007199254740993',
    '[1,"2"]',
    '{"deep":"true"}',
    '[a](a)',
    '[[a](a)]([a](a))',
    '{}',
  ),
)
const NAMES = [
  'path',
  'filePath',
  'command',
  'cmd',
  'replace_all',
  'replaceAll',
  'limit',
  'ratio',
  'names',
  'counts',
  'note',
]
const MORE = [
  'mode',
  'edits',
  'options',
  'labels',
  'old_string',
  'oldString',
  'deep',
  'cwd',
  '__proto__',
  'constructor',
  'x',
]
const nameArb = fc.constantFrom(...NAMES, ...MORE)
const anyArgs = fc.letrec<{ json: Json; object: Json }>((tie) => ({
  json: fc.oneof({ maxDepth: 3 }, leaf, fc.array(tie('json'), { maxLength: 3 }), tie('object')),
  object: fc
    .array(fc.tuple(nameArb, tie('json')), { maxLength: 5 })
    .map((entries) => Object.fromEntries(entries) as Json),
})).object

/** Mostly right, so that repairs are reached. */
const nearArgs = fc
  .record(
    {
      path: leaf,
      filePath: leaf,
      cmd: leaf,
      replaceAll: leaf,
      limit: leaf,
      names: fc.oneof(leaf, fc.array(leaf), fc.constant({})),
      counts: fc.oneof(leaf, fc.array(leaf)),
      edits: fc.array(
        fc.record({ filePath: leaf, old_string: leaf, replaceAll: leaf }, { requiredKeys: ['old_string'] }),
      ),
      options: fc.oneof(leaf, fc.record({ deep: leaf, cwd: leaf }, { requiredKeys: [] })),
    },
    { requiredKeys: [] },
  )
  .map((args) => args as Json)
const args = fc.oneof(anyArgs, nearArgs)
const text = fc.string().filter((s) => !s.startsWith('['))
const validArgs = fc
  .record(
    {
      path: text,
      command: fc.string(),
      replace_all: fc.boolean(),
      limit: fc.maxSafeInteger(),
      names: fc.array(fc.string()),
      note: fc.option(fc.string()),
      mode: fc.oneof(fc.string(), fc.boolean()),
      edits: fc.array(fc.record({ path: text, old_string: fc.string() })),
      labels: fc.dictionary(fc.string(), fc.integer()),
    },
    { requiredKeys: ['path'] },
  )
  .map((value) => value as Json)

function keysOf(value: Json): readonly string[] {
  if (typeof value === 'string') {
    try {
      const inner = JSON.parse(value) as Json
      return typeof inner === 'object' ? keysOf(inner) : []
    } catch {
      return []
    }
  }
  if (value === null || typeof value !== 'object') return []
  if (Array.isArray(value)) return value.flatMap((item: Json) => keysOf(item))
  return Object.entries(value as Readonly<Record<string, Json>>).flatMap(([key, item]) => [key, ...keysOf(item)])
}

const ALIASED: Readonly<Record<string, string>> = {
  path: 'filePath',
  old_string: 'oldString',
  replace_all: 'replaceAll',
  command: 'cmd',
}

describe('repair: properties', () => {
  it('B-ADMIT-15: repair is idempotent, changes nothing in place and never throws', () => {
    fc.assert(
      fc.property(args, (value) => {
        const before = JSON.stringify(value)
        const once = mend(value)
        expect(mend(once)).toEqual(once)
        expect(JSON.stringify(value)).toBe(before)
      }),
      { numRuns: runs(3000) },
    )
  })

  it('B-ADMIT-15: what is left of a link is not read as something else the next time', () => {
    const parameters = jsonOf(z.strictObject({ path: z.array(z.strictObject({})) }))
    const once = mend({ path: '[[a](a)]([a](a))' }, parameters)
    expect(mend(once, parameters)).toEqual(once)
  })

  it('B-ADMIT-15: a valid value comes back as the very same value', () => {
    fc.assert(
      fc.property(validArgs, (value) => {
        expect(SCHEMA.safeParse(value).success).toBe(true)
        expect(mend(value)).toBe(value)
      }),
      { numRuns: runs(1000) },
    )
  })

  it('B-ADMIT-15: any unknown field means that nothing is touched', () => {
    fc.assert(
      fc.property(args, fc.string({ minLength: 12 }), leaf, (value, name, item) => {
        const stranger = Object.fromEntries([...Object.entries(value as object), [`?${name}`, item]]) as Json
        expect(mend(stranger)).toBe(stranger)
      }),
      { numRuns: runs(1000) },
    )
  })

  it('B-ADMIT-15: no key appears that was not in the input, under its name or an alias', () => {
    fc.assert(
      fc.property(args, (value) => {
        const before = new Set(keysOf(value))
        const invented = keysOf(mend(value)).filter((key) => !before.has(key) && !before.has(ALIASED[key] ?? key))
        expect(invented).toEqual([])
      }),
      { numRuns: runs(3000) },
    )
  })

  it('B-ADMIT-12: no key reaches a prototype', () => {
    const loose = jsonOf(z.looseObject({ replace_all: z.boolean() }))
    const hostile = JSON.parse(
      '{"__proto__":{"evil":1},"constructor":{"prototype":{"evil":1}},"replaceAll":"true"}',
    ) as Json
    const done = mend(hostile, loose)
    expect(Object.keys(done as object)).toEqual(['__proto__', 'constructor', 'replace_all'])
    expect(Object.getPrototypeOf(done)).toBe(Object.prototype)
    fc.assert(fc.property(args, (value) => void mend(value, loose)))
    expect(({} as Record<string, unknown>)['evil']).toBeUndefined()
  })
})
