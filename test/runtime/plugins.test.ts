// Plugins: what they bring is used, checked when the harness is made, connected once and closed with it.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Fault,
  Harness,
  type HarnessOptions,
  type Plugin,
  type Request,
  type Script,
  scripted,
} from '../../src/index.ts'
import { until } from '../until.ts'

const text = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8')

const tool = (name: string, execute: () => unknown = () => `${name} done`) =>
  defineTool<object>({ name, description: name, input: z.object({}), effect: 'read', execute })
const use = (...tools: readonly string[]) => ({ calls: tools.map((name) => ({ tool: name, args: {} })) })

type Made = { readonly harness: Harness; readonly requests: Request[]; readonly reports: [string, string][] }

function make(script: Script, plugins: readonly Plugin[], options: Partial<HarnessOptions> = {}): Made {
  const inner = scripted(script)
  const requests: Request[] = []
  const reports: [string, string][] = []
  const harness = new Harness({
    onError: (where, error) => void reports.push([where, error instanceof Error ? error.message : String(error)]),
    ...options,
    model: {
      name: 'scripted',
      call: (request, context) => {
        requests.push(request)
        return inner.call(request, context)
      },
    },
    plugins,
  })
  onTestFinished(() => harness.close())
  return { harness, requests, reports }
}

/** Why a harness with these plugins is refused. */
function refused(plugins: unknown, options: Partial<HarnessOptions> = {}): string {
  try {
    new Harness({ model: scripted([]), ...options, plugins: plugins as readonly Plugin[] })
  } catch (error) {
    return error instanceof Fault ? `${error.code}: ${error.message}` : String(error)
  }
  return 'taken'
}

describe('a plugin', () => {
  it('B-PLUGIN-1: brings tools, instructions and hooks, after those of the harness', async () => {
    const asked: string[] = []
    const hook = (name: string) => ({ type: 'before_tool_call', run: () => void asked.push(name) }) as const
    const plugins: readonly Plugin[] = [
      { name: 'one', tools: [tool('a')], instructions: 'Know one.', hooks: [hook('one')] },
      { name: 'two', tools: [tool('b')], instructions: 'Know two.', hooks: [hook('two')] },
    ]
    const own = { tools: [tool('own')], instructions: 'Be brief.', hooks: [hook('own')] }
    const { harness, requests } = make([use('a'), 'done'], plugins, own)
    expect(await harness.run('Go.')).toMatchObject({ text: 'done', calls: [{ tool: 'a', status: 'ok' }] })
    expect(requests[0]?.tools.map(({ name }) => name)).toEqual(['own', 'a', 'b'])
    expect(requests[0]?.instructions).toBe('Be brief.\n\nKnow one.\n\nKnow two.')
    expect(asked).toEqual(['own', 'one', 'two'])
  })

  it.each([
    [
      'two plugins with one tool',
      [
        { name: 'p', tools: [tool('a')] },
        { name: 'q', tools: [tool('a')] },
      ],
      'Two tools are named "a": one of the plugin "p", one of the plugin "q". Rename one of them.',
    ],
    [
      'a tool that the harness has',
      [{ name: 'p', tools: [tool('own')] }],
      'Two tools are named "own": one of the harness, one of the plugin "p". Rename one of them.',
    ],
    ['two plugins of one name', [{ name: 'p' }, { name: 'p' }], 'Two plugins are named "p". Use each of them once.'],
    ['a plugin without a name', [{ tools: [] }], 'The option "name" of plugins[0] is missing.'],
    ['a misspelled field', [{ name: 'p', tool: [] }], 'Unknown option "tool" of plugins[0]: did you mean "tools"?'],
    [
      'a consumer that is none',
      [{ name: 'p', consumers: [1] }],
      'The option "consumers" of plugins[0] has an item 0 that must be an object, not a number',
    ],
    ['a tool that is none', [{ name: 'p', tools: [{ name: 'a' }] }], 'make it with defineTool'],
    ['a hook that there is not', [{ name: 'p', hooks: [{ type: 'x', run: () => {} }] }], 'There is no hook "x".'],
    ['no plugin', [null], 'The options of plugins[0] must be an object, not null.'],
    ['no list', { name: 'p' }, 'The option "plugins" of new Harness must be a list'],
  ])('B-PLUGIN-2: %s is refused with one sentence when the harness is made', (_what, plugins, sentence) => {
    const why = refused(plugins, { tools: [tool('own')] })
    expect(why).toMatch(/^invalid_config: /)
    expect(why).toContain(sentence)
  })

  it('B-PLUGIN-3: is connected once, before the first use of any of it, and closed with the harness, the last first', async () => {
    const steps: string[] = []
    const plugin = (name: string): Plugin => ({
      name,
      tools: [tool(`${name}_tool`, () => void steps.push(`${name} tool`))],
      connect: async () => {
        await new Promise((resolve) => setTimeout(resolve, 5))
        steps.push(`${name} connects`)
        return { close: () => void steps.push(`${name} closes`) }
      },
    })
    const script: Script = ({ messages }) => (messages.at(-1)?.role === 'tool' ? 'done' : use('p_tool', 'p_tool'))
    const { harness } = make(script, [plugin('p'), plugin('unused'), plugin('q')])
    await harness.open()
    expect(steps).toEqual([])
    await harness.run('Go.')
    await harness.run('Go.')
    expect(steps).toEqual(['p connects', 'p tool', 'p tool', 'p tool', 'p tool'])
    await harness.close()
    expect(steps.slice(5)).toEqual(['p closes'])
  })

  it('B-PLUGIN-3: closes by Symbol.asyncDispose too, in the other order', async () => {
    const steps: string[] = []
    const plugin = (name: string): Plugin => ({
      name,
      hooks: [{ type: 'run_start', run: () => {} }],
      connect: () => ({ [Symbol.asyncDispose]: async () => void steps.push(name) }),
    })
    const { harness } = make(['done'], [plugin('first'), plugin('second')])
    await harness.run('Go.')
    await harness.close()
    expect(steps).toEqual(['second', 'first'])
  })

  it('B-PLUGIN-4: one that cannot connect fails the call, and the next use tries again', async () => {
    let tries = 0
    const plugin: Plugin = {
      name: 'p',
      tools: [tool('a')],
      connect: () => {
        tries += 1
        if (tries === 1) throw new Error('no network')
        return null
      },
    }
    const { harness } = make([use('a'), use('a'), 'done'], [plugin])
    const { calls } = await harness.run('Go.')
    expect(calls.map(({ status }) => status)).toEqual(['error', 'ok'])
    expect(calls[0]?.content).toContain('The plugin "p" could not connect: no network')
    expect(tries).toBe(2)
  })

  it('B-PLUGIN-4: a hook of it counts then as one that threw', async () => {
    const plugin: Plugin = {
      name: 'p',
      hooks: [{ type: 'run_start', run: () => {} }],
      connect: () => Promise.reject(new Error('no network')),
    }
    const { harness, reports } = make(['done'], [plugin])
    expect((await harness.run('Go.')).text).toBe('done')
    expect(reports).toEqual([['hook run_start', 'The plugin "p" could not connect: no network']])
    const strict = make(['done'], [{ ...plugin, hooks: [{ type: 'run_start', strict: true, run: () => {} }] }])
    await strict.harness.open({ id: 's' })
    await strict.harness.session('s').send('Go.')
    await until(async () =>
      expect(await strict.harness.session('s').status()).toMatchObject({ status: 'rescheduling', phase: 'queued' }),
    )
  })
})

it('B-PLUGIN-7: the program of the guide runs as it stands there, and prints what the guide says', () => {
  const guide = text('../../docs/guide/plugins.md')
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(guide) ?? []
  const [, printed = ''] = /It prints:\n\n```\n([\s\S]*?)```/.exec(guide) ?? []
  const example = text('./guide-plugins.ts')
  expect(code.replace("'terret'", "'../../src/index.ts'")).toBe(example.slice(example.indexOf('\n') + 1))
  // Compiled by `npm run build:all`, which the tests begin with.
  const script = fileURLToPath(new URL('../../.build/test/runtime/guide-plugins.js', import.meta.url))
  expect(execFileSync(process.execPath, [script], { encoding: 'utf8' })).toBe(printed)
})
