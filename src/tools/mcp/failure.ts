// What went wrong with a server, in words for the model and for people: which call, whether it may have happened, what to do.
// It reads the SDK's errors by their fields, so that naming a failure loads nothing.
import type { EffectClass } from '../../kernel/content.ts'
import { STREAM_ENDED_MESSAGE } from './gate.ts'
import { visible, without } from './text.ts'
import { isAway, type Metadata, ModelRetry, ToolFailure, UNSENT } from '../core/output.ts'

const MESSAGE_CHARS_MAX = 600
const INVALID_PARAMS = -32_602
/** The server answered, or will: the connection is as good as before. */
const HARMLESS = new Set(['REQUEST_TIMEOUT', 'INVALID_RESULT', 'UNSUPPORTED_RESULT_TYPE'])

/** The SDK's words for a server that went, or is silent. */
const GONE = new Set(['REQUEST_TIMEOUT', 'CONNECTION_CLOSED', 'NOT_CONNECTED', 'SEND_FAILED'])

/** A server that could not be reached or listed. The message says why; `away` if it may come back by itself. */
export class Unreachable extends Error {
  readonly away: boolean
  constructor(message: string, { away = false, ...options }: ErrorOptions & { readonly away?: boolean } = {}) {
    super(message, options)
    this.away = away
  }
}

export type CallInfo = {
  readonly server: string
  readonly tool: string
  readonly effect: EffectClass
  readonly callMs: number
  readonly secrets: readonly string[]
  /** Why the server's process ended, if it did. */
  readonly trouble: string
}

/** The connection itself is in question: the next call takes a new one. */
export function isTransport(error: unknown): boolean {
  const code = codeOf(error)
  return typeof code !== 'number' && !HARMLESS.has(code)
}

/** It is down or late, and may come back by itself. What is not there, or answers that it will not, does not. */
export function comesBack(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof Unreachable) return error.away
  return isAway(error) || isAway(rootOf(error)) || GONE.has(String(codeOf(error)))
}

export function callFailure(error: unknown, info: CallInfo): Error {
  const { server, tool, callMs, secrets } = info
  const metadata: Metadata = { server, tool, error_type: 'MCPError' }
  const text = (words: string) => visible(without(secrets, words), MESSAGE_CHARS_MAX)
  const failure = (kind: ToolFailure['kind'], words: string) => new ToolFailure(kind, text(words), metadata)
  const code = codeOf(error)
  if (code === 'UNSUPPORTED_RESULT_TYPE') {
    return failure(
      'Failed',
      `"${tool}" of MCP server "${server}" asks for more input, which is not offered to servers.`,
    )
  }
  const once = info.effect === 'once'
  if (code === 'INVALID_RESULT') {
    const words = `MCP server "${server}" answered "${tool}" with something that is no result. It may have run.`
    return failure(once ? 'Unknown' : 'Failed', words)
  }
  if (code === 'REQUEST_TIMEOUT') {
    const late = `MCP server "${server}" did not answer "${tool}" within ${callMs} ms.`
    return once
      ? failure('Unknown', `${late} It may have happened: look before you try again.`)
      : failure('Timeout', late)
  }
  if (code === INVALID_PARAMS) return new ModelRetry(text(said(error)), { ...metadata, error_type: 'MCPToolError' })
  if (typeof code === 'number' && !isStreamEnd(error)) {
    return failure('Failed', `MCP server "${server}" refused "${tool}": ${said(error)}`)
  }
  const lost = `MCP server "${server}" was lost during "${tool}". ${said(error, info.trouble)}`
  if (!once || isUnsent(error)) return failure('Unavailable', lost)
  return failure('Unknown', `The call may have happened: look before you try again. ${lost}`)
}

/** One sentence or two, from whatever was thrown. */
export function said(error: unknown, trouble = ''): string {
  if (trouble !== '') return trouble
  if (!(error instanceof Error)) return 'Something that is no error was thrown.'
  const status = 'status' in error && typeof error.status === 'number' ? error.status : null
  if (status === 401 || status === 403)
    return `It answered HTTP ${status}. Give its credentials in headers: there is no OAuth.`
  if (error instanceof Unreachable) return error.message
  // What fetch throws has its reason inside, and the SDK may have wrapped that once more.
  const reason = rootOf(error)
  const prefix = status === null ? '' : `It answered HTTP ${status}. `
  const words = reason.message.trim() || reason.name
  return `${prefix}${/[.!?]$/.test(words) ? words : `${words}.`}`
}

function rootOf(error: Error): Error {
  let root = error
  for (let depth = 0; depth < 5 && root.cause instanceof Error; depth++) root = root.cause
  return root
}

function isStreamEnd(error: unknown): boolean {
  return error instanceof Error && error.message.includes(STREAM_ENDED_MESSAGE)
}

function isUnsent(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('status' in error && typeof error.status === 'number') return error.status >= 400 && error.status < 500
  return UNSENT.has(String(codeOf(rootOf(error)))) || codeOf(error) === 'NOT_CONNECTED' || error instanceof Unreachable
}

/** A number from the server, or a word from the SDK. */
function codeOf(error: unknown): number | string {
  const code = error instanceof Error && 'code' in error ? error.code : ''
  return typeof code === 'number' || typeof code === 'string' ? code : ''
}
