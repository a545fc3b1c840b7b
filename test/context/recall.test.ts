// What a compaction takes out of a request can be had again: in the request, in a pin, or by a token that the request shows. The
// summarizer here forgets everything.
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { CONTEXT_SUMMARY_PROMPT } from '../../src/context/summary.ts'
import {
  defineTool,
  type Event,
  type EventPage,
  Harness,
  type HarnessOptions,
  type Json,
  memory,
  scripted,
} from '../../src/index.ts'
import { CLEARED } from '../../src/kernel/transcript.ts'
import type { Request } from '../../src/ports/model.ts'
import { countRequestChars } from '../../src/runtime/money/usage-estimate.ts'
import { textOf } from '../../src/view/shown-text.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

const FACTS = 200
const factOf = (n: number): string => `fact-${n}-${(n * 7919).toString(36)}`

/** Results of three kinds: one the router leaves out most of, one it leaves alone, and one that failed. */
function contentOf(n: number): string {
  const fact = factOf(n)
  if (n % 3 === 0) {
    const rows = Array.from({ length: 120 }, (_, i) => ({ id: i, name: i === 60 ? fact : `row ${i}`, state: 'fine' }))
    return JSON.stringify(rows)
  }
  return `${'Words that say little. '.repeat(60)}${fact}${' And more of them.'.repeat(10)}`
}

const look = defineTool({
  name: 'look',
  description: 'look',
  input: z.object({ n: z.number() }),
  effect: 'read',
  execute: ({ n }) => {
    if (n % 10 === 7) throw new Error(contentOf(n))
    return contentOf(n)
  },
})

type Asked = Pick<Request, 'messages' | 'instructions' | 'tools'>

function said({ messages }: Asked): string {
  return messages
    .map((m) => (m.role === 'tool' ? (typeof m.content === 'string' ? m.content : '') : textOf(m.parts)))
    .join('\n')
}

type Step = { readonly text?: string; readonly calls?: readonly { readonly tool: string; readonly args: Json }[] }
type Turn = (request: Request, asked: number) => Step

function make(turn: Turn, options: Partial<HarnessOptions> = {}) {
  const store = options.store ?? memory()
  const asked: Asked[] = []
  const model = scripted((request) => {
    const usage = { inputTokens: Math.ceil(countRequestChars(request) / 4), outputTokens: 10 }
    if (request.instructions === CONTEXT_SUMMARY_PROMPT) return { text: 'Nothing comes to mind.', usage }
    const { messages, instructions, tools } = request
    const step = turn(request, asked.push({ messages: [...messages], instructions, tools }) - 1)
    return { usage, ...step }
  })
  const harness = new Harness({
    model,
    tools: [look],
    breaker: false,
    context: { compaction: { windowTokens: 10_000 } },
    limits: { modelRequests: 1_000, toolCalls: 2_000 },
    ...options,
    store,
  })
  open.push(harness)
  return { harness, asked, store }
}

/** Three looks a turn until there is no more, then the tokens of `reads`, one a turn, then an answer. */
function looking(reads: (first: Asked) => readonly string[], from = 0, to = FACTS): Turn {
  let next = from
  let tokens: readonly string[] | null = null
  return (request) => {
    if (next < to) {
      const calls = Array.from({ length: Math.min(3, to - next) }, () => ({ tool: 'look', args: { n: next++ } }))
      return { text: 'I look on. '.repeat(500), calls }
    }
    tokens ??= reads(request)
    const [token, ...rest] = tokens
    tokens = rest
    return token === undefined ? { text: 'done' } : { calls: [{ tool: 'retrieve_original', args: { token } }] }
  }
}

async function eventsOf(harness: Harness, id: string): Promise<readonly Event[]> {
  const events: Event[] = []
  for (let after: number | null = 0; after !== null; ) {
    const page: EventPage = await harness.session(id).events({ after })
    events.push(...page.events)
    after = page.next
  }
  return events
}

/** What the calls of `retrieve_original` gave, by their token. */
function retrieved(events: readonly Event[]): ReadonlyMap<string, string> {
  const calls = new Map<string, string>()
  const found = new Map<string, string>()
  for (const event of events) {
    if (event.type === 'agent.message')
      event.calls.forEach(({ tool, args }, i) => {
        const { token } = args as { readonly token?: string }
        if (tool === 'retrieve_original' && token !== undefined) calls.set(`${event.seq}.${i}`, token)
      })
    const token = event.type === 'agent.tool_result' ? calls.get(event.call) : undefined
    if (event.type === 'agent.tool_result' && token !== undefined && event.status === 'ok')
      found.set(token, typeof event.content === 'string' ? event.content : '')
  }
  return found
}

const cutsIn = (events: readonly Event[]) =>
  events.filter((event) => event.type === 'context.compacted' && event.cut !== undefined)

describe('nothing is lost by a compaction', () => {
  it('B-COMPACT-23: of 200 facts in results, after five compactions each is in the request, or had by a token the request shows', async () => {
    const { harness, asked, store } = make(
      looking(() => []),
      { results: { compression: 'full' } },
    )
    const session = await harness.open()
    await session.run('Look at everything.')
    const events = await eventsOf(harness, session.id)
    expect(cutsIn(events).length).toBeGreaterThanOrEqual(5)
    const next = asked.at(-1) as Asked
    const text = said(next)
    const wide = {
      results: { compression: 'full' },
      store,
      context: { compaction: { windowTokens: 1_000_000 } },
    } as const
    const lister = make(
      looking(() => ['call:index'], 0, 0),
      wide,
    )
    await lister.harness.session(session.id).run('List them all.')
    const list = retrieved(await eventsOf(harness, session.id)).get('call:index') ?? ''
    const missing = Array.from({ length: FACTS }, (_, n) => n).filter((n) => !text.includes(factOf(n)))
    expect(missing.length).toBeGreaterThan(150)
    // The request says where the rest is: by name, or by the list that it names.
    expect(text).toContain('"call:index"')
    const tokenOf = (n: number): string => new RegExp(`(call:\\S+) look {"n":${n}} `).exec(list)?.[1] ?? ''
    const tokens = missing.map(tokenOf)
    const reader = make(
      looking(() => tokens, 0, 0),
      wide,
    )
    await reader.harness.session(session.id).run('Read them all.')
    const found = retrieved(await eventsOf(harness, session.id))
    const lost = missing.filter((n) => !(found.get(tokenOf(n)) ?? '').includes(factOf(n)))
    expect(lost).toEqual([])
    // Byte for byte, also where the router showed a part.
    for (const n of missing.filter((each) => each % 10 !== 7)) expect(found.get(tokenOf(n))).toBe(contentOf(n))
  })

  it('B-COMPACT-23: a cleared result and a summary name their calls, and the names stay few however many there were', async () => {
    const { harness, asked } = make(looking(() => []))
    const session = await harness.open()
    await session.run('Look at everything.')
    const cleared = asked.flatMap(({ messages }) => messages.flatMap((m) => (m.role === 'tool' ? [m] : [])))
    const wiped = cleared.filter(({ content }) => typeof content === 'string' && content.startsWith(CLEARED))
    expect(wiped.length).toBeGreaterThan(0)
    for (const { content, call } of wiped) expect(content).toBe(`${CLEARED} call:${call}`)
    const summaries = cutsIn(await eventsOf(harness, session.id)).map(
      (event) => ('summary' in event && event.summary) || '',
    )
    expect(summaries.length).toBeGreaterThanOrEqual(5)
    for (const summary of summaries) {
      expect(summary).toMatch(/call:\d+\.\d look {"n":\d+}/)
      expect(summary.length).toBeLessThan(3_000)
    }
  })

  it('B-COMPACT-24: a result from before a fork is named and read as such, also where the fork has a call with the same key', async () => {
    const store = memory()
    const first = make(
      looking(() => [], 0, 6),
      { store },
    )
    const source = await first.harness.open()
    await source.run('Look.')
    const fork = await source.fork()
    const own = make(
      looking(() => ['call:index'], 30, 60),
      { store },
    )
    await own.harness.session(fork.id).run('Look on.')
    const list = retrieved(await eventsOf(own.harness, fork.id)).get('call:index') ?? ''
    const inherited = /(call:\^\S+) look {"n":1} /.exec(list)?.[1] ?? ''
    const same = list.split('\n').find((line) => line.startsWith(`${inherited.replace('^', '')} `))
    expect(same).toMatch(/look {"n":3\d} /)
    const reader = make(
      looking(() => [inherited, inherited.replace('^', ''), 'call:^^5.0', 'call:999.0', 'call:5.9'], 0, 0),
      { store, context: { compaction: { windowTokens: 1_000_000 } } },
    )
    await reader.harness.session(fork.id).run('Read.')
    const found = retrieved(await eventsOf(reader.harness, fork.id))
    expect(found.get(inherited)).toBe(contentOf(1))
    expect(found.get(inherited.replace('^', ''))).toMatch(/fact-3\d/)
    expect(found.has('call:^^5.0') || found.has('call:999.0') || found.has('call:5.9')).toBe(false)
    // So does the summary that cut it.
    expect(JSON.stringify(cutsIn(await eventsOf(own.harness, fork.id)))).toContain(`${inherited} look`)
  })

  it('B-COMPACT-25: retrieve_original is offered where compression or compaction is set to an agent with tools, and no summary names it otherwise', async () => {
    const named = async (options: Partial<HarnessOptions>): Promise<readonly string[]> => {
      const { harness, asked } = make(() => ({ text: 'done' }), options)
      await harness.run('Hi.')
      return (asked[0] as Asked).tools.map(({ name }) => name)
    }
    const both = ['look', 'retrieve_original']
    expect(await named({})).toEqual(both)
    expect(await named({ context: { compaction: {} } })).toEqual(both)
    expect(await named({ tools: [] })).toEqual([])
    expect(await named({ toolAccess: { allow: ['look'] } })).toEqual(['look'])
    expect(await named({ context: { compaction: false } })).toEqual(['look'])
    expect(
      await named({
        context: { compaction: false },
        results: { compression: 'full' },
        toolAccess: { allow: ['look'] },
      }),
    ).toEqual(both)
    const { harness } = make(
      looking(() => []),
      { toolAccess: { deny: ['retrieve_original'] } },
    )
    const { sessionId } = await harness.run('Look at everything.')
    const cuts = cutsIn(await eventsOf(harness, sessionId))
    expect(cuts.length).toBeGreaterThan(0)
    expect(JSON.stringify(cuts)).not.toContain('retrieve_original')
  })
})
