// From `provider:model` to a Model. Naming one opens nothing: its client is loaded with the first call.
import { Fault } from '../kernel/failure.ts'
import type { Model } from '../kernel/ports.ts'
import { type Endpoint, endpoints } from './endpoints.ts'
import { HostedModel, type HostedOptions, type Priced } from './hosted.ts'
import { offline } from './offline.ts'
import type { Protocol } from './protocol.ts'
import { chat } from './protocols/chat.ts'
import { messages } from './protocols/messages.ts'
import { responses } from './protocols/responses.ts'

/** Sound: each protocol only ever gets back the states it made itself. */
const protocols = { chat, messages, responses } as unknown as Readonly<Record<Endpoint['protocol'], Protocol<unknown>>>

/** A model by name, such as `anthropic:claude-sonnet-4-5` or `ollama:qwen3`. `offline:any` needs neither key nor network. */
export function model(
  name: string,
  options: HostedOptions & { readonly endpoints?: readonly Endpoint[] } = {},
): Priced {
  const colon = name.indexOf(':')
  const [provider, id] = [name.slice(0, colon), name.slice(colon + 1)]
  const own = options.endpoints ?? []
  const listed = Object.hasOwn(endpoints, provider) ? endpoints[provider] : undefined
  const known = own.find((each) => each.name === provider) ?? listed
  if (colon <= 0 || id.trim() === '') {
    throw new Fault('invalid_config', `"${name}" is no model. Write provider:model, such as openai:gpt-5.1.`)
  }
  if (!known) {
    if (provider === 'offline') return offline()
    const names = [...own.map((each) => each.name), ...Object.keys(endpoints), 'offline']
    throw new Fault('invalid_config', `There is no provider "${provider}". Known are: ${names.join(', ')}.`)
  }
  return new HostedModel(known, id, protocols[known.protocol], options)
}

export function resolveModel(given: string | Model): Model {
  return typeof given === 'string' ? model(given) : given
}
