// The server's routes as typed functions. Every request carries the token in its header, and every refusal is an
// ApiError with the server's code and sentence. It caches nothing: that is queries.ts.
import { BASE } from './mount.ts'
import type {
  AgentsAnswer,
  AnswerBody,
  BudgetBody,
  CommandsBody,
  CronBody,
  CronChangedAnswer,
  CronJobsAnswer,
  DecisionBody,
  DoneAnswer,
  DueAnswer,
  EventsAnswer,
  ForkBody,
  WireHealth,
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
  LetterBody,
  LetterDecidedAnswer,
  LettersAnswer,
  TriggersAnswer,
  UndoBody,
  UndoneAnswer,
  UnscheduleBody,
  UnscheduledAnswer,
  UsageAnswer,
  WhatIfAnswer,
  WhatIfBody,
  WireCode,
  WireReceipt,
} from '../../server/wire.ts'
import type { CaseAnswer, EvalRunAnswer, EvalsAnswer } from '../../server/wire-evals.ts'
import { isObject, parseJson, asString } from '../../view/untrusted-json.ts'
import { setServerNow } from './server-clock.ts'
import { currentToken, setToken } from './tab-token.ts'

/** `network`: no server answered. All other codes come from the server. */
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
type ApiRequestOptions = {
  readonly query?: Query
  readonly body?: object
  /** A repeated key makes one change. Use the same key when a person retries. */
  readonly key?: string
  readonly signal?: AbortSignal | undefined
}

/** Sends a request to this page's server, or answers it from the file that the page is. */
let fetchAnswer: (url: string, init: RequestInit) => Promise<Response> = (url, init) => fetch(url, init)
let isFromFile = false

/** Answers all further requests from a file. Its answers never change. */
export function answerFrom(file: typeof fetchAnswer): void {
  fetchAnswer = file
  isFromFile = true
}

/** Whether the data never changes, so that nothing has to be read twice. */
export function neverChanges(): boolean {
  return isFromFile
}

async function requestJson<T>(
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  asked: ApiRequestOptions = {},
): Promise<T> {
  const response = await sendApiRequest(method, path, asked)
  const answer = (await response.json()) as T
  setServerNow(answer)
  return answer
}

/** Sends a request and throws unless it succeeded. Also for streams and files. */
export async function sendApiRequest(
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  asked: ApiRequestOptions = {},
): Promise<Response> {
  const token = currentToken()
  const headers: Record<string, string> = { authorization: `Bearer ${token ?? ''}` }
  if (asked.body) headers['content-type'] = 'application/json'
  if (asked.key !== undefined) headers['idempotency-key'] = asked.key
  const init: RequestInit = { method, headers, credentials: 'omit', cache: 'no-store', redirect: 'error' }
  if (asked.body) init.body = JSON.stringify(asked.body)
  if (asked.signal) init.signal = asked.signal
  let response: Response
  try {
    response = await fetchAnswer(`${BASE}/v1/${path}${queryString(asked.query)}`, init)
  } catch (error) {
    if (asked.signal?.aborted) throw error
    throw new ApiError('network', 0, 'The server does not answer. Is `terret serve` still running?')
  }
  // A newer token was not the one refused.
  if (response.status === 401 && currentToken() === token) setToken(null)
  if (!response.ok) throw await apiErrorFrom(response)
  return response
}

function queryString(query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`
}

async function apiErrorFrom(response: Response): Promise<ApiError> {
  const said = parseJson(await response.text().catch(() => ''))
  const error = isObject(said) && isObject(said['error']) ? said['error'] : {}
  const code = asString(error['code']) || 'internal'
  const message = asString(error['message']) || `The server answered ${response.status}.`
  const wait = Number(response.headers.get('retry-after'))
  return new ApiError(code as WireCode, response.status, message, wait > 0 ? wait * 1_000 : null)
}

/** For `Idempotency-Key`. `randomUUID` exists only at secure addresses. @public */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

const sessionPath = (session: string): string => `sessions/${encodeURIComponent(session)}`

export type SessionsQuery = {
  /** One or more, separated by commas. */
  readonly outcome?: string
  /** The earliest time of the last event, in ms. */
  readonly since?: number
  readonly status?: string
  readonly agent?: string
  readonly q?: string
  /** A session and everything below it. */
  readonly root?: string
  readonly cursor?: string
  readonly limit?: number
}
export type EventPageQuery = {
  readonly after?: number
  readonly before?: number
  readonly limit?: number
  readonly types?: string
  readonly q?: string
}

/** Reading. Aborting the signal ends the request. */
export const api = {
  health: (signal?: AbortSignal) => requestJson<WireHealth>('GET', 'health', { signal }),
  me: (signal?: AbortSignal) => requestJson<Me>('GET', 'me', { signal }),
  sessions: (query: SessionsQuery, signal?: AbortSignal) =>
    requestJson<SessionPage>('GET', 'sessions', { query, signal }),
  session: (id: string, signal?: AbortSignal) => requestJson<SessionAnswer>('GET', sessionPath(id), { signal }),
  events: (id: string, query: EventPageQuery, signal?: AbortSignal) =>
    requestJson<EventsAnswer>('GET', `${sessionPath(id)}/events`, { query, signal }),
  state: (id: string, at: number, signal?: AbortSignal) =>
    requestJson<StateAnswer>('GET', `${sessionPath(id)}/state`, { query: { at }, signal }),
  messages: (id: string, signal?: AbortSignal) =>
    requestJson<MessagesAnswer>('GET', `${sessionPath(id)}/messages`, { signal }),
  pins: (id: string, signal?: AbortSignal) => requestJson<PinsAnswer>('GET', `${sessionPath(id)}/pins`, { signal }),
  result: (id: string, wait?: number, signal?: AbortSignal) =>
    requestJson<ResultAnswer>('GET', `${sessionPath(id)}/result`, { query: { wait }, signal }),
  pending: (signal?: AbortSignal) => requestJson<PendingAnswer>('GET', 'pending', { signal }),
  agents: (signal?: AbortSignal) => requestJson<AgentsAnswer>('GET', 'agents', { signal }),
  usage: (query: Query, signal?: AbortSignal) => requestJson<UsageAnswer>('GET', 'usage', { query, signal }),
  cron: (signal?: AbortSignal) => requestJson<CronJobsAnswer>('GET', 'cron', { signal }),
  triggers: (query: Query, signal?: AbortSignal) => requestJson<TriggersAnswer>('GET', 'triggers', { query, signal }),
  letters: (signal?: AbortSignal) => requestJson<LettersAnswer>('GET', 'letters', { signal }),
  evals: (signal?: AbortSignal) => requestJson<EvalsAnswer>('GET', 'evals', { signal }),
  evalRun: (id: string, before: string | undefined, signal?: AbortSignal) =>
    requestJson<EvalRunAnswer>('GET', `evals/${encodeURIComponent(id)}`, { query: { before }, signal }),
  caseOf: (id: string, signal?: AbortSignal) => requestJson<CaseAnswer>('GET', `${sessionPath(id)}/case`, { signal }),
  due: (signal?: AbortSignal) => requestJson<DueAnswer>('GET', 'due', { signal }),
  tokens: (signal?: AbortSignal) => requestJson<TokensAnswer>('GET', 'tokens', { signal }),
  /** The bytes of a file or an export, for saving. They are never displayed as a page. */
  blob: async (id: string, hash: string) =>
    (await sendApiRequest('GET', `${sessionPath(id)}/blobs/${encodeURIComponent(hash)}`)).blob(),
  export: async (id: string) => (await sendApiRequest('GET', `${sessionPath(id)}/export`)).blob(),
} as const

/** Acting. The key makes a retry the same action. */
export const apiActions = {
  open: (body: OpenBody, key: string) => requestJson<OpenedAnswer>('POST', 'sessions', { body, key }),
  send: (id: string, body: MessageBody, key: string) =>
    requestJson<WireReceipt>('POST', `${sessionPath(id)}/messages`, { body, key }),
  commands: (id: string, body: CommandsBody, key: string) =>
    requestJson<WireReceipt>('POST', `${sessionPath(id)}/commands`, { body, key }),
  answer: (id: string, body: AnswerBody, key: string) =>
    requestJson<WireReceipt>('POST', `${sessionPath(id)}/answers`, { body, key }),
  decide: (id: string, body: DecisionBody | BudgetBody, key: string) =>
    requestJson<WireReceipt>('POST', `${sessionPath(id)}/decisions`, { body, key }),
  interrupt: (id: string, body: InterruptBody, key: string) =>
    requestJson<WireReceipt>('POST', `${sessionPath(id)}/interrupt`, { body, key }),
  fork: (id: string, body: ForkBody, key: string) =>
    requestJson<OpenedAnswer>('POST', `${sessionPath(id)}/fork`, { body, key }),
  /** Aborting the signal ends it. */
  whatIf: (id: string, body: WhatIfBody, signal: AbortSignal) =>
    requestJson<WhatIfAnswer>('POST', `${sessionPath(id)}/what-if`, { body, signal }),
  undo: (id: string, body: UndoBody) => requestJson<UndoneAnswer>('POST', `${sessionPath(id)}/undo`, { body }),
  pin: (id: string, body: PinBody) => requestJson<PinnedAnswer>('POST', `${sessionPath(id)}/pins`, { body }),
  unpin: (id: string, pin: string) =>
    requestJson<DoneAnswer>('DELETE', `${sessionPath(id)}/pins/${encodeURIComponent(pin)}`),
  wake: (id: string) => requestJson<DoneAnswer>('POST', `${sessionPath(id)}/wake`, { body: {} }),
  unschedule: (id: string, body: UnscheduleBody) =>
    requestJson<UnscheduledAnswer>('POST', `${sessionPath(id)}/unschedule`, { body }),
  close: (id: string) => requestJson<DoneAnswer>('POST', `${sessionPath(id)}/close`, { body: {} }),
  remove: (id: string) => requestJson<RemovedAnswer>('DELETE', sessionPath(id)),
  cron: (body: CronBody) => requestJson<CronChangedAnswer>('POST', 'cron', { body }),
  retryTrigger: (id: string) =>
    requestJson<DoneAnswer>('POST', `triggers/${encodeURIComponent(id)}/retry`, { body: {} }),
  dropTrigger: (id: string) => requestJson<DoneAnswer>('POST', `triggers/${encodeURIComponent(id)}/drop`, { body: {} }),
  decideLetter: (body: LetterBody) => requestJson<LetterDecidedAnswer>('POST', 'letters', { body }),
  makeToken: (body: TokenBody) => requestJson<TokenMade>('POST', 'tokens', { body }),
  dropToken: (name: string) => requestJson<DoneAnswer>('DELETE', `tokens/${encodeURIComponent(name)}`),
} as const
