// Options at the public entries: misspelled ones, and values that cannot be used. The fuzz target `options` tries many more.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { systemClock } from '../src/engine/platform.ts'
import { defineTool, type Endpoint, Fault, Harness, type HarnessOptions, model, scripted } from '../src/index.ts'
import { type Checks, count, needed, nearest, optionsOf, text } from '../src/options.ts'
import { admit } from '../src/tools/core/admit.ts'

const TOOL = { name: 'send', description: 'd', input: z.object({}), execute: () => 'ok' }
const made = (more: object) => () => new Harness({ model: scripted(() => 'Done.'), ...more })
const tool = (more: object) => () => defineTool({ ...TOOL, ...more })

describe('an options object', () => {
  it.each<readonly [string, () => unknown, string]>([
    ['budjet', made({ budjet: { runUsd: 1 } }), 'Unknown option "budjet" of new Harness: did you mean "budget"?'],
    ['toolz', made({ toolz: [] }), 'Unknown option "toolz" of new Harness: did you mean "tools"?'],
    [
      'strictHook',
      made({ strictHook: true }),
      'Unknown option "strictHook" of new Harness: did you mean "strictHooks"?',
    ],
    ['aproval', tool({ aproval: 'ask' }), 'Unknown option "aproval" of tool "send": did you mean "approval"?'],
    ['a replaced option of a tool', made({ tools: [{ ...defineTool(TOOL), aproval: 1 }] }), 'Unknown option "aproval"'],
    ['something far off', made({ zzzzzz: 1 }), 'Unknown option "zzzzzz" of new Harness. Known are: model, tools'],
    ['one that is undefined', made({ budjet: undefined }), 'Unknown option "budjet"'],
    ['an own __proto__', made(JSON.parse('{"__proto__":{}}') as object), 'Unknown option "__proto__"'],
    ['one within one', made({ worker: { leasMs: 1 } }), 'Unknown option "leasMs" of "worker" of new Harness'],
  ])('B-OPTION-1: %s is refused with the nearest one that there is', (_what, make, sentence) => {
    expect(make).toThrow(sentence)
    expect(make).toThrow(expect.objectContaining({ code: 'invalid_config' }) as Error)
  })

  it('B-OPTION-1: a verb refuses one too, before anything is written', async () => {
    const harness = made({})()
    await expect(harness.run('x', { maxSteps: 3 } as object)).rejects.toMatchObject({ code: 'invalid_config' })
    expect(() => harness.stream('x', { deltaz: true } as object)).toThrow('did you mean "deltas"?')
    expect(await harness.list()).toEqual([])
    const session = await harness.open()
    await expect(session.send('x', { wen: 'now' } as object)).rejects.toThrow('did you mean "when"?')
    await expect(session.steer([{ type: 'pause', why: 'x' } as never])).rejects.toThrow(
      'Unknown option "why" of a pause',
    )
    expect((await session.read()).events).toHaveLength(1)
    await harness.close()
  })

  it.each<readonly [string, () => unknown, string]>([
    [
      'effect: Once',
      tool({ effect: 'Once' }),
      'must be "read" or "idempotent" or "once", not "Once": did you mean "once"?',
    ],
    ['timeoutMs: 5s', tool({ timeoutMs: '5s' }), 'must be a number of milliseconds above 0, not "5s".'],
    ['timeoutMs: NaN', tool({ timeoutMs: Number.NaN }), 'not NaN'],
    ['timeoutMs below 0', tool({ timeoutMs: -1 }), 'not -1'],
    ['timeoutMs without end', tool({ timeoutMs: Number.POSITIVE_INFINITY }), 'not Infinity'],
    ['approvalMs: 1h', made({ approvalMs: '1h' }), '"approvalMs" of new Harness must be a number of milliseconds'],
    ['store: x.db', made({ store: 'x.db' }), 'Write store: sqlite("x.db").'],
    ['no input', tool({ input: undefined }), 'The option "input" of tool "send" is missing.'],
    ['a tool that was not made', made({ tools: [TOOL] }), 'is not a tool: make it with defineTool'],
    ['policy: null', made({ policy: null }), 'The option "policy" of new Harness must be an object, not null.'],
    ['no options at all', () => new Harness(undefined as unknown as HarnessOptions), 'must be an object, not nothing'],
    ['an endpoint without quirks', () => model('own:x', { endpoints: [{ name: 'own' } as Endpoint] }), 'is missing'],
  ])('B-OPTION-2: %s is refused when it is given, with a sentence that says what to give', (_what, make, sentence) => {
    expect(make).toThrow(sentence)
    expect(make).toThrow(Fault)
  })

  it('B-OPTION-3: one that is undefined is the default', () => {
    expect(defineTool({ ...TOOL, timeoutMs: undefined, effect: undefined } as never)).toMatchObject({
      timeoutMs: 60_000,
      effect: 'once',
    })
  })

  it('B-OPTION-4: a table of checks that lacks an option of its type, or has another, does not compile', () => {
    type Some = { readonly name: string; readonly most?: number }
    const checks: Checks<Some> = { name: needed(text), most: count() }
    // @ts-expect-error an option of the type is not checked
    const lacking: Checks<Some> = { name: needed(text) }
    // @ts-expect-error an option that must be there is not needed
    const optional: Checks<Some> = { name: text, most: count() }
    // @ts-expect-error the type has no such option
    const more: Checks<Some> = { name: needed(text), most: count(), least: count() }
    for (const each of [checks, lacking, optional, more]) expect(optionsOf<Some>('x', each)).toBeTypeOf('function')
    expect(nearest('x'.repeat(100_000), ['name'])).toBeNull()
  })
})

describe('arguments that a schema made', () => {
  it('B-TOOL-19: a Proxy or a getter answers once: what is shown, recorded and executed is one plain copy', () => {
    let asked = 0
    const changing = {
      get path() {
        asked += 1
        return asked <= 2 ? 'safe.txt' : 'secret.txt'
      },
    }
    const proxy = new Proxy(
      { path: 'safe.txt' },
      { get: (target, key) => (key === 'path' ? changing.path : (Reflect.get(target, key) as unknown)) },
    )
    for (const value of [changing, proxy]) {
      asked = 0
      const odd = { '~standard': { validate: () => ({ value }), jsonSchema: { input: () => ({ type: 'object' }) } } }
      const writes = defineTool({ ...TOOL, input: odd, approval: 'ask' })
      const redactor = { idle: true, find: () => null, json: <T>(same: T) => same }
      const asking = {
        now: 0,
        clock: systemClock,
        approvalMs: null,
        policy: { rules: [] },
        environment: null,
        redactor,
      }
      const admitted = admit([{ id: 'c', tool: 'send', args: '{}' }], new Map([['send', writes]]), asking)
      const [proposal] = admitted as readonly { readonly args: unknown }[]
      const before = JSON.stringify(proposal?.args)
      expect([JSON.stringify(proposal?.args), JSON.stringify(proposal?.args)]).toEqual([before, before])
      expect(Object.getOwnPropertyDescriptor(proposal?.args, 'path')).toHaveProperty('value')
    }
  })
})
