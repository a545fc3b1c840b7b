// A model behind an HTTP address: endpoint, protocol, key, transport and price as one Model. exchange.ts makes the
// calls.
import type { AnswerSettings, CallContext, Model, ModelFailure, Reply, Request } from '../../ports/model.ts'
import type { Clock } from '../../ports/system.ts'
import type { Offer } from './catalog.ts'
import { type Endpoint, secretInHeader } from './endpoints.ts'
import type { HostConnection, callHost } from './exchange.ts'
import type { Deadlines } from './deadlines.ts'
import { failure } from './failures.ts'
import { Fault } from '../../kernel/failure.ts'
import { Limiter } from './limiter.ts'
import {
  anyCheck,
  functionCheck,
  type Check,
  type Checks,
  countCheck,
  nonEmptyCheck,
  flagCheck,
  withoutUndefined,
  listCheck,
  requiredCheck,
  oneOf,
  objectCheck,
  describeValue,
  tableCheck,
  textCheck,
  waitCheck,
  optionsCheck,
} from '../../options.ts'
import type { ModelAbilities } from '../structured-output.ts'
import { checkPrices, checkTokens, FREE_PROFILE, priceIn, type PriceTable, type Profile, profileOf } from '../price.ts'
import type { Effort, Protocol, RequestSettings, ModelTarget } from '../protocols/protocol.ts'
import { canReason, whyNotReasoning } from '../protocols/efforts.ts'
import { checkProviderTools, leaveOutServed } from '../protocols/provider-forms.ts'
import { whyChoiceMissing, findRefusedSetting } from '../protocols/check-settings.ts'
import { acceptsSchemas, thinkingOf } from '../protocols/thinking.ts'

/** A model with its price, context size and abilities, as far as they are known. */
export interface Priced extends Model {
  /** What the model can do, as far as that is known. */
  readonly able: ModelAbilities
  /** The most tokens of one answer. */
  readonly outputTokensMax: number
  /** The same with these settings. Throws `invalid_config` for a setting that the model does not take. */
  outputTokensWith?(settings: AnswerSettings): number
  /** Its price and context size, from the own table or that of the package. It asks no host. */
  profile(): Promise<Profile>
  /**
   * Asks the host how many tokens the model takes, once and only if no table has it. `profile` includes it from then
   * on.
   */
  askWindow?(clock: Clock): Promise<void>
  /** The keys that the model uses, by name, so that they can be redacted everywhere. */
  readonly secrets: Readonly<Record<string, string>>
  /** Call arguments are text in its protocol, and should be sent back exactly as the model wrote them. */
  readonly verbatim?: boolean
  /** Forbidding or allowing tools invalidates its prompt cache. */
  readonly choiceCached?: boolean
  /**
   * The name, address and settings on which its answers depend besides the request. It may include secrets: only its
   * hash is kept.
   */
  identity?(): string
}

/** Options of `model`: how it answers, and how its host is reached. What the model is known not to take is refused. */
export type HostedOptions = RequestSettings & {
  /** Replaces the address in the table, for example by a proxy. It is never read from a project's files. */
  readonly baseUrl?: string
  /** Default: the first of the endpoint's variables that is set. */
  readonly key?: string
  /** Headers of every request, beside those that the host needs. */
  readonly headers?: Readonly<Record<string, string>>
  /** Makes the requests. Default: the `fetch` of Node. */
  readonly fetch?: typeof fetch
  /** How long to wait for the first byte, in silence, and while only pings come. */
  readonly deadlines?: Partial<Deadlines>
  /** Your own prices. They win over those of the package. */
  readonly prices?: PriceTable
  /** Where keys are looked for. Default: the environment of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

const EFFORTS = { off: true, minimal: true, low: true, medium: true, high: true, xhigh: true, max: true } as const
const reasoningCheck: Check = (value, name, of) =>
  typeof value === 'object'
    ? optionsCheck<{ readonly budgetTokens: number }>({ budgetTokens: requiredCheck(anyCheck) })(value, name, of)
    : oneOf<Effort>(EFFORTS)(value, name, of)
const upTo =
  (most: number): Check =>
  (value) =>
    typeof value === 'number' && value >= 0 && value <= most ? null : `must be a number from 0 to ${most}`
const TOOL_CHOICES = { auto: true, required: true, none: true } as const
const toolChoice: Check = (value, name, of) =>
  typeof value === 'object'
    ? optionsCheck<{ readonly tool: string }>({ tool: requiredCheck(nonEmptyCheck) })(value, name, of)
    : oneOf<keyof typeof TOOL_CHOICES>(TOOL_CHOICES)(value, name, of)
const cache: Check = (value, name, of) => {
  const ttl = requiredCheck(oneOf<'5m' | '1h'>({ '5m': true, '1h': true }))
  return typeof value === 'object'
    ? optionsCheck<{ readonly ttl: '5m' | '1h' }>({ ttl })(value, name, of)
    : flagCheck(value, name, of)
}
const stop: Check = (value, name, of) => {
  const wrong = listCheck(nonEmptyCheck)(value, name, of)
  const size = (value as readonly string[]).length
  return wrong ?? (size >= 1 && size <= 16 ? null : `must have 1 to 16 texts, not ${size}`)
}

export const HOSTED_OPTIONS: Checks<HostedOptions> = {
  // Token counts and prices are checked separately.
  outputTokensMax: anyCheck,
  temperature: upTo(2),
  topP: upTo(1),
  seed: countCheck(),
  stop,
  toolChoice,
  parallelToolCalls: flagCheck,
  serviceTier: nonEmptyCheck,
  reasoning: reasoningCheck,
  chain: flagCheck,
  cache,
  body: objectCheck,
  // Checked later, with the host that must have them.
  providerTools: anyCheck,
  baseUrl: textCheck,
  key: textCheck,
  headers: tableCheck(textCheck),
  fetch: functionCheck,
  deadlines: optionsCheck<Partial<Deadlines>>({ firstByteMs: waitCheck, idleMs: waitCheck, stalledMs: waitCheck }),
  prices: anyCheck,
  env: objectCheck,
}

const tokensCheck: Check = (value) =>
  Number.isSafeInteger(value) && Number(value) >= 1
    ? null
    : `must be a whole number of tokens from 1 on, not ${describeValue(value)}`

/** The settings of a single run. */
export const RUN_SETTINGS: Checks<AnswerSettings> = {
  outputTokensMax: tokensCheck,
  temperature: HOSTED_OPTIONS.temperature,
  topP: HOSTED_OPTIONS.topP,
  seed: HOSTED_OPTIONS.seed,
  stop,
  toolChoice,
  parallelToolCalls: flagCheck,
  reasoning: reasoningCheck,
}

/** The most tokens of one answer with these settings. Throws `invalid_config` for a setting that the model is known not to take. */
export function outputTokensOf(model: Model, settings: AnswerSettings): number {
  if (!isPriced(model)) return settings.outputTokensMax ?? OUTPUT_TOKENS
  return model.outputTokensWith?.(settings) ?? settings.outputTokensMax ?? model.outputTokensMax
}

/** Loaded by the first call and used by all later ones. */
type LoadedClient = { readonly exchange: typeof callHost; readonly order: HostConnection<unknown> }

/** The most settings of single runs for which one model is kept ready. */
const VARIANTS_MAX = 32

/** The default length of an answer. */
export const OUTPUT_TOKENS = 8_192

export class HostedModel implements Priced {
  readonly name: string
  readonly able: ModelAbilities
  readonly outputTokensMax: number
  readonly secrets: Readonly<Record<string, string>>
  readonly verbatim: boolean
  readonly choiceCached: boolean
  readonly #endpoint: Endpoint
  readonly #key: string | null
  readonly #load: () => Promise<Protocol<unknown>>
  readonly #target: ModelTarget
  readonly #options: HostedOptions
  readonly #limiter: Limiter
  /** Sessions whose sealed reasoning the provider refused, and up to which event. */
  readonly #sealed = new Map<string, number>()
  /** The same model with the settings of single runs, the last used last. */
  readonly #variants = new Map<string, HostedModel>()
  /** Null until the first call. */
  #client: LoadedClient | null = null
  #profile: Promise<Profile> | null = null
  #window: Promise<number | null> | null = null

  constructor(endpoint: Endpoint, model: string, load: () => Promise<Protocol<unknown>>, options: HostedOptions = {}) {
    const { outputTokensMax, reasoning, env = process.env } = options
    checkPrices(options.prices)
    checkTokens('outputTokensMax', outputTokensMax)
    if (typeof reasoning === 'object') checkTokens('reasoning.budgetTokens', reasoning.budgetTokens)
    this.name = `${endpoint.name}:${model}`
    const images = endpoint.quirks.lacks?.includes('images') !== true
    const thinks = canReason({ model, quirks: endpoint.quirks }, endpoint.protocol)
    const known = thinks === undefined ? {} : { reasoning: thinks }
    this.able = { name: this.name, native: nativeOutputOf(endpoint, model), images, ...known }
    this.#target = { endpoint: endpoint.name, model, settings: settingsIn(options), quirks: endpoint.quirks }
    checkSettings(this.name, this.#target, endpoint.protocol)
    const { providerTools } = options
    if (providerTools !== undefined) checkProviderTools(providerTools, this.#target, endpoint.protocol)
    const messages = endpoint.protocol === 'messages'
    // The Messages protocol limits every request, so a budget holds that limit.
    this.outputTokensMax = messages
      ? thinkingOf(this.#target, false).outputTokensMax
      : (outputTokensMax ?? OUTPUT_TOKENS + thinkingTokens(reasoning))
    this.#endpoint = endpoint
    this.verbatim = !messages
    this.choiceCached = messages
    this.#load = load
    this.#options = options
    const own = options.key?.trim()
    const variable = endpoint.keys.find((name) => env[name]?.trim()) ?? ''
    this.#key = own || env[variable]?.trim() || null
    const key = this.#key === null ? {} : { [own ? secretName(endpoint, 'key') : variable]: this.#key }
    this.secrets = { ...headerSecrets(endpoint, options.headers), ...key }
    this.#limiter = limiterFor([endpoint.name, options.baseUrl ?? '', this.#key ?? '', model].join(' '))
  }

  async call(asked: Request, context: CallContext): Promise<Reply | ModelFailure> {
    if (asked.settings !== undefined) return this.#callWith(asked.settings, asked, context)
    const request = leaveOutServed(asked, this.#target.settings.providerTools)
    const missing = this.#keyless()
    if (missing) return missing
    const unknown = whyChoiceMissing(request, this.#target.settings)
    if (unknown !== null) return failure('bad_request', unknown)
    const held = await this.#limiter.pass(this.#endpoint.name, context)
    if (held) return held
    const { exchange: send, order } = (this.#client ??= await this.#open())
    const sealedAfter = this.#sealed.get(request.session)
    let target = sealedAfter === undefined ? order.target : { ...order.target, sealedAfter }
    for (;;) {
      const answer = await send(target === order.target ? order : { ...order, target }, request, context)
      if (answer.type === 'reply') return this.#costed(answer)
      this.#limiter.noteFailure(answer, context)
      // A part of the request that can be left out was refused: send it again without that part.
      const rest = leaveOutRefused(answer, target, request)
      if (rest === null) return answer
      target = rest
      // Remember the refusal: sealed reasoning for this session, a summary for all sessions.
      if (target.sealedAfter !== undefined) this.#sealed.set(request.session, target.sealedAfter)
      this.#client = { exchange: send, order: { ...order, target: { ...order.target, quirks: target.quirks } } }
    }
  }

  outputTokensWith(settings: AnswerSettings): number {
    return this.#variantOf(settings).outputTokensMax
  }

  async #callWith(settings: AnswerSettings, asked: Request, context: CallContext): Promise<Reply | ModelFailure> {
    const { settings: _settings, ...request } = asked
    try {
      return await this.#variantOf(settings).call(request, context)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      return failure('bad_request', error.message)
    }
  }

  #variantOf(settings: AnswerSettings): HostedModel {
    const key = JSON.stringify(settings)
    const variant =
      this.#variants.get(key) ??
      new HostedModel(this.#endpoint, this.#target.model, this.#load, { ...this.#options, ...settings })
    this.#variants.delete(key)
    this.#variants.set(key, variant)
    const [oldest] = this.#variants.keys()
    if (this.#variants.size > VARIANTS_MAX && oldest !== undefined) this.#variants.delete(oldest)
    return variant
  }

  profile(): Promise<Profile> {
    this.#profile ??= this.#profileOf(this.#target.model)
    return this.#profile
  }

  async askWindow(clock: Clock): Promise<void> {
    const { windows } = this.#endpoint
    const known = await this.profile()
    if (windows === undefined || known.contextTokens !== null || this.#keyless()) return
    this.#window ??= this.#askedWindow(windows, clock)
    const contextTokens = await this.#window
    if (contextTokens !== null) this.#profile = Promise.resolve({ ...known, contextTokens })
  }

  async #askedWindow(windows: NonNullable<Endpoint['windows']>, clock: Clock): Promise<number | null> {
    const [{ fetchWindow }, { order }] = await Promise.all([import('./fetch-window.ts'), this.#opened()])
    return fetchWindow(order, windows, clock)
  }

  /** The profile of any model of the host. */
  #profileOf(model: string): Promise<Profile> {
    return this.#isFree(model) ? Promise.resolve(FREE_PROFILE) : this.#listed(model, this.#options.prices ?? {})
  }

  /**
   * At Anthropic, an hour in the prompt cache costs twice the input to write, while the tables have the price of five
   * minutes.
   */
  async #listed(model: string, prices: PriceTable): Promise<Profile> {
    const { name } = this.#endpoint
    const { cache } = this.#target.settings
    const listed = await profileOf(name, model, prices)
    if (typeof cache !== 'object' || cache.ttl !== '1h' || priceIn(prices, name, model)) return listed
    const { input, cacheWrite = input } = listed.price
    const cost: Profile['cost'] = (usage) => {
      const { inputTokens, cacheWriteTokens: written = 0 } = usage
      if (written === 0) return listed.cost(usage)
      const each = listed.cost({ inputTokens, outputTokens: 0 }) / Math.max(1, inputTokens)
      return listed.cost({ ...usage, cacheWriteTokens: 0 }) + Math.ceil(written * each)
    }
    return { ...listed, price: { ...listed.price, cacheWrite: Math.max(cacheWrite, 2 * input) }, cost }
  }

  identity(): string {
    const { baseUrl = this.#endpoint.baseUrl, headers = {} } = this.#options
    return JSON.stringify([this.name, baseUrl, this.#target.settings, headers])
  }

  /** The models of the host, with their known properties. */
  async listModels(clock: Clock): Promise<Offer | ModelFailure> {
    const missing = this.#keyless()
    if (missing) return missing
    const [{ fetchOffer }, { order }] = await Promise.all([import('./catalog.ts'), this.#opened()])
    return fetchOffer(order, (model) => this.#profileOf(model), clock)
  }

  /** The tokens that the host counts for a request. Null if the host does not count. */
  async countTokens(request: Request, clock: Clock): Promise<number | ModelFailure | null> {
    const missing = this.#keyless()
    if (missing) return missing
    const [{ fetchTokenCount }, { order }] = await Promise.all([import('./catalog.ts'), this.#opened()])
    return fetchTokenCount(order, request, clock)
  }

  #keyless(): ModelFailure | null {
    const { keys, name } = this.#endpoint
    if (this.#key !== null || keys.length === 0) return null
    return failure('auth', `There is no key for ${name}. Set ${keys.join(' or ')}.`)
  }

  async #opened(): Promise<LoadedClient> {
    this.#client ??= await this.#open()
    return this.#client
  }

  /** A local server without a key is free. Any other server may charge. */
  #isFree(model: string): boolean {
    const { keys, name, baseUrl } = this.#endpoint
    const { prices = {}, baseUrl: address = baseUrl } = this.#options
    const open = keys.length === 0 && Object.keys(this.secrets).length === 0
    return open && isLoopback(address) && priceIn(prices, name, model) === undefined
  }

  async #open(): Promise<LoadedClient> {
    const [protocol, { callHost }, { fetchTransport, httpTransport }, { DEADLINES, OWN_DEADLINES }] = await Promise.all(
      [this.#load(), import('./exchange.ts'), import('./transport.ts'), import('./deadlines.ts')],
    )
    const { fetch: send, baseUrl, deadlines } = this.#options
    const { keyHeader, headers, keys } = this.#endpoint
    const auth =
      this.#key === null ? {} : { [keyHeader]: keyHeader === 'authorization' ? `Bearer ${this.#key}` : this.#key }
    const order = {
      protocol,
      target: this.#target,
      url: (baseUrl ?? this.#endpoint.baseUrl).replace(/\/+$/, ''),
      headers: { ...headers, ...auth, ...this.#options.headers },
      transport: send ? fetchTransport(send) : httpTransport,
      deadlines: { ...(keys.length === 0 ? OWN_DEADLINES : DEADLINES), ...withoutUndefined(deadlines ?? {}) },
    }
    return { exchange: callHost, order }
  }

  /** The cost that the provider reported, else the cost by its prices. */
  async #costed(answer: Reply | ModelFailure): Promise<Reply | ModelFailure> {
    if (answer.type === 'failure') return answer
    const route = this.name
    const { cost = 0, ...rest } = answer
    if (cost > 0) return { ...answer, route }
    return answer.usage === null
      ? { ...rest, route }
      : { ...rest, route, cost: (await this.profile()).cost(answer.usage) }
  }
}

const SETTINGS: Readonly<Record<keyof RequestSettings, true>> = {
  outputTokensMax: true,
  temperature: true,
  topP: true,
  seed: true,
  stop: true,
  toolChoice: true,
  parallelToolCalls: true,
  serviceTier: true,
  reasoning: true,
  chain: true,
  cache: true,
  body: true,
  providerTools: true,
}

/** The settings among the options that are set. */
function settingsIn(options: HostedOptions): RequestSettings {
  const set = Object.entries(options).filter(([name, value]) => Object.hasOwn(SETTINGS, name) && value !== undefined)
  return Object.fromEntries(set)
}

/** Refuses a setting that the model or its host is known not to take. */
function checkSettings(name: string, target: ModelTarget, protocol: Endpoint['protocol']): void {
  const { reasoning } = target.settings
  const wrong = whyNotReasoning(target, protocol)
  if (wrong !== null) {
    const asked = typeof reasoning === 'string' ? `"${reasoning}"` : 'this'
    throw new Fault('invalid_config', `${name} cannot do \`reasoning\` ${asked}: ${wrong}.`)
  }
  const refused = findRefusedSetting(target, protocol)
  if (refused === null) return
  throw new Fault('invalid_config', `${name} cannot take \`${refused.setting}\`: ${refused.why}.`)
}

function isLoopback(address: string): boolean {
  const hostname = URL.canParse(address) ? new URL(address).hostname : ''
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}

const THINKING_TOKENS = {
  off: 0,
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 24_576,
  xhigh: 32_768,
  max: 65_536,
} as const

/** Tokens for thinking besides the answer, where no limit covers both. */
function thinkingTokens(reasoning: RequestSettings['reasoning'] = 'off'): number {
  return typeof reasoning === 'string' ? THINKING_TOKENS[reasoning] : reasoning.budgetTokens
}

function headerSecrets(endpoint: Endpoint, more: HostedOptions['headers'] = {}): Readonly<Record<string, string>> {
  const found = Object.entries({ ...endpoint.headers, ...more }).flatMap(([name, value]) => {
    const secret = secretInHeader(name, value)
    return secret === null ? [] : [[secretName(endpoint, name), secret] as const]
  })
  return Object.fromEntries(found)
}

/** A name of a secret that is valid in a mark of the redactor. */
function secretName({ name }: Endpoint, what: string): string {
  return `_${name}_${what}`
    .toUpperCase()
    .replace(/[^A-Z0-9]/g, '_')
    .replace(/^_(?=[A-Z])/, '')
}

const limiters = new Map<string, Limiter>()

function limiterFor(key: string): Limiter {
  const known = limiters.get(key)
  if (known) return known
  const fresh = new Limiter()
  limiters.set(key, fresh)
  return fresh
}

function nativeOutputOf({ protocol, quirks }: Endpoint, model: string): ModelAbilities['native'] {
  if (quirks.lacks?.includes('native_output')) return 'no'
  if (protocol === 'messages') return acceptsSchemas(model) ? 'possible' : 'no'
  return protocol === 'responses' ? 'default' : 'possible'
}

export function modelIdentity(model: Model): string {
  return (isPriced(model) ? model.identity?.() : undefined) ?? model.name
}

export function isPriced(model: Model): model is Priced {
  return 'profile' in model
}

// Leaving out a refused part of a request. Each part is left out once, so retries end.

/** The provider no longer has the stored conversation. */
const FORGOTTEN = /previous_response_not_found/
/** The provider refuses its own signature: its key or the model behind the name has changed. */
const SEALED = new RegExp(
  [
    'invalid_encrypted_content|encrypted content .{0,80}could not be',
    'invalid .{0,20}in .?(redacted_)?thinking.? block',
    'thinking.? blocks .{0,80}cannot be modified',
    // The provider refuses a block or an item of its own tools without the other half of the pair.
    'srvtoolu_|server_tool_use|(web_search|code_interpreter|file_search)_call.{0,4}was provided without',
  ].join('|'),
  'i',
)
/** OpenAI gives reasoning summaries only to verified organisations. */
const SUMMARY = /reasoning\.summary|verified to generate reasoning summaries/i

/** Null if nothing can be left out, and the refusal stands. */
function leaveOutRefused(answer: ModelFailure, target: ModelTarget, request: Request): ModelTarget | null {
  if (answer.class !== 'bad_request') return null
  const { message } = answer
  const { settings, quirks, unlinked, sealedAfter = 0 } = target
  if (settings.chain === true && !unlinked && FORGOTTEN.test(message)) return { ...target, unlinked: true }
  if (!quirks.lacks?.includes('summary') && SUMMARY.test(message)) {
    return { ...target, quirks: { ...quirks, lacks: [...(quirks.lacks ?? []), 'summary'] } }
  }
  const last = request.messages.at(-1)?.seq ?? 0
  return last > sealedAfter && SEALED.test(message) ? { ...target, sealedAfter: last } : null
}
