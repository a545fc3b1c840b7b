// Makes a Model from `provider:model`. Naming a model loads nothing: the first call loads its protocol and HTTP client,
// since no program uses all of them.
import { Fault } from '../kernel/failure.ts'
import type { Model } from '../ports/model.ts'
import {
  type Checks,
  nonEmptyCheck,
  listCheck,
  requiredCheck,
  oneOf,
  optionsChecker,
  objectCheck,
  tableCheck,
  textCheck,
  optionsCheck,
} from '../options.ts'
import { ADAPTED_NAMES, AdaptedModel, isAdapted } from './adapted-model.ts'
import { fillAddress, type Endpoint, endpoints } from './http/endpoints.ts'
import { HOSTED_OPTIONS, HostedModel, type HostedOptions, type Priced } from './http/hosted-model.ts'
import { offline } from './local/offline.ts'
import type { Protocol } from './protocols/protocol.ts'

/** `unknown` states are safe: each protocol gets only states that it made itself. */
const loaders: Readonly<Record<Endpoint['protocol'], () => Promise<Protocol<unknown>>>> = {
  chat: async () => (await import('./protocols/chat/chat-protocol.ts')).chatProtocol,
  messages: async () => (await import('./protocols/messages/messages-protocol.ts')).messagesProtocol,
  responses: async () => (await import('./protocols/responses/responses-protocol.ts')).responsesProtocol,
}

export type ModelOptions = HostedOptions & { readonly endpoints?: readonly Endpoint[] }

const ENDPOINT: Checks<Endpoint> = {
  name: requiredCheck(nonEmptyCheck),
  protocol: requiredCheck(oneOf<Endpoint['protocol']>({ chat: true, messages: true, responses: true })),
  baseUrl: requiredCheck(textCheck),
  keys: requiredCheck(listCheck(nonEmptyCheck), 'Name the variables that may hold the key: []  for none.'),
  keyHeader: requiredCheck(oneOf<Endpoint['keyHeader']>({ authorization: true, 'x-api-key': true, 'api-key': true })),
  quirks: requiredCheck(objectCheck, 'Write quirks: {} for none.'),
  headers: requiredCheck(tableCheck(textCheck), 'Write headers: {} for none.'),
  windows: oneOf<NonNullable<Endpoint['windows']>>({ models: true, ollama: true }),
}
const checkModel = optionsChecker<ModelOptions>('model', {
  ...HOSTED_OPTIONS,
  endpoints: listCheck(optionsCheck<Endpoint>(ENDPOINT)),
})

/** A model by name, such as `anthropic:claude-sonnet-4-5` or `ollama:qwen3`. `offline:any` needs neither key nor network. */
export function model(name: string, options: ModelOptions = {}): Priced {
  if (typeof name !== 'string')
    throw new Fault('invalid_config', 'A model is named by a text: provider:model, such as openai:gpt-5.1.')
  checkModel(options, `model(${JSON.stringify(name.slice(0, 64))})`)
  // This provider has a single model.
  if (name === 'offline') return model('offline:any', options)
  const colon = name.indexOf(':')
  const [provider, id] = [name.slice(0, colon), name.slice(colon + 1)]
  const own = options.endpoints ?? []
  const listed = Object.hasOwn(endpoints, provider) ? endpoints[provider] : undefined
  const known = own.find((each) => each.name === provider) ?? listed
  if (colon <= 0 || id.trim() === '') {
    throw new Fault('invalid_config', `"${name}" is not a model name. Write provider:model, such as openai:gpt-5.1.`)
  }
  if (!known) {
    if (provider === 'offline') return offline()
    if (provider === 'hint') {
      const text = `"${name}" asks for a route. Name it where a harness with routes has a model: of an agent or a run.`
      throw new Fault('invalid_config', text)
    }
    if (isAdapted(provider)) return new AdaptedModel(provider, id, options)
    const names = [...own.map((each) => each.name), ...Object.keys(endpoints), ...ADAPTED_NAMES, 'offline']
    throw new Fault('invalid_config', `There is no provider "${provider}". Choose one of: ${names.join(', ')}.`)
  }
  const { url, missing } = fillAddress(known.baseUrl, options.env ?? process.env)
  if (missing !== null && options.baseUrl === undefined) {
    const text = `The address of ${provider} has the name of your own resource in it. Set ${missing} to that name, or give the option baseUrl.`
    throw new Fault('invalid_config', text)
  }
  checkAddress(options.baseUrl ?? url)
  return new HostedModel({ ...known, baseUrl: url }, id, loaders[known.protocol], options)
}

/** Checked early, since the first call may come much later. */
function checkAddress(url: string): void {
  if (/^https?:\/\//.test(url) && URL.canParse(url)) return
  const bare = url.replace(/^\w*:?\/\//, '')
  throw new Fault('invalid_config', `"${url}" is not an HTTP address. Write http:// or https:// first: http://${bare}.`)
}

/**
 * The problem of a value that is given as a model, as the end of a sentence. Null if it is a model, or the name of one.
 */
export function whyNotModel(given: unknown): string | null {
  if (typeof given === 'string' || typeof (given as Partial<Model> | null)?.call === 'function') return null
  const { specificationVersion, doStream } = (given ?? {}) as {
    readonly specificationVersion?: unknown
    readonly doStream?: unknown
  }
  if (typeof specificationVersion === 'string' || typeof doStream === 'function')
    return "is a model of the AI SDK. Hand it over as fromAiSdk(model): import { fromAiSdk } from 'terret/ai-sdk'"
  return 'is no model. Name one, such as openai:gpt-5.1, or hand one over'
}

export function resolveModel(given: string | Model): Model {
  if (typeof given === 'string') return model(given)
  // JavaScript callers may leave the model out.
  const wrong =
    given === undefined ? 'is missing. Name one, such as openai:gpt-5.1, or hand one over' : whyNotModel(given)
  if (wrong === null) return given
  throw new Fault('invalid_config', `The model ${wrong}.`)
}
