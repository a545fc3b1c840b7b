// Asks a host which models it has, and how many tokens a request is. Each question is one request with one JSON answer,
// bounded in size and time. No failure of a host throws.
import type { Frozen, Json } from '../../kernel/content.ts'
import type { ModelFailure, Request } from '../../ports/model.ts'
import type { Clock } from '../../ports/system.ts'
import { isObject, type JsonObject, asList, parseJson } from '../../view/untrusted-json.ts'
import type { Price, Profile } from '../price.ts'
import { type HostConnection, withoutKeys } from './exchange.ts'
import { failure, failureFromTrouble, readRetryAfter, readTrouble } from './failures.ts'

/** A model of a host. */
export type OfferedModel = Frozen<{
  /** The name of the model at its host, which stands behind the colon in `openai:gpt-5.1`. */
  id: string
  /** How many tokens the model takes. Absent if neither the host nor the table says it. */
  contextTokens?: number
  /** The price that applies: the host's charge if its answers report one, else your own, else that of the table. */
  price: Price
  /** No table has the model, and the price is a cautious guess. */
  assumed?: true
}>
/** An entry of the host's list. */
type ListedModel = Frozen<{ id: string; contextTokens?: number; charged?: Price }>
/** The models that a host says it has. */
export type Offer = Frozen<{
  /** Tells the list from a failure. */
  type: 'models'
  /** At most 5,000 models, in the order of the host. */
  models: readonly OfferedModel[]
}>

/**
 * The host whose answers report their cost, so its listed price applies. Answers of other hosts do not charge their
 * listed price.
 */
const SAYS_COST = 'openrouter'
const ANSWER_BYTES_MAX = 8 * 1024 * 1024
/** The answer needs no loaded model and no thinking, also on the user's own server. */
const ANSWER_MS_MAX = 30_000
const MODELS_MAX = 5_000
const ID_CHARS_MAX = 200

export async function fetchOffer(
  order: HostConnection<unknown>,
  profileOf: (model: string) => Promise<Profile>,
  clock: Clock,
): Promise<Offer | ModelFailure> {
  const anthropic = order.protocol.name === 'messages'
  const asked: HostQuestion = anthropic
    ? { path: '/v1/models?limit=1000', headers: { 'anthropic-version': '2023-06-01' } }
    : { path: '/models', headers: {} }
  const answer = await askHost(order, asked, clock)
  if (answer.type === 'failure') return answer
  const found = readModelList(answer.body, order.target.endpoint === SAYS_COST)
  if (found === null) return failure('other', `${order.target.endpoint} sent no list of models.`)
  const models = await Promise.all(found.map((each) => addPrice(each, profileOf)))
  return { type: 'models', models: models.sort((a, b) => (a.id < b.id ? -1 : 1)) }
}

/** Null if it is not a list. Together sends the list itself, all others an object around it. */
export function readModelList(body: Json, saysCost = false): readonly ListedModel[] | null {
  const listed = Array.isArray(body) ? asList(body) : isObject(body) ? body['data'] : null
  if (!Array.isArray(listed)) return null
  return listed
    .filter(isObject)
    .flatMap((entry) => readModelEntry(entry, saysCost))
    .slice(0, MODELS_MAX)
}

/** Reads one entry: hosts name the same fields differently. */
function readModelEntry(entry: JsonObject, saysCost: boolean): readonly ListedModel[] {
  const { id, pricing } = entry
  if (typeof id !== 'string' || id === '' || id.length > ID_CHARS_MAX) return []
  const sizes = ['context_length', 'context_window', 'max_context_length', 'max_input_tokens', 'max_model_len']
  const contextTokens = sizes.map((name) => entry[name]).find((size) => Number.isSafeInteger(size) && Number(size) > 0)
  const charged = saysCost && isObject(pricing) ? readCharge(pricing) : null
  return [
    {
      // Gemini's list has a folder before each name, which requests may leave out.
      id: id.replace(/^models\//, ''),
      ...(contextTokens === undefined ? {} : { contextTokens: Number(contextTokens) }),
      ...(charged === null ? {} : { charged }),
    },
  ]
}

/** Dollars per token, as strings. */
function readCharge({ prompt, completion }: JsonObject): Price | null {
  const each = (value: Json | undefined): number => (typeof value === 'string' ? Number(value) * 1_000_000 : Number.NaN)
  const [asked, said] = [each(prompt), each(completion)]
  const sound = [asked, said].every((usd) => Number.isFinite(usd) && usd >= 0)
  return sound ? { input: roundPrice(asked), output: roundPrice(said) } : null
}

function roundPrice(usd: number): number {
  return Math.round(usd * 10_000) / 10_000
}

async function addPrice(
  { id, contextTokens: size, charged }: ListedModel,
  profileOf: (model: string) => Promise<Profile>,
): Promise<OfferedModel> {
  const { known, price, contextTokens } = await profileOf(id)
  const tokens = size ?? contextTokens
  const counts = charged ? { price: charged } : known ? { price } : { price, assumed: true as const }
  return { id, ...(tokens === null ? {} : { contextTokens: tokens }), ...counts }
}

/** The fields of a request that count as input. The endpoint refuses the others. */
const COUNTED: Readonly<Record<string, { readonly path: string; readonly fields: readonly string[] }>> = {
  messages: {
    path: '/v1/messages/count_tokens',
    fields: ['model', 'system', 'tools', 'tool_choice', 'thinking', 'output_config', 'messages'],
  },
  responses: {
    path: '/responses/input_tokens',
    fields: ['model', 'instructions', 'tools', 'tool_choice', 'parallel_tool_calls', 'text', 'reasoning', 'input'],
  },
}

/** The number of tokens that the host counts. Null if it does not count. */
export async function fetchTokenCount(
  order: HostConnection<unknown>,
  request: Request,
  clock: Clock,
): Promise<number | ModelFailure | null> {
  const counting = COUNTED[order.protocol.name]
  if (counting === undefined) return null
  const { body, headers } = order.protocol.encode(request, order.target)
  const kept = Object.entries(JSON.parse(body) as JsonObject).filter(([name]) => counting.fields.includes(name))
  const asked = { path: counting.path, headers, body: JSON.stringify(Object.fromEntries(kept)) }
  const answer = await askHost(order, asked, clock)
  if (answer.type === 'failure') return answer
  const tokens = isObject(answer.body) ? answer.body['input_tokens'] : null
  return Number.isSafeInteger(tokens) && Number(tokens) >= 0
    ? Number(tokens)
    : failure('other', `${order.target.endpoint} did not say how many tokens it counts.`)
}

/** A question without a body is a GET. */
type HostQuestion = {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}
type HostAnswer = { readonly type: 'json'; readonly body: Json }

export async function askHost(
  order: HostConnection<unknown>,
  asked: HostQuestion,
  clock: Clock,
  msMax = ANSWER_MS_MAX,
): Promise<HostAnswer | ModelFailure> {
  const { transport, deadlines, target } = order
  const stop = new AbortController()
  const ms = Math.min(msMax, deadlines.firstByteMs)
  const cancel = clock.timer(ms, () => stop.abort(new Error(`No answer within ${ms} ms.`)))
  const heard = { status: 0, headers: {} as Readonly<Record<string, string>>, chunks: [] as Uint8Array[], bytes: 0 }
  const sink = {
    head: (status: number, headers: Readonly<Record<string, string>>): void =>
      void Object.assign(heard, { status, headers }),
    data: (chunk: Uint8Array): void => {
      heard.bytes += chunk.length
      if (heard.bytes > ANSWER_BYTES_MAX) throw new RangeError(`The answer is longer than ${ANSWER_BYTES_MAX} bytes.`)
      heard.chunks.push(chunk)
    },
  }
  const all = { 'content-type': 'application/json', accept: 'application/json', 'accept-encoding': 'identity' }
  const headers = { ...all, ...asked.headers, ...order.headers }
  const url = new URL(order.url + asked.path)
  try {
    await transport({ url, headers, body: asked.body ?? null, signal: stop.signal }, sink)
  } catch (error) {
    const why = error instanceof Error ? error.message || error.name : 'The connection failed.'
    return failure('network', withoutKeys(`${target.endpoint} does not answer: ${why}`, headers))
  } finally {
    cancel()
  }
  const text = new TextDecoder().decode(Buffer.concat(heard.chunks))
  if (heard.status !== 200) {
    return failureFromTrouble({
      status: heard.status,
      ...readTrouble(withoutKeys(text, headers)),
      ...readRetryAfter(heard.headers),
    })
  }
  const body = parseJson(text)
  return body === undefined ? failure('other', `${target.endpoint} sent no JSON.`) : { type: 'json', body }
}
