// JSON Schema as a tool's input: what strangers' tools come with. And output schemas.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, type JsonSchema, output, scripted, type Tool } from '../../src/index.ts'
import { fromAnyJsonSchema, compileSchema, fromJsonSchema } from '../../src/tools/core/json-schema.ts'
import { executeTool } from '../../src/tools/core/run-tool.ts'
import { toolContext } from './context.ts'

const schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties: {
    city: { type: 'string' },
    days: { type: 'integer', minimum: 1 },
    where: { type: 'object', properties: { 'a/b': { type: 'boolean' } } },
  },
  required: ['city'],
  additionalProperties: false,
} as const

describe('a JSON Schema as input', () => {
  it('B-TOOL-8: it is shown to the model as it is, and checks, repairs and names what is wrong like any other', async () => {
    const got: unknown[] = []
    const said: string[] = []
    const tool = defineTool({
      name: 'far',
      description: 'd',
      input: schema,
      effect: 'read',
      execute: (args) => got.push(args),
    })
    expect(tool.parameters).toEqual(schema)
    const args = [
      { city: 'Oslo', days: '3' },
      { days: 0 },
      { city: 'Oslo', where: { 'a/b': 1 } },
      { city: 'x', other: 1 },
    ]
    const harness = new Harness({
      model: scripted([
        ...args.map((each) => ({ calls: [{ tool: 'far', args: each }] })),
        (request) => {
          said.push(...request.messages.flatMap((m) => (m.role === 'tool' ? [JSON.stringify(m.content)] : [])))
          return 'done'
        },
      ]),
      tools: [tool],
      limits: { toolRetries: 9 },
    })
    expect((await harness.run('go')).status).toBe('completed')
    expect(got).toEqual([{ city: 'Oslo', days: 3 }])
    expect(said[1]).toContain('city: is required')
    expect(said[2]).toContain('where.a/b')
    expect(said[3]).toContain('other: is not a field of this tool')
    await harness.close()
  })

  it('B-TOOL-9: a reference to elsewhere, a wrong shape, a huge or deep schema is refused by the name of its tool', async () => {
    const bad = [
      { type: 'object', properties: { a: { $ref: 'http://127.0.0.1:1/schema.json' } } },
      { type: 'object', properties: { a: { type: 'no such type' } } },
    ]
    for (const each of bad) await expect(compileSchema(each, 'far')).rejects.toThrow('The input schema of tool "far"')
    let deep: JsonSchema = { type: 'string' }
    for (let i = 0; i < 100; i++) deep = { type: 'object', properties: { a: deep } }
    const huge = { type: 'object', description: 'x'.repeat(300_000) }
    for (const each of [{ type: 'array' }, deep, huge]) {
      expect(() => fromJsonSchema(each, 'far')).toThrow('The input schema of tool "far"')
    }
  })

  it('B-TOOL-9: a pattern of a stranger that would never end is stopped, and what it could not decide is not valid', async () => {
    const evil = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } }
    const { validate } = fromJsonSchema(evil, 'far')['~standard']
    const { issues } = await validate({ a: `${'a'.repeat(60)}!` })
    expect(issues?.[0]?.message).toContain('takes longer than 250 ms to check')
    expect(await validate({ a: 'aaa' })).toEqual({ value: { a: 'aaa' } })
    expect((await validate({ a: 'b' })).issues?.[0]?.message).toContain('must match pattern')
  })

  it.each<readonly [string, JsonSchema, unknown, unknown]>([
    ['pattern', { type: 'string', pattern: '^[a-z]{3}$' }, 'abc', 'abcd'],
    ['a pattern that is not written for the flag u', { type: 'string', pattern: '^[\\w\\-]+$' }, 'a-b', 'a b'],
    ['date', { type: 'string', format: 'date' }, '2024-02-29', '2023-02-29'],
    ['date-time', { type: 'string', format: 'date-time' }, '2024-01-01T00:00:00Z', 'yesterday'],
    ['email', { type: 'string', format: 'email' }, 'a@b.org', 'a.b.org'],
    ['uri', { type: 'string', format: 'uri' }, 'https://a.org/b', 'not a uri'],
    ['uuid', { type: 'string', format: 'uuid' }, '5c1fb4a0-2d5c-4d6e-9a2b-0d5a3f0f1b2c', '5c1f'],
    ['ipv4', { type: 'string', format: 'ipv4' }, '127.0.0.1', '127.0.0.256'],
    ['multipleOf', { type: 'number', multipleOf: 5 }, 10, 11],
    ['uniqueItems', { type: 'array', uniqueItems: true }, [1, 2], [1, 1]],
    ['const', { const: 'x' }, 'x', 'y'],
    ['minProperties', { type: 'object', minProperties: 1 }, { a: 1 }, {}],
    [
      'patternProperties',
      { type: 'object', patternProperties: { '^n_': { type: 'number' } } },
      { n_a: 1 },
      { n_a: 'x' },
    ],
    ['dependentRequired', { type: 'object', dependentRequired: { a: ['b'] } }, { a: 1, b: 1 }, { a: 1 }],
    ['not', { not: { required: ['a'] } }, { b: 2 }, { a: 1 }],
    ['an unknown format', { type: 'string', format: 'shoe-size' }, '43', 43],
  ])('B-JSON-1: %s of a plain JSON Schema counts, for arguments and for results', async (_what, schema, good, bad) => {
    const { validate } = fromAnyJsonSchema(schema, 'far')['~standard']
    expect((await validate(good)).issues).toBeUndefined()
    expect((await validate(bad)).issues).not.toBeUndefined()
    const promised = { type: 'object', properties: { value: schema } }
    const tool = defineTool({ ...TOLD, output: promised, execute: () => ({ value: bad }) })
    expect(await executeTool(tool, {}, toolContext())).toMatchObject({ type: 'failed', kind: 'Failed' })
  })

  it.each<readonly [string, () => unknown, string]>([
    ['a Map', () => new Map([['a', 1]]), 'a Map'],
    ['a Set', () => new Set([1]), 'a Set'],
    ['an Error', () => new Error('secret'), 'a Error'],
    ['an instance of a class', () => new (class Row {})(), 'a Row'],
    ['a Map inside', () => ({ rows: [new Map()] }), 'a Map'],
    ['a BigInt', () => ({ n: 1n }), 'a bigint'],
    ['a function', () => () => 1, 'a function'],
    ['NaN', () => ({ n: Number.NaN }), 'NaN'],
    ['a promise inside', () => ({ later: Promise.resolve(1) }), 'a Promise'],
    ['nothing but undefined', () => ({ a: undefined }), 'only undefined'],
    ['a value that holds itself', () => circle(), 'too many levels'],
  ])(
    'B-TOOL-18: %s that a handler returns is said to the model, and is not an empty object',
    async (_what, value, said) => {
      const done = await executeTool(defineTool({ ...TOLD, execute: value }), {}, toolContext())
      expect(done).toMatchObject({ type: 'failed', kind: 'Failed', output: { ok: false } })
      expect('output' in done && done.output.content).toContain(`its result holds ${said}, which JSON cannot show`)
    },
  )

  it.each<readonly [string, () => unknown, string]>([
    ['a Date', () => ({ at: new Date(0) }), '1970-01-01T00:00:00.000Z'],
    ['a URL', () => new URL('https://a.org/'), 'https://a.org/'],
    ['a field that is undefined beside others', () => ({ a: 1, b: undefined }), '"a": 1'],
    ['an object without a prototype', () => Object.assign(Object.create(null) as object, { a: 1 }), '"a": 1'],
  ])('B-TOOL-18: %s has a JSON of its own and is shown as that', async (_what, value, shown) => {
    const done = await executeTool(defineTool({ ...TOLD, execute: value }), {}, toolContext())
    expect(done).toMatchObject({ type: 'ok' })
    expect('output' in done && done.output.content).toContain(shown)
  })
})

const TOLD = { name: 't', description: 'd', input: { type: 'object' }, effect: 'read' } as const

function circle(): unknown {
  const self: Record<string, unknown> = {}
  self['self'] = self
  return self
}

describe('an output schema', () => {
  it('B-TOOL-10: a result that is not what the tool promises is a failure, and the handler is not run again', async () => {
    let ran = 0
    const tool = defineTool({
      name: 'count',
      description: 'd',
      input: z.object({ n: z.unknown() }),
      output: z.object({ n: z.number() }),
      effect: 'read',
      attempts: 3,
      // @ts-expect-error what it returns may be no number
      execute: ({ n }) => {
        ran += 1
        return { n }
      },
    })
    expect(await executeTool(tool, { n: 1 }, toolContext())).toMatchObject({ type: 'ok' })
    expect(await executeTool(tool, { n: 'one' }, toolContext())).toMatchObject({
      type: 'failed',
      kind: 'Failed',
      output: { ok: false, metadata: { error_type: 'InvalidToolOutput' } },
    })
    expect(ran).toBe(2)
  })

  it('B-TOOL-10: of an envelope the content is what is promised', async () => {
    const made = (content: string): Tool =>
      defineTool({
        name: 'count',
        description: 'd',
        input: z.object({}),
        output: z.object({ n: z.number() }),
        execute: () => output({ content, metadata: { took: 3 } }),
      })
    expect(await executeTool(made('{"n":1}'), {}, toolContext())).toMatchObject({
      type: 'ok',
      output: { metadata: { took: 3 } },
    })
    for (const wrong of ['{"n":"one"}', 'one'])
      expect(await executeTool(made(wrong), {}, toolContext())).toMatchObject({ type: 'failed', kind: 'Failed' })
  })

  it('B-TOOL-14: a schema that cannot say its JSON Schema is refused where the tool is defined', () => {
    const input = { '~standard': { validate: (value: unknown) => ({ value }) } }
    const define = (): Tool => defineTool({ name: 'mute', description: 'd', input, execute: () => '' })
    expect(define).toThrow(expect.objectContaining({ code: 'invalid_config' }))
    expect(define).toThrow(/"mute" cannot say its JSON Schema/)
  })
})
