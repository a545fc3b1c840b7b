// The interface of a dialect, which encodes answers and errors. Types, and code shared by the two dialects of OpenAI.
import type { Frozen, Json } from '../kernel/content.ts'
import type { ChaosAnswer } from './chaos-answer.ts'
import type { TroubleName } from './chaos-script.ts'

/** One event of a stream. `text` marks the first piece of text, `end` the provider's last event. */
export type AnswerFrame = Frozen<{ event: string | null; data: string; part?: 'text' | 'end' }>

/** An error answer, before it has the shape of a provider. */
export type ProviderRefusal = Frozen<{
  /** Default 400. */
  status?: number
  /** The sentence of the provider. */
  message: string
  /** The provider's word for the kind of error. Default: that for an invalid request. */
  type?: string
  /** The provider's code. Absent: it gives none. */
  code?: string
  /** The field of the request that is wrong. Absent: it names none. */
  param?: string
}>

export type AnswerEncoder = Frozen<{
  whole: (answer: ChaosAnswer) => Json
  frames: (answer: ChaosAnswer) => readonly AnswerFrame[]
  /** A ping as it stands in the stream. */
  ping: string
  /** An unknown event. */
  unknown: (padding: string) => AnswerFrame
  /** An error in the stream, after so many events. */
  failed: (after: number) => AnswerFrame
  troubles: Readonly<Record<TroubleName, ProviderRefusal>>
  /** The body of an error. */
  refused: (refusal: ProviderRefusal, n: number) => Json
  requestHeader: string
}>

export function encodeFrame({ event, data }: AnswerFrame): string {
  return `${event === null ? '' : `event: ${event}\n`}data: ${data}\n\n`
}

export function openaiError({ message, type = 'invalid_request_error', param, code }: ProviderRefusal): Json {
  return { error: { message, type, param: param ?? null, code: code ?? null } }
}

/** https://developers.openai.com/api/docs/guides/error-codes */
export const OPENAI_TROUBLES = {
  overloaded: {
    status: 503,
    type: 'server_error',
    message: 'The engine is currently overloaded, please try again later.',
  },
  rate_limited: {
    status: 429,
    type: 'requests',
    code: 'rate_limit_exceeded',
    message: 'Rate limit reached for requests. Please try again later.',
  },
  unauthorized: { status: 401, code: 'invalid_api_key', message: 'Incorrect API key provided.' },
  quota: {
    status: 429,
    type: 'insufficient_quota',
    code: 'insufficient_quota',
    message: 'You exceeded your current quota, please check your plan and billing details.',
  },
  server_error: {
    status: 500,
    type: 'server_error',
    message: 'The server had an error while processing your request. Sorry about that!',
  },
  bad_request: { status: 400, message: 'The request could not be understood.' },
  not_found: { status: 404, code: 'model_not_found', message: 'The model does not exist or you do not have access.' },
} as const satisfies Partial<Record<TroubleName, ProviderRefusal>>
