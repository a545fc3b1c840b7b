// Several models as one: a chain with fallbacks, and routes by workload. A fallback is called at once, inside the same
// call; the session, in its log, waits for a provider to recover.
import type { Clock } from '../ports/system.ts'
import type { AnswerSettings, CallContext, Model, ModelFailure, Reply, Request, Workload } from '../ports/model.ts'
import { Fault } from '../kernel/failure.ts'
import { askModel } from './model-answer.ts'
import { ForwardedContext } from './forwarded-context.ts'
import { failure } from './http/failures.ts'
import { modelIdentity, isPriced, OUTPUT_TOKENS, outputTokensOf, type Priced } from './http/hosted-model.ts'
import type { ModelAbilities } from './structured-output.ts'
import { costOfUsage, type Price, type Profile, UNKNOWN_PROFILE } from './price.ts'
import { anyCheck, type Checks, nearest, optionsChecker } from '../options.ts'
import { resolveModel } from './resolve-model.ts'

/**
 * Calls the first model, and the next one after a failure that another model may not have. A model that comes twice
 * ends the chain.
 */
export function fallback(...given: readonly (string | Model)[]): Priced {
  const chain: Model[] = []
  for (const each of given.map(resolveModel)) {
    if (chain.some((one) => isSame(one, each))) break
    chain.push(each)
  }
  const [first] = chain
  if (first === undefined) throw new Fault('invalid_config', 'A chain of models needs at least one model.')
  return new ModelChain(first, chain)
}

/**
 * Two models of a host's own may share a name. Two models of a provider are the same if they send the same requests.
 */
function isSame(one: Model, other: Model): boolean {
  if (one === other) return true
  if (!isPriced(one) || !isPriced(other) || !one.identity || !other.identity) return false
  return one.identity() === other.identity() && JSON.stringify(one.secrets) === JSON.stringify(other.secrets)
}

class ModelChain implements Priced {
  readonly name: string
  readonly able: ModelAbilities
  readonly outputTokensMax: number
  readonly secrets: Readonly<Record<string, string>>
  readonly verbatim: boolean
  readonly choiceCached: boolean
  readonly routes: readonly string[]
  readonly #chain: readonly Model[]
  readonly #workloads: readonly Workload[]

  /** `workloads`: the workloads whose routes the models are. Empty for a chain without routes. */
  constructor(first: Model, chain: readonly Model[], workloads: readonly Workload[] = []) {
    this.name = first.name
    this.#chain = chain
    this.#workloads = workloads
    this.routes = chain.map(({ name }) => name)
    const priced = chain.filter(isPriced)
    const natives = chain.map((model) => (isPriced(model) ? model.able.native : 'no'))
    this.able = { name: first.name, native: weakestNative(natives) }
    this.outputTokensMax = Math.max(...chain.map((model) => (isPriced(model) ? model.outputTokensMax : OUTPUT_TOKENS)))
    this.secrets = gatherSecrets(priced)
    this.verbatim = priced.some((model) => model.verbatim)
    this.choiceCached = priced.length === chain.length && priced.every((model) => model.choiceCached)
  }

  outputTokensWith(settings: AnswerSettings): number {
    return Math.max(...this.#chain.map((model) => outputTokensOf(model, settings)))
  }

  async call(request: Request, context: CallContext): Promise<Reply | ModelFailure> {
    let spoke = false
    const emit: CallContext['emit'] = (delta) => {
      spoke = true
      context.emit(delta)
    }
    let kept = failure('bad_request', 'No model of the chain can take this request.')
    const order = this.#from(request.route)
    let mayCharge = false
    for (const model of order) {
      if (!canTake(model, request)) continue
      const answer = await askModel(model, request, new ForwardedContext(context, emit))
      if (answer.type === 'reply') {
        // An earlier model had begun to answer and did not report its usage: the whole hold counts.
        const assumed = mayCharge ? ({ assumed: true } as const) : {}
        return { ...answer, route: answer.route ?? model.name, ...assumed, ...this.#gone(order, model) }
      }
      // After output the session makes a new request, and a bad request fails with every model.
      if (spoke || answer.partial !== undefined || context.signal.aborted || !mayFallBack(answer)) return answer
      mayCharge ||= answer.broken === true || answer.class === 'timeout'
      // A retryable failure is more useful than the last one of the chain, and the failure of a call than one without a
      // call.
      if (!kept.retryable || (kept.unasked && answer.retryable)) kept = answer
    }
    return mayCharge ? { ...kept, broken: true } : kept
  }

  /** The model that was chosen for this request comes first, the others follow in their order. */
  #from(route: string | undefined): readonly Model[] {
    const chosen = route === undefined ? undefined : this.#chain.find(({ name }) => name === route)
    return chosen === undefined ? this.#chain : [chosen, ...this.#chain.filter((model) => model !== chosen)]
  }

  /** The route that should have answered, if another one did. */
  #gone([first]: readonly Model[], answered: Model): Pick<Reply, 'fallback_from'> {
    const workload = this.#workloads[this.#chain.findIndex((model) => model === first)]
    return workload === undefined || first === answered ? {} : { fallback_from: workload }
  }

  identity(): string {
    return JSON.stringify(this.#chain.map(modelIdentity))
  }

  async askWindow(clock: Clock): Promise<void> {
    await Promise.all(this.#chain.map(async (model) => (isPriced(model) ? model.askWindow?.(clock) : undefined)))
  }

  /** Money is held for the most expensive model of the chain. */
  async profile(): Promise<Profile> {
    const all = await Promise.all(
      this.#chain.map(async (model) => (isPriced(model) ? model.profile() : UNKNOWN_PROFILE)),
    )
    const most = (of: (price: Price) => number): number => Math.max(...all.map(({ price }) => of(price)))
    const price = {
      input: most(({ input }) => input),
      output: most(({ output }) => output),
      cacheWrite: most(({ input, cacheWrite = input }) => cacheWrite),
      cached: most(({ input, cached = input }) => cached),
    }
    const sizes = all.flatMap(({ contextTokens: size }) => (size === null ? [] : [size]))
    const contextTokens = sizes.length > 0 ? Math.min(...sizes) : null
    return { price, known: all.every(({ known }) => known), contextTokens, cost: (usage) => costOfUsage(price, usage) }
  }
}

/** Two keys of one host have one name: the second gets a number. */
function gatherSecrets(models: readonly Priced[]): Readonly<Record<string, string>> {
  const all: Record<string, string> = {}
  for (const [name, value] of models.flatMap(({ secrets }) => Object.entries(secrets))) {
    let free = name
    for (let n = 2; all[free] !== undefined && all[free] !== value; n++) free = `${name}_${n}`
    all[free] = value
  }
  return all
}

function mayFallBack({ class: kind, retryable, elsewhere }: ModelFailure): boolean {
  // A key that this provider refuses does not affect another one; the session itself must not try it again.
  return retryable || kind === 'auth' || elsewhere === true
}

function canTake(model: Model, request: Request): boolean {
  if (!isPriced(model)) return true
  if (request.output?.mode === 'native' && model.able.native === 'no') return false
  const shown = request.messages.some(
    (m) => m.role === 'user' && m.parts.some((p) => p.type === 'data' && p.media.startsWith('image/')),
  )
  return !shown || model.able.images !== false
}

function weakestNative(natives: readonly ModelAbilities['native'][]): ModelAbilities['native'] {
  if (natives.includes('no')) return 'no'
  return natives.includes('possible') ? 'possible' : 'default'
}

/** The workload whose model is used if a workload has none. */
const NEIGHBOUR: Readonly<Record<Workload, Workload | null>> = {
  chat: 'burst',
  burst: 'chat',
  reasoning: 'agentic',
  agentic: 'reasoning',
  coding: 'agentic',
  summarization: 'chat',
  vision: null,
}
export const WORKLOADS = Object.keys(NEIGHBOUR) as readonly Workload[]

/** A model for each workload, or `hint:NAME` for the model of another one. */
export type Routes = Partial<Readonly<Record<Workload, string | Model>>>
const ROUTES: Checks<Routes> = {
  chat: anyCheck,
  reasoning: anyCheck,
  agentic: anyCheck,
  coding: anyCheck,
  burst: anyCheck,
  summarization: anyCheck,
  vision: anyCheck,
}
const checkRoutes = optionsChecker<Routes>('route', ROUTES)

/** The model of a workload: its own, with its neighbour's behind it. */
export function route(routes: Routes, workload: Workload): Priced {
  const table = new RouteTable(routes)
  if (!isWorkload(workload)) throw noWorkloadFault(workload)
  const chain = table.chain(workload)
  if (chain === null) throw noRouteFault(workload)
  return chain
}

const HINT = 'hint:'

/** The workload that a model such as `hint:coding` stands for; null for any other model. */
export function workloadOfHint(model: unknown): Workload | null {
  if (typeof model !== 'string' || !model.startsWith(HINT)) return null
  const workload = model.slice(HINT.length)
  if (isWorkload(workload)) return workload
  throw noWorkloadFault(workload)
}

function isWorkload(name: string): name is Workload {
  return Object.hasOwn(NEIGHBOUR, name)
}

function noWorkloadFault(name: unknown): Fault {
  const near = nearest(String(name), WORKLOADS)
  const hint = near === null ? '' : ` Did you mean "${near}"?`
  const text = `There is no workload "${String(name)}".${hint} Choose one of: ${WORKLOADS.join(', ')}.`
  return new Fault('invalid_config', text)
}

export function noRouteFault(workload: Workload): Fault {
  const names = [workload, NEIGHBOUR[workload]].filter((name) => name !== null)
  const set = names.map((name) => `models.routes.${name}`).join(' or ')
  const text = `No model is set for ${names.map((name) => `"${name}"`).join(' or ')}. Set ${set}.`
  return new Fault('invalid_config', text)
}

/** Routes, checked and resolved once. */
export class RouteTable {
  readonly models: ReadonlyMap<Workload, Model>
  readonly #made = new Map<Workload, Model | null>()

  constructor(routes: Routes) {
    checkRoutes(routes)
    const set = WORKLOADS.filter((workload) => routes[workload] !== undefined)
    const resolved = new Map(set.map((workload) => [workload, resolveRoute(routes, workload)]))
    const made = new Map([...new Set(resolved.values())].map((given) => [given, resolveModel(given)]))
    this.models = new Map([...resolved].map(([workload, given]) => [workload, made.get(given) as Model]))
    const vision = this.models.get('vision')
    if (vision && isPriced(vision) && vision.able.images === false)
      throw new Fault('invalid_config', `The route "vision" is ${vision.name}, which takes no pictures. Name another.`)
  }

  /** Null if neither the workload nor its neighbour has a route. */
  modelFor(workload: Workload): Model | null {
    let found = this.#made.get(workload)
    if (found === undefined) {
      const [alone, behind] = this.entries(workload)
      found = alone === undefined || behind !== undefined ? this.chain(workload) : alone.model
      this.#made.set(workload, found)
    }
    return found
  }

  chain(workload: Workload): Priced | null {
    const entries = this.entries(workload)
    const [first] = entries
    if (first === undefined) return null
    const models = entries.map(({ model }) => model)
    return new ModelChain(
      first.model,
      models,
      entries.map((entry) => entry.workload),
    )
  }

  /** The routes that may answer, in their order. Two routes of one model are one. */
  entries(workload: Workload): readonly { readonly workload: Workload; readonly model: Model }[] {
    const names = [workload, NEIGHBOUR[workload]].filter((name) => name !== null)
    const entries = names.flatMap((name) => {
      const model = this.models.get(name)
      return model === undefined ? [] : [{ workload: name, model }]
    })
    return entries.filter(({ model }, i) => entries.findIndex((other) => isSame(other.model, model)) === i)
  }
}

/** The model of a route, followed through routes that name other routes. */
function resolveRoute(routes: Routes, workload: Workload): string | Model {
  const path: Workload[] = [workload]
  for (let at = workload; ; ) {
    const given = routes[at]
    if (given === undefined) {
      const text = `The route "${path.at(-2)}" is "hint:${at}", and there is no route "${at}". Set models.routes.${at}, or name a model.`
      throw new Fault('invalid_config', text)
    }
    const next = workloadOfHint(given)
    if (next === null) return given
    if (path.includes(next)) {
      const ring = [...path, next].map((name) => `"${name}"`).join(' → ')
      throw new Fault('invalid_config', `Routes name each other in a ring: ${ring}. Name a model for one of them.`)
    }
    path.push(next)
    at = next
  }
}
