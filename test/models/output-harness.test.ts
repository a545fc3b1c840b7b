// Structured output end to end: a scripted model behind a harness. What a single reply means is output.test.ts.
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Fault,
  Harness,
  type HarnessOptions,
  type HarnessOutput,
  memory,
  type Request,
  type Script,
  scripted,
  type Step,
} from '../../src/index.ts'

const city = z.object({ city: z.string(), days: z.number().int().min(1) })
const good = { city: 'Oslo', days: 2 }
const bad = { city: 'Oslo', days: 0 }
const open: Harness[] = []

afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

/** The harness, and the requests its model was sent. */
function make(script: readonly Step[], output: HarnessOutput, more: Partial<HarnessOptions> = {}) {
  const seen: Request[] = []
  const all: Script = script.map((step) => (request: Request) => {
    // What it was shown then: the list itself grows.
    seen.push({ ...request, messages: [...request.messages] })
    return step
  })
  const harness = new Harness({ model: scripted(all), output, ...more })
  open.push(harness)
  return { harness, seen }
}

const final = (args: z.infer<typeof city>, id = 'f'): Step => ({ calls: [{ tool: 'final_result', args, id }] })

function counter() {
  let ran = 0
  const execute = (): string => `looked ${++ran} times`
  const tool = defineTool({ name: 'look', description: 'Looks.', input: z.object({}), effect: 'read', execute })
  return { tool, ran: () => ran }
}

describe('structured output through the harness', () => {
  it('B-OUTPUT-14: a run ends with a value of the schema, and tools run before it (AC-47)', async () => {
    const { tool, ran } = counter()
    const script = [{ calls: [{ tool: 'look', args: {} }] }, final(good)]
    const { harness, seen } = make(script, { schema: city }, { tools: [tool] })
    const result = await harness.run('Where?')
    expect(result).toMatchObject({ status: 'completed', output: good })
    expect(ran()).toBe(1)
    expect(seen[0]?.output).toMatchObject({ mode: 'tool', name: 'final_result', schema: { type: 'object' } })
    expect(seen[0]?.tools.map(({ name }) => name)).toEqual(['look'])
  })

  it('B-OUTPUT-28: a run whose answer is refused fails with the refusal, after one request', async () => {
    const step: Step = { text: 'I cannot help with that.', finish: 'refusal' }
    for (const mode of ['tool', 'prompted'] as const) {
      const { harness, seen } = make([step, step, step], { schema: city, mode })
      const result = await harness.run('Where?')
      expect(result).toMatchObject({ status: 'failed', stopReason: 'refusal' })
      expect(JSON.stringify(result)).toContain('I cannot help with that.')
      expect(seen).toHaveLength(1)
    }
  })

  it('B-OUTPUT-15: final_result is no tool call: it is not counted, and no limit of calls stops it (S0-43)', async () => {
    const { harness } = make([final(good)], { schema: city }, { limits: { toolCalls: 0 } })
    const result = await harness.run('Where?')
    expect(result).toMatchObject({ status: 'completed', output: good, usage: { modelRequests: 1, toolCalls: 0 } })
  })

  it('B-OUTPUT-16: arguments that do not fit are told as the result of that call, and the model corrects itself (AC-48)', async () => {
    const { harness, seen } = make([final(bad), final(good)], { schema: city })
    expect(await harness.run('Where?')).toMatchObject({ status: 'completed', output: good, usage: { toolCalls: 0 } })
    const told = seen[1]?.messages.at(-1)
    expect(told).toMatchObject({ role: 'tool', tool: 'final_result', ok: false })
    expect(told).toMatchObject({ content: expect.stringContaining('days') as string })
  })

  it('B-OUTPUT-17: text instead of the call is corrected by a message (AC-48)', async () => {
    const { harness, seen } = make(['Oslo, I think.', final(good)], { schema: city })
    expect(await harness.run('Where?')).toMatchObject({ status: 'completed', output: good })
    expect(JSON.stringify(seen[1]?.messages.at(-1))).toContain('Call final_result')
  })

  it('B-OUTPUT-18: corrections are bounded; then the run fails and says why, and no value is made up (S0-44)', async () => {
    for (const outputRetries of [0, 1, 3]) {
      const script = Array.from({ length: outputRetries + 1 }, () => final(bad))
      const { harness, seen } = make(script, { schema: city }, { limits: { outputRetries } })
      const result = await harness.run('Where?')
      expect(result).toMatchObject({ status: 'failed', stopReason: 'output_validation_failed' })
      expect(result).not.toHaveProperty('output')
      // What was wrong, in the words of the schema.
      expect(result.status === 'failed' && result.failure.message).toMatch(
        /still invalid after its last retry\..*- days: /s,
      )
      expect(seen).toHaveLength(outputRetries + 1)
    }
  })

  it.each([
    ['mode', { schema: city, mode: 'jsn' }, /The option "output\.mode" of new Harness must be .*, not "jsn"/],
    ['schema', { schema: 'nope' }, /The option "output\.schema" of new Harness must be a schema/],
    ['schema, and nothing', { schema: null }, /The option "output\.schema" of new Harness must be a schema/],
  ])('B-OUTPUT-27: what is no %s is refused when the harness is made', (_what, output, sentence) => {
    const given = output as unknown as HarnessOutput
    expect(() => make([], given)).toThrow(sentence)
    expect(() => make([], given)).toThrow(Fault)
  })

  it('B-OUTPUT-19: a correction that the limit of requests blocks is that limit, not a failed validation (AC-49)', async () => {
    const { harness } = make([final(bad)], { schema: city }, { limits: { modelRequests: 1, outputRetries: 2 } })
    expect(await harness.run('Where?')).toMatchObject({ status: 'limit', limit: 'model_requests' })
  })

  it('B-OUTPUT-20: final_result beside another call, or twice, is corrected, and nothing of that reply ran (AC-46)', async () => {
    const call = { tool: 'final_result', args: good }
    for (const calls of [
      [{ tool: 'look', args: {} }, call],
      [call, call],
    ]) {
      const { tool, ran } = counter()
      const { harness, seen } = make([{ calls }, { calls: [call] }], { schema: city }, { tools: [tool] })
      const result = await harness.run('Where?')
      expect(result).toMatchObject({ status: 'completed', output: good, usage: { toolCalls: 0, outputRetries: 1 } })
      expect(ran()).toBe(0)
      // Every call of the reply has its result in the next request.
      const told = seen[1]?.messages.filter((message) => message.role === 'tool') ?? []
      expect(told.map(({ ok }) => ok)).toEqual([false, false])
      expect(JSON.stringify(told)).toMatch(/must be called alone|once, with the whole answer/)
      const strict = make([{ calls }], { schema: city }, { tools: [tool], limits: { outputRetries: 0 } })
      expect(await strict.harness.run('Where?')).toMatchObject({ stopReason: 'output_validation_failed' })
      expect(ran()).toBe(0)
    }
  })

  it('B-OUTPUT-21: prompted puts the schema into the instructions and takes the JSON out of its fence (AC-50)', async () => {
    const text = `Here it is:\n\`\`\`json\n${JSON.stringify(good)}\n\`\`\``
    const { harness, seen } = make([text], { schema: city, mode: 'prompted' }, { instructions: 'Be brief.' })
    expect(await harness.run('Where?')).toMatchObject({ status: 'completed', output: good })
    expect(seen[0]?.output).toBeUndefined()
    expect(seen[0]?.instructions).toMatch(/^Be brief\.[^]*"city"/)
  })

  it('B-OUTPUT-22: what is no object, also null, comes back as it is (AC-51)', async () => {
    const list = make([{ calls: [{ tool: 'final_result', args: { value: ['a', 'b'] } }] }], {
      schema: z.array(z.string()),
    })
    expect(await list.harness.run('Which?')).toMatchObject({ status: 'completed', output: ['a', 'b'] })
    const none = make([{ text: 'hm', calls: [{ tool: 'final_result', args: { value: null } }] }], {
      schema: z.string().nullable(),
    })
    expect(await none.harness.run('Which?')).toMatchObject({ status: 'completed', output: null })
    const json = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] }
    const plain = make([{ calls: [{ tool: 'final_result', args: { a: 1 } }] }], { schema: json })
    expect(await plain.harness.run('Which?')).toMatchObject({ status: 'completed', output: { a: 1 } })
  })

  it('B-OUTPUT-23: the mode text asks for nothing, and the answer is text', async () => {
    const { harness, seen } = make(['Oslo.'], { schema: city, mode: 'text' })
    expect(await harness.run('Where?')).toMatchObject({ status: 'completed', text: 'Oslo.', output: 'Oslo.' })
    expect(seen[0]?.output).toBeUndefined()
  })

  it('B-OUTPUT-24: a session goes on after its answer: the call of it has its result, and the next run gives another', async () => {
    const store = memory()
    const { harness, seen } = make(
      [final(good, 'one'), final({ ...good, days: 3 }, 'two')],
      { schema: city },
      { store },
    )
    const session = await harness.open()
    await session.run('Where?')
    expect(await session.run('And for longer?')).toMatchObject({ status: 'completed', output: { days: 3 } })
    expect(seen[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
    await store.close()
  })

  it('B-OUTPUT-25: a tool may not be named final_result where an answer is asked for that way (S0-4)', () => {
    const taken = defineTool({
      name: 'final_result',
      description: 'd',
      input: z.object({}),
      effect: 'read',
      execute: () => '',
    })
    expect(() => make([], { schema: city }, { tools: [taken] })).toThrow(/final_result/)
    expect(() => make([], { schema: city, mode: 'text' }, { tools: [taken] })).not.toThrow()
  })

  it('B-OUTPUT-27: a schema in the place of `output` is refused with a sentence that says what to write', () => {
    const bare = city as unknown as { schema: typeof city }
    expect(() => make([], bare)).toThrow(/write output: \{ schema \}/)
  })

  it('B-OUTPUT-12: a choice at the top of the schema is asked for under `value` too', async () => {
    const schema = z.union([z.object({ a: z.string() }), z.object({ b: z.number() })])
    const { harness } = make(['{"value":{"b":1}}'], { schema, mode: 'prompted' })
    expect(await harness.run('Go.')).toMatchObject({ status: 'completed', output: { b: 1 } })
  })
})
