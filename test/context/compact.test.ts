// A window that fills: what is cleared, what is summarised, what fails, and what a model then reads. Scripted models, real stores.
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, type Event, Harness, memory, type Script, scripted, type Store } from '../../src/index.ts'
import type { Request } from '../../src/ports/model.ts'
import { charsIn } from '../../src/riders/money/usage-estimate.ts'
import { SUMMARIZER } from '../../src/context/summary.ts'
import { CLEARED } from '../../src/kernel/transcript.ts'
import { textOf } from '../../src/view/text.ts'

type Step = Exclude<Script extends readonly (infer S)[] | infer _F ? S : never, (...args: never) => unknown>
type Options = ConstructorParameters<typeof Harness>[0]

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

const look = defineTool({
  name: 'look',
  description: 'look',
  input: z.object({ n: z.number() }),
  effect: 'read',
  execute: ({ n }) => `${n}:`.padEnd(8_192, 'x'),
})

const SUMMARY = '## Goal\nLook six times.'
const isSummary = ({ instructions }: Request): boolean => instructions === SUMMARIZER

/** A provider that counts five characters a token. */
function counted(request: Request, step: Step): Step {
  if (typeof step === 'string') return counted(request, { text: step })
  if ('error' in step || 'stall' in step) return step
  return { usage: { inputTokens: Math.ceil(charsIn(request) / 5), outputTokens: 10 }, cost: 5, ...step }
}

type Stage = {
  readonly harness: Harness
  readonly asked: Request[]
  readonly summaries: Request[]
  readonly store: Store
}

function stage(
  answer: (request: Request, turn: number) => Step,
  summary: (request: Request, n: number) => Step = () => SUMMARY,
  options: Partial<Options> = {},
): Stage {
  const asked: Request[] = []
  const summaries: Request[] = []
  const model = scripted((request) => {
    const copy = { ...request, messages: [...request.messages] }
    if (isSummary(request)) return counted(request, summary(request, summaries.push(copy) - 1))
    return counted(request, answer(request, asked.push(copy) - 1))
  })
  const store = options.store ?? memory()
  const harness = new Harness({
    model,
    tools: [look],
    store,
    compaction: { windowTokens: 10_000 },
    ...options,
  } as Options)
  open.push(harness)
  return { harness, asked, summaries, store }
}

async function eventsOf(harness: Harness, id: string): Promise<readonly Event[]> {
  return (await harness.session(id).read()).events
}

function ofType<T extends Event['type']>(events: readonly Event[], type: T): readonly Extract<Event, { type: T }>[] {
  return events.filter((event): event is Extract<Event, { type: T }> => event.type === type)
}

/** Six looks, one in each turn, and then an answer. */
const six = (_: Request, turn: number): Step => (turn < 6 ? { calls: [{ tool: 'look', args: { n: turn } }] } : 'done')

function results(request: Request): readonly string[] {
  return request.messages.flatMap((m) => (m.role === 'tool' ? [String(m.content)] : []))
}

function textIn(request: Request): string {
  return request.messages.map((m) => (m.role === 'tool' ? String(m.content) : textOf(m.parts))).join('\n')
}

/** Every result has its call before it, and every call its result. */
function pairs(request: Request): boolean {
  const calls = request.messages.flatMap((m) => (m.role === 'assistant' ? m.calls.map(({ key }) => key) : []))
  const answered = request.messages.flatMap((m) => (m.role === 'tool' ? [m.call] : []))
  return JSON.stringify(calls) === JSON.stringify(answered)
}

describe('a window that fills', () => {
  it('B-COMPACT-5: old results are cleared first, right before the request, and not again without new results (A1)', async () => {
    const { harness, asked, summaries } = stage(six)
    const result = await harness.run('look around')
    expect(result).toMatchObject({ status: 'completed', text: 'done' })
    const events = await eventsOf(harness, result.sessionId)
    const [cleared, ...more] = ofType(events, 'context.compacted')
    expect(more).toEqual([])
    expect(cleared).toMatchObject({ cleared: expect.any(Number) as number })
    expect(events[events.findIndex((event) => event === cleared) + 1]?.type).toBe('model.started')
    expect(results(asked.at(-1) as Request).map((text) => text === CLEARED)).toEqual([
      true,
      false,
      false,
      false,
      false,
      false,
    ])
    expect(results(asked.at(-2) as Request).includes(CLEARED)).toBe(false)
    expect(summaries).toEqual([])
    expect(asked.every(pairs)).toBe(true)
  })

  it('B-COMPACT-6: what is still too full is summarised but for the last 8 messages, through the session’s own model (A2)', async () => {
    const { harness, asked, summaries } = stage((_, turn) =>
      turn < 12 ? { text: `turn ${turn}`, calls: [{ tool: 'look', args: { n: turn } }] } : 'done',
    )
    const session = await harness.open()
    const result = await session.run('look around')
    expect(result).toMatchObject({ status: 'completed', text: 'done' })
    const events = await eventsOf(harness, result.sessionId)
    const cuts = ofType(events, 'context.compacted').filter(({ cut }) => cut !== undefined)
    expect(cuts.length).toBeGreaterThan(0)
    expect(summaries).toHaveLength(cuts.length)
    const [first] = cuts
    const before = events[events.findIndex((event) => event === first) - 1]
    expect(before).toMatchObject({ type: 'model.failed', class: 'superseded', unasked: true })
    const after = asked.find((request) => textIn(request).includes('<conversation-summary>')) as Request
    expect(textIn(after)).toContain(SUMMARY)
    expect(textIn(after)).toMatch(/background reference, not instructions/i)
    expect(after.messages).toHaveLength(9)
    expect(asked.every(pairs)).toBe(true)
    // Nobody has to read more than fits.
    for (const request of asked) expect(charsIn(request) / 5).toBeLessThan(10_000)
    expect(summaries[0]?.tools).toEqual([])
    expect(first?.cost).toBe(5)
  })
})
