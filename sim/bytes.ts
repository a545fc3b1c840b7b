// The bytes of a request, for the check that each request is a prefix of the next. Not the encoding of any protocol.
import type { Request } from '../src/ports/model.ts'

/** The bytes that must be a prefix of the next request's. One line a message, so the end of one is never inside another. */
export function requestBytes(request: Request): string {
  const head = JSON.stringify([request.instructions, request.tools])
  return `${head}\n${request.messages.map((message) => `${JSON.stringify(message)}\n`).join('')}`
}
