// Structured output: how it is asked for, and what a reply means for it. Through the harness it is output-harness.test.ts.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Json } from '../../src/kernel/content.ts'
import type { Reply, ReplyCall } from '../../src/ports/model.ts'
import {
  type ModelAbilities,
  judgeOutput,
  type OutputMode,
  type OutputPlan,
  planOutput,
} from '../../src/models/structured-output.ts'

const openai: ModelAbilities = { name: 'openai:m', native: 'default' }
const router: ModelAbilities = { name: 'openrouter:m', native: 'possible' }
const anthropic: ModelAbilities = { name: 'anthropic:m', native: 'no' }
const city = z.object({ city: z.string(), days: z.number().int().min(1) })

function plan(schema: z.ZodType, mode: OutputMode | undefined, able = anthropic): OutputPlan {
  const shape = z.toJSONSchema(schema, { io: 'input' }) as Json
  const validate = (value: unknown) => schema['~standard'].validate(value)
  const made = planOutput({ schema: shape, validate, ...(mode === undefined ? {} : { mode }) }, able)
  if (made === null) throw new Error('there is no plan')
  return made
}

function reply(text: string, calls: readonly ReplyCall[] = [], finish: Reply['finish'] = 'stop'): Reply {
  const parts = text === '' ? [] : [{ type: 'text' as const, text }]
  return { type: 'reply', parts, calls, finish: calls.length > 0 && finish === 'stop' ? 'calls' : finish, usage: null }
}

const final = (args: string): ReplyCall => ({ id: 'c', tool: 'final_result', args })
const oslo = '{"city":"Oslo","days":2}'

describe('structured output', () => {
  it('B-OUTPUT-5: auto is native where that is the custom and a tool elsewhere; native where there is none is refused (S0-39)', () => {
    expect(plan(city, undefined, openai).mode).toBe('native')
    expect(plan(city, 'auto', router).mode).toBe('tool')
    expect(plan(city, 'auto', anthropic).mode).toBe('tool')
    expect(plan(city, 'native', router).mode).toBe('native')
    expect(plan(city, 'tool', openai).mode).toBe('tool')
    expect(() => plan(city, 'native', anthropic)).toThrow(/no native structured output/)
    expect(planOutput({ mode: 'text', schema: {}, validate: (value) => ({ value }) }, openai)).toBeNull()
  })

  it('B-OUTPUT-6: a request carries the schema and its name, strict where all of it can be closed; prompted puts it into words (S0-42, AC-51)', () => {
    expect(plan(city, 'native', openai).asked).toMatchObject({ mode: 'native', name: 'final_result', strict: true })
    expect(plan(city.partial(), 'native', openai).asked).toMatchObject({ strict: false })
    const nested = plan(z.object({ list: z.array(city), of: city }), 'native', openai).asked
    expect(nested).toMatchObject({ strict: true, schema: { properties: { of: { additionalProperties: false } } } })
    const open = plan(z.looseObject({ a: z.string() }), 'native', openai).asked
    expect(open).toMatchObject({ strict: false, schema: { additionalProperties: {} } })
    const prompted = plan(city, 'prompted')
    expect(prompted.asked).toBeNull()
    expect(prompted.instructions).toContain('"city"')
    expect(plan(city, 'tool').instructions).toBe('')
  })

  it('B-OUTPUT-7: one final_result with fitting arguments is the answer; other calls go on first (S0-40, AC-47)', async () => {
    const tool = plan(city, 'tool')
    expect(await judgeOutput(tool, reply('', [final(oslo)]))).toEqual({
      type: 'final',
      output: { city: 'Oslo', days: 2 },
    })
    expect(await judgeOutput(tool, reply('hm', [{ id: 'a', tool: 'look', args: '{}' }]))).toEqual({ type: 'continue' })
    const native = plan(city, 'native', openai)
    expect(await judgeOutput(native, reply('', [{ id: 'a', tool: 'look', args: '{}' }]))).toEqual({ type: 'continue' })
    expect(await judgeOutput(native, reply(oslo))).toEqual({ type: 'final', output: { city: 'Oslo', days: 2 } })
  })

  it('B-OUTPUT-8: final_result beside other calls, or twice, is corrected as the result of that call (AC-46)', async () => {
    const tool = plan(city, 'tool')
    const mixed = await judgeOutput(tool, reply('', [{ id: 'a', tool: 'look', args: '{}' }, final(oslo)]))
    const alone = expect.stringContaining('must be called alone') as string
    expect(mixed).toEqual({ type: 'retry_tool_output', call: 1, text: alone })
    const twice = await judgeOutput(tool, reply('', [final(oslo), final(oslo)]))
    expect(twice).toEqual({ type: 'retry_tool_output', call: 0, text: expect.stringContaining('once') as string })
  })

  it('B-OUTPUT-9: arguments that do not fit are corrected as the result of that call, text alone by a message (AC-48)', async () => {
    const tool = plan(city, 'tool')
    for (const args of ['{"city":"Oslo","days":0}', '{"city":', 'no', '']) {
      expect(await judgeOutput(tool, reply('', [final(args)]))).toMatchObject({ type: 'retry_tool_output', call: 0 })
    }
    const wrong = await judgeOutput(tool, reply('', [final('{"city":"Oslo","days":0}')]))
    expect(wrong).toMatchObject({ text: expect.stringMatching(/does not fit its schema[^]*- days: /) as string })
    expect(await judgeOutput(tool, reply(oslo))).toMatchObject({ type: 'retry_user_message' })
    expect(await judgeOutput(tool, reply(''))).toMatchObject({ type: 'retry_user_message' })
    const native = plan(city, 'native', openai)
    expect(await judgeOutput(native, reply('{"city":1}'))).toMatchObject({ type: 'retry_user_message' })
    expect(await judgeOutput(native, reply('Oslo it is.'))).toMatchObject({ type: 'retry_user_message' })
  })

  it('B-OUTPUT-10: a draft before an answer that was cut off is not taken for it', async () => {
    const text = 'First: {"city":"Oslo","days":40}, no, that is too long. The answer is {"city":"Oslo","da'
    const cut = await judgeOutput(plan(city, 'prompted'), reply(text, [], 'length'))
    expect(cut).toMatchObject({ type: 'retry_user_message', text: expect.stringContaining('cut off') as string })
    // A cut after the whole JSON value only loses text around it.
    const whole = await judgeOutput(plan(city, 'prompted'), reply('{"city":"Oslo","days":4} is what I', [], 'length'))
    expect(whole).toEqual({ type: 'final', output: { city: 'Oslo', days: 4 } })
  })

  it('B-OUTPUT-10: an answer that was cut off is never completed by us', async () => {
    const tool = plan(city, 'tool')
    const cut = await judgeOutput(tool, reply('', [final('{"city":"Oslo","days":2')], 'length'))
    expect(cut).toMatchObject({ type: 'retry_tool_output', text: expect.stringContaining('cut off') as string })
    const prompted = await judgeOutput(plan(city, 'prompted'), reply('{"city":"Oslo","days":2', [], 'length'))
    expect(prompted).toMatchObject({ type: 'retry_user_message', text: expect.stringContaining('cut off') as string })
    expect(await judgeOutput(plan(city, 'native', openai), reply('', [], 'length'))).toEqual({
      type: 'empty',
      boost: true,
    })
    expect(await judgeOutput(plan(city, 'native', openai), reply(' '))).toEqual({ type: 'empty' })
    expect(await judgeOutput(tool, reply('', [], 'length'))).toEqual({ type: 'empty', boost: true })
  })

  it('B-OUTPUT-11: prompted takes the JSON out of fences and prose, and still checks it strictly (AC-50, TRAP-30)', async () => {
    const prompted = plan(city, 'prompted')
    const output = { city: 'Oslo', days: 2 }
    const fenced = 'Sure!\n```json\n{"city":"Oslo","days":2,}\n```\nAnything else?'
    expect(await judgeOutput(prompted, reply(fenced))).toEqual({ type: 'final', output })
    expect(await judgeOutput(prompted, reply('It is {"city":"Oslo"}.'))).toMatchObject({ type: 'retry_user_message' })
  })

  it('B-OUTPUT-28: a refusal is told as the refusal, in its own words, and not asked about again', async () => {
    for (const asked of [plan(city, 'native', openai), plan(city, 'tool'), plan(city, 'prompted')]) {
      const refused = { ...reply('I cannot help with that.'), finish: 'refusal' } as const
      expect(await judgeOutput(asked, refused)).toEqual({
        type: 'stop',
        reason: 'The model refused to answer: I cannot help with that.',
        as: {
          type: 'failed',
          reason: 'refusal',
          failure: { kind: 'Failed', message: 'The model refused to answer: I cannot help with that.' },
        },
      })
      const silent = { ...reply(''), finish: 'refusal' } as const
      expect(await judgeOutput(asked, silent)).toMatchObject({ type: 'stop', as: { reason: 'refusal' } })
      const fits = { ...reply('{"city":"Oslo","days":2}'), finish: 'refusal' } as const
      expect(await judgeOutput(asked, fits)).toMatchObject({ type: 'stop' })
    }
  })

  it('B-OUTPUT-12: what is no object is asked for under `value`, with its references, and comes back without it (S0-41, AC-51)', async () => {
    const list = plan(z.array(z.string()), 'tool')
    expect(list.asked?.schema).toMatchObject({ properties: { value: { type: 'array' } }, required: ['value'] })
    expect(await judgeOutput(list, reply('', [final('{"value":["a"]}')]))).toEqual({ type: 'final', output: ['a'] })
    expect(await judgeOutput(list, reply('', [final('["a"]')]))).toEqual({ type: 'final', output: ['a'] })
    const either = plan(z.union([city, z.object({ value: z.string(), kind: z.literal('v') })]), 'tool')
    const forgot = await judgeOutput(either, reply('', [final('{"value":"x","kind":"v"}')]))
    expect(forgot).toEqual({ type: 'final', output: { value: 'x', kind: 'v' } })
    const trees = z.array(
      z.object({
        get more() {
          return trees
        },
      }),
    )
    const wrapped = JSON.stringify(plan(trees, 'tool').asked?.schema)
    expect(wrapped).toContain('#/properties/value')
    expect(wrapped).not.toMatch(/"\$ref":"#"/)
  })

  it('B-OUTPUT-13: an answer is kept as JSON, and a check that throws is a problem of the answer, not of the run', async () => {
    const dated = plan(z.object({ at: z.string().transform((at) => ({ at, none: undefined })) }), 'prompted')
    expect(await judgeOutput(dated, reply('{"at":"now"}'))).toEqual({ type: 'final', output: { at: { at: 'now' } } })
    const validate = (): never => {
      throw new Error('no network')
    }
    const broken = planOutput({ mode: 'prompted', schema: { type: 'object' }, validate }, anthropic) as OutputPlan
    expect(await judgeOutput(broken, reply('{}'))).toMatchObject({
      type: 'retry_user_message',
      text: expect.stringContaining('no network') as string,
    })
  })
})
