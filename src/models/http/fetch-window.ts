// Asks a host how many tokens a model takes. If the host does not answer soon, or sends something else, the size stays
// unknown and the run goes on without it.
import type { Clock } from '../../ports/system.ts'
import { isObject, type JsonObject } from '../../view/untrusted-json.ts'
import { askHost, readModelList } from './catalog.ts'
import type { Endpoint } from './endpoints.ts'
import type { HostConnection } from './exchange.ts'

/** A model request waits for this answer. */
const ANSWER_MS_MAX = 5_000
const TOKENS_MAX = 100_000_000

type AnyConnection = HostConnection<unknown>

/** Null if the host does not report it. */
export async function fetchWindow(
  order: AnyConnection,
  windows: NonNullable<Endpoint['windows']>,
  clock: Clock,
): Promise<number | null> {
  const tokens = windows === 'ollama' ? await fetchOllamaWindow(order, clock) : await fetchListedWindow(order, clock)
  return tokens !== null && tokens <= TOKENS_MAX ? tokens : null
}

async function fetchListedWindow(order: AnyConnection, clock: Clock): Promise<number | null> {
  const answer = await askHost(order, { path: '/models', headers: {} }, clock, ANSWER_MS_MAX)
  if (answer.type === 'failure') return null
  const { model } = order.target
  return readModelList(answer.body)?.find(({ id }) => id === model)?.contextTokens ?? null
}

/**
 * The limit in the model file counts first, then the limit with which the server loaded the model, then the limit of
 * the model itself.
 */
async function fetchOllamaWindow(order: AnyConnection, clock: Clock): Promise<number | null> {
  const server = { ...order, url: order.url.replace(/\/v1\/?$/, '') }
  const { model } = order.target
  const told = async (path: string, body?: string): Promise<JsonObject> => {
    const asked = { path, headers: {}, ...(body === undefined ? {} : { body }) }
    const answer = await askHost(server, asked, clock, ANSWER_MS_MAX)
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
