// How full a context is, for a result, a state and the cards of a list: the tokens of the log's end, and how much the model takes. It
// drives and fetches nothing. Also what a card of a list may say, as types.
import type { Frozen } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import { type ContextFill, tokensOf } from '../context/meter.ts'
import { shownWindow } from '../effects/window.ts'
import type { Services } from '../engine/wiring.ts'
import type { Model } from '../ports/model.ts'
import type { Card, CardFilter } from '../ports/store.ts'
import type { TreeCard } from '../stores/plan/tree-cost.ts'

/**
 * `building`: a run is about to begin. `model`: a model is asked. `tools`: calls run. `waiting`: an open run waits for a person, a
 * child, a provider or a time. `resting`: there is nothing to do.
 */
export type RunPhase = 'building' | 'model' | 'tools' | 'waiting' | 'resting'

/** `run` is the last run, by the seq of its `run.started`; null before the first. */
export type Progress = Frozen<{ run: number | null; phase: RunPhase }>

/** With `context`, cards say how full a context is; with `runs`, which run it is and its phase. Both read each session for it. */
export type ListOptions = Partial<CardFilter> & { readonly context?: boolean; readonly runs?: boolean }
/**
 * `context`, `run` and `phase`: absent unless asked for. `context` is null where no reply of late was counted; its window is that of
 * the agent's own model. A session that is damaged has no run and no phase.
 */
export type ListedCard = TreeCard & Partial<Progress> & Frozen<{ context?: ContextFill | null }>

/** The model of a session's agent, or what a run chose instead. Null: it is not known here. */
export async function modelOf(services: Services, agent: string, options?: string): Promise<Model | 'workflow' | null> {
  try {
    const { model, planner } = services.agent(agent)
    if (planner !== null) return 'workflow'
    if (options === undefined) return model
    const { modelChosen } = await import('../effects/run-options.ts')
    return await modelChosen(services, agent, options)
  } catch (error) {
    if (error instanceof Fault) return null
    throw error
  }
}

/** How much the model of a run takes, as its result says it; null if that is unknown. */
export async function windowOfRun(services: Services, id: string, options?: string): Promise<number | null> {
  const { agent } = (await services.store.card(id)) ?? {}
  const model = agent === undefined ? null : await modelOf(services, agent, options)
  return model === null || model === 'workflow' ? null : sizeOf(await shownWindow(services, model))
}

/** Each card with how full its session is, as far as it was counted. The window is that of its agent's own model. */
export async function withContext<T extends Card>(
  services: Services,
  cards: readonly T[],
): Promise<readonly (T & { readonly context: ContextFill | null })[]> {
  return Promise.all(cards.map(async (card) => ({ ...card, context: await contextAt(services, card) })))
}

/** Null where no reply was counted. */
export async function contextAt(
  services: Services,
  { session, agent, seq }: Pick<Card, 'session' | 'agent' | 'seq'>,
): Promise<ContextFill | null> {
  const tokens = await tokensOf(services.store, session, seq)
  if (tokens === null) return null
  const model = await modelOf(services, agent)
  return { tokens, window: model === 'workflow' ? null : sizeOf(await shownWindow(services, model)) }
}

function sizeOf({ tokens }: { readonly tokens: number }): number | null {
  return Number.isFinite(tokens) ? tokens : null
}
