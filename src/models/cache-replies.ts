// A model that keeps its first answers: the same request to the same model, in the same namespace, is sent once. A hit
// costs nothing and is marked as such. The cache is in response-cache.ts, which the first call loads.
import { Fault } from '../kernel/failure.ts'
import { countCheck, nonEmptyCheck, methodsCheck, requiredCheck, optionsChecker, waitCheck } from '../options.ts'
import type { Model } from '../ports/model.ts'
import { modelIdentity, isPriced, outputTokensOf, type Priced } from './http/hosted-model.ts'
import { resolveModel } from './resolve-model.ts'
import type { CacheRepliesOptions, ResponseCache } from './response-cache.ts'

const checkOptions = optionsChecker<CacheRepliesOptions>('cacheReplies', {
  namespace: requiredCheck(nonEmptyCheck, 'Name what shares answers, such as a tenant.'),
  ttlMs: waitCheck,
  maxEntries: countCheck(1),
  store: methodsCheck('give a store with get(key) and set(key, value, ttlMs)', 'get', 'set'),
})

/**
 * Wraps a model so that the same request is answered without asking it again. Such answers cost nothing and are
 * marked in the log.
 */
export function cacheReplies(model: string | Priced, options: CacheRepliesOptions): Priced
export function cacheReplies(model: Model, options: CacheRepliesOptions): Model
export function cacheReplies(given: string | Model, options: CacheRepliesOptions): Model {
  checkOptions(options)
  if (options.store && options.maxEntries !== undefined)
    throw new Fault(
      'invalid_config',
      'cacheReplies takes `maxEntries` or `store`: a store bounds its own size. Leave one out.',
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
  const identity = (): string => modelIdentity(model)
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
