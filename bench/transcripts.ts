// `transcripts`: what is left of four long conversations (coding, research, data, dumps) in a window of 32,000 tokens. Each has 20 facts
// and 5 rules planted in it, a summarizer that forgets everything, and a provider with a prompt cache that refuses what is too long.
// The texts are generated from a seed, so every run sends the same bytes; the harness, its tools and its compactions are the real ones.
import { defineTool, type Event, Harness, type HarnessOptions, memory, scripted, type Step } from '../src/index.ts'
import { CONTEXT_SUMMARY_PROMPT } from '../src/context/summary.ts'
import { CLEARED } from '../src/kernel/transcript.ts'
import type { Message } from '../src/kernel/transcript.ts'
import type { Request } from '../src/ports/model.ts'
import { integerField, objectField, textField } from '../src/tools/core/argument-schema.ts'
import { textOf } from '../src/view/shown-text.ts'
import type { Case, Family, Figure, Median, Sample } from './family.ts'
import { type Kind, type Page, RULES, transcriptOf } from './transcript-texts.ts'
import { LIMITS } from './turn.ts'

const WINDOW_TOKENS = 32_000
const OUTPUT_TOKENS = 120
/** What a token costs to read from the cache, to read anew, and to write, as parts of the input price. */
const [CACHED, FRESH, WRITTEN] = [0.1, 1.25, 5] as const

const SUMMARY = `## Goal
Do what the user asks for, one task after another, with the tools there are.
## Completed Actions
Several tasks were done. Pages were looked at, and each task was answered before the next one came.
## Active State
The newest task is being worked on, and nothing waits for anybody.
## Key Decisions
None.
## Resolved Questions
None.
## Pending / Open (reference only)
The rest of the newest task, and what the user asks for after it.
## Relevant Files
None.
## Critical Context
What was found can be read again by its token.`

/** About what a tokenizer makes of a text: short words and signs are a token each, longer words several. */
function tokensIn(said: string): number {
  return said.match(/ ?[A-Za-z]{1,6}|[0-9]{1,3}|[^\sA-Za-z0-9]|\s+/g)?.length ?? 0
}

/** A provider that keeps what requests begin with, message by message. */
class Provider {
  readonly seen: Record<string, number> = {
    requests: 0,
    refused: 0,
    tokens: 0,
    cached: 0,
    fresh: 0,
    cost: 0,
    rulesLost: 0,
  }
  last: Request | null = null
  readonly #sizes = new Map<string, number>()
  #before: readonly string[] = []
  readonly #known = new Set<string>()

  /** Null: it is too long. */
  count(request: Request) {
    const parts = [
      request.instructions,
      JSON.stringify(request.tools),
      ...request.messages.map((m) => JSON.stringify(m)),
    ]
    const sizes = parts.map((part) => this.#sizeOf(part))
    const inputTokens = sizes.reduce((sum, size) => sum + size, 0)
    if (inputTokens > WINDOW_TOKENS) {
      this.#add({ refused: 1 })
      return null
    }
    const other = this.#before.findIndex((part, i) => part !== parts[i])
    const same = other < 0 ? this.#before.length : other
    const cachedTokens = sizes.slice(0, same).reduce((sum, size) => sum + size, 0)
    this.#before = parts
    this.last = { ...request, messages: [...request.messages] }
    const cost = cachedTokens * CACHED + (inputTokens - cachedTokens) * FRESH + OUTPUT_TOKENS * WRITTEN
    // What no request has shown before is read anew, whatever is done with the rest.
    const fresh = parts.reduce((sum, part, i) => sum + (this.#known.has(part) ? 0 : (sizes[i] ?? 0)), 0)
    for (const part of parts) this.#known.add(part)
    this.#add({ requests: 1, tokens: inputTokens, cached: cachedTokens, fresh, cost })
    return { inputTokens, cachedTokens, outputTokens: OUTPUT_TOKENS }
  }

  /** Of these rules, those that the last request does not show word for word. */
  miss(rules: readonly string[]): void {
    const view = this.last === null ? '' : viewOf(this.last)
    this.#add({ rulesLost: rules.filter((rule) => !view.includes(rule)).length })
  }

  #add(more: Record<string, number>): void {
    for (const [name, value] of Object.entries(more)) this.seen[name] = (this.seen[name] ?? 0) + value
  }

  #sizeOf(part: string): number {
    const size = this.#sizes.get(part) ?? tokensIn(part)
    this.#sizes.set(part, size)
    return size
  }
}

function viewOf({ messages }: Request): string {
  return messages.map((m) => (m.role === 'tool' ? contentOf(m) : textOf(m.parts))).join('\n')
}

function contentOf({ content }: Extract<Message, { role: 'tool' }>): string {
  return typeof content === 'string' ? content : ''
}

type Doing = { readonly pages: readonly Page[]; at: number; readonly looked: Map<number, string>; again: string | null }

/** Looks at the pages of the task one after another; what it needs again and does not see it reads by its token. */
function nextStep(doing: Doing, request: Request, end: number): Step {
  if (doing.again !== null) {
    const step = { tool: 'retrieve_original', args: { token: doing.again, line_from: 1, line_to: 60 } }
    doing.again = null
    return { text: 'I need this again.', calls: [step] }
  }
  if (doing.at >= end) return { text: `Done: ${'this is what came of it. '.repeat(12)}` }
  const page = doing.pages[doing.at]
  const older = page?.needs === undefined ? undefined : doing.looked.get(page.needs)
  const shown = request.messages.find((m) => m.role === 'tool' && m.call === older)
  if (older !== undefined && (shown?.role !== 'tool' || contentOf(shown).startsWith(CLEARED)))
    doing.again = `call:${older}`
  const args = { n: doing.at, path: page?.path ?? '' }
  doing.at += 1
  return { text: page?.said ?? '', calls: [{ tool: 'look', args }] }
}

async function longRun(kind: Kind, options: Partial<HarnessOptions>): Promise<Sample> {
  const { tasks, pages } = transcriptOf(kind)
  const provider = new Provider()
  const doing: Doing = { pages, at: 0, looked: new Map(), again: null }
  let [end, said, summaries] = [0, 0, 0]
  let wanted: Readonly<Record<string, string | number>> | null = null
  const model = scripted((request: Request) => {
    if (request.instructions === CONTEXT_SUMMARY_PROMPT) {
      summaries += 1
      return SUMMARY
    }
    const usage = provider.count(request)
    if (usage === null) return { error: 'overflow', message: 'too long' }
    provider.miss(RULES.slice(0, said))
    noteCalls(doing, request.messages)
    if (wanted === null) return { ...(nextStep(doing, request, end) as object), usage }
    const args = wanted
    wanted = null
    return { usage, calls: [{ tool: 'retrieve_original', args }] }
  })
  const look = defineTool({
    name: 'look',
    description: 'Looks at a page.',
    input: objectField({ n: integerField('Which one.'), path: textField('Where it is.') }),
    effect: 'read',
    execute: ({ n }) => pages[n]?.text ?? '',
  })
  const compaction = { windowTokens: WINDOW_TOKENS, detectPins: true }
  const store = memory()
  const harness = new Harness({
    model,
    tools: [look],
    limits: LIMITS,
    store,
    breaker: false,
    context: { compaction },
    ...options,
  })
  const session = await harness.open()
  for (const task of tasks) {
    if (task.rule) said += 1
    end = doing.at + task.pages
    const { status } = await session.run(task.text)
    if (status !== 'completed') throw new Error(`a task of ${kind} ${status}`)
  }
  const measured = { ...provider.seen }
  const { events } = await store.read(session.id, 0)
  let [lostSaid, lostRead] = [0, 0]
  for (const fact of transcriptOf(kind).facts) {
    if (provider.last !== null && viewOf(provider.last).includes(fact.text)) continue
    wanted = placeOf(events, fact, doing.looked)
    const from = (await store.read(session.id, 0)).events.length
    await session.run('Read that again.')
    const isLost = !JSON.stringify((await session.events({ after: from, limit: 1_000 })).events).includes(fact.text)
    if (isLost && fact.page === null) lostSaid += 1
    else if (isLost) lostRead += 1
  }
  await harness.close()
  const compactions = events.filter(
    (e): e is Extract<Event, { type: 'context.compacted' }> => e.type === 'context.compacted',
  )
  const cuts = compactions.filter(({ cut }) => cut !== undefined).length
  const clears = compactions.filter(({ cleared }) => cleared !== undefined).length
  const fits = compactions.filter(({ fitted }) => fitted !== undefined).length
  return { ...measured, cuts, clears, fits, lostSaid, lostRead, summaries }
}

/** Where the result of each look stands: by the key of its call. */
function noteCalls({ looked }: Doing, messages: readonly Message[]): void {
  for (const message of messages.slice(-8)) {
    if (message.role !== 'assistant') continue
    for (const { key, tool, args } of message.calls)
      if (tool === 'look') looked.set((args as { readonly n: number }).n, key)
  }
}

/** How a fact is read again: a few lines of its result, or the message that said it. */
function placeOf(
  events: readonly Event[],
  fact: ReturnType<typeof transcriptOf>['facts'][number],
  looked: ReadonlyMap<number, string>,
): Readonly<Record<string, string | number>> {
  if (fact.page !== null)
    return {
      token: `call:${looked.get(fact.page) ?? ''}`,
      line_from: Math.max(1, fact.line - 5),
      line_to: fact.line + 5,
    }
  const said = events.find((e) => e.type === 'user.message' && textOf(e.parts).includes(fact.text))
  return { token: `msg:${said?.seq ?? 0}` }
}

const MODES = ['off', 'light', 'full'] as const
const KINDS: readonly Kind[] = ['coding', 'research', 'data', 'dumps']

function noteOf(median: Median, side: string): string {
  const of = (key: string): number => median(`${side}.${key}`)
  const sizes = `${of('requests')} requests, ${(of('tokens') / 1e6).toFixed(2)} M tokens, cost ${(of('cost') / 1e6).toFixed(2)} M`
  const cuts = `${of('cuts')} summaries, ${of('clears')} clears, ${of('fits')} shortened, ${of('refused')} refused`
  return `${sizes}; ${cuts}; rules missing in requests ${of('rulesLost')}, facts out of reach ${of('lostRead')} in results, ${of('lostSaid')} in messages`
}

function cachedFigure(kind: Kind, mode: (typeof MODES)[number]): Figure {
  const side = `${kind}_${mode}`
  return {
    name: `transcripts.${kind}.${mode}`,
    unit: '% cached',
    target: kind === 'research' && mode !== 'full' ? 75 : 85,
    atLeast: true,
    value: (median) => (100 * median(`${side}.cached`)) / median(`${side}.tokens`),
    // As much as there would be if nothing were ever read a second time.
    floor: (median) => 100 - (100 * median(`${side}.fresh`)) / median(`${side}.tokens`),
    note: (median) => noteOf(median, side),
  }
}

const sides = KINDS.flatMap((kind) => MODES.map((mode) => ({ kind, mode, side: `${kind}_${mode}` })))
const worst = (median: Median, key: string): number => Math.max(...sides.map(({ side }) => median(`${side}.${key}`)))

export const transcripts: Family = {
  repetitions: 1,
  cases: Object.fromEntries(
    sides.map(({ kind, mode, side }): [string, Case] => [
      side,
      () => longRun(kind, { results: { compression: mode } }),
    ]),
  ),
  figures: [
    {
      name: 'transcripts',
      unit: 'rules and facts lost',
      target: 0,
      value: (median) => worst(median, 'rulesLost') + worst(median, 'lostRead') + worst(median, 'lostSaid'),
      floor: () => 0,
    },
    {
      name: 'transcripts.summaries',
      unit: 'in 40 requests',
      target: 1,
      value: (median) =>
        Math.max(...sides.map(({ side }) => (40 * median(`${side}.cuts`)) / median(`${side}.requests`))),
      floor: () => 1,
    },
    ...sides.map(({ kind, mode }) => cachedFigure(kind, mode)),
  ],
}
