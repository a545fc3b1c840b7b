// Measures how full a context is, for a result, a state and listed cards: the tokens at the log's end, and the model's
// window. It drives and fetches nothing. It also has the types of listed cards.
import { modelOfOptions } from '../runtime/turn/run-options.ts'
import type { Frozen } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { type ContextFill, readRequestTokens } from '../context/request-tokens.ts'
import { lookUpWindow } from '../runtime/state/model-window.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import type { Model } from '../ports/model.ts'
import type { Card } from '../ports/store.ts'
import type { TreeCard } from '../stores/plan/tree-cost.ts'
import type { RunProgress } from '../view/session-phase.ts'

/**
 * `context`, `run` and `phase` are absent unless requested. `context` is null if no recent reply was counted; its
 * window is that of the agent's own model. A damaged session has no run and no phase.
 */
export type ListedCard = TreeCard &
  Partial<RunProgress> &
  Frozen<{
    /** How full its context is, if `context` was asked for. Null if no recent reply was counted. */
    context?: ContextFill | null
  }>

/** The model of a session's agent, or the one that a run chose instead. Null: it is not known here. */
export async function findSessionModel(
  services: Services,
  agent: string,
  options?: string,
): Promise<Model | 'workflow' | null> {
  try {
    const { model, planner } = services.agent(agent)
    if (planner !== null) return 'workflow'
    if (options === undefined) return model
    return await modelOfOptions(services, agent, options)
  } catch (error) {
    if (error instanceof Fault) return null
    throw error
  }
}

/** The window of a run's model, for its result; null if unknown. */
export async function runWindowTokens(services: Services, id: string, options?: string): Promise<number | null> {
  const { agent } = (await services.store.card(id)) ?? {}
  const model = agent === undefined ? null : await findSessionModel(services, agent, options)
  return model === null || model === 'workflow' ? null : finiteTokens(await lookUpWindow(services, model))
}

/**
 * Adds to each card how full its session's context is, if that was counted. The window is that of the agent's own
 * model.
 */
export async function addContextFill<T extends Card>(
  services: Services,
  cards: readonly T[],
): Promise<readonly (T & { readonly context: ContextFill | null })[]> {
  return Promise.all(cards.map(async (card) => ({ ...card, context: await readContextFill(services, card) })))
}

/** Null if no reply was counted. */
export async function readContextFill(
  services: Services,
  { session, agent, seq }: Pick<Card, 'session' | 'agent' | 'seq'>,
): Promise<ContextFill | null> {
  const tokens = await readRequestTokens(services.store, session, seq)
  if (tokens === null) return null
  const model = await findSessionModel(services, agent)
  return { tokens, window: model === 'workflow' ? null : finiteTokens(await lookUpWindow(services, model)) }
}

function finiteTokens({ tokens }: { readonly tokens: number }): number | null {
  return Number.isFinite(tokens) ? tokens : null
}
