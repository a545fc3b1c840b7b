// Input of the wrong kind is refused with a code and one sentence, where it is given: money as a text, names that can be taken for others,
// costs that are no number, schemas that are none. Which options there are is test/fuzz/options.ts.
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, type HarnessOptions, type Model, scripted } from '../../src/index.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

function make(options: HarnessOptions): Harness {
  const harness = new Harness(options)
  open.push(harness)
  return harness
}

const publish = defineTool({
  name: 'publish',
  description: 'publish',
  input: z.object({ n: z.number() }),
  effect: 'once',
  approval: 'ask',
  execute: () => 'out',
})

async function asked() {
  const harness = make({
    model: scripted([{ calls: [{ tool: 'publish', args: { n: 1 } }] }, 'Done.']),
    tools: [publish],
  })
  const { sessionId } = await harness.run('Go.')
  const session = harness.session(sessionId)
  const [pending] = (await session.status()).pending
  return { harness, session, pending: pending! }
}

describe('money', () => {
  it.each(['5', 5n, [5], { usd: 5 }, null, true, Number.NaN, Number.POSITIVE_INFINITY, 0, -1, 1e300, 1e-9])(
    'B-REFUSE-2: %s is no amount of dollars, and the session gets none',
    async (usd) => {
      const harness = make({ model: scripted([{ text: 'x', cost: 5 }]), budget: { sessionUsd: 0 } })
      const { sessionId } = await harness.run('Go.')
      const session = harness.session(sessionId)
      const decision = { callId: 'budget', allow: true, by: 'ann', usd: usd as number }
      await expect(session.decide(decision)).rejects.toMatchObject({ code: 'invalid_input' })
      expect((await session.status()).pending).toMatchObject([{ callId: 'budget' }])
    },
  )

  it('B-REFUSE-2: dollars for a call that asks for none are refused', async () => {
    const { session, pending } = await asked()
    await expect(session.decide({ ...pending, allow: true, by: 'ann', usd: 5 })).rejects.toMatchObject({
      code: 'invalid_input',
    })
  })
})

/** Each can be taken for "ann", or for nobody. */
const NAMES: readonly unknown[] = [
  '',
  ' ',
  '\u200b',
  '\u2060\u2060',
  '\ufeff',
  '\u3164',
  '\u2800',
  '\u00ad',
  'ann\u200b',
  'a\u200dnn',
  '\u202eann',
  'ann\u2069',
  'ann\u0000',
  'ann\n',
  'a\tnn',
  'ann\u001b[31m',
  'ann\ufe0f',
  'ann.',
  '.ann',
  'ann,',
  "ann'",
  '"ann"',
  '-ann',
  'ann-',
  'ann_',
  '__ann',
  '(ann)',
  'ann)',
  'ann(',
  'ann…',
  'ann·',
  'ann`',
  'ann~',
  'ann^',
  '$ann',
  'x'.repeat(1_025),
  5,
  null,
  true,
  ['ann'],
  { name: 'ann' },
  undefined,
]

describe('names', () => {
  it('B-REFUSE-3: every verb refuses a name that can be taken for another, by one rule, and records nothing', async () => {
    const { harness, session, pending } = await asked()
    const before = (await session.events()).events.length
    for (const by of NAMES) {
      const name = by as string
      await expect(session.decide({ ...pending, allow: true, by: name })).rejects.toMatchObject({
        code: 'invalid_input',
      })
      if (by === undefined) continue
      for (const say of [
        () => session.send('Hi.', { by: name }),
        () => session.interrupt('stop', { by: name }),
        () => session.send([{ type: 'resume' }], { by: name }),
        () => session.close({ by: name }),
        () => session.answer({ callId: pending.callId, content: 'x', by: name }),
        () => harness.remove(session.id, { by: name }),
      ])
        await expect(say()).rejects.toMatchObject({ code: 'invalid_config' })
    }
    expect((await session.events()).events).toHaveLength(before)
  })

  it.each([
    'ann',
    ' ann ',
    'Ann  Lee',
    'ann.lee@example.org',
    'Ann (night shift)',
    'Ann <ann@example.org>',
    '_www',
    "O'Neil",
    '安',
    'Zoë-Marie',
    'slack:U12',
    'ann 👍',
  ])('B-REFUSE-3: %s is a name', async (by) => {
    const { session, pending } = await asked()
    await session.decide({ ...pending, allow: true, by })
    const { events } = await session.events()
    const named = by.trim().replace(/\s+/g, ' ')
    expect(events.find(({ type }) => type === 'user.tool_confirmation')).toMatchObject({ by: named })
  })
})

describe('models and schemas', () => {
  it.each([null, '5', true, [5], { usd: 1 }])(
    'B-REFUSE-4: a cost of %s is no answer of a model, and is written nowhere',
    async (cost) => {
      const model = {
        name: 'own',
        call: async () => ({
          type: 'reply',
          parts: [{ type: 'text', text: 'x' }],
          calls: [],
          finish: 'stop',
          usage: null,
          cost,
        }),
      } as unknown as Model
      for (const each of [model, scripted([{ text: 'x', cost: cost as never }])]) {
        const harness = make({ model: each, limits: { modelAttempts: 1 } })
        const result = await harness.run('Go.')
        expect(result).toMatchObject({
          status: 'failed',
          failure: { message: expect.stringContaining('cost') as string },
        })
        const { events } = await harness.session(result.sessionId).events()
        expect(events.some((event) => 'cost' in event)).toBe(false)
      }
    },
  )

  it.each([5, null, '', ' ', { name: 'x' }, ['x'], true])('B-REFUSE-5: %s is no name of a scripted model', (name) => {
    expect(() => scripted(['x'], name as string)).toThrow(expect.objectContaining({ code: 'invalid_config' }) as Error)
  })

  const none: readonly unknown[] = [
    null,
    5,
    'text',
    [],
    true,
    new Map(),
    new Date(0),
    () => ({}),
    class {},
    { foo: 1 },
    { n: z.number() },
    { parse: () => 1 },
    { '~standard': {} },
    { '~standard': 5 },
    { type: 'strng' },
    { type: [] },
    { properties: 5 },
    { properties: { a: 5 } },
    { properties: { a: { type: 'nope' } } },
    { required: 'a' },
    { required: [1] },
    { enum: 'a' },
    { anyOf: {} },
    { items: 'text' },
    { minimum: '1' },
    { $ref: 5 },
  ]
  it('B-REFUSE-6: an object that is no schema is refused as input and as output, where it is given', async () => {
    const rest = { name: 't', description: 't', effect: 'read', execute: () => 'x' } as const
    for (const schema of none) {
      const refused = expect.objectContaining({ code: 'invalid_config' }) as Error
      expect(() => defineTool({ ...rest, input: schema as never })).toThrow(refused)
      expect(() => defineTool({ ...rest, input: { type: 'object' }, output: schema as never })).toThrow(refused)
      expect(() => new Harness({ model: scripted([]), output: { schema: schema as never } })).toThrow(refused)
      const harness = make({ model: scripted(['x']) })
      await expect(harness.run('Go.', { output: { schema: schema as never } })).rejects.toMatchObject({
        code: 'invalid_config',
      })
    }
  })
})
