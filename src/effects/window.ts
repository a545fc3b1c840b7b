// How much the models of this process take, each looked up once: only when a session is long enough for it to matter.
import type { Model } from '../ports/model.ts'
import { isPriced } from '../models/http/hosted.ts'
import { OFFLINE } from '../models/local/offline.ts'
import type { Services } from '../engine/wiring.ts'
import type { Fill } from '../context/window.ts'
import type { Window } from '../riders/guard/guard.ts'

type Of = Pick<Services, 'compaction'>

/** Of the window: from here on it is worth a closer look. */
const LOOKED_AT = 0.8

/** Without end where it is unknown. */
const SIZES = new WeakMap<Model, number>()

/** The size as far as it was looked up, without end until then. A request that is long enough looks it up (`findWindow`). */
export function knownWindow(services: Of, model: Model): Window {
  return windowOf(services, SIZES.get(model))
}

/** Whether it may become known how much this model takes. Otherwise nothing is counted. */
export function mayFill({ compaction }: Of, model: Model): boolean {
  return isPriced(model) || (compaction !== false && compaction?.windowTokens !== undefined)
}

/** Whether what a session holds surely fits: it is not long, or by far not as long as what this model is known to take. */
export function surelyFits(services: Of, model: Model, fill: Fill | null): boolean {
  if (fill === null) return !mayFill(services, model)
  if (fill.refusals > 0) return false
  if (!fill.matters) return true
  const size = SIZES.get(model)
  if (size === undefined) return false
  const { tokens } = windowOf(services, size)
  // A window of unknown size is never full.
  return tokens === Number.POSITIVE_INFINITY || (fill.counted && fill.tokens < tokens * LOOKED_AT)
}

/** For a session that is driven: where no table says it, the host of the model is asked. Where it stays unknown, that is told once. */
export async function findWindow(services: Of & Pick<Services, 'report' | 'clock'>, model: Model): Promise<Window> {
  const known = SIZES.get(model)
  if (known !== undefined) return windowOf(services, known)
  const isSet = windowOf(services).tokens !== Number.POSITIVE_INFINITY
  if (isPriced(model) && !isSet) await model.askWindow?.(services.clock)
  const size = await sizeOf(model)
  SIZES.set(model, size)
  const window = windowOf(services, size)
  if (window.tokens === Number.POSITIVE_INFINITY && window.compacts && isPriced(model) && model.name !== OFFLINE)
    warnOnce(services, model.name)
  return window
}

/** Models of this process whose window was said to be unknown: each run makes its model anew, and one warning is enough. */
const WARNED = new Set<string>()
const WARNED_MAX = 1_000

function warnOnce({ report }: Pick<Services, 'report'>, model: string): void {
  if (WARNED.has(model) || WARNED.size >= WARNED_MAX) return
  WARNED.add(model)
  report?.('context', new Error(unknownWindow(model)))
}

function unknownWindow(model: string): string {
  return `The window of ${model} is unknown, so its context is not compacted in time. Set compaction.windowTokens.`
}

/** The same for showing it. Null: the model is not known here. */
export async function shownWindow(services: Of, model: Model | null): Promise<Window> {
  return windowOf(services, model === null ? Number.POSITIVE_INFINITY : await sizeOf(model))
}

/** Out of tables, the host's own options, and what the host of the model said before. */
async function sizeOf(model: Model): Promise<number> {
  return (isPriced(model) ? (await model.profile()).contextTokens : null) ?? Number.POSITIVE_INFINITY
}

function windowOf({ compaction = {} }: Of, size = Number.POSITIVE_INFINITY): Window {
  const { windowTokens = Number.POSITIVE_INFINITY } = compaction || {}
  return { tokens: Math.min(size, windowTokens), compacts: compaction !== false }
}
