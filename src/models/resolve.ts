// From `provider:model` to a Model. Naming a model loads nothing: its protocol and HTTP client are loaded by the first call, since
// no program uses all of them.
import { Fault } from '../kernel/failure.ts'
import type { Model } from '../ports/model.ts'
import { type Checks, filled, listOf, needed, oneOf, optionsOf, record, tableOf, text, within } from '../options.ts'
import { ADAPTED_NAMES, AdaptedModel, isAdapted } from './adapted.ts'
import { addressOf, type Endpoint, endpoints } from './http/endpoints.ts'
import { HOSTED_OPTIONS, HostedModel, type HostedOptions, type Priced } from './http/hosted.ts'
import { offline } from './local/offline.ts'
import type { Protocol } from './protocols/protocol.ts'

/** `unknown` states are safe: each protocol only gets back states it made itself. */
const loaders: Readonly<Record<Endpoint['protocol'], () => Promise<Protocol<unknown>>>> = {
  chat: async () => (await import('./protocols/chat/chat.ts')).chat,
  messages: async () => (await import('./protocols/messages/messages.ts')).messages,
  responses: async () => (await import('./protocols/responses/responses.ts')).responses,
}

export type ModelOptions = HostedOptions & { readonly endpoints?: readonly Endpoint[] }

const ENDPOINT: Checks<Endpoint> = {
  name: needed(filled),
  protocol: needed(oneOf<Endpoint['protocol']>({ chat: true, messages: true, responses: true })),
  baseUrl: needed(text),
  keys: needed(listOf(filled), 'Name the variables that may hold the key: []  for none.'),
  keyHeader: needed(oneOf<Endpoint['keyHeader']>({ authorization: true, 'x-api-key': true, 'api-key': true })),
  quirks: needed(record, 'Write quirks: {} for none.'),
  headers: needed(tableOf(text), 'Write headers: {} for none.'),
  windows: oneOf<NonNullable<Endpoint['windows']>>({ models: true, ollama: true }),
}
const checkModel = optionsOf<ModelOptions>('model', {
  ...HOSTED_OPTIONS,
  endpoints: listOf(within<Endpoint>(ENDPOINT)),
})

/** A model by name, such as `anthropic:claude-sonnet-4-5` or `ollama:qwen3`. `offline:any` needs neither key nor network. */
export function model(name: string, options: ModelOptions = {}): Priced {
  if (typeof name !== 'string')
    throw new Fault('invalid_config', 'A model is named by a text: provider:model, such as openai:gpt-5.1.')
  checkModel(options, `model(${JSON.stringify(name.slice(0, 64))})`)
  // The one provider with a single model.
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
  const { url, missing } = addressOf(known.baseUrl, options.env ?? process.env)
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

/** What is handed over in place of a model, as the end of a sentence. Null: it is a model, or the name of one. */
export function modelTrouble(given: unknown): string | null {
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
  // JavaScript callers may leave it out.
  const wrong =
    given === undefined ? 'is missing. Name one, such as openai:gpt-5.1, or hand one over' : modelTrouble(given)
  if (wrong === null) return given
  throw new Fault('invalid_config', `The model ${wrong}.`)
}
