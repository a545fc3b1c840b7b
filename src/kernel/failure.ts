// The three kinds of failure: Failure (data the model sees), Fault (operational, for the caller), Bug (a failed
// assertion).
import { SITE } from './addresses.ts'

/** A closed list on purpose: callers switch on it. */
export type FaultCode =
  | ('lease_lost' | 'conflict' | 'over_budget' | 'store_replaced')
  | ('disk_full' | 'io_error' | 'store_busy' | 'store_closed' | 'store_damaged' | 'store_newer' | 'store_unsupported')
  | (
      | 'session_missing'
      | 'session_exists'
      | 'session_closed'
      | 'session_damaged'
      | 'session_busy'
      | 'session_held'
      | 'session_elsewhere'
    )
  | ('id_reused' | 'call_unknown' | 'decision_stale' | 'cursor_stale' | 'too_many')
  | ('invalid_input' | 'invalid_config' | 'harness_closed' | 'unsupported')

/** Operational trouble. `message` tells the caller what to do; `detail` is for the developer and never holds user content. */
export class Fault extends Error {
  /** What went wrong, for programs to switch on. `url` leads to its cause and remedy. */
  readonly code: FaultCode
  /** More about the cause for developers, such as the error of the system. Empty if there is no more. */
  readonly detail: string
  constructor(code: FaultCode, message: string, detail = '') {
    super(message || code)
    this.name = 'Fault'
    this.code = code
    this.detail = detail
  }

  /** Where the reference tells the cause and the remedy of this code. */
  get url(): string {
    return `${SITE}/reference/errors#${this.code}`
  }
}

/** The log and the code disagree. The attempt stops; the log stays whole. */
export class Bug extends Error {
  constructor(message: string) {
    super(`invariant broken: ${message}`)
    this.name = 'Bug'
  }
}

/** Throws a `Bug` unless the condition holds: for what cannot be otherwise if the program is right. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Bug(message)
}
