// The models of a harness by name: those that its host named, those of its routes, and any other that a run chooses,
// from then on.
import type { Model } from '../ports/model.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import type { Agent } from '../runtime/state/agent.ts'
import { isPriced } from '../models/http/hosted-model.ts'
import { resolveModel } from '../models/resolve-model.ts'
import { type RouteTable, WORKLOADS } from '../models/router.ts'
import { SECRET_CHARS_MIN, type Secrets } from '../runtime/redact/redactor.ts'

const MODELS_KEPT = 1_000

/**
 * `keys` are the API keys of all models known now, including those of agents. A name means the model configured under
 * it, with its address and settings, and only otherwise a new model of that provider. `choosable` are the names that a
 * model may choose for its children: all configured ones, and no others.
 */
export function buildModels(
  choices: Readonly<Record<string, Model | string>>,
  table: RouteTable | null,
  agents: readonly Pick<Agent, 'model' | 'planner' | 'asks'>[],
): Pick<Services, 'model' | 'route' | 'choosable'> & { readonly keys: readonly Secrets[] } {
  const routes = [...(table?.models.values() ?? [])]
  const given = Object.entries(choices).map(([name, model]) => [name, resolveModel(model)] as const)
  const asked = [...agents.filter(({ planner }) => planner === null).map(({ model: own }) => own), ...routes]
  // Of two models with the same name the first counts, which is that of the harness itself.
  const named = new Map([...asked.map((each) => [each.name, each] as const).reverse(), ...given])
  const made = new Map<string, Model>()
  const model = (name: string): Model => {
    const found = named.get(name) ?? made.get(name) ?? resolveModel(name)
    if (!named.has(name) && made.size < MODELS_KEPT) made.set(name, found)
    return found
  }
  const used = agents.flatMap(({ model: own, asks = [] }) => [own, ...asks])
  const keys = [...used, ...given.map(([, each]) => each), ...routes].map(modelSecrets)
  const hints = table === null ? [] : WORKLOADS.filter((workload) => table.modelFor(workload) !== null)
  const choosable = [...named.keys(), ...hints.map((workload) => `hint:${workload}`)]
  return { model, keys, choosable, ...(table === null ? {} : { route: (workload) => table.modelFor(workload) }) }
}

/** A key given in code is a secret like one from the environment. */
function modelSecrets(model: Model): Secrets {
  const keys = isPriced(model) ? Object.entries(model.secrets) : []
  return Object.fromEntries(keys.filter(([, key]) => key.length >= SECRET_CHARS_MIN))
}
