// Who uses the tools, and what each role may do. It comes from the token or the process, never from what a request says of itself.
import { filled, listOf, needed, oneOf, optionsOf, nameTrouble } from '../options.ts'

/** Operators and approvers also view; neither is the other. An admin is all. */
export type Role = 'viewer' | 'operator' | 'approver' | 'admin'

export type Caller = {
  /** As the log will name them. */
  readonly name: string
  readonly role: Role
  /** In which roles they may decide, where a rule wants one. `*`: in any. */
  readonly approvalRoles?: readonly string[]
  /** `own`: only the sessions that they started. */
  readonly reach: 'own' | 'all'
}

const checkFields = optionsOf<Caller>('a caller', {
  name: needed(nameTrouble),
  role: needed(oneOf<Role>({ viewer: true, operator: true, approver: true, admin: true })),
  approvalRoles: listOf(filled),
  reach: needed(oneOf<Caller['reach']>({ own: true, all: true })),
})

/** A role that does not exist must not be taken for one that views. */
export function checkCaller(caller: Caller): void {
  checkFields(caller)
}

export const ROLES: readonly Role[] = ['viewer', 'operator', 'approver', 'admin']

/** In every role that a rule asks for. */
export const ANY_ROLE = '*'

/** May this caller do what needs that role? */
export function mayAs({ role }: Caller, needed: Role): boolean {
  return role === needed || role === 'admin' || needed === 'viewer'
}
