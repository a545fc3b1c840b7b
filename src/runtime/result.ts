// What became of one run, collected from its events. It reads the log and adds nothing to it.
import type { CallKey, FailedReason, Frozen, Json, Outcome, Part, Usage } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { Failure } from '../kernel/failure.ts'

export type Pending = Frozen<{
  callId: CallKey
  tool: string
  args: Json
  /** `approval`: use `decide`. `answer`: use `answer`. */
  needs: 'approval' | 'answer'
  digest?: string
  expiresAt?: number | null
}>

type Common = {
  sessionId: string
  text: string
  usage: Frozen<{ inputTokens: number; outputTokens: number; modelRequests: number; toolCalls: number }>
  /** Millionths of a dollar. */
  cost: number
  pending: readonly Pending[]
}

export type Result = Frozen<
  | (Common & { status: 'completed'; stopReason: 'end_turn'; output: Json })
  | (Common & { status: 'requires_action'; stopReason: 'approval_required' | 'answer_required' | 'paused' })
  | (Common & { status: 'sleeping'; stopReason: 'rescheduling'; until: number | null })
  | (Common & { status: 'interrupted'; stopReason: 'cancelled' })
  | (Common & { status: 'limit'; stopReason: 'limit_reached'; limit: Extract<Outcome, { type: 'limit' }>['limit'] })
  | (Common & { status: 'halted'; stopReason: 'halted'; reason: string })
  | (Common & { status: 'failed'; stopReason: FailedReason; failure: Failure })
>

/** Follows one input to the run that took it, or, without an input, the last run. */
export class Collector {
  outcome: Outcome | null = null
  readonly #sessionId: string
  readonly #input: number | null
  #inside = false
  #text = ''
  #output: Json = null
  #usage = { inputTokens: 0, outputTokens: 0, modelRequests: 0, toolCalls: 0 }
  #cost = 0

  constructor(sessionId: string, input: number | null) {
    this.#sessionId = sessionId
    this.#input = input
    this.#inside = input === null
  }

  take(event: Event): void {
    if (this.#input === null && event.type === 'run.started') this.#reset()
    if (this.outcome) return
    if (event.type === 'agent.message') {
      if (this.#inside) this.#reply(event)
    } else if (event.type === 'run.settled') {
      if (this.#inside || this.#opens(event.inputs ?? [])) this.outcome = event.outcome
    } else if (this.#inside) return
    else if (event.type === 'run.started') this.#inside = this.#opens(event.inputs)
    else if (event.type === 'model.started') this.#inside = this.#opens(event.shows)
  }

  result(pending: readonly Pending[], waiting: { readonly waiting: string; readonly until: number | null }): Result {
    const common = { sessionId: this.#sessionId, text: this.#text, usage: this.#usage, cost: this.#cost, pending }
    const { outcome } = this
    if (!outcome) return unsettled(common, waiting)
    switch (outcome.type) {
      case 'completed':
        return { ...common, status: 'completed', stopReason: 'end_turn', output: this.#output }
      case 'interrupted':
        return { ...common, status: 'interrupted', stopReason: 'cancelled' }
      case 'limit':
        return { ...common, status: 'limit', stopReason: 'limit_reached', limit: outcome.limit }
      case 'halted':
        return { ...common, status: 'halted', stopReason: 'halted', reason: outcome.reason }
      case 'failed':
        return { ...common, status: 'failed', stopReason: outcome.reason, failure: outcome.failure }
    }
  }

  /** Without an input of its own it is the last run that counts. */
  #reset(): void {
    this.outcome = null
    this.#text = ''
    this.#output = null
    this.#usage = { inputTokens: 0, outputTokens: 0, modelRequests: 0, toolCalls: 0 }
    this.#cost = 0
  }

  #opens(seqs: readonly number[]): boolean {
    return this.#input !== null && seqs.includes(this.#input)
  }

  #reply(event: Extract<Event, { type: 'agent.message' }>): void {
    this.#text = textOf(event.parts)
    const { verdict } = event
    if (verdict.type !== 'final') this.#output = null
    else this.#output = verdict.output === undefined ? this.#text : verdict.output
    this.#cost += event.cost ?? 0
    // What only gives the answer is no call of a tool, and a reply that is not valid calls none.
    this.#usage = add(this.#usage, event.usage ?? null, verdict.type === 'continue' ? event.calls.length : 0)
  }
}

function unsettled(
  common: Common,
  { waiting, until }: { readonly waiting: string; readonly until: number | null },
): Result {
  if (waiting === 'approval') return { ...common, status: 'requires_action', stopReason: 'approval_required' }
  if (waiting === 'answer') return { ...common, status: 'requires_action', stopReason: 'answer_required' }
  if (waiting === 'resume') return { ...common, status: 'requires_action', stopReason: 'paused' }
  return { ...common, status: 'sleeping', stopReason: 'rescheduling', until }
}

function textOf(parts: readonly Part[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

function add(sum: Common['usage'], usage: Usage | null, calls: number): Common['usage'] {
  return {
    inputTokens: sum.inputTokens + (usage?.inputTokens ?? 0),
    outputTokens: sum.outputTokens + (usage?.outputTokens ?? 0),
    modelRequests: sum.modelRequests + 1,
    toolCalls: sum.toolCalls + calls,
  }
}
