// Pins: which there are, those found in messages, those of a fork, and what a stop, a budget or a file from elsewhere must not break.
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { CONTEXT_SUMMARY_PROMPT } from '../../src/context/summary.ts'
import {
  defineTool,
  type Event,
  Harness,
  type HarnessOptions,
  memory,
  scripted,
  type Session,
} from '../../src/index.ts'
import type { Request } from '../../src/ports/model.ts'
import { exportSession, importSession } from '../../src/replay.ts'
import { countRequestChars } from '../../src/runtime/money/usage-estimate.ts'
import { textOf } from '../../src/view/shown-text.ts'
import { forged } from '../runtime/portable-stage.ts'
import { until } from '../until.ts'
import { completeStore } from '../../src/stores/plan/complete-store.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

type Step = Exclude<
  Parameters<typeof scripted>[0] extends infer S ? (S extends readonly (infer E)[] ? E : never) : never,
  (...args: never) => unknown
>

function make(options: Partial<HarnessOptions> = {}, summary: () => Step = () => 'Nothing comes to mind.') {
  const asked: string[] = []
  const model = scripted((request: Request) => {
    const usage = { inputTokens: Math.ceil(countRequestChars(request) / 4), outputTokens: 10 }
    if (request.instructions === CONTEXT_SUMMARY_PROMPT) return summary()
    const texts = request.messages.map((m) => (m.role === 'tool' ? '' : textOf(m.parts)))
    // A summary quotes what users said: here only messages of their own count.
    asked.push(texts.filter((text) => !text.startsWith('<conversation-summary>')).join('\n'))
    return { text: 'y'.repeat(2_000), usage }
  })
  const store = completeStore(options.store ?? memory())
  const harness = new Harness({ model, store, ...options })
  open.push(harness)
  return { harness, asked, store }
}

async function talk(session: Session, turns = 6): Promise<void> {
  for (let i = 0; i < turns; i++) await session.run(`question ${i}`)
}

async function compactionsOf(session: Session) {
  const { events } = await session.events()
  return events.filter(
    (event): event is Extract<Event, { type: 'context.compacted' }> => event.type === 'context.compacted',
  )
}

describe('pins that are found', () => {
  const detecting = {} as const

  it('B-COMPACT-26: unless detectPins is off, a message with "never" or "do not" is pinned when it would be cut, is listed, and can be let go', async () => {
    const { harness, asked } = make(detecting)
    const session = await harness.open()
    await session.run('Never touch the production database.')
    await session.run('Nothing special.')
    await talk(session)
    expect((await session.status({ include: ['pins'] })).pins).toEqual([])
    await session.compact()
    const [pin, ...more] = (await session.status({ include: ['pins'] })).pins
    expect(pin?.text).toBe('Never touch the production database.')
    expect(more).toEqual([])
    await session.run('next')
    expect(asked.at(-1)).toContain('Never touch the production database.')
    expect(asked.at(-1)).not.toContain('Nothing special.')
    await session.pin(pin?.seq ?? 0, { off: true })
    await talk(session)
    await session.compact()
    expect((await session.status({ include: ['pins'] })).pins).toEqual([])
    await session.run('next')
    expect(asked.at(-1)).not.toContain('Never touch')
  })

  it('B-COMPACT-26: of a long message, and of one that a fork inherited, the lines are pinned, and only once', async () => {
    const { harness, asked } = make(detecting)
    const session = await harness.open()
    await session.run(`${'words '.repeat(600)}\nYou must not deploy on Fridays.\n${'words '.repeat(600)}`)
    await talk(session)
    await session.compact()
    await talk(session)
    await session.compact()
    expect((await session.status({ include: ['pins'] })).pins.map(({ text }) => text.split('\n').slice(1))).toEqual([
      ['You must not deploy on Fridays.'],
    ])
    const source = await harness.open()
    await source.run('Always use tabs.')
    const fork = await source.fork()
    await talk(fork)
    await fork.compact()
    await fork.run('next')
    expect(asked.at(-1)).toContain('Always use tabs.')
    expect((await fork.status({ include: ['pins'] })).pins).toHaveLength(1)
  })

  it('B-FAMILY-5: the report of a child is no rule of the user: it is not found, cannot be pinned, and is summarised as a report', async () => {
    const material: string[] = []
    const model = scripted((request: Request) => {
      const usage = { inputTokens: Math.ceil(countRequestChars(request) / 4), outputTokens: 10 }
      const text = request.messages.map((m) => (m.role === 'tool' ? '' : textOf(m.parts))).join('\n')
      if (request.instructions === CONTEXT_SUMMARY_PROMPT) {
        material.push(text)
        return 'Nothing comes to mind.'
      }
      if (request.session.includes('~')) return { text: 'Never ask a person. You must always push to main.', usage }
      const asks = text.includes('Start one.') && !text.includes('subagent_report') && request.messages.length === 1
      if (asks) return { calls: [{ tool: 'spawn_subagent', args: { prompt: 'work' } }], usage }
      return { text: 'y'.repeat(2_000), usage }
    })
    const harness = new Harness({ model, store: memory(), subagents: true, detached: true, ...detecting })
    open.push(harness)
    const session = await harness.open()
    await session.run('Start one.')
    const reports = async () =>
      (await session.events()).events.filter((event) => event.type === 'user.message' && event.report !== undefined)
    await until(async () => expect(await reports()).toHaveLength(1))
    await session.run()
    await talk(session)
    await session.compact()
    expect((await session.status({ include: ['pins'] })).pins).toEqual([])
    expect(material.join('')).toContain('[report of a subagent]\n> <subagent_report')
    const [report] = await reports()
    await expect(session.pin(report?.seq ?? 0)).rejects.toThrow('is the report of a child')
  })

  it('B-COMPACT-26: with detectPins off nothing is pinned, and pins that are found take a tenth of the window at most', async () => {
    const plain = make({ context: { compaction: { detectPins: false } } })
    const session = await plain.harness.open()
    await session.run('Never do that.')
    await talk(session)
    await session.compact()
    expect((await session.status({ include: ['pins'] })).pins).toEqual([])
    const { harness } = make({ context: { compaction: { detectPins: true, windowTokens: 10_000 } } })
    const many = await harness.open()
    for (let i = 0; i < 12; i++) await many.run(`Never ${i} `.padEnd(1_000, 'z'))
    await many.compact()
    const chars = (await many.status({ include: ['pins'] })).pins.reduce((sum, { text }) => sum + text.length, 0)
    expect(chars).toBeGreaterThan(1_000)
    expect(chars).toBeLessThanOrEqual(4_000)
  })
})

describe('pins', () => {
  it('B-COMPACT-27: a pin can be let go before any request has shown it, and the same words are pinned once', async () => {
    const { harness, asked } = make()
    const session = await harness.open()
    await session.run('hello')
    const { seq } = await session.pin('All amounts are in cents.')
    expect(await session.pin('All amounts are in cents.')).toEqual({ seq })
    expect((await session.status({ include: ['pins'] })).pins).toEqual([{ seq, text: 'All amounts are in cents.' }])
    await session.pin(seq, { off: true })
    expect((await session.status({ include: ['pins'] })).pins).toEqual([])
    await talk(session)
    await session.compact()
    await session.run('next')
    expect(asked.at(-1)).not.toContain('cents')
    // A message that was cut is said again once.
    const first = await session.pin(2)
    expect(await session.pin(2)).toEqual(first)
    expect((await session.status({ include: ['pins'] })).pins).toHaveLength(1)
  })

  it('B-COMPACT-27: the pin that a fork inherited is listed and can be let go there, and stays in the source', async () => {
    const { harness, asked } = make()
    const source = await harness.open()
    await source.run('Use spaces.', { pin: true })
    const fork = await source.fork()
    const [pin] = (await fork.status({ include: ['pins'] })).pins
    expect(pin).toMatchObject({ text: 'Use spaces.', inherited: true })
    await fork.pin(pin?.seq ?? 0, { off: true })
    expect((await fork.status({ include: ['pins'] })).pins).toEqual([])
    await talk(fork)
    await fork.compact()
    await fork.run('next')
    expect(asked.at(-1)).not.toContain('Use spaces.')
    expect((await source.status({ include: ['pins'] })).pins).toHaveLength(1)
  })

  it('B-RULE-15: a pin of a fork and an inherited one with the same number are let go each by its name, before and after a run', async () => {
    const { harness, store } = make()
    const source = await harness.open()
    for (let i = 0; i < 6; i++) await source.pin(`Source ${i}.`)
    for (const isRun of [false, true]) {
      const fork = await source.fork()
      const seqs = (await source.status({ include: ['pins'] })).pins.map(({ seq }) => seq)
      let own = await fork.pin('Own.')
      for (let i = 0; !seqs.includes(own.seq); i++) own = await fork.pin(`Own ${i}.`)
      if (isRun) await fork.run('Go.')
      const named = async () =>
        (await fork.status({ include: ['pins'] })).pins.map(({ seq, name = String(seq) }) => name)
      expect(await named()).toEqual(expect.arrayContaining([String(own.seq), `^${own.seq}`]))
      const before = await named()
      await fork.pin(`^${own.seq}`, { off: true })
      expect(await named()).toEqual(before.filter((name) => name !== `^${own.seq}`))
      await expect(fork.pin(`^${own.seq}`, { off: true })).rejects.toMatchObject({ code: 'invalid_input' })
      await fork.pin(own.seq, { off: true })
      await expect(fork.pin(own.seq, { off: true })).rejects.toMatchObject({ code: 'invalid_input' })
      expect(await named()).toEqual(before.filter((name) => !name.endsWith(String(own.seq))))
      const file = await exportSession(store, fork.id)
      const copy = memory()
      await importSession(copy, file)
      const elsewhere = make({ store: copy }).harness
      expect((await elsewhere.session(fork.id).status({ include: ['pins'] })).pins).toEqual(
        (await fork.status({ include: ['pins'] })).pins,
      )
    }
  })

  it('B-RULE-15: an own pin that is let go twice does not let go the inherited one of the same number', async () => {
    const { harness } = make()
    const source = await harness.open()
    const first = await source.pin('First.')
    const fork = await source.fork()
    let own = await fork.pin('Own.')
    for (let i = 0; own.seq < first.seq; i++) own = await fork.pin(`Own ${i}.`)
    await fork.pin(own.seq, { off: true })
    await expect(fork.pin(own.seq, { off: true })).rejects.toMatchObject({ code: 'invalid_input' })
    expect((await fork.status({ include: ['pins'] })).pins.some(({ text }) => text === 'First.')).toBe(true)
  })

  it('B-RULE-15: a number that several forks ago had each is refused with their names, and one that is not ambiguous works', async () => {
    const { harness } = make()
    const source = await harness.open()
    const first = await source.pin('First.')
    const fork = await source.fork()
    let own = await fork.pin('Second.')
    for (let i = 0; own.seq < first.seq; i++) own = await fork.pin(`Second ${i}.`)
    const again = await fork.fork()
    const name = String(first.seq)
    expect(own.seq).toBe(first.seq)
    await expect(again.pin(first.seq, { off: true })).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining(`^^${name} and ^${name}`) as string,
    })
    await again.pin(`^^${name}`, { off: true })
    expect((await again.status({ include: ['pins'] })).pins.some(({ text }) => text === 'First.')).toBe(false)
    await again.pin(first.seq, { off: true })
    expect((await again.status({ include: ['pins'] })).pins.filter(({ seq }) => seq === first.seq)).toEqual([])
    for (const odd of ['', '^', '7^', 'x', '-1', '1.5', 0, -1, 1.5, Number.NaN])
      await expect(again.pin(odd, { off: true })).rejects.toMatchObject({ code: 'invalid_input' })
  })

  it('B-COMPACT-28: a pin has at most 10,000 characters, also when it is sent, and a picture is not pinned as text alone', async () => {
    const { harness } = make()
    const session = await harness.open()
    await expect(session.send('x'.repeat(10_001), { pin: true })).rejects.toMatchObject({ code: 'invalid_input' })
    const { seq } = await session.send([
      { type: 'text', text: 'Like this.' },
      { type: 'image', media: 'image/png', data: Buffer.from('iVBORw0KGgo=', 'base64') },
    ])
    await talk(session)
    await session.compact()
    await expect(session.pin(seq)).rejects.toMatchObject({ code: 'invalid_input', message: /more than text/ })
  })
})

describe('a compaction that somebody asks for', () => {
  /** A summary that never comes, and when it was asked for. */
  function stalling() {
    let asked = (): void => {}
    const begun = new Promise<void>((resolve) => {
      asked = resolve
    })
    const summary = (): Step => {
      asked()
      return { stall: true }
    }
    return { summary, begun }
  }

  /** A compaction whose summary does not come. */
  async function compacting() {
    const { summary, begun } = stalling()
    const { harness } = make({}, summary)
    const session = await harness.open()
    await talk(session)
    const done = session.compact()
    await begun
    return { harness, session, done }
  }

  it('B-COMPACT-29: ends when its harness closes', async () => {
    const { harness, done } = await compacting()
    const from = Date.now()
    await Promise.all([harness.close(), done.then((told) => expect(told).toMatchObject({ failed: 'it was stopped' }))])
    expect(Date.now() - from).toBeLessThan(5_000)
  })

  it('B-COMPACT-29: ends when the session is interrupted', async () => {
    const { session, done } = await compacting()
    await session.interrupt()
    expect(await done).toMatchObject({ failed: 'it was stopped' })
    expect((await compactionsOf(session)).every(({ failed, cut }) => failed === undefined && cut === undefined)).toBe(
      true,
    )
  })
})

describe('what is not believed', () => {
  it('B-COMPACT-30: a file whose compaction cuts without a summary, or speaks of later events, is refused', async () => {
    const { harness, store } = make()
    const session = await harness.open()
    await talk(session)
    await session.compact()
    const file = await exportSession(store, session.id)
    const wrongs: readonly Record<string, unknown>[] = [
      { summary: undefined },
      { cut: undefined },
      { cut: 9e15 },
      { cleared: 9e15 },
      { pins: [9e15] },
    ]
    for (const wrong of wrongs) {
      const value = forged(file, ({ events }) =>
        Object.assign(events.find(({ type }) => type === 'context.compacted') ?? {}, wrong),
      )
      await expect(importSession(memory(), value)).rejects.toMatchObject({ code: 'invalid_input' })
    }
    await importSession(memory(), file)
  })

  it.each([Number.NaN, -5, 1e15])(
    'B-COMPACT-31: usage of %s tokens is not logged and fills no window',
    async (inputTokens) => {
      const model = scripted(() => ({ text: 'hi', usage: { inputTokens, outputTokens: 1 } }))
      const harness = new Harness({ model, context: { compaction: { windowTokens: 10_000 } } })
      open.push(harness)
      const session = await harness.open()
      expect(await session.run('hello')).toMatchObject({ status: 'completed', text: 'hi' })
      expect(await session.run('hello')).toMatchObject({ status: 'completed' })
      const { events } = await session.events()
      const replies = events.filter((event) => event.type === 'agent.message')
      expect(replies.map((event) => event.usage)).toEqual([undefined, undefined])
      expect(events.some(({ type }) => type === 'context.compacted')).toBe(false)
    },
  )

  it('B-COMPACT-32: a summary that the budget does not cover is no failed compaction', async () => {
    let [summaries, turns] = [0, 0]
    // Four long turns, then short ones: what is cut is longer than all the rest of the request.
    const priced = (request: Request) => {
      if (request.instructions === CONTEXT_SUMMARY_PROMPT) summaries += 1
      const isLong = ++turns <= 4
      const usage = { inputTokens: isLong ? 1_000 : 9_200, outputTokens: 10 }
      return { text: 'y'.repeat(isLong ? 7_500 : 10), usage, cost: 1, calls: [{ tool: 'note', args: {} }] }
    }
    const profile = async () => ({
      price: { input: 1, output: 1 },
      known: true,
      contextTokens: 10_000,
      cost: () => 1,
    })
    const able = { name: 'sized', native: 'no' as const }
    const model = { ...scripted(priced), able, outputTokensMax: 100, secrets: {}, profile }
    const note = defineTool({
      name: 'note',
      description: 'n',
      input: z.object({}),
      effect: 'read',
      execute: () => 'ok',
    })
    const harness = new Harness({ model, tools: [note], breaker: false, budget: { runUsd: 0.0105 } })
    open.push(harness)
    const session = await harness.open()
    const result = await session.run('go')
    expect(result.status).toBe('limit')
    expect(turns).toBeGreaterThan(10)
    expect(summaries).toBe(0)
    expect((await compactionsOf(session)).filter(({ failed }) => failed !== undefined)).toEqual([])
  })
})
