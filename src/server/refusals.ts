// Refusals of a server: a status, a stable code and one sentence. Faults of the library keep their codes. Unexpected
// errors become `internal`, without their text, which may hold secrets.
import { CODES } from '../kernel/codes.ts'
import { Fault } from '../kernel/index.ts'
import type { WireCode, WireError } from './wire.ts'

export class HttpRefusal extends Error {
  readonly status: number
  readonly code: WireCode
  readonly retryAfterS: number | null
  /** The methods that the path allows, if the request used another one. */
  readonly allow: string | null = null
  constructor(status: number, code: WireCode, message: string, retryAfterS: number | null = null) {
    super(message)
    this.name = 'Refused'
    this.status = status
    this.code = code
    this.retryAfterS = retryAfterS
  }
}

const RETRY_S = 5

/** The refusal for any error. `unexpected`: the server's operator should read the error. */
export function refusalFromError(error: unknown): { readonly refused: HttpRefusal; readonly unexpected: boolean } {
  if (error instanceof HttpRefusal) return { refused: error, unexpected: false }
  if (error instanceof Fault) {
    const { status } = CODES[error.code]
    const retry = status === 503 || status === 507 || status === 429 ? RETRY_S : null
    const text = error.code === 'store_replaced' ? `store changed: ${error.message}` : error.message
    return { refused: new HttpRefusal(status, error.code, text, retry), unexpected: false }
  }
  const text = 'The server could not do this. What went wrong is in its own output.'
  return { refused: new HttpRefusal(500, 'internal', text), unexpected: true }
}

export function refusalBody({ code, message }: HttpRefusal): WireError {
  return { error: { code, message } }
}

/** The path exists, but allows only these methods. */
export function methodRefusal(methods: readonly string[]): HttpRefusal {
  const refused = new HttpRefusal(405, 'method', `This route takes ${methods.join(' and ')}.`)
  return Object.assign(refused, { allow: methods.join(', ') })
}

export const missingSessionRefusal = (id: string): HttpRefusal => {
  return new HttpRefusal(404, 'session_missing', `There is no session ${JSON.stringify(id)}.`)
}
