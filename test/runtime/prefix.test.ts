// The prompt-cache contract, on the bytes that were sent: each request begins with the one before it, and where ours does not,
// the reply says what changed, where, and what it cost. Real HTTP to the chaos server.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { ChaosReply, Dialect } from '../../src/testing/index.ts'
import { defineTool, fallback, type Harness, type CompleteStore, type Tool, type ToolSource } from '../../src/index.ts'
import {
  chaosOf,
  DIALECTS,
  eventsOf,
  harnessOf,
  hosted,
  noting,
  ofType,
  STORAGES,
  storeOf,
} from '../models/hosted-stage.ts'
import { changing } from './changing.ts'

const PRICES = { 'anthropic:*': price(), 'openai:*': price(), 'openrouter:*': price() }
const USAGE = { inputTokens: 1_000, outputTokens: 10 }
const PLACES = STORAGES.flatMap((storage) => DIALECTS.map((dialect) => ({ storage, dialect })))

function price() {
  return { input: 3, output: 15, cached: 0.5 }
}

/** A fetch that keeps the bodies as they were sent. */
function recorder() {
  const bodies: string[] = []
  const send: typeof fetch = (url, init) => {
    // A request without a body asks the host for its models.
    if (typeof init?.body === 'string') bodies.push(init.body)
    return fetch(url, init)
  }
  return { bodies, send }
}

/** The body without cache marks, which move along and are not content, and without the brackets that close the conversation. */
function start(body: string): string {
  return body.replaceAll(',"cache_control":{"type":"ephemeral"}', '').replace(/\]\}$/, '')
}

async function missesOf(store: CompleteStore, session: string): Promise<readonly unknown[]> {
  return ofType(await eventsOf(store, session), 'agent.message').flatMap(({ missed }) =>
    missed === undefined ? [] : [missed],
  )
}

describe.each(PLACES)('the prefix over $dialect, on $storage', ({ storage, dialect }) => {
  it('B-PREFIX-1: within a run, across runs and across harnesses each request begins with the bytes of the one before, and no miss is named in 20 turns', async () => {
    const store = storeOf(storage)
    const { bodies, send } = recorder()
    const script = (_request: unknown, n: number): ChaosReply => {
      const reasoning = { text: `thought ${n}`, signature: `c2lnbmF0dXJl${n}`, encrypted: `ZW5jcnlwdGVk${n}` }
      if (n % 3 === 0)
        return {
          text: 'See.',
          reasoning,
          calls: [
            { tool: 'look', args: { city: 'Oslo' } },
            { tool: 'look', args: { city: 'Rom' } },
          ],
        }
      if (n % 3 === 1) return { reasoning, calls: [{ tool: 'look', args: { city: 'Bonn' } }] }
      return { text: `Said ${n}.`, reasoning }
    }
    const chaos = await chaosOf(script)
    const make = (): Harness =>
      harnessOf({
        model: hosted(chaos, dialect, { fetch: send, prices: PRICES }),
        store,
        tools: [noting().tool],
        instructions: 'Be short.',
      })
    let harness = make()
    const { id } = await harness.open()
    for (let run = 0; run < 7; run++) {
      if (run === 4) {
        await harness.close()
        harness = make()
      }
      expect(await harness.session(id).run(`Message ${run}.`)).toMatchObject({ status: 'completed' })
    }
    expect(bodies).toHaveLength(21)
    for (const [n, body] of bodies.entries()) if (n > 0) expect(body.length).toBeGreaterThan(bodies[n - 1]?.length ?? 0)
    const changed = bodies.flatMap((body, n) =>
      n > 0 && !start(body).startsWith(start(bodies[n - 1] ?? '')) ? [n] : [],
    )
    expect(changed).toEqual([])
    expect(await missesOf(store, id)).toEqual([])
    expect(chaos.requests.map(({ refused }) => refused).filter(Boolean)).toEqual([])
  })
})

function named(name: string, instructions = ''): Tool {
  return defineTool({
    name,
    description: name,
    input: z.object({}),
    effect: 'read',
    instructions,
    execute: () => 'Done.',
  })
}

describe.each(STORAGES)('a miss that we cause, on %s', (storage) => {
  const stageOf = async (dialect: Dialect, tools: readonly (Tool | ToolSource)[], keeps = false) => {
    const store = storeOf(storage)
    const chaos = await chaosOf(() => ({ text: 'Fine.', usage: USAGE }))
    const make = (extra: { instructions?: string; name?: string } = {}): Harness => {
      const { name, instructions = 'Be short.' } = extra
      const settings = { prices: PRICES, ...(name === undefined ? {} : { name }) }
      const prefix = keeps ? 'keep' : 'follow'
      return harnessOf({ model: hosted(chaos, dialect, settings), store, tools, instructions, context: { prefix } })
    }
    return { store, chaos, make }
  }

  it('B-PREFIX-2: where the prefix follows, a tool that changed is named, with the place, the tokens and the cost', async () => {
    const source = changing(named('a_tool'), named('b_tool'))
    const { store, make } = await stageOf('messages', [source])
    const harness = make()
    const { id } = await harness.open()
    await harness.session(id).run('One.')
    source.now = [named('a_tool'), named('c_tool')]
    await harness.session(id).run('Two.')
    await harness.session(id).run('Three.')
    const tools = JSON.stringify(
      [named('a_tool')].map(({ name, description, parameters }) => ({ name, description, parameters })),
    )
    // The first that differs is the name of the second tool.
    const at = tools.length + '{"name":"'.length
    expect(await missesOf(store, id)).toEqual([{ why: 'tools', at, tokens: 1_000, cost: 2_500 }])
  })

  it('B-PREFIX-3: where the prefix follows, instructions that changed are named, also when a tool brought them along', async () => {
    const source = changing(named('a_tool', 'Use it well.'))
    const { store, make } = await stageOf('responses', [source])
    const harness = make()
    const { id } = await harness.open()
    await harness.session(id).run('One.')
    source.now = [named('a_tool', 'Use it seldom.')]
    await harness.session(id).run('Two.')
    expect(await missesOf(store, id)).toEqual([
      { why: 'instructions', at: 'Be short.\n\nUse it '.length, tokens: 1_000, cost: 2_500 },
    ])
  })

  it('B-PREFIX-4: another harness that follows and has other instructions, or another model, is found out too, by the log', async () => {
    const { store, make } = await stageOf('chat', [named('a_tool')])
    const first = make()
    const { id } = await first.open()
    await first.session(id).run('One.')
    await first.close()
    const second = make({ instructions: 'Be long.' })
    await second.session(id).run('Two.')
    await second.session(id).run('Three.')
    await second.close()
    const third = make({ instructions: 'Be long.', name: 'openrouter:other/model' })
    await third.session(id).run('Four.')
    expect(await missesOf(store, id)).toEqual([
      { why: 'instructions', at: 3, tokens: 1_000, cost: 2_500 },
      { why: 'model', at: 0, tokens: 1_000, cost: 2_500 },
    ])
  })

  it('B-PREFIX-7: what the session keeps is no miss in 20 runs, whatever changed, and what it was told is a note (A10)', async () => {
    for (const dialect of DIALECTS) {
      const source = changing(named('a_tool', 'Skills: one.'))
      const { store, chaos, make } = await stageOf(dialect, [source], true)
      let harness = make()
      const { id } = await harness.open()
      for (let run = 0; run < 20; run++) {
        if (run === 5) source.now = [named('a_tool', 'Skills: one, two.'), named('b_tool')]
        if (run === 10) {
          await harness.close()
          harness = make({ instructions: 'Be long.' })
        }
        await harness.session(id).run(`Message ${run}.`)
      }
      expect(await missesOf(store, id)).toEqual([])
      expect(ofType(await eventsOf(store, id), 'note.added')).toMatchObject([{ kind: 'context' }, { kind: 'context' }])
      const heads = chaos.requests.map(({ body }) => {
        const { tools, instructions, system, messages } = body as Readonly<Record<string, unknown>>
        // Chat has its instructions in the first message.
        const first = dialect === 'chat' ? (messages as readonly unknown[])[0] : null
        return start(JSON.stringify([tools, instructions, system, first]))
      })
      expect(new Set(heads).size).toBe(1)
    }
  })

  it('B-PREFIX-5: a fallback that answers is a change of model, there and back', async () => {
    const store = storeOf(storage)
    let down = false
    const chaos = await chaosOf(({ body }) =>
      down && JSON.stringify(body).includes('"gpt-x"') ? { status: 503 } : { text: 'Fine.', usage: USAGE },
    )
    const model = fallback(
      hosted(chaos, 'responses', { prices: PRICES }),
      hosted(chaos, 'messages', { prices: PRICES }),
    )
    const harness = harnessOf({ model, store })
    const { id } = await harness.open()
    for (const broken of [false, true, false, false]) {
      down = broken
      await harness.session(id).run('Go on.')
    }
    const miss = { why: 'model', at: 0, tokens: 1_000, cost: 2_500 }
    expect(await missesOf(store, id)).toEqual([miss, miss])
    expect(ofType(await eventsOf(store, id), 'agent.message').map(({ route }) => route)).toEqual([
      'openai:gpt-x',
      'anthropic:claude-x',
      'openai:gpt-x',
      'openai:gpt-x',
    ])
  })

  it('B-PREFIX-6: where tools are forbidden for the last request, and allowed again, Anthropic reads the conversation anew, and that is named', async () => {
    for (const dialect of DIALECTS) {
      const store = storeOf(storage)
      const chaos = await chaosOf((_request, n) =>
        n < 2 ? { calls: [{ tool: 'look', args: { city: `${n}` } }], usage: USAGE } : { text: 'Fine.', usage: USAGE },
      )
      const make = (): Harness =>
        harnessOf({
          model: hosted(chaos, dialect, { prices: PRICES }),
          store,
          tools: [noting('look', { effect: 'read' }).tool],
          limits: { modelRequests: 3 },
        })
      const { sessionId } = await make().run('Look.')
      // Another process knows it by the log.
      await make().session(sessionId).run('And now?')
      const miss = { why: 'tool_choice', at: 0, tokens: 1_000, cost: 2_500 }
      expect(await missesOf(store, sessionId)).toEqual(dialect === 'messages' ? [miss, miss] : [])
    }
  })
})
