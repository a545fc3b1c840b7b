// What the token of this tab may do, as the server will say it again: buttons that would be refused are dead, and say why.
import type { Me, Role } from '../../server/wire.ts'
import { useMe } from './query.ts'

/** Operators and approvers also view. Neither is the other. */
function isOf({ role }: Pick<Me, 'role'>, wanted: Role): boolean {
  return role === 'admin' || role === wanted || wanted === 'viewer'
}

/** Null: it may. Otherwise why not, for people. */
export function useRefusal(wanted: Role): string | null {
  const me = useMe().data
  if (me === undefined) return 'It is not known yet what this token may do.'
  return isOf(me, wanted) ? null : `This needs a token with the role ${wanted}. Yours is ${me.role}.`
}
