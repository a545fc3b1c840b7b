// Which names the stores accept for sessions, events, workers, accounts and holds. Not how names are made: callers make them.
import { Fault } from '../kernel/failure.ts'

const ID_LENGTH_MAX = 512

/** Names are stored and compared as UTF-8: what has no UTF-8 form could become another's name. */
export function checkId(kind: string, id: unknown): void {
  if (typeof id === 'string' && id.length > 0 && id.length <= ID_LENGTH_MAX && !/[\0\uD800-\uDFFF]/u.test(id)) return
  throw new Fault('invalid_input', `The ${kind} must be 1 to ${ID_LENGTH_MAX} well-formed characters.`)
}
