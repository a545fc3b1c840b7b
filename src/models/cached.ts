// A model whose first answers are kept and given again: the same request to the same model, in the same namespace, is asked once. A hit
// costs nothing and says so. How it is done is in response-cache.ts, which the first call loads.
import { Fault } from '../kernel/failure.ts'
import { count, filled, having, needed, optionsOf, wait } from '../options.ts'
import type { Model } from '../ports/model.ts'
import { identityOf, isPriced, outputTokensOf, type Priced } from './http/hosted.ts'
import { resolveModel } from './resolve.ts'
import type { CachedOptions, ResponseCache } from './response-cache.ts'

const check = optionsOf<CachedOptions>('cached', {
  namespace: needed(filled, 'Name what shares answers, such as a tenant.'),
  ttlMs: wait,
  maxEntries: count(1),
  store: having('give a store with get(key) and set(key, value, ttlMs)', 'get', 'set'),
})

export function cached(model: string | Priced, options: CachedOptions): Priced
export function cached(model: Model, options: CachedOptions): Model
export function cached(given: string | Model, options: CachedOptions): Model {
  check(options)
  if (options.store && options.maxEntries !== undefined)
    throw new Fault(
      'invalid_config',
      'cached takes `maxEntries` or `store`: a store bounds its own size. Leave one out.',
    )
  const model = resolveModel(given)
  let cache: Promise<ResponseCache> | null = null
  const call: Model['call'] = async (request, context) => {
    cache ??= import('./response-cache.ts').then(({ ResponseCache }) => new ResponseCache(model, options))
    return (await cache).call(request, context)
  }
  if (!isPriced(model)) return { name: model.name, call }
  const { name, able, outputTokensMax, secrets, verbatim, choiceCached } = model
  const hints = { ...(verbatim ? { verbatim } : {}), ...(choiceCached ? { choiceCached } : {}) }
  const identity = (): string => identityOf(model)
  const kept: Priced = {
    name,
    able,
    outputTokensMax,
    secrets,
    ...hints,
    identity,
    profile: () => model.profile(),
    askWindow: async (clock) => model.askWindow?.(clock),
    outputTokensWith: (settings) => outputTokensOf(model, settings),
    call,
  }
  return kept
}
