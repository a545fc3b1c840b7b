// How many tokens a model takes, asked of its host. A host that does not answer soon, or says something else, has said nothing: the run
// that asks goes on without it.
import type { Clock } from '../../ports/system.ts'
import { isObject, type JsonObject } from '../../view/json.ts'
import { ask, modelsIn } from './catalog.ts'
import type { Endpoint } from './endpoints.ts'
import type { Exchange } from './exchange.ts'

/** A request waits for this answer. */
const ANSWER_MS_MAX = 5_000
const TOKENS_MAX = 100_000_000

type Order = Exchange<unknown>

/** Null: the host does not say it. */
export async function askedWindow(
  order: Order,
  windows: NonNullable<Endpoint['windows']>,
  clock: Clock,
): Promise<number | null> {
  const tokens = windows === 'ollama' ? await ollamaWindow(order, clock) : await listedWindow(order, clock)
  return tokens !== null && tokens <= TOKENS_MAX ? tokens : null
}

async function listedWindow(order: Order, clock: Clock): Promise<number | null> {
  const answer = await ask(order, { path: '/models', headers: {} }, clock, ANSWER_MS_MAX)
  if (answer.type === 'failure') return null
  const { model } = order.target
  return modelsIn(answer.body)?.find(({ id }) => id === model)?.contextTokens ?? null
}

/** What the model file sets counts, then what the server gave the model when it loaded it, then what the model was made for. */
async function ollamaWindow(order: Order, clock: Clock): Promise<number | null> {
  const server = { ...order, url: order.url.replace(/\/v1\/?$/, '') }
  const { model } = order.target
  const told = async (path: string, body?: string): Promise<JsonObject> => {
    const asked = { path, headers: {}, ...(body === undefined ? {} : { body }) }
    const answer = await ask(server, asked, clock, ANSWER_MS_MAX)
    return answer.type === 'json' && isObject(answer.body) ? answer.body : {}
  }
  const [shown, running] = await Promise.all([told('/api/show', JSON.stringify({ model })), told('/api/ps')])
  const { parameters, model_info: about } = shown
  const set = typeof parameters === 'string' ? /^num_ctx\s+(\d{1,9})\s*$/m.exec(parameters)?.[1] : undefined
  if (set !== undefined && Number(set) > 0) return Number(set)
  const loaded = Array.isArray(running['models']) ? running['models'].filter(isObject) : []
  const own = loaded.find(({ name }) => name === model || name === `${model}:latest`)
  const made = isObject(about) ? Object.keys(about).find((key) => key.endsWith('.context_length')) : undefined
  return tokensIn(own?.['context_length']) ?? tokensIn(isObject(about) && made !== undefined ? about[made] : null)
}

function tokensIn(value: unknown): number | null {
  return Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : null
}
