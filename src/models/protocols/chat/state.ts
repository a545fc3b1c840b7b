// What is known of an answer so far. Data only: how chunks change it is stream.ts, what it comes to is reply.ts.
import type { Mutable, Usage } from '../../../kernel/content.ts'
import type { ModelFailure } from '../../../kernel/ports.ts'
import type { Target } from '../protocol.ts'
import type { Alike } from './alike.ts'
import type { CallState } from './calls.ts'
import type { JsonObject } from '../../../view/json.ts'

export type ChatState = {
  readonly by: string
  readonly model: string
  /** How many parts and calls have begun. */
  readonly begun: number
  readonly text: string
  /** Where the text stands among the parts and calls; -1 before it begins. */
  readonly textPart: number
  readonly reasoning: string
  readonly reasoningPart: number
  /** How many calls had begun before the reasoning. */
  readonly reasoningAt: number
  readonly details: readonly JsonObject[]
  readonly calls: readonly CallState[]
  readonly refused: boolean
  /** The host's own word for why it stopped; null while it goes on. */
  readonly stopped: string | null
  /** `[DONE]` has come. */
  readonly done: boolean
  readonly usage: Usage | null
  readonly cost: number | undefined
  readonly failed: ModelFailure | null
  readonly broken: boolean
  /** What the last chunk that was only text looked like around it, and how often that may still be found out. */
  readonly alike: Alike | null
  readonly alikeTries: number
}

const ALIKE_TRIES = 16

export function begin({ endpoint, model }: Target): ChatState {
  return {
    by: endpoint,
    model,
    begun: 0,
    text: '',
    textPart: -1,
    reasoning: '',
    reasoningPart: -1,
    reasoningAt: 0,
    details: [],
    calls: [],
    refused: false,
    stopped: null,
    done: false,
    usage: null,
    cost: undefined,
    failed: null,
    broken: false,
    alike: null,
    alikeTries: ALIKE_TRIES,
  }
}

/** Field by field: a spread of this many costs more than all else that a delta does, and there are thousands of deltas. */
export function draftOf(state: ChatState): Mutable<ChatState> {
  return {
    by: state.by,
    model: state.model,
    begun: state.begun,
    text: state.text,
    textPart: state.textPart,
    reasoning: state.reasoning,
    reasoningPart: state.reasoningPart,
    reasoningAt: state.reasoningAt,
    details: state.details,
    calls: state.calls,
    refused: state.refused,
    stopped: state.stopped,
    done: state.done,
    usage: state.usage,
    cost: state.cost,
    failed: state.failed,
    broken: state.broken,
    alike: state.alike,
    alikeTries: state.alikeTries,
  }
}
