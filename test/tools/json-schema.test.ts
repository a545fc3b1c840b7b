// JSON Schema as a tool's input: what strangers' tools come with. And output schemas.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, type JsonSchema, output, scripted, type Tool } from '../../src/index.ts'
import { compile, fromJsonSchema } from '../../src/tools/json-schema.ts'
import { execute } from '../../src/tools/run.ts'
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
    for (const each of bad) await expect(compile(each, 'far')).rejects.toThrow('The input schema of tool "far"')
    let deep: JsonSchema = { type: 'string' }
    for (let i = 0; i < 100; i++) deep = { type: 'object', properties: { a: deep } }
    const huge = { type: 'object', description: 'x'.repeat(300_000) }
    for (const each of [{ type: 'array' }, deep, huge]) {
      expect(() => fromJsonSchema(each, 'far')).toThrow('The input schema of tool "far"')
    }
  })

  it('B-TOOL-9: patterns of strangers are not run: one that would never end checks nothing', async () => {
    const evil = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } }
    const checked = await fromJsonSchema(evil, 'far')['~standard'].validate({ a: `${'a'.repeat(60)}!` })
    expect(checked.issues).toBeUndefined()
  })
})

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
      execute: ({ n }) => {
        ran += 1
        return { n }
      },
    })
    expect(await execute(tool, { n: 1 }, toolContext())).toMatchObject({ type: 'ok' })
    expect(await execute(tool, { n: 'one' }, toolContext())).toMatchObject({
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
    expect(await execute(made('{"n":1}'), {}, toolContext())).toMatchObject({
      type: 'ok',
      output: { metadata: { took: 3 } },
    })
    for (const wrong of ['{"n":"one"}', 'one'])
      expect(await execute(made(wrong), {}, toolContext())).toMatchObject({ type: 'failed', kind: 'Failed' })
  })

  it('B-TOOL-14: a schema that cannot say its JSON Schema is refused where the tool is defined', () => {
    const input = { '~standard': { validate: (value: unknown) => ({ value }) } }
    const define = (): Tool => defineTool({ name: 'mute', description: 'd', input, execute: () => '' })
    expect(define).toThrow(expect.objectContaining({ code: 'invalid_config' }))
    expect(define).toThrow(/"mute" cannot say its JSON Schema/)
  })
})
