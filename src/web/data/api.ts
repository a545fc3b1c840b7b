// The server's routes as typed functions. Every request has the token in its header; every refusal is an ApiError with the server's code
// and sentence. It keeps nothing: what is shown again is query.ts.
import { BASE } from './mount.ts'
import type {
  AgentsAnswer,
  AnswerBody,
  BudgetBody,
  CommandsBody,
  DecisionBody,
  DoneAnswer,
  DueAnswer,
  EventsAnswer,
  ForkBody,
  Health,
  InterruptBody,
  Me,
  MessageBody,
  MessagesAnswer,
  OpenBody,
  OpenedAnswer,
  PendingAnswer,
  PinBody,
  PinnedAnswer,
  PinsAnswer,
  RemovedAnswer,
  ResultAnswer,
  SessionAnswer,
  SessionPage,
  StateAnswer,
  TokenBody,
  TokenMade,
  TokensAnswer,
  UndoBody,
  UndoneAnswer,
  UsageAnswer,
  WireCode,
  WireReceipt,
} from '../../server/wire.ts'
import { isObject, parsed, stringOf } from '../../view/json.ts'
import { heardNow } from './clock.ts'
import { currentToken, setToken } from './token.ts'

/** `network`: no server answered. Other codes are the server's. */
export class ApiError extends Error {
  readonly code: WireCode | 'network'
  readonly status: number
  readonly retryAfterMs: number | null
  constructor(code: WireCode | 'network', status: number, message: string, retryAfterMs: number | null = null) {
    super(message)
    this.name = 'ApiError'
    this.code = code
    this.status = status
    this.retryAfterMs = retryAfterMs
  }
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>
type Asked = {
  readonly query?: Query
  readonly body?: object
  /** The same key twice is one change: give the same one when a person tries again. */
  readonly key?: string
  readonly signal?: AbortSignal | undefined
}

/** Who answers: the server of this page, or the file that the page is. */
let answers: (url: string, init: RequestInit) => Promise<Response> = (url, init) => fetch(url, init)
let isKept = false

/** From now on nothing is asked of a server. What is answered never changes. */
export function answerFrom(file: typeof answers): void {
  answers = file
  isKept = true
}

/** Nothing new comes: there is no need to ask twice. */
export function neverChanges(): boolean {
  return isKept
}

async function json<T>(method: 'GET' | 'POST' | 'DELETE', path: string, asked: Asked = {}): Promise<T> {
  const response = await request(method, path, asked)
  const answer = (await response.json()) as T
  heardNow(answer)
  return answer
}

/** A response that is no refusal. Also for streams and files. */
export async function request(method: 'GET' | 'POST' | 'DELETE', path: string, asked: Asked = {}): Promise<Response> {
  const token = currentToken()
  const headers: Record<string, string> = { authorization: `Bearer ${token ?? ''}` }
  if (asked.body) headers['content-type'] = 'application/json'
  if (asked.key !== undefined) headers['idempotency-key'] = asked.key
  const init: RequestInit = { method, headers, credentials: 'omit', cache: 'no-store', redirect: 'error' }
  if (asked.body) init.body = JSON.stringify(asked.body)
  if (asked.signal) init.signal = asked.signal
  let response: Response
  try {
    response = await answers(`${BASE}/v1/${path}${queryOf(asked.query)}`, init)
  } catch (error) {
    if (asked.signal?.aborted) throw error
    throw new ApiError('network', 0, 'The server does not answer. Is `terret serve` still running?')
  }
  // Another one may have come since: that one was not refused.
  if (response.status === 401 && currentToken() === token) setToken(null)
  if (!response.ok) throw await refusalOf(response)
  return response
}

function queryOf(query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`
}

async function refusalOf(response: Response): Promise<ApiError> {
  const said = parsed(await response.text().catch(() => ''))
  const error = isObject(said) && isObject(said['error']) ? said['error'] : {}
  const code = stringOf(error['code']) || 'internal'
  const message = stringOf(error['message']) || `The server answered ${response.status}.`
  const wait = Number(response.headers.get('retry-after'))
  return new ApiError(code as WireCode, response.status, message, wait > 0 ? wait * 1_000 : null)
}

/** For `Idempotency-Key`. Not `randomUUID`: that is only there at secure addresses. @public */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

const of = (session: string): string => `sessions/${encodeURIComponent(session)}`

export type SessionsQuery = {
  /** One or more, separated by commas. */
  readonly outcome?: string
  /** The last event was at or after this time, in ms. */
  readonly since?: number
  readonly status?: string
  readonly agent?: string
  readonly q?: string
  /** A session and all below it. */
  readonly root?: string
  readonly cursor?: string
  readonly limit?: number
}
export type EventsQuery = {
  readonly after?: number
  readonly before?: number
  readonly limit?: number
  readonly types?: string
  readonly q?: string
}

/** Reading. A signal that is aborted ends the request. */
export const api = {
  health: (signal?: AbortSignal) => json<Health>('GET', 'health', { signal }),
  me: (signal?: AbortSignal) => json<Me>('GET', 'me', { signal }),
  sessions: (query: SessionsQuery, signal?: AbortSignal) => json<SessionPage>('GET', 'sessions', { query, signal }),
  session: (id: string, signal?: AbortSignal) => json<SessionAnswer>('GET', of(id), { signal }),
  events: (id: string, query: EventsQuery, signal?: AbortSignal) =>
    json<EventsAnswer>('GET', `${of(id)}/events`, { query, signal }),
  state: (id: string, at: number, signal?: AbortSignal) =>
    json<StateAnswer>('GET', `${of(id)}/state`, { query: { at }, signal }),
  messages: (id: string, signal?: AbortSignal) => json<MessagesAnswer>('GET', `${of(id)}/messages`, { signal }),
  pins: (id: string, signal?: AbortSignal) => json<PinsAnswer>('GET', `${of(id)}/pins`, { signal }),
  result: (id: string, wait?: number, signal?: AbortSignal) =>
    json<ResultAnswer>('GET', `${of(id)}/result`, { query: { wait }, signal }),
  pending: (signal?: AbortSignal) => json<PendingAnswer>('GET', 'pending', { signal }),
  agents: (signal?: AbortSignal) => json<AgentsAnswer>('GET', 'agents', { signal }),
  usage: (query: Query, signal?: AbortSignal) => json<UsageAnswer>('GET', 'usage', { query, signal }),
  due: (signal?: AbortSignal) => json<DueAnswer>('GET', 'due', { signal }),
  tokens: (signal?: AbortSignal) => json<TokensAnswer>('GET', 'tokens', { signal }),
  /** The bytes of a file or of an export, to save. They are never shown as a page. */
  blob: async (id: string, hash: string) =>
    (await request('GET', `${of(id)}/blobs/${encodeURIComponent(hash)}`)).blob(),
  export: async (id: string) => (await request('GET', `${of(id)}/export`)).blob(),
} as const

/** Acting. Each takes the key that makes a second try the same act. */
export const acts = {
  open: (body: OpenBody, key: string) => json<OpenedAnswer>('POST', 'sessions', { body, key }),
  send: (id: string, body: MessageBody, key: string) => json<WireReceipt>('POST', `${of(id)}/messages`, { body, key }),
  commands: (id: string, body: CommandsBody, key: string) =>
    json<WireReceipt>('POST', `${of(id)}/commands`, { body, key }),
  answer: (id: string, body: AnswerBody, key: string) => json<WireReceipt>('POST', `${of(id)}/answers`, { body, key }),
  decide: (id: string, body: DecisionBody | BudgetBody, key: string) =>
    json<WireReceipt>('POST', `${of(id)}/decisions`, { body, key }),
  interrupt: (id: string, body: InterruptBody, key: string) =>
    json<WireReceipt>('POST', `${of(id)}/interrupt`, { body, key }),
  fork: (id: string, body: ForkBody, key: string) => json<OpenedAnswer>('POST', `${of(id)}/fork`, { body, key }),
  undo: (id: string, body: UndoBody) => json<UndoneAnswer>('POST', `${of(id)}/undo`, { body }),
  pin: (id: string, body: PinBody) => json<PinnedAnswer>('POST', `${of(id)}/pins`, { body }),
  unpin: (id: string, pin: string) => json<DoneAnswer>('DELETE', `${of(id)}/pins/${encodeURIComponent(pin)}`),
  wake: (id: string) => json<DoneAnswer>('POST', `${of(id)}/wake`, { body: {} }),
  close: (id: string) => json<DoneAnswer>('POST', `${of(id)}/close`, { body: {} }),
  remove: (id: string) => json<RemovedAnswer>('DELETE', of(id)),
  makeToken: (body: TokenBody) => json<TokenMade>('POST', 'tokens', { body }),
  dropToken: (name: string) => json<DoneAnswer>('DELETE', `tokens/${encodeURIComponent(name)}`),
} as const
