// Results that are still long after the content router: summarised by a model, cut to a budget of bytes, and found again. Real stores,
// scripted models.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  type Event,
  Harness,
  type HarnessOptions,
  memory,
  type Message,
  type Model,
  output,
  type Request,
  scripted,
  sqlite,
  type Step,
  type Tool,
} from '../../src/index.ts'
import { boundContent } from '../../src/tools/core/bound-content.ts'
import { chaosOf, hosted } from '../models/hosted-stage.ts'
import { orders } from './corpus.ts'
import { make, open } from './made.ts'

/** Plain text, which the content router leaves as it is. */
const STORY = 'Once upon a time there was a story without end, told by Åse at 7 o’clock.\n'.repeat(400)

function saying(text: string, name = 'report'): Tool {
  return defineTool({ name, description: 'd', input: z.object({}), effect: 'read', execute: () => text })
}

function textOf(message: Message | undefined): string {
  return message?.role === 'tool' && typeof message.content === 'string' ? message.content : ''
}

function isSummary({ instructions }: Request): boolean {
  return instructions.startsWith('You summarise the result of a tool')
}

/** Answers requests for a summary with these steps, the last of them again and again; calls `report` so often, and then answers. */
function summarizing(summaries: readonly Step[], calls = 1) {
  const asked: Request[] = []
  const seen: string[] = []
  const tools: (readonly string[])[] = []
  let turns = 0
  const model = scripted((request) => {
    if (isSummary(request)) {
      asked.push(request)
      return summaries[Math.min(asked.length, summaries.length) - 1] as Step
    }
    const last = textOf(request.messages.at(-1))
    if (last !== '') seen.push(last)
    tools.push(request.tools.map(({ name }) => name))
    turns += 1
    return turns % (calls + 1) === 0 ? 'Done.' : { calls: [{ tool: 'report' }] }
  })
  return { model, asked, seen, tools }
}

type Result = Extract<Event, { type: 'agent.tool_result' }>

async function resultsOf(harness: Harness, session: string): Promise<readonly Result[]> {
  const { events } = await harness.session(session).events()
  return events.filter((event): event is Result => event.type === 'agent.tool_result')
}

async function summarizedOf(harness: Harness, session: string): Promise<readonly unknown[]> {
  return (await resultsOf(harness, session)).map(
    ({ metadata }) => ((metadata ?? {}) as { summarized?: unknown }).summarized,
  )
}

/** Calls `report`, and then `retrieve_original` with the token that its result names. */
function retrieving(summary: Step = 'Nobody asked.') {
  const seen: string[] = []
  const model = scripted((request) => {
    if (isSummary(request)) return summary
    const last = textOf(request.messages.at(-1))
    if (last !== '') seen.push(last)
    const [, token = ''] = /retrieve_original with the token ⟦tj:([0-9a-f]{32})⟧/.exec(last) ?? []
    if (seen.length === 0) return { calls: [{ tool: 'report' }] }
    return seen.length === 1 ? { calls: [{ tool: 'retrieve_original', args: { token } }] } : 'Done.'
  })
  return { model, seen }
}

describe('a long result that a model summarises', () => {
  it('B-PAYLOAD-1: is off unless it is set, begins at 4,000 tokens and ends at the tokens that are given, and refuses what it does not know', async () => {
    const rows = [
      { summarize: undefined, chars: 20_000, asked: 0 },
      { summarize: false, chars: 20_000, asked: 0 },
      { summarize: true, chars: 15_999, asked: 0 },
      { summarize: true, chars: 16_000, asked: 1 },
      { summarize: { fromTokens: 128 }, chars: 512, asked: 1 },
      { summarize: { fromTokens: 128, toTokens: 200 }, chars: 801, asked: 0 },
    ] as const
    for (const { summarize, chars, asked } of rows) {
      const play = summarizing(['Short.'])
      await make({
        model: play.model,
        tools: [saying('a'.repeat(chars))],
        ...(summarize ? { results: { summarize } } : {}),
      }).run('Go.')
      expect([chars, play.asked.length]).toEqual([chars, asked])
    }
    const model = scripted(['x'])
    expect(() => new Harness({ model, results: { summarize: { fromTokens: 127 } } })).toThrow('128')
    const wrong = { model, results: { summarize: { fromToken: 1 } } } as unknown as HarnessOptions
    expect(() => new Harness(wrong)).toThrow('did you mean "results.summarize.fromTokens"')
    expect(() => new Harness({ model, results: { summarize: { fromTokens: 900, toTokens: 800 } } })).toThrow(
      'Give a larger toTokens.',
    )
    expect(
      () => new Harness({ model, results: { summarize: true }, toolAccess: { deny: ['retrieve_original'] } }),
    ).toThrow('denies the tool')
  })

  it('B-PAYLOAD-1: is not for children', async () => {
    const asked: string[] = []
    const model = scripted((request) => {
      if (isSummary(request)) return 'Short.'
      const last = textOf(request.messages.at(-1))
      if (request.session.includes('~')) {
        if (last === '') return { calls: [{ tool: 'report' }] }
        asked.push(last)
        return 'The child is done.'
      }
      return last === '' ? { calls: [{ tool: 'subagent', args: { task: 'Look.' } }] } : 'Done.'
    })
    const harness = make({ model, tools: [saying(STORY)], results: { summarize: true }, subagents: true })
    await harness.run('Go.')
    expect(asked).toEqual([STORY])
  })

  it('B-PAYLOAD-2: is read as a summary that names its original, which comes back byte for byte', async () => {
    const { model, seen } = retrieving({ text: 'A story by Åse, id 4711.', usage: { inputTokens: 9, outputTokens: 3 } })
    const harness = make({ model, tools: [saying(STORY)], results: { summarize: true } })
    const { sessionId } = await harness.run('Go.')
    const [shown = '', whole] = seen
    expect(shown).toMatch(
      /^\[SUMMARY of this result, written by a model\]\nA story by Åse, id 4711\.\n\[SUMMARY, full original \(/,
    )
    expect(whole).toBe(STORY)
    const [result] = await resultsOf(harness, sessionId)
    expect(result?.metadata).toMatchObject({
      summarized: { bytes: Buffer.byteLength(STORY), shown: Buffer.byteLength(shown) },
    })
    expect(result?.usage).toEqual({ inputTokens: 9, outputTokens: 3 })
  })

  it('B-PAYLOAD-2: the summarizer is told to keep identifiers, reads the result as quoted lines, and of a very long one both ends', async () => {
    const { model, asked } = summarizing(['Short.'])
    const text = `first line\n${STORY.repeat(40)}last line`
    await make({ model, tools: [saying(text)], results: { summarize: true } }).run('Go.')
    const [request] = asked
    expect(request?.instructions).toContain('Keep identifiers')
    expect(request?.tools).toEqual([])
    const [part] = request?.messages[0]?.role === 'user' ? request.messages[0].parts : []
    const said = part?.type === 'text' ? part.text : ''
    expect(said.length).toBeLessThan(420_000)
    expect(said).toContain('\n> first line\n')
    expect(said).toContain('characters are left out here]')
    expect(said.endsWith('> last line\nSummarise it.')).toBe(true)
  })

  it('B-PAYLOAD-3: an empty, longer, cut or refused summary, calls and failures leave the result as it is, and it says why', async () => {
    const throwing = (): never => {
      throw new Error('the wire broke')
    }
    const rows: readonly (readonly [Step | (() => never), string])[] = [
      ['  ', 'the summary was empty'],
      [STORY, 'the summary was not smaller than the result'],
      [{ text: 'Short.', finish: 'length' }, 'the summary was cut off'],
      [{ text: 'No.', finish: 'refusal' }, 'the summarizer refused'],
      [{ calls: [{ tool: 'report' }] }, 'the summarizer called tools instead of answering'],
      [{ error: 'rate_limit', message: 'Slow down.' }, 'Slow down.'],
      [throwing, 'the wire broke'],
    ]
    for (const [step, failed] of rows) {
      const { model, seen } = summarizing([step as Step])
      const broken: Model = {
        name: 'broken',
        call: async (request, context) =>
          isSummary(request) && typeof step === 'function' ? step() : model.call(request, context),
      }
      const harness = make({ model: broken, tools: [saying(STORY)], results: { summarize: true } })
      const { sessionId, status } = await harness.run('Go.')
      expect([status, seen]).toEqual(['completed', [STORY]])
      expect(await summarizedOf(harness, sessionId)).toEqual([{ failed }])
    }
  })

  it('B-PAYLOAD-4: three failures in a row switch it off for the session, also in another process, and a summary resets them', async () => {
    const root = mkdtempSync(join(tmpdir(), 'terret-way-'))
    try {
      const path = join(root, 'store.db')
      const failing = summarizing(['', '', 'Short.', '', '', ''], 8)
      const tools = [saying(STORY)]
      const first = make({
        model: failing.model,
        tools,
        results: { summarize: true },
        breaker: false,
        store: sqlite(path),
      })
      const { sessionId } = await first.run('Go.')
      expect(failing.asked).toHaveLength(6)
      const kinds = (await summarizedOf(first, sessionId)).map((said) =>
        said === undefined ? 'off' : 'failed' in (said as object) ? 'failed' : 'ok',
      )
      expect(kinds).toEqual(['failed', 'failed', 'ok', 'failed', 'failed', 'failed', 'off', 'off'])
      await first.close()
      const later = summarizing(['Short.'])
      const second = make({
        model: later.model,
        tools,
        results: { summarize: true },
        breaker: false,
        store: sqlite(path),
      })
      await second.session(sessionId).run('Again.')
      expect(later.asked).toHaveLength(0)
      // Another session of the same store is not switched off.
      await second.run('Go.')
      expect(later.asked).toHaveLength(1)
    } finally {
      for (const each of open.splice(0)) await each.close()
      rmSync(root, { recursive: true })
    }
  })

  it('B-PAYLOAD-5: a stop ends the wait for a summary, also where the model ignores it, and the result is not lost', async () => {
    let asked = (): void => {}
    const begun = new Promise<void>((resolve) => {
      asked = resolve
    })
    const model: Model = {
      name: 'deaf',
      call: (request, context) => {
        if (!isSummary(request)) return scripted([{ calls: [{ tool: 'report' }] }]).call(request, context)
        asked()
        return new Promise(() => {})
      },
    }
    const harness = make({ model, tools: [saying(STORY)], results: { summarize: true } })
    const session = await harness.open()
    await session.send('Go.')
    await begun
    await session.interrupt('stop')
    await session.run().catch(() => {})
    const [result] = await resultsOf(harness, session.id)
    expect(result).toMatchObject({ status: 'ok', content: STORY })
    expect(JSON.stringify(result)).not.toContain('summarized')
  })

  it('B-PAYLOAD-5: the time of the call ends the wait too, and the result is ok', async () => {
    const slow: Tool = defineTool({
      name: 'report',
      description: 'd',
      input: z.object({}),
      effect: 'once',
      timeoutMs: 300,
      execute: () => STORY,
    })
    const { model, seen } = summarizing([{ stall: true }])
    const harness = make({ model, tools: [slow], results: { summarize: true } })
    const { sessionId, status } = await harness.run('Go.')
    expect([status, seen]).toEqual(['completed', [STORY]])
    expect((await resultsOf(harness, sessionId))[0]).toMatchObject({ status: 'ok' })
    expect(await summarizedOf(harness, sessionId)).toEqual([undefined])
  })
})

describe('the money of a summary', () => {
  const USAGE = { inputTokens: 1_000, outputTokens: 100 }
  const play = async (budget: HarnessOptions['budget']) => {
    let summaries = 0
    const chaos = await chaosOf(({ body }) => {
      const text = JSON.stringify(body)
      if (text.includes('You summarise the result of a tool')) {
        summaries += 1
        return { text: 'Short.', usage: USAGE }
      }
      return text.includes('tool_result')
        ? { text: 'Done.', usage: USAGE }
        : { calls: [{ tool: 'report' }], usage: USAGE }
    })
    const model = hosted(chaos, 'messages', {
      prices: { 'anthropic:*': { input: 2, output: 10 } },
      outputTokensMax: 100,
    })
    const harness = make({ model, tools: [saying(STORY)], results: { summarize: true }, ...(budget ? { budget } : {}) })
    const result = await harness.run('Go.')
    return { harness, result, summaries: () => summaries }
  }

  it('B-PAYLOAD-6: is held and settled by the run, and stands in the cost of the result and of the session', async () => {
    const { harness, result, summaries } = await play({ runUsd: 1 })
    expect([result.status, summaries(), result.cost.micros]).toEqual(['completed', 1, 3 * 3_000])
    const [told] = await resultsOf(harness, result.sessionId)
    expect(told).toMatchObject({ cost: 3_000, usage: USAGE, metadata: { summarized: { cost: 3_000 } } })
  })

  it('B-PAYLOAD-6: is not asked for where the money of the run does not cover it, and the result goes on', async () => {
    const { harness, result, summaries } = await play({ runUsd: 0.012 })
    expect(summaries()).toBe(0)
    const [said] = await summarizedOf(harness, result.sessionId)
    expect((said as { failed?: string }).failed).toMatch(/^over budget/)
  })
})

describe('a budget of bytes for results', () => {
  const markerIn = (text: string): string => /\n(\[… .*truncated by tool_result_budget.*\])\n/.exec(text)?.[1] ?? ''

  it('B-PAYLOAD-7: both ends of a longer result stay, cut between characters, and the original comes back byte for byte', async () => {
    const text = `the beginning ${'😀ø'.repeat(9_001)} the end`
    const { model, seen } = retrieving()
    const harness = make({ model, tools: [saying(text)], results: { bytes: 16_384 } })
    const { sessionId } = await harness.run('Go.')
    const [shown = '', whole] = seen
    const bytes = Buffer.byteLength(shown)
    expect(bytes).toBeLessThanOrEqual(16_384)
    expect(bytes).toBeGreaterThan(16_384 - 256 - 8)
    expect(shown).toMatch(/^the beginning 😀ø/u)
    expect(shown.endsWith('the end')).toBe(true)
    expect(shown).not.toContain('\uFFFD')
    expect(Buffer.byteLength(markerIn(shown))).toBeLessThan(254)
    expect(whole).toBe(text)
    const [result] = await resultsOf(harness, sessionId)
    expect(result?.metadata).toMatchObject({ budgeted: { bytes: Buffer.byteLength(text), shown: bytes } })
  })

  it('B-PAYLOAD-7: is off unless it is set, leaves what fits as it is, and refuses what it does not know', async () => {
    const rows = [
      { most: undefined, bytes: 16_385, cut: false },
      { most: 16_384, bytes: 16_384, cut: false },
      { most: 16_384, bytes: 16_385, cut: true },
      { most: 2_000, bytes: 2_001, cut: true },
    ] as const
    for (const { most, bytes, cut } of rows) {
      const { model, seen } = summarizing([''])
      const tools = [saying('a'.repeat(bytes))]
      await make({ model, tools, ...(most ? { results: { bytes: most } } : {}) }).run('Go.')
      expect([bytes, seen[0]?.includes('tool_result_budget')]).toEqual([bytes, cut])
      expect(seen[0]?.length).toBeLessThanOrEqual(bytes)
    }
    const model = scripted(['x'])
    expect(() => new Harness({ model, results: { bytes: 10 } })).toThrow(
      'The option "results.bytes" of new Harness must be a whole number from 1024 on, not 10.',
    )
    expect(() => new Harness({ model, results: { byte: 9_000 } } as unknown as HarnessOptions)).toThrow('results.bytes')
  })

  it('B-PAYLOAD-8: a tool that cuts its result itself is not cut again, and one that only says so is', async () => {
    const bounding = (keeps: boolean): Tool =>
      defineTool({
        name: 'report',
        description: 'd',
        input: z.object({}),
        effect: 'read',
        execute: (_args, context) =>
          output(
            keeps
              ? boundContent('x'.repeat(90_000), context)
              : { content: 'x'.repeat(40_000), metadata: { truncated: true, blob: 'f'.repeat(64) } },
          ),
      })
    for (const keeps of [true, false]) {
      const { model, seen } = summarizing([''])
      await make({ model, tools: [bounding(keeps)], results: { bytes: 16_384 } }).run('Go.')
      expect(seen[0]?.includes('tool_result_budget')).toBe(!keeps)
      expect(seen[0]?.includes('characters left out; read on with retrieve_original')).toBe(keeps)
    }
  })

  it('B-PAYLOAD-9: the router comes first, then the summary, then the cut, with one token and one original', async () => {
    const text = orders(4_000)
    const { model, seen } = retrieving(`Orders, ${'and more '.repeat(2_500)}`)
    const store = memory()
    const harness = make({
      model,
      store,
      tools: [saying(text)],
      results: { compression: 'light', summarize: true, bytes: 16_384 },
    })
    const { sessionId } = await harness.run('Go.')
    expect(seen[1]?.slice(0, 50_000)).toBe(text.slice(0, 50_000))
    const [result] = await resultsOf(harness, sessionId)
    type Stage = { readonly bytes: number; readonly shown: number; readonly token: string; readonly blob: string }
    const { compressed, summarized, budgeted } = (result?.metadata ?? {}) as Record<string, Stage>
    expect(compressed?.bytes).toBe(Buffer.byteLength(text))
    expect(summarized?.bytes).toBe(compressed?.shown)
    expect(budgeted?.bytes).toBe(summarized?.shown)
    expect(budgeted?.shown).toBeLessThanOrEqual(16_384)
    expect(new Set([compressed?.token, summarized?.token, budgeted?.token]).size).toBe(1)
    expect(Buffer.from((await store.blob(budgeted?.blob ?? ''))?.data ?? []).toString()).toBe(text)
  })

  it('B-PAYLOAD-10: a session that was begun without it has its results made shorter from then on, and the tool that reads them', async () => {
    const store = memory()
    const before = summarizing([''])
    const { sessionId } = await make({
      model: before.model,
      store,
      tools: [saying(STORY)],
      results: { compression: 'off' },
    }).run('Go.')
    const after = summarizing(['Short.'])
    const harness = make({
      model: after.model,
      store,
      tools: [saying(STORY)],
      results: { summarize: true, bytes: 16_384 },
    })
    const { calls } = await harness.session(sessionId).run('Again.')
    expect(after.seen[0]).toContain('SUMMARY')
    expect(after.tools.at(-1)).toEqual(['report', 'retrieve_original'])
    expect(calls).toHaveLength(1)
  })
})

describe('an answer from outside', () => {
  const ask = defineTool({ name: 'ask', description: 'd', input: z.object({}) })

  it('B-PAYLOAD-11: that is very long is shown by both ends, and read on with the tool that the model has', async () => {
    for (const compression of ['full', 'off'] as const) {
      const text = `first ${'😀'.repeat(200_001)} last`
      const seen: string[] = []
      const model = scripted(({ messages }) => {
        const last = textOf(messages.at(-1))
        if (last !== '') seen.push(last)
        const [, token] = /retrieve_original with the token ⟦tj:([0-9a-f]{32})⟧/.exec(last) ?? []
        if (seen.length === 0) return { calls: [{ tool: 'ask' }] }
        return token === undefined ? 'Done.' : { calls: [{ tool: 'retrieve_original', args: { token, byte_to: 106 } }] }
      })
      const compaction = { windowTokens: 100_000 }
      // Speaking of compaction offers the tool too, unless it is denied.
      const deny = compression === 'off' ? ['retrieve_original'] : []
      const harness = make({
        model,
        tools: [ask],
        results: { compression },
        context: { compaction },
        toolAccess: { deny },
      })
      const { sessionId, pending } = await harness.run('Go.')
      const session = harness.session(sessionId)
      await session.answer({ callId: pending[0]?.callId ?? '', content: text })
      expect(await session.run()).toMatchObject({ status: 'completed' })
      const [shown = '', part] = seen
      expect(shown.length).toBeLessThan(50_200)
      expect([shown.startsWith('first 😀'), shown.endsWith('😀 last'), shown.includes('\uFFFD')]).toEqual([
        true,
        true,
        false,
      ])
      if (compression === 'off') expect(shown).toContain('no tool here can read them')
      else expect(part).toBe(`first ${'😀'.repeat(25)}`)
      const { events } = await session.events()
      expect(events.find(({ type }) => type === 'user.custom_tool_result')).toMatchObject({ content: text })
      expect(events.some(({ type }) => type === 'context.compacted')).toBe(false)
    }
  })
})
