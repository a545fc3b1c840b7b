// For each workload with these routes: the model that answers, the model behind it, and its known properties. No host
// is asked.
import type { Frozen } from '../kernel/content.ts'
import type { Model, Workload } from '../ports/model.ts'
import { isPriced } from './http/hosted-model.ts'
import { type Price, UNKNOWN_PROFILE } from './price.ts'
import { type Routes, RouteTable, WORKLOADS } from './router.ts'

/** Null means not known. */
export type RouteProfile = Frozen<{
  /** The name of the model. */
  model: string
  /** How many tokens it takes. `windowKnown` is false if that is unknown. */
  contextTokens: number | null
  /** False if nobody knows how many tokens the model takes. */
  windowKnown: boolean
  /** Whether the model sees pictures. Null if that is not known. */
  images: boolean | null
  /** Whether the model can think before it answers. Null if that is not known. */
  reasoning: boolean | null
  /** Dollars per million tokens, 0 if free. A cautious guess if `priceKnown` is false. */
  price: Price
  /** False if the price is a cautious guess. */
  priceKnown: boolean
}>

/** What one workload of a route table comes to. */
export type RoutedWorkload = Frozen<{
  /** The workload that is described. */
  workload: Workload
  /** The route that has the model: the workload's own, or its neighbour's. Null: no route is set. */
  of: Workload | null
  /** The model that answers. Null: no route is set, so the agent's model answers, and for `vision` none. */
  profile: RouteProfile | null
  /** The name of the model that answers if that one fails. Null if there is none. */
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
