// Whether an error says that somebody on the network is away for now. It reads codes and states, never words.

/** Nothing has left this machine. */
export const UNSENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

const LOST: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENETDOWN',
  'EHOSTDOWN',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
])

/** Of this error alone, not of its cause. */
export function isAway(error: Error): boolean {
  const { code, status, statusCode } = error as { code?: unknown; status?: unknown; statusCode?: unknown }
  if (typeof code === 'string' && (UNSENT.has(code) || LOST.has(code))) return true
  const http = typeof status === 'number' ? status : statusCode
  if (typeof http === 'number') return http === 408 || http === 429 || (http >= 500 && http < 600)
  return error.name === 'TimeoutError'
}
