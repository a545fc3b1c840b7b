// What a host can be asked besides an answer: which models it has, and how many tokens a request is. One request, one whole answer in
// JSON, bounded in size and time. It never throws for what a host does.
import type { Frozen, Json } from '../../kernel/content.ts'
import type { ModelFailure, Request } from '../../ports/model.ts'
import type { Clock } from '../../ports/system.ts'
import { isObject, type JsonObject, listOf, parsed } from '../../view/json.ts'
import type { Price, Profile } from '../price.ts'
import { type Exchange, withoutKeys } from './exchange.ts'
import { failure, failureOf, retryAfter, troubleIn } from './failures.ts'

/**
 * A model of a host. `price` is what counts for it: what the host charges where its answers say that, else your own prices, else those
 * of the table. `assumed`: none of them knows it, and a cautious price counts.
 */
export type OfferedModel = Frozen<{ id: string; contextTokens?: number; price: Price; assumed?: true }>
/** What the list of a host says of a model. */
type Listed = Frozen<{ id: string; contextTokens?: number; charged?: Price }>
export type Offer = Frozen<{ type: 'models'; models: readonly OfferedModel[] }>

/** The host whose answers say what they cost: what it lists counts. What other hosts list is charged by no answer. */
const SAYS_COST = 'openrouter'
const ANSWER_BYTES_MAX = 8 * 1024 * 1024
/** No model has to be loaded or to think for it, also on one's own server. */
const ANSWER_MS_MAX = 30_000
const MODELS_MAX = 5_000
const ID_CHARS_MAX = 200

export async function offered(
  order: Exchange<unknown>,
  profileOf: (model: string) => Promise<Profile>,
  clock: Clock,
): Promise<Offer | ModelFailure> {
  const anthropic = order.protocol.name === 'messages'
  const asked: Asked = anthropic
    ? { path: '/v1/models?limit=1000', headers: { 'anthropic-version': '2023-06-01' } }
    : { path: '/models', headers: {} }
  const answer = await ask(order, asked, clock)
  if (answer.type === 'failure') return answer
  const found = modelsIn(answer.body, order.target.endpoint === SAYS_COST)
  if (found === null) return failure('other', `${order.target.endpoint} sent no list of models.`)
  const models = await Promise.all(found.map((each) => priced(each, profileOf)))
  return { type: 'models', models: models.sort((a, b) => (a.id < b.id ? -1 : 1)) }
}

/** Null: it is no list. Together sends the list itself, all others an object around it. */
export function modelsIn(body: Json, saysCost = false): readonly Listed[] | null {
  const listed = Array.isArray(body) ? listOf(body) : isObject(body) ? body['data'] : null
  if (!Array.isArray(listed)) return null
  return listed
    .filter(isObject)
    .flatMap((entry) => modelIn(entry, saysCost))
    .slice(0, MODELS_MAX)
}

/** Hosts name the same things differently. */
function modelIn(entry: JsonObject, saysCost: boolean): readonly Listed[] {
  const { id, pricing } = entry
  if (typeof id !== 'string' || id === '' || id.length > ID_CHARS_MAX) return []
  const sizes = ['context_length', 'context_window', 'max_context_length', 'max_input_tokens', 'max_model_len']
  const contextTokens = sizes.map((name) => entry[name]).find((size) => Number.isSafeInteger(size) && Number(size) > 0)
  const charged = saysCost && isObject(pricing) ? chargedIn(pricing) : null
  return [
    {
      // Gemini's list has a folder before each name, which requests may leave out.
      id: id.replace(/^models\//, ''),
      ...(contextTokens === undefined ? {} : { contextTokens: Number(contextTokens) }),
      ...(charged === null ? {} : { charged }),
    },
  ]
}

/** Dollars a token, as texts. */
function chargedIn({ prompt, completion }: JsonObject): Price | null {
  const each = (value: Json | undefined): number => (typeof value === 'string' ? Number(value) * 1_000_000 : Number.NaN)
  const [asked, said] = [each(prompt), each(completion)]
  const sound = [asked, said].every((usd) => Number.isFinite(usd) && usd >= 0)
  return sound ? { input: rounded(asked), output: rounded(said) } : null
}

function rounded(usd: number): number {
  return Math.round(usd * 10_000) / 10_000
}

async function priced(
  { id, contextTokens: size, charged }: Listed,
  profileOf: (model: string) => Promise<Profile>,
): Promise<OfferedModel> {
  const { known, price, contextTokens } = await profileOf(id)
  const tokens = size ?? contextTokens
  const counts = charged ? { price: charged } : known ? { price } : { price, assumed: true as const }
  return { id, ...(tokens === null ? {} : { contextTokens: tokens }), ...counts }
}

/** The fields of a request that count as input. The rest is refused there. */
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

/** How many tokens the host counts. Null: it does not count. */
export async function counted(
  order: Exchange<unknown>,
  request: Request,
  clock: Clock,
): Promise<number | ModelFailure | null> {
  const counting = COUNTED[order.protocol.name]
  if (counting === undefined) return null
  const { body, headers } = order.protocol.encode(request, order.target)
  const kept = Object.entries(JSON.parse(body) as JsonObject).filter(([name]) => counting.fields.includes(name))
  const asked = { path: counting.path, headers, body: JSON.stringify(Object.fromEntries(kept)) }
  const answer = await ask(order, asked, clock)
  if (answer.type === 'failure') return answer
  const tokens = isObject(answer.body) ? answer.body['input_tokens'] : null
  return Number.isSafeInteger(tokens) && Number(tokens) >= 0
    ? Number(tokens)
    : failure('other', `${order.target.endpoint} did not say how many tokens it counts.`)
}

/** Without a body it is a GET. */
type Asked = { readonly path: string; readonly headers: Readonly<Record<string, string>>; readonly body?: string }
type Told = { readonly type: 'json'; readonly body: Json }

export async function ask(
  order: Exchange<unknown>,
  asked: Asked,
  clock: Clock,
  msMax = ANSWER_MS_MAX,
): Promise<Told | ModelFailure> {
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
    return failureOf({ status: heard.status, ...troubleIn(withoutKeys(text, headers)), ...retryAfter(heard.headers) })
  }
  const body = parsed(text)
  return body === undefined ? failure('other', `${target.endpoint} sent no JSON.`) : { type: 'json', body }
}
