// What a host is asked outside of any session: which models it has, and how many tokens an input is for one of them.
import { systemClock } from '../engine/platform.ts'
import { Fault } from '../kernel/failure.ts'
import { HostedModel } from '../models/http/hosted.ts'
import type { Offer } from '../models/http/catalog.ts'
import { model, type ModelOptions, resolveModel } from '../models/resolve.ts'
import { listOf, optionsOf, record, text } from '../options.ts'
import type { Model, ModelFailure, Request } from '../ports/model.ts'
import { CHARS_A_TOKEN } from '../riders/money/spending-limits.ts'
import { charsIn } from '../riders/money/usage-estimate.ts'

/** The models of a host, each with its context size and price as far as the host or the price table says. */
export async function listModels(host: string, options: ModelOptions = {}): Promise<Offer | ModelFailure> {
  const any = model(`${host}:any`, options)
  if (any instanceof HostedModel) return any.offered(systemClock)
  throw new Fault('invalid_config', `${host} has no list of models that can be asked for. Look at its own pages.`)
}

/** What is counted: a text, or parts of a request. */
export type CountInput = string | Partial<Pick<Request, 'instructions' | 'tools' | 'messages' | 'output'>>
/** `exact`: the host counted. Else it is an estimate, and `why` says what the host answered instead, if it was asked. */
export type Counted = { readonly tokens: number; readonly exact: boolean; readonly why?: string }

const checkInput = optionsOf<Exclude<CountInput, string>>('countTokens', {
  instructions: text,
  tools: listOf(record),
  messages: listOf(message),
  output: record,
})

/** As much of a message as reading it needs. */
function message(value: unknown, name: string, of: string): string | null {
  const wrong = record(value, name, of)
  if (wrong !== null) return wrong
  const { role, parts = [], calls = [] } = value as Readonly<Record<string, unknown>>
  if (role !== 'user' && role !== 'assistant' && role !== 'tool') return 'must have the role user, assistant or tool'
  return listOf(record)(parts, `${name}.parts`, of) ?? listOf(record)(calls, `${name}.calls`, of)
}

export async function countTokens(named: string | Model, input: CountInput): Promise<Counted> {
  const asked = typeof input === 'string' ? { messages: [saying(input)] } : input
  checkInput(asked)
  const plain = {
    session: 'count',
    seq: 1,
    instructions: '',
    tools: [],
    allow: 'all',
    boost: false,
    messages: [],
  } as const
  const request: Request = { ...plain, ...asked }
  const counter = resolveModel(named)
  const told = counter instanceof HostedModel ? await counter.counted(request, systemClock) : null
  if (typeof told === 'number') return { tokens: told, exact: true }
  const tokens = Math.ceil(charsIn(request) / CHARS_A_TOKEN)
  return { tokens, exact: false, ...(told === null ? {} : { why: told.message }) }
}

function saying(words: string): Request['messages'][number] {
  return { role: 'user', seq: 1, parts: [{ type: 'text', text: words }] }
}
