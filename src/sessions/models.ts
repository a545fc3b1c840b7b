// The models of a harness by name: those that its host named, those of its routes, and any other from when a run first chooses it.
import type { Model } from '../ports/model.ts'
import type { Agent, Services } from '../engine/wiring.ts'
import { isPriced } from '../models/http/hosted.ts'
import { resolveModel } from '../models/resolve.ts'
import { type RouteTable, WORKLOADS } from '../models/router.ts'
import { SECRET_CHARS_MIN, type Secrets } from '../riders/redact/redact.ts'

const MODELS_KEPT = 1_000

/**
 * `keys` are those of all models that are known now, with the given ones of agents. A name means the model that is configured under it,
 * with its address and settings, and only otherwise a new one of that provider. `choosable` are the names that a model may choose for
 * its children: all that are configured, and no others.
 */
export function modelsBy(
  options: { readonly models?: Readonly<Record<string, Model | string>> },
  table: RouteTable | null,
  agents: readonly Pick<Agent, 'model' | 'planner'>[],
): Pick<Services, 'model' | 'route' | 'choosable'> & { readonly keys: readonly Secrets[] } {
  const routes = [...(table?.models.values() ?? [])]
  const given = Object.entries(options.models ?? {}).map(([name, model]) => [name, resolveModel(model)] as const)
  const asked = [...agents.filter(({ planner }) => planner === null).map(({ model: own }) => own), ...routes]
  // Of two models with one name, the first counts: that of the harness itself.
  const named = new Map([...asked.map((each) => [each.name, each] as const).reverse(), ...given])
  const made = new Map<string, Model>()
  const model = (name: string): Model => {
    const found = named.get(name) ?? made.get(name) ?? resolveModel(name)
    if (!named.has(name) && made.size < MODELS_KEPT) made.set(name, found)
    return found
  }
  const keys = [...agents.map(({ model: own }) => own), ...given.map(([, each]) => each), ...routes].map(keysOf)
  const hints = table === null ? [] : WORKLOADS.filter((workload) => table.of(workload) !== null)
  const choosable = [...named.keys(), ...hints.map((workload) => `hint:${workload}`)]
  return { model, keys, choosable, ...(table === null ? {} : { route: (workload) => table.of(workload) }) }
}

/** A key that was handed over in code is a secret like one of the environment. */
function keysOf(model: Model): Secrets {
  const keys = isPriced(model) ? Object.entries(model.secrets) : []
  return Object.fromEntries(keys.filter(([, key]) => key.length >= SECRET_CHARS_MIN))
}
