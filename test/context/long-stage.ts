// A provider for long runs: it counts what it is sent, refuses what is too long, keeps a prompt cache like the real ones, and says
// what every request held. Used where a window fills over many turns.
import { z } from 'zod'
import { CONTEXT_SUMMARY_PROMPT } from '../../src/context/summary.ts'
import { defineTool, type Event, Harness, type HarnessOptions, memory, scripted } from '../../src/index.ts'
import type { Message } from '../../src/kernel/transcript.ts'
import type { Model, Request } from '../../src/ports/model.ts'
import { countRequestChars } from '../../src/runtime/money/usage-estimate.ts'
import { textOf } from '../../src/view/shown-text.ts'

type Script = Parameters<typeof scripted>[0]
export type Step = Exclude<Extract<Script, readonly unknown[]>[number], (...args: never) => unknown>

/** A summary that counts. */
export const GOOD_SUMMARY = `## Goal
Read every page that the user named, and answer with what the pages say about the plan.
## Completed Actions
The first pages were read in order, and their first and last lines were compared with the list.
## Active State
Reading goes on with the next page of the list; nothing was written or sent so far.
## Key Decisions
Each page is read once.
## Resolved Questions
None.
## Pending / Open (reference only)
The remaining pages, and then the answer.
## Relevant Files
None.
## Critical Context
The user wants whole sentences, and no guesses.`

export type LongStage = {
  /** How many characters the result of turn `n` has, or the result itself. */
  readonly result: (n: number) => string
  readonly turns: number
  readonly calls?: number
  readonly windowTokens?: number
  /** How many characters the provider counts as a token. */
  readonly charsAToken?: number
  readonly summary?: (n: number) => Step
  readonly options?: Partial<HarnessOptions>
}

export type Sent = {
  readonly request: Request
  readonly tokens: number
  /** How many tokens of the request before were not its beginning any more. */
  readonly lost: number
}

/** Runs are made of looks, one a turn unless `calls` says more, and an answer after the last of them. */
export function longStage(given: LongStage) {
  const { result, turns, calls = 1, windowTokens = 32_000, charsAToken = 4, summary = () => GOOD_SUMMARY } = given
  const sent: Sent[] = []
  const summaries: Request[] = []
  let refusals = 0
  let looks = 0
  let before: readonly string[] = []
  const model = scripted((request) => {
    if (request.instructions === CONTEXT_SUMMARY_PROMPT) return summary(summaries.push({ ...request }) - 1)
    const tokens = Math.ceil(countRequestChars(request) / charsAToken)
    if (tokens > windowTokens) {
      refusals += 1
      return { error: 'overflow', message: 'too long' }
    }
    const parts = [
      request.instructions,
      JSON.stringify(request.tools),
      ...request.messages.map((m) => JSON.stringify(m)),
    ]
    const other = before.findIndex((part, i) => part !== parts[i])
    const sizeOf = (texts: readonly string[]): number =>
      Math.ceil(texts.reduce((sum, { length }) => sum + length, 0) / charsAToken)
    const same = other < 0 ? before.length : other
    const lost = sizeOf(before.slice(same))
    const cachedTokens = Math.min(tokens, sizeOf(before.slice(0, same)))
    before = parts
    sent.push({ request: { ...request, messages: [...request.messages] }, tokens, lost })
    const usage = { inputTokens: tokens, cachedTokens, outputTokens: 20 }
    if (looks >= turns) return { usage, text: 'done' }
    looks += 1
    const asked = Array.from({ length: calls }, (_, i) => ({ tool: 'look', args: { n: (looks - 1) * calls + i } }))
    return { usage, calls: asked }
  })
  const store = given.options?.store ?? memory()
  const look = defineTool({
    name: 'look',
    description: 'looks at a page',
    input: z.object({ n: z.number() }),
    effect: 'read',
    execute: ({ n }) => result(n),
  })
  const options: HarnessOptions = {
    model,
    tools: [look],
    breaker: false,
    limits: { modelRequests: 1_000 },
    context: { compaction: { windowTokens } },
    ...given.options,
    results: { compression: 'off', ...given.options?.results },
    store,
  }
  const harness = new Harness(options)
  return { harness, sent, summaries, store, refusals: () => refusals, model, options }
}

/** The same model with prices, so that its cache is watched. */
export function pricedModel(model: Model, contextTokens: number): Model {
  const price = { input: 2, output: 10, cached: 0.2 }
  const profile = async () => ({ price, known: true, contextTokens, cost: () => 1 })
  return { ...model, able: { name: 'priced', native: 'no' }, outputTokensMax: 100, secrets: {}, profile } as Model
}

export function textIn(request: Request): string {
  return request.messages.map((m) => (m.role === 'tool' ? contentOf(m) : textOf(m.parts))).join('\n')
}

export function contentOf({ content }: Extract<Message, { role: 'tool' }>): string {
  return typeof content === 'string' ? content : `[${content.bytes} bytes]`
}

export async function compactionsOf(harness: Harness, id: string) {
  const { events } = await harness.session(id).events()
  return events.filter((e): e is Extract<Event, { type: 'context.compacted' }> => e.type === 'context.compacted')
}
