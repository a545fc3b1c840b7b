// The context windows of the models in this process. Each is looked up once, and only when a session is long enough for
// it to matter.
import type { Model } from '../../ports/model.ts'
import { isPriced } from '../../models/http/hosted-model.ts'
import { OFFLINE } from '../../models/local/offline.ts'
import type { Services } from './runtime-ports.ts'
import type { WindowFill } from '../../context/window-fill.ts'
import type { ModelWindow } from '../guard/guard.ts'

type CompactionSettings = Pick<Services, 'compaction'>

/** From this share of the window on, the size is checked closely. */
const LOOKED_AT = 0.8

/** Infinite where the size is unknown. */
const SIZES = new WeakMap<Model, number>()

/**
 * The size as far as it was looked up, infinite until then. A request that is long enough looks it up (`findWindow`).
 */
export function knownWindow(services: CompactionSettings, model: Model): ModelWindow {
  return buildWindow(services, SIZES.get(model))
}

/** Whether the window of this model can become known. Otherwise nothing is counted. */
export function mayLearnWindow({ compaction }: CompactionSettings, model: Model): boolean {
  return isPriced(model) || (compaction !== false && compaction?.windowTokens !== undefined)
}

/** Whether a session surely fits: it is short, or far shorter than the known window of this model. */
export function surelyFits(services: CompactionSettings, model: Model, fill: WindowFill | null): boolean {
  if (fill === null) return !mayLearnWindow(services, model)
  if (fill.refusals > 0) return false
  if (!fill.needsWindow) return true
  const size = SIZES.get(model)
  if (size === undefined) return false
  const { tokens } = buildWindow(services, size)
  // A window of unknown size is never full.
  return tokens === Number.POSITIVE_INFINITY || (fill.counted && fill.tokens < tokens * LOOKED_AT)
}

/**
 * Looks up the window for a session that is driven: if no table has it, the model's host is asked. A window that stays
 * unknown is reported once.
 */
export async function findWindow(
  services: CompactionSettings & Pick<Services, 'report' | 'clock'>,
  model: Model,
): Promise<ModelWindow> {
  const known = SIZES.get(model)
  if (known !== undefined) return buildWindow(services, known)
  const isSet = buildWindow(services).tokens !== Number.POSITIVE_INFINITY
  if (isPriced(model) && !isSet) await model.askWindow?.(services.clock)
  const size = await modelWindowTokens(model)
  SIZES.set(model, size)
  const window = buildWindow(services, size)
  if (window.tokens === Number.POSITIVE_INFINITY && window.compacts && isPriced(model) && model.name !== OFFLINE)
    warnOnce(services, model.name)
  return window
}

/** Models of this process with a reported unknown window. Each run makes its model anew, and one warning is enough. */
const WARNED = new Set<string>()
const WARNED_MAX = 1_000

function warnOnce({ report }: Pick<Services, 'report'>, model: string): void {
  if (WARNED.has(model) || WARNED.size >= WARNED_MAX) return
  WARNED.add(model)
  report?.('context', new Error(unknownWindowText(model)))
}

function unknownWindowText(model: string): string {
  return `The window of ${model} is unknown, so its context is not compacted in time. Set context.compaction.windowTokens.`
}

/** The same lookup for showing the window, without asking the host. Null: the model is not known here. */
export async function lookUpWindow(services: CompactionSettings, model: Model | null): Promise<ModelWindow> {
  return buildWindow(services, model === null ? Number.POSITIVE_INFINITY : await modelWindowTokens(model))
}

/** Looks in the tables, the host's own options, and the earlier answers of the model's host. */
async function modelWindowTokens(model: Model): Promise<number> {
  return (isPriced(model) ? (await model.profile()).contextTokens : null) ?? Number.POSITIVE_INFINITY
}

function buildWindow({ compaction = {} }: CompactionSettings, size = Number.POSITIVE_INFINITY): ModelWindow {
  const { windowTokens = Number.POSITIVE_INFINITY } = compaction || {}
  return { tokens: Math.min(size, windowTokens), compacts: compaction !== false }
}
