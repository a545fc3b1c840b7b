// A log in the making, for tests of tracing: events one after the other, ten milliseconds apart, as the driver would write
// them. And what tests read off spans. No expectations here.
import type { Proposal } from '../../src/kernel/content.ts'
import type { Event, EventBody, Parent } from '../../src/kernel/event.ts'
import { DEFAULT_LIMITS } from '../../src/kernel/limits.ts'
import type { SessionLog, Span } from '../../src/tracing/index.ts'

export const TEN = 10

export class Tale implements SessionLog {
  readonly session: string
  readonly events: Event[] = []
  at: number
  epoch = 1

  constructor(session: string, parent: Parent | null = null, at = 1_000) {
    this.session = session
    this.at = at
    this.add({ type: 'session.created', agent: 'tester', planner: 'model', ...(parent ? { parent } : {}) })
  }

  /** Its seq. */
  add(body: EventBody): number {
    const epoch = body.type.startsWith('user.') ? 0 : this.epoch
    const seq = this.events.length + 1
    this.events.push({ seq, at: this.at, epoch, ...body })
    this.at += TEN
    return seq
  }

  say(text: string): number {
    return this.add({
      type: 'user.message',
      id: `m${this.events.length}`,
      parts: [{ type: 'text', text }],
      when: 'next',
    })
  }

  begin(inputs: readonly number[] = []): number {
    const frozen = { toolset: 'a'.repeat(64), instructions: 'b'.repeat(64), code: 'terret@test' }
    return this.add({ type: 'run.started', inputs, wakes: [], limits: DEFAULT_LIMITS, ...frozen })
  }

  ask(shows: readonly number[] = []): number {
    return this.add({ type: 'model.started', shows })
  }

  reply(calls: readonly Proposal[], over: Partial<Extract<Event, { type: 'agent.message' }>> = {}): number {
    const verdict = { type: calls.length > 0 ? ('continue' as const) : ('final' as const) }
    const parts = [{ type: 'text' as const, text: 'SAID-BY-THE-MODEL' }]
    const route = 'anthropic:claude-test'
    const { seq: _seq, at: _at, epoch: _epoch, type: _type, ...rest } = { seq: 0, at: 0, epoch: 0, type: '', ...over }
    return this.add({ type: 'agent.message', parts, calls, verdict, route, ...rest })
  }

  use(call: string, content = 'FOUND-BY-THE-TOOL'): void {
    this.add({ type: 'agent.tool_use', call })
    this.add({ type: 'agent.tool_result', call, status: 'ok', content })
  }

  settle(): number {
    return this.add({ type: 'run.settled', outcome: { type: 'completed' } })
  }
}

export function proposal(tool: string, over: Partial<Proposal> = {}): Proposal {
  return {
    id: `toolu_${tool}`,
    tool,
    args: { secretArgument: 'GIVEN-TO-THE-TOOL' },
    effect: 'once',
    timeoutMs: 1,
    ...over,
  }
}

/** A session with one run: a question, a call, an answer. */
export function simple(session = 'root'): Tale {
  const tale = new Tale(session)
  const input = tale.say('ASKED-BY-THE-USER')
  tale.begin([input])
  tale.ask([input])
  const seq = tale.reply([proposal('read')], {
    usage: { inputTokens: 100, outputTokens: 20, cachedTokens: 80, cacheWriteTokens: 5, reasoningTokens: 7 },
    cost: 1_500,
  })
  tale.use(`${seq}.0`)
  tale.ask([tale.events.length])
  tale.reply([], { usage: { inputTokens: 120, outputTokens: 10 }, cost: 500 })
  tale.settle()
  return tale
}

export function named(spans: readonly Span[], start: string): Span {
  const found = spans.filter((span) => span.name.startsWith(start))
  if (found.length !== 1)
    throw new Error(`${found.length} spans are called ${start}: ${spans.map((s) => s.name).join()}`)
  return found[0] as Span
}

/** The names as an indented tree. */
export function drawn(
  spans: readonly Pick<Span, 'spanId' | 'parentId' | 'name'>[],
  parent: string | null = null,
): readonly string[] {
  return spans
    .filter((span) => span.parentId === parent)
    .flatMap((span) => [span.name, ...drawn(spans, span.spanId).map((line) => `  ${line}`)])
}
