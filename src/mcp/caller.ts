// The caller of the tools, and the rights of each role. They come from the token or the process, never from the
// request.
import { nonEmptyCheck, listCheck, requiredCheck, oneOf, optionsChecker, whyNameInvalid } from '../options.ts'

/** Operators and approvers can also view; neither includes the other. An admin may do everything. */
export type CallerRole = 'viewer' | 'operator' | 'approver' | 'admin'

/** Whoever uses sessions through an MCP server: a name, a role, and which sessions they reach. */
export type Caller = {
  /** The name that the log records. */
  readonly name: string
  /** What the caller may do. */
  readonly role: CallerRole
  /** The roles in which the caller may decide, if a rule requires one. `*`: any role. */
  readonly approvalRoles?: readonly string[]
  /** `own`: only sessions that the caller started. */
  readonly reach: 'own' | 'all'
}

const checkFields = optionsChecker<Caller>('a caller', {
  name: requiredCheck(whyNameInvalid),
  role: requiredCheck(oneOf<CallerRole>({ viewer: true, operator: true, approver: true, admin: true })),
  approvalRoles: listCheck(nonEmptyCheck),
  reach: requiredCheck(oneOf<Caller['reach']>({ own: true, all: true })),
})

/** An unknown role must not count as one that may view. */
export function checkCaller(caller: Caller): void {
  checkFields(caller)
}

export const CALLER_ROLES: readonly CallerRole[] = ['viewer', 'operator', 'approver', 'admin']

/** Stands for every role that a rule may require. */
export const ANY_ROLE = '*'

/** Whether the caller may do what needs that role. */
export function mayAs({ role }: Caller, needed: CallerRole): boolean {
  return role === needed || role === 'admin' || needed === 'viewer'
}
