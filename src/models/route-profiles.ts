// For each workload with these routes: the model that answers, the model behind it, and its known properties. No host
// is asked.
import type { Frozen } from '../kernel/content.ts'
import type { Model, Workload } from '../ports/model.ts'
import { isPriced } from './http/hosted-model.ts'
import { type Price, UNKNOWN_PROFILE } from './price.ts'
import { type Routes, RouteTable, WORKLOADS } from './router.ts'

/** Null means not known. */
export type RouteProfile = Frozen<{
  model: string
  /** How many tokens it takes. `windowKnown` is false if that is unknown. */
  contextTokens: number | null
  windowKnown: boolean
  images: boolean | null
  reasoning: boolean | null
  /** Dollars per million tokens, 0 if free. A cautious guess if `priceKnown` is false. */
  price: Price
  priceKnown: boolean
}>

/**
 * `of` is the route that has the model: the workload's own, or its neighbour's. `behind` is the model that answers if
 * that one fails. Both are null if no route is set: then the model of the agent answers, and for `vision` none does.
 */
export type RoutedWorkload = Frozen<{
  workload: Workload
  of: Workload | null
  profile: RouteProfile | null
  behind: string | null
}>

/** What each route comes to: its model, with price and window, or why it cannot be used. */
export async function routeProfiles(routes: Routes): Promise<readonly RoutedWorkload[]> {
  const table = new RouteTable(routes)
  return Promise.all(
    WORKLOADS.map(async (workload) => {
      const [first, second] = table.entries(workload)
      const profile = first ? await profileOf(first.model) : null
      return { workload, of: first?.workload ?? null, profile, behind: second?.model.name ?? null }
    }),
  )
}

async function profileOf(model: Model): Promise<RouteProfile> {
  const { price, known, contextTokens } = isPriced(model) ? await model.profile() : UNKNOWN_PROFILE
  const { images = null, reasoning = null } = isPriced(model) ? model.able : {}
  const window = { contextTokens, windowKnown: contextTokens !== null }
  return { model: model.name, ...window, images, reasoning, price, priceKnown: known }
}
