// The bytes of a request, for whoever checks that one request is the start of the next. No protocol's encoding.
import type { Request } from '../src/ports/model.ts'

/** The bytes that must be a prefix of the next request's. One line a message, so the end of one is never inside another. */
export function requestBytes(request: Request): string {
  const head = JSON.stringify([request.instructions, request.tools])
  return `${head}\n${request.messages.map((message) => `${JSON.stringify(message)}\n`).join('')}`
}
