// Questions to a model host outside of any session: which models it has, and how many tokens an input has for one of
// them.
import { runtimeClock } from '../runtime/state/machine.ts'
import { Fault } from '../kernel/failure.ts'
import { HostedModel } from '../models/http/hosted-model.ts'
import type { Offer } from '../models/http/catalog.ts'
import { model, type ModelOptions, resolveModel } from '../models/resolve-model.ts'
import { listCheck, optionsChecker, objectCheck, textCheck } from '../options.ts'
import type { Model, ModelFailure, Request } from '../ports/model.ts'
import { CHARS_PER_TOKEN_MIN } from '../runtime/money/spending-limits.ts'
import { countRequestChars } from '../runtime/money/usage-estimate.ts'

/** Lists the models of a host, each with its context size and price if the host or the price table has them. */
export async function listModels(host: string, options: ModelOptions = {}): Promise<Offer | ModelFailure> {
  const any = model(`${host}:any`, options)
  if (any instanceof HostedModel) return any.listModels(runtimeClock)
  throw new Fault('invalid_config', `${host} has no list of models that can be asked for. Look at its own pages.`)
}

/** The input to count: a text, or parts of a request. */
export type CountInput = string | Partial<Pick<Request, 'instructions' | 'tools' | 'messages' | 'output'>>
/** The length of an input in tokens. */
export type Counted = {
  /** How many tokens the input has. */
  readonly tokens: number
  /** True if the host counted. Otherwise it is an estimate from the characters, which is rather too high. */
  readonly exact: boolean
  /** Why the host did not count, if it was asked. */
  readonly why?: string
}

const checkInput = optionsChecker<Exclude<CountInput, string>>('countTokens', {
  instructions: textCheck,
  tools: listCheck(objectCheck),
  messages: listCheck(checkMessage),
  output: objectCheck,
})

/** Checks the fields of a message that are counted. */
function checkMessage(value: unknown, name: string, of: string): string | null {
  const wrong = objectCheck(value, name, of)
  if (wrong !== null) return wrong
  const { role, parts = [], calls = [] } = value as Readonly<Record<string, unknown>>
  if (role !== 'user' && role !== 'assistant' && role !== 'tool') return 'must have the role user, assistant or tool'
  return listCheck(objectCheck)(parts, `${name}.parts`, of) ?? listCheck(objectCheck)(calls, `${name}.calls`, of)
}

/** Counts the tokens of a request before it is sent: the host counts if it can, otherwise they are estimated. */
export async function countTokens(named: string | Model, input: CountInput): Promise<Counted> {
  const asked = typeof input === 'string' ? { messages: [textMessage(input)] } : input
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
  const told = counter instanceof HostedModel ? await counter.countTokens(request, runtimeClock) : null
  if (typeof told === 'number') return { tokens: told, exact: true }
  const tokens = Math.ceil(countRequestChars(request) / CHARS_PER_TOKEN_MIN)
  return { tokens, exact: false, ...(told === null ? {} : { why: told.message }) }
}

function textMessage(words: string): Request['messages'][number] {
  return { role: 'user', seq: 1, parts: [{ type: 'text', text: words }] }
}
