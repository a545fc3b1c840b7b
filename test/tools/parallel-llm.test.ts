// `parallel_llm` with a scripted model, a clock that does not wait, and a real folder.
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Harness, type Script, scripted } from '../../src/index.ts'
import type { Json } from '../../src/kernel/content.ts'
import type { Model, Request } from '../../src/ports/model.ts'
import { type ParallelLlmOptions, parallelLlmTool } from '../../src/tools/agents/parallel-llm.ts'
import { executeTool } from '../../src/tools/core/run-tool.ts'
import { toolContext } from './context.ts'
import { CANARY, Workbench } from './workbench.ts'

let bench: Workbench
let waits: number[]
beforeEach(() => {
  bench = new Workbench()
  waits = []
})
afterEach(() => bench.remove())

/** Notes how long it was asked to wait, and does not. */
const clock = {
  now: () => 0,
  timer: (ms: number, fire: () => void) => {
    waits.push(ms)
    const handle = setImmediate(fire)
    return () => clearImmediate(handle)
  },
}

type Summary = {
  readonly succeeded: number
  readonly failed: number
  readonly results: readonly {
    readonly index: number
    readonly ok: boolean
    readonly result?: Json
    readonly error?: string
    readonly attempts: number
  }[]
}

type Setting = {
  readonly options?: Partial<ParallelLlmOptions>
  readonly signal?: AbortSignal
  /** Called when the file that will be replaced is kept, right before that. */
  readonly onKeep?: () => void
}

async function ask(model: Model | Script, args: Json, setting: Setting = {}) {
  const { options = {}, signal = new AbortController().signal, onKeep = () => {} } = setting
  const named = typeof model === 'object' && 'call' in model ? model : scripted(model)
  const tool = parallelLlmTool({ model: named, root: bench.root, ...options })
  const checked = await tool.validate(args)
  if (checked.issues) throw new Error(JSON.stringify(checked.issues))
  const context = toolContext({ signal, kept: bench.blobs })
  const keep: typeof context.keep = (...given) => {
    onKeep()
    return context.keep(...given)
  }
  const done = await executeTool(tool, checked.value, { ...context, keep, clock })
  if (done.type === 'undecided') throw new Error('undecided')
  return { done, tool, summary: parsed(done.output.content) }
}

function parsed(content: string): Summary {
  try {
    return JSON.parse(content) as Summary
  } catch {
    return { succeeded: 0, failed: 0, results: [] }
  }
}

const inline = (...prompts: readonly string[]) => ({ source: { type: 'inline', prompts } })
const promptOf = ({ messages }: Request): string => {
  const [part] = messages[0]?.role === 'user' ? messages[0].parts : []
  return part?.type === 'text' ? part.text : ''
}

describe('parallel_llm', () => {
  it('B-PARALLEL-1: asks each prompt afresh, with the given instructions and nothing of the session, and answers in order', async () => {
    const seen: Request[] = []
    const { done, summary } = await ask(
      async (request) => {
        seen.push(request)
        // The first is answered last.
        if (promptOf(request) === 'a') await new Promise((go) => setTimeout(go, 30))
        return { text: promptOf(request).toUpperCase(), usage: { inputTokens: 3, outputTokens: 2 }, cost: 7 }
      },
      { ...inline('a', 'b', 'c'), system: 'shout' },
    )
    expect(summary.results).toEqual([
      { index: 0, ok: true, result: 'A', attempts: 1 },
      { index: 1, ok: true, result: 'B', attempts: 1 },
      { index: 2, ok: true, result: 'C', attempts: 1 },
    ])
    expect(done).toMatchObject({
      type: 'ok',
      output: {
        metadata: {
          prompts: 3,
          succeeded: 3,
          failed: 0,
          attempts: 3,
          usage: { inputTokens: 9, outputTokens: 6 },
          cost: 21,
        },
      },
    })
    expect(
      seen.map(({ instructions, tools, allow, messages }) => [instructions, tools, allow, messages.length]),
    ).toEqual(Array.from({ length: 3 }, () => ['shout', [], 'none', 1]))
    expect(new Set(seen.map(({ session }) => session)).size).toBe(3)
  })

  it('B-PARALLEL-2: never has more prompts open than it was told to (AC-61)', async () => {
    let [open, most] = [0, 0]
    const script: Script = async () => {
      open += 1
      most = Math.max(most, open)
      await new Promise((go) => setImmediate(go))
      open -= 1
      return 'done'
    }
    const prompts = Array.from({ length: 20 }, (_, i) => `p${i}`)
    expect((await ask(script, { ...inline(...prompts), max_concurrency: 3 })).summary.succeeded).toBe(20)
    expect(most).toBe(3)
    most = 0
    await ask(script, inline(...prompts))
    expect(most).toBe(8)
    const tool = parallelLlmTool({ model: scripted([]), root: bench.root })
    for (const max_concurrency of [0, 33])
      expect((await tool.validate({ ...inline('a'), max_concurrency })).issues).toBeDefined()
  })

  it('B-PARALLEL-3: tries again what may pass, longer apart each time, and counts the attempts (AC-61)', async () => {
    const failures = new Map([
      ['a', 2],
      ['b', 9],
    ])
    const { summary } = await ask(
      (request) => {
        const left = failures.get(promptOf(request)) ?? 0
        failures.set(promptOf(request), left - 1)
        return left > 0 ? { error: 'server', message: 'busy' } : 'done'
      },
      { ...inline('a', 'b'), max_concurrency: 1 },
    )
    expect(summary.results).toEqual([
      { index: 0, ok: true, result: 'done', attempts: 3 },
      { index: 1, ok: false, error: 'server: busy', attempts: 4 },
    ])
    expect(waits).toHaveLength(5)
    for (const [i, ms] of [1_000, 2_000, 1_000, 2_000, 4_000].entries()) {
      expect([waits[i] ?? 0, (waits[i] ?? 0) >= ms && (waits[i] ?? 0) <= ms * 1.25]).toEqual([waits[i], true])
    }
    expect(new Set(waits).size).toBe(5)
  })

  it('B-PARALLEL-4: waits as long as the provider asks for, up to a minute', async () => {
    await ask(
      [{ error: 'rate_limit', retryAfterMs: 9_000 }, { error: 'rate_limit', retryAfterMs: 900_000 }, 'done'],
      inline('a'),
    )
    expect(waits).toEqual([9_000, 60_000])
  })

  it('B-PARALLEL-5: gives up at once on what will not pass: a bad request, a throw, a call of a tool, a refusal, no answer (AC-61)', async () => {
    const thrower: Model = { name: 'thrower', call: () => Promise.reject(new Error('broken')) }
    expect((await ask(thrower, inline('a'))).summary.results).toEqual([
      { index: 0, ok: false, error: 'other: broken', attempts: 1 },
    ])
    const { summary, done } = await ask(
      [
        { error: 'bad_request', message: 'no' },
        { calls: [{ tool: 'x' }] },
        { text: 'never', finish: 'refusal' },
        { text: ' ' },
      ],
      { ...inline('a', 'b', 'c', 'd'), max_concurrency: 1 },
    )
    expect(summary.results.map(({ ok, attempts }) => [ok, attempts])).toEqual(
      Array.from({ length: 4 }, () => [false, 1]),
    )
    expect([waits, done.output.ok, summary.failed]).toEqual([[], false, 4])
  })

  it('B-PARALLEL-6: reads prompts from a JSON list or a JSON string a line, within the bounds, and refuses anything else', async () => {
    bench.put('list.json', '["a", "b"]')
    bench.put('lines.jsonl', '"a"\n\n"b"\n')
    bench.put('bad.json', '{"a": 1}')
    bench.put('three.json', '["a", "b", "c"]')
    const from = (path: string) => ask(() => 'done', { source: { type: 'file', path } }, { options: { promptsMax: 2 } })
    expect((await from('list.json')).summary.succeeded).toBe(2)
    expect((await from('lines.jsonl')).summary.succeeded).toBe(2)
    expect((await from('bad.json')).done).toMatchObject({ type: 'failed', kind: 'InvalidInput' })
    expect((await from('three.json')).done).toMatchObject({ type: 'failed', retryKind: 'ModelRetry' })
    expect((await from('../ws-evil/canary.txt')).done).toMatchObject({ kind: 'Denied' })
    const tool = parallelLlmTool({ model: scripted([]), root: bench.root, promptsMax: 2 })
    for (const source of [
      { type: 'inline', prompts: [] },
      { type: 'inline', prompts: ['a', 'b', 'c'] },
      { type: 'other' },
      { type: 'file' },
    ]) {
      expect((await tool.validate({ source })).issues).toBeDefined()
    }
  })

  it('B-PARALLEL-7: writes the entries to a file in one step, and takes it back', async () => {
    bench.put('out.json', 'before')
    const { done, tool, summary } = await ask(['A', { error: 'auth', message: 'no key' }], {
      ...inline('a', 'b'),
      output_file: 'out.json',
      max_concurrency: 1,
    })
    expect(summary).toMatchObject({ succeeded: 1, failed: 1, output_file: 'out.json', failures: [{ index: 1 }] })
    expect(JSON.parse(bench.text('out.json'))).toEqual([
      { index: 0, ok: true, result: 'A', attempts: 1 },
      { index: 1, ok: false, error: 'auth: no key', attempts: 1 },
    ])
    expect(readdirSync(bench.root)).toEqual(['out.json'])
    await tool.undo?.(done.output.metadata, toolContext({ kept: bench.blobs }))
    expect(bench.text('out.json')).toBe('before')
  })

  it('B-PARALLEL-8: a file that cannot be written leaves no temporary file behind, and the answers are in the result (AC-61)', async () => {
    const folder = join(bench.root, 'out.json')
    const { done, summary } = await ask(
      () => {
        mkdirSync(folder)
        return 'paid for'
      },
      { ...inline('a'), output_file: 'out.json' },
    )
    expect([done.output.ok, summary.results]).toEqual([
      false,
      [{ index: 0, ok: true, result: 'paid for', attempts: 1 }],
    ])
    expect([readdirSync(bench.root), readdirSync(folder)]).toEqual([['out.json'], []])
    rmSync(folder, { recursive: true })
    bench.put('out.json', 'before')
    const stop = new AbortController()
    const late = await ask(
      () => 'paid for',
      { ...inline('a'), output_file: 'out.json' },
      { signal: stop.signal, onKeep: () => stop.abort() },
    )
    expect([late.done.output.ok, late.summary.succeeded]).toEqual([false, 1])
    expect([readdirSync(bench.root), bench.text('out.json')]).toEqual([['out.json'], 'before'])
  })

  it('B-PARALLEL-9: a place that may not be written is refused before anything is asked', async () => {
    let asked = 0
    for (const output_file of ['../ws-evil/canary.txt', '.git/config', '.']) {
      const { done } = await ask(() => `${++asked}`, { ...inline('a'), output_file })
      expect([output_file, done.type]).toEqual([output_file, 'failed'])
    }
    expect([asked, readFileSync(join(bench.outside, 'canary.txt'), 'utf8')]).toEqual([0, CANARY])
  })

  it('B-PARALLEL-10: stops when it is stopped: no further prompt is asked and nothing is written', async () => {
    const stop = new AbortController()
    let asked = 0
    const { done } = await ask(
      () => {
        asked += 1
        stop.abort()
        return { error: 'server' }
      },
      { ...inline('a', 'b', 'c'), output_file: 'out.json', max_concurrency: 1 },
      { signal: stop.signal },
    )
    expect([done, asked, readdirSync(bench.root)]).toMatchObject([{ type: 'failed', kind: 'Interrupted' }, 1, []])
  })

  it('B-PARALLEL-11: with a schema each answer is JSON that fits, and the model is told so', async () => {
    const seen: string[] = []
    const { summary } = await ask(
      ({ instructions }, n) => {
        seen.push(instructions)
        return ['{"n": 1}', '```json\n{"n": 2}\n```', '{"n": "x"}', 'one'][n] ?? ''
      },
      { ...inline('a', 'b', 'c', 'd'), max_concurrency: 1 },
      { options: { output: z.object({ n: z.int() }), outputRetries: 0 } },
    )
    expect(summary.results.map(({ ok, result }) => [ok, result])).toEqual([
      [true, { n: 1 }],
      [true, { n: 2 }],
      [false, undefined],
      [false, undefined],
    ])
    expect(seen[0]).toContain('"n"')
  })

  it('B-SMALL-10: with a schema the JSON is read out of an answer as that of an agent is: fences, prose around it, a lost bracket', async () => {
    const answers = ['Here it is:\n```json\n{"n": 1}\n```\nDone.', 'The answer is {"n": 2}.', '{"n": 3,}', '{"n": 4']
    const { summary } = await ask(
      (_, n) => answers[n] ?? '',
      { ...inline('a', 'b', 'c', 'd'), max_concurrency: 1 },
      { options: { output: z.object({ n: z.int() }), outputRetries: 0 } },
    )
    expect(summary.results.map(({ result }) => result)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }])
  })

  it('B-PARALLEL-14: an answer that does not fit is corrected until its retries are used up, and then only that entry fails (S0-87)', async () => {
    const asked: (readonly string[])[] = []
    const { summary } = await ask(
      ({ messages }) => {
        const texts = messages.flatMap((m) =>
          'parts' in m ? (m.parts ?? []).map((p) => (p.type === 'text' ? p.text : '')) : [],
        )
        asked.push(texts)
        if (texts[0] === 'a') return texts.length === 1 ? 'one' : texts.length === 3 ? '{"n": "x"}' : '{"n": 1}'
        return '{"n": "y"}'
      },
      { ...inline('a', 'b'), max_concurrency: 1 },
      { options: { output: z.object({ n: z.int() }), outputRetries: 2 } },
    )
    expect(summary.results).toMatchObject([
      { index: 0, ok: true, result: { n: 1 }, attempts: 3 },
      { index: 1, ok: false, error: expect.stringContaining('does not fit at "n"') as string, attempts: 3 },
    ])
    expect(asked[2]).toEqual([
      'a',
      'one',
      'The answer is not JSON. Answer again, with one JSON value that fits and nothing else.',
      '{"n": "x"}',
      expect.stringMatching(/^The answer does not fit at "n": .*\. Answer again/) as string,
    ])
    const wrong = { model: scripted([]), root: bench.root, outputRetries: 11 }
    expect(() => parallelLlmTool(wrong)).toThrow('"outputRetries"')
  })

  it('B-PARALLEL-15: it can have another name and more words, so that one harness has several (S0-87)', async () => {
    const grade = parallelLlmTool({
      model: scripted(() => '{"n": 1}'),
      root: bench.root,
      name: 'grade',
      description: 'It grades essays.',
      output: z.object({ n: z.int() }),
    })
    const plain = parallelLlmTool({ model: scripted(() => 'done'), root: bench.root })
    expect([grade.name, grade.kind, plain.name]).toEqual(['grade', 'parallel_llm', 'parallel_llm'])
    expect(grade.description).toContain('It grades essays.')
    const model = scripted([{ calls: [{ tool: 'grade', args: inline('a') }] }, 'over'])
    const harness = new Harness({ model, tools: [grade, plain] })
    expect((await harness.run('go')).calls).toMatchObject([{ tool: 'grade', status: 'ok' }])
    await harness.close()
  })

  it('B-PARALLEL-12: is one call of the run and none of its model requests, however many prompts it has', async () => {
    const many = Array.from({ length: 40 }, (_, i) => `p${i}`)
    const harness = new Harness({
      model: scripted([{ calls: [{ tool: 'parallel_llm', args: inline(...many) }] }, 'over']),
      tools: [parallelLlmTool({ model: scripted(() => 'done'), root: bench.root })],
      limits: { modelRequests: 2, toolCalls: 1 },
    })
    const result = await harness.run('go')
    await harness.close()
    expect(result.status).toBe('completed')
    for (const attemptsMax of [0, 11, 1.5]) {
      expect(() => parallelLlmTool({ model: scripted([]), root: bench.root, attemptsMax })).toThrow('attemptsMax')
    }
  })
})
