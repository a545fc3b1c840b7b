// Approvals: the options of a host, and the form in which its agents have them.
import { parsePolicy, type Policy } from '../../tools/policy/policy.ts'
import type { Agent } from './agent.ts'

/** Which calls a person is asked about, and how long. */
export type ApprovalOptions = {
  /** Rules on what may run, what must be asked and what is denied. Without any, each tool decides for itself. */
  readonly policy?: Policy
  /** The name of this place in rules, such as `production`. */
  readonly environment?: string
  /** How long a question to a person stays open. Default: for ever. */
  readonly timeoutMs?: number | null
}

export function agentApprovals(options: ApprovalOptions = {}): Pick<Agent, 'approvalMs' | 'policy' | 'environment'> {
  const { policy = { rules: [] }, environment = null, timeoutMs = null } = options
  return { approvalMs: timeoutMs, policy: parsePolicy(policy), environment }
}
