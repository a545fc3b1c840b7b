// How much the models of this process take, each looked up once: only when a session is long enough for it to matter.
import type { Model } from '../ports/model.ts'
import { isPriced } from '../models/http/hosted.ts'
import type { Services } from '../engine/wiring.ts'
import type { Window } from '../riders/guard/guard.ts'

type Of = Pick<Services, 'compaction'>

/** Without end where it is unknown. */
const SIZES = new WeakMap<Model, number>()

/** The size as far as it was looked up, without end until then. A request that is long enough looks it up (`findWindow`). */
export function knownWindow(services: Of, model: Model): Window {
  return windowOf(services, SIZES.get(model))
}

export async function findWindow(services: Of, model: Model): Promise<Window> {
  let size = SIZES.get(model)
  if (size === undefined) {
    size = (isPriced(model) ? (await model.profile()).contextTokens : null) ?? Number.POSITIVE_INFINITY
    SIZES.set(model, size)
  }
  return windowOf(services, size)
}

function windowOf({ compaction = {} }: Of, size = Number.POSITIVE_INFINITY): Window {
  const { windowTokens = Number.POSITIVE_INFINITY } = compaction || {}
  return { tokens: Math.min(size, windowTokens), compacts: compaction !== false }
}
