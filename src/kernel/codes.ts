// What each fault code is answered with: over HTTP, in the chat of a page, and as the exit code of a command. Numbers only, so
// that whatever answers can load them; the causes and remedies are in scripts/reference/error-texts.ts.
import type { FaultCode } from './failure.ts'

type CodeAnswer = {
  /** The HTTP status of the server. */
  readonly status: number
  /** The HTTP status of the chat handler, where it differs from that of the server. */
  readonly chatStatus?: number
  /** The exit code of the command line. */
  readonly exit: number
}

/** Every fault code needs a line here: a new code does not compile without its answers. */
export const CODES: Readonly<Record<FaultCode, CodeAnswer>> = {
  lease_lost: { status: 409, exit: 9 },
  conflict: { status: 409, exit: 9 },
  over_budget: { status: 402, exit: 4 },
  store_replaced: { status: 409, exit: 8 },
  disk_full: { status: 507, exit: 8 },
  io_error: { status: 503, exit: 8 },
  store_busy: { status: 503, exit: 8 },
  store_closed: { status: 503, exit: 8 },
  store_damaged: { status: 503, exit: 8 },
  store_newer: { status: 503, exit: 8 },
  store_unsupported: { status: 503, exit: 8 },
  session_missing: { status: 404, exit: 6 },
  session_exists: { status: 409, exit: 9 },
  session_closed: { status: 410, exit: 9 },
  session_damaged: { status: 500, exit: 8 },
  session_busy: { status: 409, exit: 9 },
  session_held: { status: 409, exit: 3 },
  session_elsewhere: { status: 409, exit: 9 },
  // A page sends its messages again by itself, so an id that is taken means that its view is old.
  id_reused: { status: 422, chatStatus: 409, exit: 9 },
  call_unknown: { status: 404, exit: 6 },
  decision_stale: { status: 409, exit: 9 },
  cursor_stale: { status: 409, exit: 9 },
  // In a chat only the size of a request meets a bound.
  too_many: { status: 429, chatStatus: 413, exit: 9 },
  invalid_input: { status: 400, exit: 2 },
  // Whoever chats did not write the configuration of the host.
  invalid_config: { status: 400, chatStatus: 500, exit: 7 },
  harness_closed: { status: 503, exit: 1 },
  unsupported: { status: 501, exit: 1 },
}
