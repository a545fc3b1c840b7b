// Types of a schema library that JSON does not have, in the inputs of tools and in the shape of an answer.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, orThrow, scripted } from '../../src/index.ts'
import { schemaOfAnswer } from '../../src/runtime/state/agent-output.ts'
import { parallelLlmTool } from '../../src/tools/agents/parallel-llm.ts'

const tool = (input: z.ZodType) =>
  defineTool({ name: 'book', description: 'Books.', input, effect: 'read', execute: async () => 'done' })

/** What a schema that stands under `when.at` of an answer is told to a model as. */
const fieldOf = (at: z.ZodType): unknown => {
  const shape = schemaOfAnswer(z.object({ when: z.object({ at }) }))
  return (shape as { properties: { when: { properties: { at: unknown } } } }).properties.when.properties.at
}

describe('a type that takes a text', () => {
  it('B-SCHEMA2-1: a coerced date is a text of the format date-time, wherever it stands', () => {
    const date = { type: 'string', format: 'date-time' }
    expect(fieldOf(z.coerce.date())).toEqual(date)
    expect(fieldOf(z.coerce.date().min(new Date(0)))).toEqual(date)
    expect(fieldOf(z.coerce.date().optional())).toEqual(date)
    expect(fieldOf(z.coerce.date().describe('When.'))).toEqual({ ...date, description: 'When.' })
    expect(fieldOf(z.coerce.date().nullable())).toEqual({ anyOf: [date, { type: 'null' }] })
    expect(fieldOf(z.array(z.coerce.date()))).toEqual({ type: 'array', items: date })
    expect(fieldOf(z.record(z.string(), z.coerce.date()))).toMatchObject({ additionalProperties: date })
    expect(fieldOf(z.lazy(() => z.coerce.date()))).toEqual(date)
    expect(fieldOf(z.coerce.bigint())).toEqual({ type: 'string', pattern: '^-?[0-9]+$' })
  })

  it('B-SCHEMA2-2: in the input of a tool it is refused, since its arguments are recorded before the handler has them', () => {
    expect(() => tool(z.object({ at: z.coerce.date() }))).toThrow('Use z.iso.datetime(), and make the date')
    expect(() => tool(z.object({ seats: z.coerce.bigint() }))).toThrow('Use z.string(), and make the bigint')
    expect(tool(z.object({ at: z.iso.datetime() })).parameters).toMatchObject({
      properties: { at: { format: 'date-time' } },
    })
  })

  it('B-SCHEMA2-1: the answer of a run has the date, as the guide says', async () => {
    const model = scripted([{ calls: [{ tool: 'final_result', args: { at: '2026-05-01T09:00:00Z' } }] }])
    const harness = new Harness({ model })
    const schema = z.object({ at: z.coerce.date() })
    const result = orThrow(await harness.run('When does it open?', { output: { schema } }))
    await harness.close()
    expect(result.output.at.getTime()).toBe(Date.parse('2026-05-01T09:00:00Z'))
  })
})

const refused: readonly (readonly [string, z.ZodType, string])[] = [
  ['z.date', z.date(), 'a date'],
  ['z.bigint', z.bigint(), 'a bigint'],
  ['z.map', z.map(z.string(), z.number()), 'a map'],
  ['z.set', z.set(z.string()), 'a set'],
  ['z.custom', z.custom<string>(), 'a type of your own'],
  ['z.instanceof', z.instanceof(URL), 'a type of your own'],
  ['z.transform', z.transform((value) => value), 'a transform'],
  ['z.symbol', z.symbol(), 'a symbol'],
  ['z.undefined', z.undefined(), 'undefined'],
  ['z.void', z.void(), 'void'],
  ['z.nan', z.nan(), 'NaN'],
  ['z.literal(1n)', z.literal(1n), 'a literal'],
]

describe('a type that takes nothing that JSON has', () => {
  it.each(refused)('B-SCHEMA2-2: %s in the input of a tool is refused with the field', (_name, at, said) => {
    const define = () => tool(z.object({ when: z.array(z.object({ at })) }))
    expect(define).toThrow(expect.objectContaining({ code: 'invalid_config' }))
    expect(define).toThrow(/^The input schema of tool "book" has /)
    expect(define).toThrow('at "when[].at"')
    expect(define).toThrow(said)
  })

  it.each(refused)('B-SCHEMA2-2: %s in the shape of an answer is refused with the field', async (_name, at, said) => {
    const harness = new Harness({ model: scripted([]) })
    const asked = harness.run('Say.', { output: { schema: z.object({ when: z.tuple([at]) }) } })
    await expect(asked).rejects.toMatchObject({ code: 'invalid_config' })
    await expect(asked).rejects.toThrow(said)
    await expect(asked).rejects.toThrow('at "when[0]"')
    await harness.close()
    const schema = z.object({ at })
    const made = () => new Harness({ model: scripted([]), output: { schema } })
    const first = async () => made().run('Say.')
    await expect(first()).rejects.toMatchObject({ code: 'invalid_config' })
  })

  it('B-SCHEMA2-2: parallel_llm refuses a shape of its answers when it is made', () => {
    const output = z.object({ at: z.date() })
    const made = () => parallelLlmTool({ model: scripted([]), output, root: '/' })
    expect(made).toThrow('The output schema of parallel_llm has a date')
  })

  it('B-SCHEMA2-2: what another library says is refused with a code too', () => {
    const input = {
      '~standard': {
        validate: (value: unknown) => ({ value }),
        jsonSchema: {
          input: () => {
            throw new Error('No JSON Schema for a bigint.')
          },
        },
      },
    }
    const define = () => defineTool({ name: 'book', description: 'Books.', input, execute: async () => 'done' })
    expect(define).toThrow(expect.objectContaining({ code: 'invalid_config' }))
    expect(define).toThrow('The input schema of tool "book" cannot be told to a model: No JSON Schema for a bigint.')
  })
})
