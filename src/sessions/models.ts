// The models of a harness by name: those that its host named, those of its routes, and any other from when a run first chooses it.
import type { Model } from '../ports/model.ts'
import type { Services } from '../engine/wiring.ts'
import { isPriced } from '../models/http/hosted.ts'
import { resolveModel } from '../models/resolve.ts'
import type { RouteTable } from '../models/router.ts'
import { SECRET_CHARS_MIN, type Secrets } from '../riders/redact/redact.ts'

const MODELS_KEPT = 1_000

/** `keys` are those of all models that are known now, with the given ones of agents. */
export function modelsBy(
  options: { readonly models?: Readonly<Record<string, Model | string>> },
  table: RouteTable | null,
  agents: readonly Model[],
): Pick<Services, 'model' | 'route'> & { readonly keys: readonly Secrets[] } {
  const named = new Map(Object.entries(options.models ?? {}).map(([name, model]) => [name, resolveModel(model)]))
  const made = new Map<string, Model>()
  const model = (name: string): Model => {
    const found = named.get(name) ?? made.get(name) ?? resolveModel(name)
    if (!named.has(name) && made.size < MODELS_KEPT) made.set(name, found)
    return found
  }
  const keys = [...agents, ...named.values(), ...(table?.models.values() ?? [])].map(keysOf)
  return table === null ? { model, keys } : { model, keys, route: (workload) => table.of(workload) }
}

/** A key that was handed over in code is a secret like one of the environment. */
function keysOf(model: Model): Secrets {
  const keys = isPriced(model) ? Object.entries(model.secrets) : []
  return Object.fromEntries(keys.filter(([, key]) => key.length >= SECRET_CHARS_MIN))
}
