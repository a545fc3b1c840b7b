// Models of hosts that are reached through the AI SDK: Bedrock signs each request, Vertex needs Google's tokens, and
// Gemini's own protocol takes PDFs and thought signatures. The user installs the provider's package, and the first call
// loads it.
import type { AnswerSettings, CallContext, Model, ModelFailure, Reply, Request } from '../ports/model.ts'
import { Fault } from '../kernel/failure.ts'
import { failure } from './http/failures.ts'
import { type HostedOptions, OUTPUT_TOKENS, type Priced } from './http/hosted-model.ts'
import type { ModelAbilities } from './structured-output.ts'
import { checkPrices, checkTokens, type Profile, profileOf } from './price.ts'
import type { AiSdkModel, AiSdkSettings } from './aisdk/aisdk.ts'

type SdkHost = {
  readonly package: string
  readonly make: string
  /** The options of the package, with the variables that each is read from. The first variable that is set counts. */
  readonly from: Readonly<Record<string, readonly string[]>>
  /** The options that are secrets. The first one is `key`. */
  readonly secret: readonly string[]
  /** The name of the host in the price table. */
  readonly prices: string
}

const ADAPTED: Readonly<Record<string, SdkHost>> = {
  bedrock: {
    package: '@ai-sdk/amazon-bedrock',
    make: 'createAmazonBedrock',
    from: {
      region: ['AWS_REGION', 'AWS_DEFAULT_REGION'],
      apiKey: ['AWS_BEARER_TOKEN_BEDROCK'],
      accessKeyId: ['AWS_ACCESS_KEY_ID'],
      secretAccessKey: ['AWS_SECRET_ACCESS_KEY'],
      sessionToken: ['AWS_SESSION_TOKEN'],
    },
    secret: ['apiKey', 'accessKeyId', 'secretAccessKey', 'sessionToken'],
    prices: 'aws',
  },
  vertex: {
    package: '@ai-sdk/google-vertex',
    make: 'createVertex',
    from: {
      project: ['GOOGLE_VERTEX_PROJECT', 'GOOGLE_CLOUD_PROJECT'],
      location: ['GOOGLE_VERTEX_LOCATION', 'GOOGLE_CLOUD_LOCATION'],
      apiKey: ['GOOGLE_VERTEX_API_KEY'],
    },
    secret: ['apiKey'],
    prices: 'google',
  },
  google: {
    package: '@ai-sdk/google',
    make: 'createGoogleGenerativeAI',
    from: { apiKey: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_API_KEY'] },
    secret: ['apiKey'],
    prices: 'google',
  },
}

export const ADAPTED_NAMES = Object.keys(ADAPTED)

export function isAdapted(provider: string): boolean {
  return Object.hasOwn(ADAPTED, provider)
}

/** Settings that the AI SDK has no field for in all its providers. */
const OWN_ONLY = ['reasoning', 'chain', 'cache', 'parallelToolCalls', 'serviceTier', 'body'] as const

export class AdaptedModel implements Priced {
  readonly name: string
  readonly able: ModelAbilities
  readonly outputTokensMax: number
  readonly secrets: Readonly<Record<string, string>>
  readonly #provider: string
  readonly #adapted: SdkHost
  readonly #id: string
  readonly #options: HostedOptions
  readonly #given: Readonly<Record<string, string>>
  #model: Model | null = null

  constructor(provider: string, id: string, options: HostedOptions) {
    const adapted = ADAPTED[provider] as SdkHost
    this.name = `${provider}:${id}`
    const wrong = OWN_ONLY.find((setting) => options[setting] !== undefined)
    if (wrong !== undefined) {
      const how = `Write it as \`providerOptions\` of fromAiSdk, with a model of ${adapted.package}`
      throw new Fault(
        'invalid_config',
        `${this.name} cannot take \`${wrong}\`: it is reached through the AI SDK. ${how}.`,
      )
    }
    checkPrices(options.prices)
    checkTokens('outputTokensMax', options.outputTokensMax)
    this.able = { name: this.name, native: 'possible' }
    this.outputTokensMax = options.outputTokensMax ?? OUTPUT_TOKENS
    this.#provider = provider
    this.#adapted = adapted
    this.#id = id
    this.#options = options
    const { env = process.env, key } = options
    const [first = ''] = adapted.secret
    const set = Object.entries(adapted.from).flatMap(([option, names]) => {
      const name = names.find((each) => env[each]?.trim())
      const value = option === first && key ? key.trim() : name === undefined ? undefined : env[name]?.trim()
      return value === undefined ? [] : [{ option, value, name: name ?? `${provider.toUpperCase()}_KEY` }]
    })
    this.#given = Object.fromEntries(set.map(({ option, value }) => [option, value]))
    const secret = set.filter(({ option }) => adapted.secret.includes(option))
    this.secrets = Object.fromEntries(secret.map(({ name, value }) => [name, value]))
  }

  async call(request: Request, context: CallContext): Promise<Reply | ModelFailure> {
    let model = this.#model
    if (model === null) {
      const opened = await this.#open()
      if ('type' in opened) return opened
      model = opened
      this.#model = opened
    }
    const answer = await model.call(request, context)
    return answer.type === 'reply' ? { ...answer, route: this.name } : answer
  }

  outputTokensWith(settings: AnswerSettings): number {
    return new AdaptedModel(this.#provider, this.#id, { ...this.#options, ...settings }).outputTokensMax
  }

  identity(): string {
    const { baseUrl = '', headers = {} } = this.#options
    return JSON.stringify([this.name, baseUrl, headers, settingsOf(this.#options)])
  }

  profile(): Promise<Profile> {
    return profileOf(this.#adapted.prices, this.#id, this.#options.prices)
  }

  async #open(): Promise<Model | ModelFailure> {
    const { package: name, make } = this.#adapted
    const { baseUrl, headers, fetch: send } = this.#options
    const provided = (await import(name).catch(() => null)) as Readonly<Record<string, unknown>> | null
    const create = provided?.[make]
    if (typeof create !== 'function') {
      return failure(
        'bad_request',
        `${this.name} is reached through the AI SDK. Install its package: npm install ${name}.`,
      )
    }
    const { fromAiSdk } = await import('./aisdk/aisdk.ts')
    const more = {
      ...(baseUrl ? { baseURL: baseUrl } : {}),
      ...(headers ? { headers } : {}),
      ...(send ? { fetch: send } : {}),
    }
    try {
      // The package throws its own error for wrong options.
      const provider = (create as (options: object) => (id: string) => AiSdkModel)({ ...this.#given, ...more })
      return fromAiSdk(provider(this.#id), settingsOf(this.#options))
    } catch (error) {
      return failure('bad_request', error instanceof Error ? error.message : String(error))
    }
  }
}

function settingsOf(options: HostedOptions): AiSdkSettings {
  const { outputTokensMax, temperature, topP, seed, stop, toolChoice, prices, deadlines } = options
  const all = { outputTokensMax, temperature, topP, seed, stop, toolChoice, prices, deadlines }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}
