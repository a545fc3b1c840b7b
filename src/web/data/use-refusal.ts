// The permissions of this tab's token, as the server enforces them: buttons that it would refuse are disabled and say
// why.
import type { Me, Role } from '../../server/wire.ts'
import { useMe } from './queries.ts'

/** Operators and approvers can also view. Neither role includes the other. */
function coversRole({ role }: Pick<Me, 'role'>, wanted: Role): boolean {
  return role === 'admin' || role === wanted || wanted === 'viewer'
}

/** Null if the token may. Otherwise the reason, for people. */
export function useRefusal(wanted: Role): string | null {
  const me = useMe().data
  if (me === undefined) return 'It is not known yet what this token may do.'
  return coversRole(me, wanted) ? null : `This needs a token with the role ${wanted}. Yours is ${me.role}.`
}
