// Options at the public entries: misspelled ones, and values that cannot be used. The fuzz target `options` tries many more.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { runtimeClock } from '../src/runtime/state/machine.ts'
import { defineTool, type Endpoint, Fault, Harness, type HarnessOptions, model, scripted } from '../src/index.ts'
import { type Checks, countCheck, requiredCheck, nearest, optionsChecker, textCheck } from '../src/options.ts'
import { admitCalls } from '../src/tools/core/admit.ts'

const TOOL = { name: 'send', description: 'd', input: z.object({}), execute: () => 'ok' }
const made = (more: object) => () => new Harness({ model: scripted(() => 'Done.'), ...more })
const tool = (more: object) => () => defineTool({ ...TOOL, ...more })

describe('an options object', () => {
  it.each<readonly [string, () => unknown, string]>([
    ['budjet', made({ budjet: { runUsd: 1 } }), 'Unknown option "budjet" of new Harness: did you mean "budget"?'],
    ['toolz', made({ toolz: [] }), 'Unknown option "toolz" of new Harness: did you mean "tools"?'],
    ['aproval', tool({ aproval: 'ask' }), 'Unknown option "aproval" of tool "send": did you mean "approval"?'],
    ['a replaced option of a tool', made({ tools: [{ ...defineTool(TOOL), aproval: 1 }] }), 'Unknown option "aproval"'],
    ['something far off', made({ zzzzzz: 1 }), 'Unknown option "zzzzzz" of new Harness. Known are: model, tools'],
    ['one that is undefined', made({ budjet: undefined }), 'Unknown option "budjet"'],
    ['an own __proto__', made(JSON.parse('{"__proto__":{}}') as object), 'Unknown option "__proto__"'],
    [
      'one within one',
      made({ worker: { leasMs: 1 } }),
      'Unknown option "worker.leasMs" of new Harness: did you mean "worker.leaseMs"?',
    ],
  ])('B-OPTION-1: %s is refused with the nearest one that there is', (_what, make, sentence) => {
    expect(make).toThrow(sentence)
    expect(make).toThrow(expect.objectContaining({ code: 'invalid_config' }) as Error)
  })

  it.each<readonly [string, object, string]>([
    ['an unknown one', { limits: { turns: 1 } }, 'Unknown option "limits.turns" of new Harness. Known are: '],
    [
      'a wrong value',
      { budget: { runUsd: 'much' } },
      'The option "budget.runUsd" of new Harness must be a number of dollars',
    ],
    ['a value of a list', { tools: [1] }, 'The option "tools" of new Harness has an item 0 that'],
    ['a missing one', { output: { schema: undefined } }, 'The option "output.schema" of new Harness is missing.'],
    [
      'one within a group that is none',
      { limits: 5 },
      'The option "limits" of new Harness must be an object, not a number.',
    ],
  ])('B-OPTION-5: %s within another option is named by its whole path', (_what, options, sentence) => {
    expect(made(options)).toThrow(sentence)
  })

  it.each<readonly [string, object, string]>([
    [
      'modelRequests',
      { modelRequests: 5 },
      'Unknown option "modelRequests" of new Harness. Write limits: { modelRequests }.',
    ],
    ['prefix', { prefix: 'keep' }, 'Unknown option "prefix" of new Harness. Write context: { prefix }.'],
    ['compaction', { compaction: false }, 'Unknown option "compaction" of new Harness. Write context: { compaction }.'],
    [
      'a function as context',
      { context: () => ({}) },
      'The option "context" of new Harness cannot be a function: write deps for what tools get.',
    ],
    [
      'compaction of a subagent',
      { subagents: { a: { description: 'd', context: { compaction: false } } } },
      'Unknown option "context.compaction" of the subagent "a". It holds for all agents: write it into `context` of the harness.',
    ],
    ['policy', { policy: { rules: [] } }, 'Unknown option "policy" of new Harness. Write approvals: { policy }.'],
    ['approvalMs', { approvalMs: 5 }, 'Unknown option "approvalMs" of new Harness. Write approvals: { timeoutMs }.'],
    ['routes', { routes: {} }, 'Unknown option "routes" of new Harness. Write models: { routes }.'],
    [
      'strictHooks',
      { strictHooks: true },
      'Unknown option "strictHooks" of new Harness. Write strict: true on each hook that must be.',
    ],
    [
      'a model by its name',
      { models: { cheap: 'openai:x' } },
      'Unknown option "models.cheap" of new Harness. Known are: named, routes.',
    ],
    ['drives', { drives: false }, 'Unknown option "drives" of new Harness. Write worker: { drives }.'],
    ['clock', { clock: runtimeClock }, 'Unknown option "clock" of new Harness. Write system: { clock }.'],
    ['deny', { deny: [] }, 'Unknown option "deny" of new Harness. Write toolAccess: { deny }.'],
    [
      'compression',
      { compression: 'off' },
      'Unknown option "compression" of new Harness. Write results: { compression }.',
    ],
    ['resultBudget', { resultBudget: true }, 'Unknown option "resultBudget" of new Harness. Write results: { bytes }.'],
    [
      'one of a subagent',
      { subagents: { a: { description: 'd', allow: [] } } },
      'Unknown option "allow" of the subagent "a". Write toolAccess: { allow }.',
    ],
    ['leaseMs', { leaseMs: 5 }, 'Unknown option "leaseMs" of new Harness. Write worker: { leaseMs }.'],
    ['a misspelled one', { leasMs: 5 }, 'Unknown option "leasMs" of new Harness: did you mean "worker.leaseMs"?'],
  ])('B-OPTION-6: one that belongs into another option is refused with that option: %s', (_what, options, sentence) => {
    expect(made(options)).toThrow(sentence)
  })

  it('B-OPTION-1: a verb refuses one too, before anything is written', async () => {
    const harness = made({})()
    await expect(harness.run('x', { maxSteps: 3 } as object)).rejects.toMatchObject({ code: 'invalid_config' })
    expect(() => harness.stream('x', { deltaz: true } as object)).toThrow('did you mean "deltas"?')
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toEqual([])
    const session = await harness.open()
    await expect(session.send('x', { wen: 'now' } as object)).rejects.toThrow('did you mean "when"?')
    await expect(session.send([{ type: 'pause', why: 'x' } as object as { type: 'pause' }])).rejects.toThrow(
      'Unknown option "why" of a pause',
    )
    expect((await session.events()).events).toHaveLength(1)
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
    [
      'approvals.timeoutMs: 1h',
      made({ approvals: { timeoutMs: '1h' } }),
      '"approvals.timeoutMs" of new Harness must be a number of milliseconds',
    ],
    ['store: x.db', made({ store: 'x.db' }), 'Write store: sqlite("x.db").'],
    ['no input', tool({ input: undefined }), 'The option "input" of tool "send" is missing.'],
    ['a tool that was not made', made({ tools: [TOOL] }), 'is not a tool: make it with defineTool'],
    [
      'policy: null',
      made({ approvals: { policy: null } }),
      'The option "approvals.policy" of new Harness must be an object, not null.',
    ],
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
    const checks: Checks<Some> = { name: requiredCheck(textCheck), most: countCheck() }
    // @ts-expect-error an option of the type is not checked
    const lacking: Checks<Some> = { name: requiredCheck(textCheck) }
    // @ts-expect-error an option that must be there is not needed
    const optional: Checks<Some> = { name: textCheck, most: countCheck() }
    // @ts-expect-error the type has no such option
    const more: Checks<Some> = { name: requiredCheck(textCheck), most: countCheck(), least: countCheck() }
    for (const each of [checks, lacking, optional, more]) expect(optionsChecker<Some>('x', each)).toBeTypeOf('function')
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
        clock: runtimeClock,
        approvalMs: null,
        policy: { rules: [] },
        environment: null,
        redactor,
      }
      const admitted = admitCalls([{ id: 'c', tool: 'send', args: '{}' }], new Map([['send', writes]]), asking)
      const [proposal] = admitted as readonly { readonly args: unknown }[]
      const before = JSON.stringify(proposal?.args)
      expect([JSON.stringify(proposal?.args), JSON.stringify(proposal?.args)]).toEqual([before, before])
      expect(Object.getOwnPropertyDescriptor(proposal?.args, 'path')).toHaveProperty('value')
    }
  })
})
