// Describes failures of an MCP server for the model and for people: which call failed, whether it may have happened,
// and what to do. It reads the SDK's errors by their fields, so it does not load the SDK.
import type { EffectClass } from '../../kernel/content.ts'
import { STREAM_ENDED_MESSAGE } from './message-filter.ts'
import { visibleText, withoutSecrets } from './readable-text.ts'
import { isServerAway, type OutputMetadata, ModelRetry, ToolFailure, UNSENT } from '../core/tool-output.ts'

const MESSAGE_CHARS_MAX = 600
const INVALID_PARAMS = -32_602
/** Codes after which the connection is still good: the server answered, or will. */
const HARMLESS = new Set(['REQUEST_TIMEOUT', 'INVALID_RESULT', 'UNSUPPORTED_RESULT_TYPE'])

/** The SDK's codes for a server that is gone or silent. */
const GONE = new Set(['REQUEST_TIMEOUT', 'CONNECTION_CLOSED', 'NOT_CONNECTED', 'SEND_FAILED'])

/**
 * Thrown when a server cannot be reached or listed. The message says why; `away` means that it may come back by itself.
 */
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

/** Whether the error concerns the connection itself: then the next call opens a new one. */
export function isTransportError(error: unknown): boolean {
  const code = errorCode(error)
  return typeof code !== 'number' && !HARMLESS.has(code)
}

/**
 * Whether the server is down or late and may come back by itself. A server that does not exist, or refuses, does not.
 */
export function mayComeBack(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof Unreachable) return error.away
  return isServerAway(error) || isServerAway(rootCause(error)) || GONE.has(String(errorCode(error)))
}

export function callFailure(error: unknown, info: CallInfo): Error {
  const { server, tool, callMs, secrets } = info
  const metadata: OutputMetadata = { server, tool, error_type: 'MCPError' }
  const text = (words: string) => visibleText(withoutSecrets(secrets, words), MESSAGE_CHARS_MAX)
  const failure = (kind: ToolFailure['kind'], words: string) => new ToolFailure(kind, text(words), metadata)
  const code = errorCode(error)
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
  if (code === INVALID_PARAMS)
    return new ModelRetry(text(describeMcpError(error)), { ...metadata, error_type: 'MCPToolError' })
  if (typeof code === 'number' && !isStreamEnd(error)) {
    return failure('Failed', `MCP server "${server}" refused "${tool}": ${describeMcpError(error)}`)
  }
  const lost = `MCP server "${server}" was lost during "${tool}". ${describeMcpError(error, info.trouble)}`
  if (!once || isUnsent(error)) return failure('Unavailable', lost)
  return failure('Unknown', `The call may have happened: look before you try again. ${lost}`)
}

/** One or two sentences about whatever was thrown. */
export function describeMcpError(error: unknown, trouble = ''): string {
  if (trouble !== '') return trouble
  if (!(error instanceof Error)) return 'Something that is no error was thrown.'
  const status = 'status' in error && typeof error.status === 'number' ? error.status : null
  if (status === 401 || status === 403)
    return `It answered HTTP ${status}. Give its credentials in headers: there is no OAuth.`
  if (error instanceof Unreachable) return error.message
  // fetch puts the reason into the error's cause, and the SDK may have wrapped that once more.
  const reason = rootCause(error)
  const prefix = status === null ? '' : `It answered HTTP ${status}. `
  const words = reason.message.trim() || reason.name
  return `${prefix}${/[.!?]$/.test(words) ? words : `${words}.`}`
}

function rootCause(error: Error): Error {
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
  return (
    UNSENT.has(String(errorCode(rootCause(error)))) ||
    errorCode(error) === 'NOT_CONNECTED' ||
    error instanceof Unreachable
  )
}

/** A number from the server, or a code word from the SDK. */
function errorCode(error: unknown): number | string {
  const code = error instanceof Error && 'code' in error ? error.code : ''
  return typeof code === 'number' || typeof code === 'string' ? code : ''
}
