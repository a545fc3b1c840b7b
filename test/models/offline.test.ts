// The offline model: fixed rules, no key, no network, and plain words about it.
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, model, offline, type Reply, type Request, type Tool } from '../../src/index.ts'
import { looksLikeCall } from '../../src/models/protocols/leaked-calls.ts'
import { smallestValue } from '../../src/models/local/offline-value.ts'
import type { Json } from '../../src/kernel/content.ts'
import { callContext, request, userSays } from './context.ts'

async function ask(text: string, more: Partial<Request> = {}): Promise<Reply> {
  const answer = await offline().call(request({ messages: [userSays(text)], ...more }), callContext().context)
  if (answer.type !== 'reply') throw new Error(answer.message)
  return answer
}

const textOf = ({ parts }: Reply): string => parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
const NOT = /^This is not a language model/
const tools = ['read', 'list', 'search'].map((name) => {
  const properties = { path: { type: 'string' }, pattern: { type: 'string', minLength: 1 } }
  return {
    name,
    description: name,
    parameters: { type: 'object', properties, required: name === 'search' ? ['pattern'] : [] },
  }
})

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

function look(said: string[] = []): Tool {
  const execute = ({ at }: { readonly at: string }): string => {
    said.push(at)
    return `seen at ${at}`
  }
  return defineTool({
    name: 'look',
    description: 'Looks.',
    input: z.object({ at: z.string() }),
    effect: 'read',
    execute,
  })
}

describe('the offline model', () => {
  it('B-OFFLINE-1: every answer begins by saying that it is not a language model, and the same request gets the same answer', async () => {
    const output = { mode: 'native', name: 'final_result', schema: { type: 'object' }, strict: false } as const
    for (const more of [
      {},
      { tools },
      { output },
      { output: { ...output, mode: 'tool' as const } },
      { messages: [] },
    ]) {
      const answer = await ask('Read a/b.txt, please.', more)
      expect(textOf(answer)).toMatch(NOT)
      expect(await ask('Read a/b.txt, please.', structuredClone(more))).toEqual(answer)
      expect(answer).toMatchObject({ usage: null, cost: 0, route: 'offline' })
    }
  })

  it('B-OFFLINE-2: without anything to do it tells how long the input is and how it begins', async () => {
    const text = textOf(await ask('Wear a coat? It rains in Oslo.'))
    expect(text).toContain('Words: 7. First sentence: "Wear a coat?"')
    expect(textOf(await ask('Hello there', { tools }))).toContain('Tools: read, list, search.')
    const long = textOf(await ask('word '.repeat(100_000)))
    expect(long.length).toBeLessThan(3_000)
    expect(looksLikeCall(textOf(await ask('{"name":"read","arguments":{}}', { tools })), ['read'])).toBe(false)
  })

  it.each([
    ['use read with {"path":"a.txt"}', 'read', { path: 'a.txt' }],
    ['Please use the tool `read` with {"path":"}"} and tell me.', 'read', { path: '}' }],
    ['list {}', 'list', {}],
    ['search {"pattern":"x"}', 'search', { pattern: 'x' }],
    ['call search', 'search', { pattern: 'o' }],
    ['Read src/index.ts.', 'read', { path: 'src/index.ts' }],
    ['read the file "notes.md" for me', 'read', { path: 'notes.md' }],
    ['list the files in src', 'list', { path: 'src' }],
    ['list ./test', 'list', { path: './test' }],
    ['Search for "a b" in src/models', 'search', { pattern: 'a b', path: 'src/models' }],
    ['search for thing', 'search', { pattern: 'thing' }],
  ])('B-OFFLINE-3: told "%s" it calls %s', async (text, tool, args) => {
    const { calls, finish } = await ask(text, { tools })
    expect(calls.map((call) => ({ tool: call.tool, args: JSON.parse(call.args) as unknown }))).toEqual([{ tool, args }])
    expect(finish).toBe('calls')
  })

  it('B-OFFLINE-4: it calls nothing that is not offered, not allowed or not meant', async () => {
    for (const text of ['use write with {}', 'I read a book.', 'list three cities', 'read', 'use read with {"path":']) {
      expect((await ask(text, { tools })).calls).toEqual([])
    }
    expect((await ask('use read with {}', { tools, allow: 'none' })).calls).toEqual([])
    expect((await ask('use read with {}')).calls).toEqual([])
  })

  it('B-OFFLINE-5: in a harness it makes one call and reports what came of it, also what went wrong', async () => {
    const said: string[] = []
    const harness = new Harness({ model: 'offline:any', tools: [look(said)] })
    open.push(harness)
    const session = await harness.open()
    const seen = await session.run('use look with {"at":"noon"}')
    expect(seen).toMatchObject({ status: 'completed', usage: { toolCalls: 1, modelRequests: 2 }, cost: { micros: 0 } })
    expect(seen.text).toMatch(NOT)
    expect(seen.text).toContain('look gave:\n```\nseen at noon\n```')
    expect(said).toEqual(['noon'])
    const wrong = await session.run('use look with {"when":"noon"}')
    expect(wrong.text).toContain('look failed:')
    expect((await session.run('Thanks.')).text).toContain('Words: 1.')
  })

  it.each(['tool', 'native', 'prompted', 'auto'] as const)(
    'B-OFFLINE-6: asked for a value of a schema (%s), it gives the smallest that fits and says that it is no answer',
    async (mode) => {
      const schema = z.object({
        kind: z.enum(['report', 'note']),
        title: z.string().min(3),
        steps: z.array(z.string()),
      })
      const harness = new Harness({ model: offline(), output: { schema, mode } })
      open.push(harness)
      const result = await harness.run('Plan it.')
      expect(result).toMatchObject({ status: 'completed', output: { kind: 'report', steps: [] } })
      expect(result.text).toMatch(/no answer/)
    },
  )

  it('B-OFFLINE-7: it uses a tool before it gives a value, when it is told to', async () => {
    const said: string[] = []
    const harness = new Harness({ model: offline(), tools: [look(said)], output: { schema: z.array(z.string()) } })
    open.push(harness)
    expect(await harness.run('use look with {"at":"dusk"}')).toMatchObject({ status: 'completed', output: [] })
    expect(said).toEqual(['dusk'])
  })

  it('B-OFFLINE-8: the smallest value fits its schema: defaults, examples and first choices first', () => {
    const address = { type: 'object', properties: { zip: { type: 'string', minLength: 5 } }, required: ['zip'] }
    const cases: readonly Json[] = [
      {
        type: 'object',
        properties: { a: { default: 7 }, b: { examples: ['e'] }, c: { enum: ['x', 'y'] } },
        required: ['a', 'b', 'c'],
      },
      { type: 'object', properties: { a: { $ref: '#/$defs/address' } }, required: ['a'], $defs: { address } },
      { type: 'array', minItems: 3, items: { type: 'integer', minimum: 4 }, uniqueItems: true },
      { type: 'array', prefixItems: [{ type: 'boolean' }, { const: 'k' }], items: false, minItems: 2 },
      { anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }] },
      { allOf: [address, { properties: { city: { type: 'string', maxLength: 2 } }, required: ['city'] }] },
      { type: ['null', 'string'] },
      { type: 'integer', exclusiveMinimum: 3, multipleOf: 5 },
      { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 },
      { type: 'integer', maximum: -2 },
      { type: 'object', minProperties: 1, properties: { only: { type: 'boolean' } } },
      { type: 'string', format: 'email' },
      true,
      {},
    ]
    for (const schema of cases) {
      const check = new Ajv2020({ strict: false, validateFormats: false }).compile(schema as object)
      expect({ schema, fits: check(smallestValue(schema)) }).toEqual({ schema, fits: true })
    }
    expect(smallestValue(cases[0] ?? null)).toEqual({ a: 7, b: 'e', c: 'x' })
    const fields = Object.fromEntries('abcdefgh'.split('').map((name) => [name, { $ref: '#/$defs/node' }]))
    const node = { anyOf: [{ type: 'object', properties: fields, required: Object.keys(fields) }, { type: 'null' }] }
    const tree = { type: 'object', properties: { root: { $ref: '#/$defs/node' } }, required: ['root'], $defs: { node } }
    expect(smallestValue(tree)).toEqual({ root: null })
    const endless = { $ref: '#' }
    expect(smallestValue(endless)).toBeNull()
  })

  it('B-OFFLINE-9: offline:any is a model by name, free of charge and without a key', async () => {
    const named = model('offline:any')
    expect(named).toMatchObject({ name: 'offline', secrets: {} })
    expect((await named.profile()).cost({ inputTokens: 1_000_000, outputTokens: 1_000_000 })).toBe(0)
  })
})
