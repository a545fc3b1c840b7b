// Several models as one: a chain that falls back, and routes by workload. A fallback is asked at once, inside the same call;
// waiting for a provider to recover is not done here but by the session, in its log.
import type { CallContext, Model, ModelFailure, Reply, Request } from '../ports/model.ts'
import { Fault } from '../kernel/failure.ts'
import { failure } from './http/failures.ts'
import { identityOf, isPriced, OUTPUT_TOKENS, type Priced } from './http/hosted.ts'
import type { Able } from './output.ts'
import { costOf, type Price, type Profile, UNKNOWN } from './price.ts'
import { anything, type Checks, optionsOf } from '../options.ts'
import { resolveModel } from './resolve.ts'

/** Asks the first model, and the next one when it failed in a way that another may not. A name that comes twice ends the chain. */
export function fallback(...given: readonly (string | Model)[]): Priced {
  const chain: Model[] = []
  for (const each of given.map(resolveModel)) {
    if (chain.some(({ name }) => name === each.name)) break
    chain.push(each)
  }
  const [first] = chain
  if (first === undefined) throw new Fault('invalid_config', 'A chain of models needs at least one model.')
  return new Chain(first, chain)
}

class Chain implements Priced {
  readonly name: string
  readonly able: Able
  readonly outputTokensMax: number
  readonly secrets: Readonly<Record<string, string>>
  readonly verbatim: boolean
  readonly choiceCached: boolean
  readonly routes: readonly string[]
  readonly #chain: readonly Model[]

  constructor(first: Model, chain: readonly Model[]) {
    this.name = first.name
    this.#chain = chain
    this.routes = chain.map(({ name }) => name)
    const priced = chain.filter(isPriced)
    const natives = chain.map((model) => (isPriced(model) ? model.able.native : 'no'))
    this.able = { name: first.name, native: weakest(natives) }
    this.outputTokensMax = Math.max(...chain.map((model) => (isPriced(model) ? model.outputTokensMax : OUTPUT_TOKENS)))
    this.secrets = gathered(priced)
    this.verbatim = priced.some((model) => model.verbatim)
    this.choiceCached = priced.length === chain.length && priced.every((model) => model.choiceCached)
  }

  async call(request: Request, context: CallContext): Promise<Reply | ModelFailure> {
    let spoke = false
    const emit: CallContext['emit'] = (delta) => {
      spoke = true
      context.emit(delta)
    }
    let kept = failure('bad_request', 'No model of the chain can take this request.')
    for (const model of this.#from(request.route)) {
      if (!fits(model, request)) continue
      const answer = await model.call(request, new Through(context, emit))
      if (answer.type === 'reply') return { ...answer, route: answer.route ?? model.name }
      // After output the session makes a new request, and a bad request is bad everywhere.
      if (spoke || answer.partial !== undefined || context.signal.aborted || !mayFallBack(answer)) return answer
      // A retryable failure is more useful than the last one of the chain, and a failure of a call than one without a call.
      if (!kept.retryable || (kept.unasked && answer.retryable)) kept = answer
    }
    return kept
  }

  /** The one that was chosen for this request comes first, the others behind it as they are. */
  #from(route: string | undefined): readonly Model[] {
    const chosen = route === undefined ? undefined : this.#chain.find(({ name }) => name === route)
    return chosen === undefined ? this.#chain : [chosen, ...this.#chain.filter((model) => model !== chosen)]
  }

  identity(): string {
    return JSON.stringify(this.#chain.map(identityOf))
  }

  /** Money is held for the dearest of the chain. */
  async profile(): Promise<Profile> {
    const all = await Promise.all(this.#chain.map(async (model) => (isPriced(model) ? model.profile() : UNKNOWN)))
    const most = (of: (price: Price) => number): number => Math.max(...all.map(({ price }) => of(price)))
    const price = {
      input: most(({ input }) => input),
      output: most(({ output }) => output),
      cacheWrite: most(({ input, cacheWrite = input }) => cacheWrite),
      cached: most(({ input, cached = input }) => cached),
    }
    const sizes = all.flatMap(({ contextTokens: size }) => (size === null ? [] : [size]))
    const contextTokens = sizes.length > 0 ? Math.min(...sizes) : null
    return { price, known: all.every(({ known }) => known), contextTokens, cost: (usage) => costOf(price, usage) }
  }
}

/** The same context, seen through an ear of the chain's own. */
class Through implements CallContext {
  readonly #context: CallContext
  readonly emit: CallContext['emit']

  constructor(context: CallContext, emit: CallContext['emit']) {
    this.#context = context
    this.emit = emit
  }

  get signal(): AbortSignal {
    return this.#context.signal
  }

  get clock(): CallContext['clock'] {
    return this.#context.clock
  }

  get traceparent(): string | undefined {
    return this.#context.traceparent
  }

  readonly sleep = (ms: number): Promise<void> => this.#context.sleep(ms)
}

/** Two keys of one host have one name: the second gets a number. */
function gathered(models: readonly Priced[]): Readonly<Record<string, string>> {
  const all: Record<string, string> = {}
  for (const [name, value] of models.flatMap(({ secrets }) => Object.entries(secrets))) {
    let free = name
    for (let n = 2; all[free] !== undefined && all[free] !== value; n++) free = `${name}_${n}`
    all[free] = value
  }
  return all
}

function mayFallBack({ class: kind, retryable }: ModelFailure): boolean {
  // A key that is refused here may be fine elsewhere; the session itself must not try it again.
  return retryable || kind === 'auth'
}

function fits(model: Model, request: Request): boolean {
  if (!isPriced(model)) return true
  if (request.output?.mode === 'native' && model.able.native === 'no') return false
  const shown = request.messages.some(
    (m) => m.role === 'user' && m.parts.some((p) => p.type === 'data' && p.media.startsWith('image/')),
  )
  return !shown || model.able.images !== false
}

function weakest(natives: readonly Able['native'][]): Able['native'] {
  if (natives.includes('no')) return 'no'
  return natives.includes('possible') ? 'possible' : 'default'
}

export type Workload = 'chat' | 'reasoning' | 'agentic' | 'coding' | 'burst' | 'summarization' | 'vision'

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

type Routes = Partial<Readonly<Record<Workload, string | Model>>>
const WORKLOADS: Checks<Routes> = {
  chat: anything,
  reasoning: anything,
  agentic: anything,
  coding: anything,
  burst: anything,
  summarization: anything,
  vision: anything,
}
const checkRoutes = optionsOf<Routes>('route', WORKLOADS)

/** The model of a workload: its own, with its neighbour's behind it. */
export function route(routes: Routes, workload: Workload): Priced {
  checkRoutes(routes)
  if (!Object.hasOwn(NEIGHBOUR, workload))
    throw new Fault(
      'invalid_config',
      `There is no workload "${String(workload)}". Choose one of: ${Object.keys(NEIGHBOUR).join(', ')}.`,
    )
  const neighbour = NEIGHBOUR[workload]
  const chain = [routes[workload], neighbour === null ? undefined : routes[neighbour]].filter(
    (each) => each !== undefined,
  )
  if (chain.length === 0) {
    throw new Fault('invalid_config', `No model is set for "${workload}"${neighbour ? ` or "${neighbour}"` : ''}.`)
  }
  return fallback(...chain)
}
