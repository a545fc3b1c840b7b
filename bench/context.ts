// `context`: what a long run sends to the model. 300 turns over files, outputs and JSON of this repository with a scripted model: with
// everything off, with `light`, with `full`, and with `full` in a window that is compacted. Bytes are the same in every run; only
// what the router takes, and what a turn costs in which nothing is large, are times.
import { compressContent, defineTool, Harness, type HarnessOptions, scripted, type Step } from '../src/index.ts'
import { CONTEXT_SUMMARY_PROMPT } from '../src/context/summary.ts'
import { profileOf } from '../src/models/price.ts'
import type { Request } from '../src/ports/model.ts'
import { integerField, objectField, optionalField, textField } from '../src/tools/core/argument-schema.ts'
import { type Case, cpuMs, type Family, type Figure, type Median, medianOf, type Sample } from './family.ts'
import { type Look, looks } from './long-texts.ts'
import { ask, LIMITS, lookup } from './turn.ts'

const TURNS = 300
/** The list prices that are used. Its window takes what is sent when everything is off. */
const [PROVIDER, MODEL] = ['openai', 'gpt-4.1'] as const
const BYTES_A_TOKEN = 4
const WINDOW_TOKENS = 128_000
/** Of each tenth result that was made shorter, so many lines are asked for. */
const RETRIEVED_EACH = 10
const RETRIEVED_LINES = 60

/** Counts what is sent, as the JSON of what a request holds, and how much of it is the beginning of the request before. */
class Sent {
  bytes = 0
  reused = 0
  last = 0
  requests = 0
  readonly #known = new WeakMap<object, string>()
  #before: readonly string[] = []

  take({ instructions, tools, messages }: Request): { readonly bytes: number; readonly reused: number } {
    const parts = [instructions, JSON.stringify(tools), ...messages.map((message) => this.#json(message))]
    let [bytes, reused, same] = [0, 0, true]
    for (const [i, part] of parts.entries()) {
      const length = Buffer.byteLength(part)
      same &&= part === this.#before[i]
      bytes += length
      if (same) reused += length
    }
    this.#before = parts
    this.bytes += bytes
    this.reused += reused
    this.last = bytes
    this.requests += 1
    return { bytes, reused }
  }

  #json(message: object): string {
    const json = this.#known.get(message) ?? JSON.stringify(message)
    this.#known.set(message, json)
    return json
  }
}

async function longRun(options: Partial<HarnessOptions>): Promise<Sample> {
  const script = looks(TURNS)
  const { cost } = await profileOf(PROVIDER, MODEL)
  const sent = new Sent()
  const summaries = new Sent()
  let [turn, shortened, micros] = [0, 0, 0]
  const answer = ({ instructions, messages }: Request): Step => {
    if (instructions === CONTEXT_SUMMARY_PROMPT) return { text: summaryAt(turn) }
    const last = messages.at(-1)
    const result = last?.role === 'tool' && typeof last.content === 'string' ? last.content : ''
    const token = /PARTIAL view.*⟦tj:([0-9a-f]{32})⟧\]$/.exec(result.slice(-300))?.[1]
    if (token !== undefined && ++shortened % RETRIEVED_EACH === 0)
      return { calls: [{ tool: 'retrieve_original', args: { token, line_from: 1, line_to: RETRIEVED_LINES } }] }
    const next = script[turn++]
    return next === undefined ? { text: 'Done.' } : { calls: [{ tool: next.tool, args: next.args }] }
  }
  const model = scripted((request) => {
    const { bytes, reused } = (request.instructions === CONTEXT_SUMMARY_PROMPT ? summaries : sent).take(request)
    const step = answer(request)
    const usage = {
      inputTokens: Math.ceil(bytes / BYTES_A_TOKEN),
      cachedTokens: Math.floor(reused / BYTES_A_TOKEN),
      outputTokens: Math.ceil(JSON.stringify(step).length / BYTES_A_TOKEN),
    }
    micros += cost(usage)
    return { ...(step as object), usage }
  })
  const tools = ['run', 'show', 'grep'].map((name) => toolOf(name, (at) => script[at]?.text ?? ''))
  const harness = new Harness({ model, tools, limits: LIMITS, instructions: INSTRUCTIONS, ...options })
  const { status } = await harness.run('Read what this repository holds, and say what it is.')
  await harness.close()
  if (status !== 'completed' || turn !== TURNS + 1) throw new Error(`the run ${status} after ${turn} turns`)
  const { bytes, reused, last, requests } = sent
  return { bytes: bytes + summaries.bytes, reused, last, requests, summaries: summaries.requests, usd: micros / 1e6 }
}

function summaryAt(turn: number): string {
  return `## Goal
Read what this repository holds, and say what it is, in one answer after everything was looked at.
## Completed Actions
${turn} looks at files, searches and outputs of commands, one after another in the order of the script.
## Active State
The next look is made; nothing was written, and nobody waits for anything.
## Pending
The looks that are left, and the answer.
## Critical Context
Results that were cut can be read again by their tokens.`
}

const INSTRUCTIONS =
  'You read repositories. Look at files, search them and run commands, one at a time, and then answer.'

function toolOf(name: string, textAt: (turn: number) => string) {
  const maybe = optionalField(textField('What to look at.'))
  return defineTool({
    name,
    description: `Looks at something with ${name}.`,
    input: objectField({ turn: integerField('The turn.'), command: maybe, path: maybe, query: maybe, room: maybe }),
    effect: 'read',
    execute: ({ turn }) => textAt(turn),
  })
}

const PASSES = 12

/** The router alone over the same texts, as a fresh process meets them. */
const alone: Case = async () => {
  const script = looks(TURNS)
  const keep = (): string => '0'.repeat(32)
  const timed = async (pass: (look: Look) => unknown): Promise<number> => {
    const before = cpuMs()
    for (const look of script) await pass(look)
    return cpuMs() - before
  }
  const route = (look: Look): Promise<unknown> => compressContent(look.text, look.hint, { keep })
  const first = await timed(route)
  const [later, lines]: [number[], number[]] = [[], []]
  for (let i = 0; i < PASSES; i++) {
    later.push(await timed(route))
    lines.push(await timed((look) => look.text.split('\n')))
  }
  const bytes = script.reduce((sum, look) => sum + Buffer.byteLength(look.text), 0)
  // The first half of them is V8 compiling.
  return { first, later: medianOf(later.slice(PASSES / 2)), lines: medianOf(lines.slice(PASSES / 2)), bytes }
}

const QUIET_TURNS = 200
const QUIET_WARM = 12
const QUIET_PAIRS = 60

async function quietRun(options: Partial<HarnessOptions>): Promise<number> {
  const model = scripted((_request, n) => (n < QUIET_TURNS ? ask(n) : 'done'))
  const harness = new Harness({ model, tools: [lookup], limits: LIMITS, ...options })
  const before = cpuMs()
  await harness.run('go')
  const spent = cpuMs() - before
  await harness.close()
  return spent
}

/** Turns with small results, with the router and without, one after the other in one process: the median of the ratios. */
const quiet: Case = async () => {
  const off = { results: { compression: 'off' } } as const
  const sides = {
    light: { results: { compression: 'light' } },
    full: { results: { compression: 'full' } },
    same: off,
  } as const
  const ratios: Record<string, number[]> = { light: [], full: [], same: [] }
  for (let pair = 0; pair < QUIET_WARM + QUIET_PAIRS; pair++) {
    for (const [name, on] of Object.entries(sides)) {
      const first = pair % 2 === 0 ? await quietRun(off) : 0
      const with_ = await quietRun(on)
      const without = pair % 2 === 0 ? first : await quietRun(off)
      if (pair >= QUIET_WARM) ratios[name]?.push(with_ / without)
    }
  }
  return Object.fromEntries(Object.entries(ratios).map(([name, values]) => [name, medianOf(values)]))
}

function sentFigure(name: string, side: string, target: number): Figure {
  return {
    name,
    unit: '% of the bytes',
    target,
    value: (median) => (100 * median(`${side}.bytes`)) / median('off.bytes'),
    floor: () => 100,
    note: (median) => `${noteOf(median, side)}; off: ${noteOf(median, 'off')}`,
  }
}

function noteOf(median: Median, side: string): string {
  const of = (key: string): number => median(`${side}.${key}`)
  const sizes = `${(of('bytes') / 1e6).toFixed(1)} MB, the last ${(of('last') / 1e3).toFixed(0)} KB`
  const reused = `${((100 * of('reused')) / of('bytes')).toFixed(1)} % reused`
  const summaries = of('summaries') > 0 ? `, ${of('summaries')} summaries` : ''
  return `${sizes}, ${reused}, $${of('usd').toFixed(2)}, ${of('requests')} requests${summaries}`
}

function quietFigure(profile: 'light' | 'full'): Figure {
  const [value, floor] = [(median: Median) => median(`quiet.${profile}`), (median: Median) => median('quiet.same')]
  return { name: `context.quiet.${profile}`, unit: 'ratio', target: 1.02, value, floor }
}

export const context: Family = {
  repetitions: 3,
  cases: {
    off: () => longRun({ results: { compression: 'off' } }),
    light: () => longRun({ results: { compression: 'light' } }),
    full: () => longRun({ results: { compression: 'full' } }),
    compacted: () =>
      longRun({ results: { compression: 'full' }, context: { compaction: { windowTokens: WINDOW_TOKENS } } }),
    alone,
    quiet,
  },
  figures: [
    sentFigure('context', 'full', 35),
    sentFigure('context.light', 'light', 100),
    sentFigure('context.compacted', 'compacted', 35),
    {
      name: 'context.money',
      unit: '% of the money',
      target: 35,
      value: (median) => (100 * median('full.usd')) / median('off.usd'),
      floor: () => 100,
      note: (median) => {
        const [off, light, full, compacted] = ['off', 'light', 'full', 'compacted'].map((side) =>
          median(`${side}.usd`).toFixed(2),
        )
        return `${PROVIDER}:${MODEL}: off $${off}, light $${light}, full $${full}, compacted $${compacted}`
      },
    },
    {
      name: 'context.router',
      unit: 'CPU ms for 100 KB',
      target: 1,
      value: (median) => (median('alone.later') * 102_400) / median('alone.bytes'),
      floor: (median) => (median('alone.lines') * 102_400) / median('alone.bytes'),
      note: (median) => {
        const [later, first] = [median('alone.later').toFixed(0), median('alone.first').toFixed(0)]
        return `${later} ms for ${TURNS} results of ${(median('alone.bytes') / 1e6).toFixed(2)} MB, ${first} the first time`
      },
    },
    quietFigure('light'),
    quietFigure('full'),
  ],
}
