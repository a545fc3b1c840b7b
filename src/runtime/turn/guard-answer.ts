// Applies `before_answer` hooks to a reply that would be the answer. Blocked or replaced text is removed from the reply
// before it is written, so neither the log nor a result has it. Loaded by the first answer that a hook looks at.
import type { Json, Part, Proposal, Verdict } from '../../kernel/content.ts'
import type { Reply } from '../../ports/model.ts'
import { HookFailed } from '../hooks/hooks.ts'
import { isObject, parseJson } from '../../view/untrusted-json.ts'
import { textOf } from '../../view/shown-text.ts'
import type { AdmittedReply, ReplyAdmission } from './admit-reply.ts'
import { hookErrorVerdict, raceDeadline } from './landings.ts'

const LATE = 'The hook before_answer did not say in time whether this may be the answer.'

/**
 * Returns the settled reply, or what the hooks leave of it. A hook that fails or times out ends the run. If the
 * conversation was handed over to this agent, hooks of the agents it answers for are asked too: text that those may not
 * say must not even reach their logs.
 */
export async function guardAnswer(
  admitting: ReplyAdmission,
  settled: AdmittedReply,
  reply: Reply,
): Promise<AdmittedReply> {
  const { services, agent, cache, flight } = admitting
  const { verdict, calls } = settled
  if (verdict.type !== 'final' || services.hooks === null) return settled
  const { requests = 0, limits = agent.limits } = cache.session.run ?? {}
  const { answersFor = [] } = cache.session.parent ?? {}
  const text = textOf(reply.parts)
  // The agent that handed over may answer with a value, which is written as JSON here.
  const value = verdict.output === undefined && answersFor.length > 0 ? parseJson(text) : undefined
  const handed = isObject(value) ? value : undefined
  const { output = handed ?? text } = verdict
  const event = {
    ...cache.runIdentity,
    text: textIn(output),
    output,
    requests: requests + 1,
    requestsMax: limits.modelRequests,
  }
  const check =
    handed !== undefined ? acceptAnyOutput : verdict.output === undefined ? null : (agent.output?.check ?? null)
  try {
    const said = await raceDeadline(services.hooks.guardAnswer(event, check, answersFor), flight, null, 'timeout')
    if (said === null) throw new HookFailed('before_answer', new Error(LATE))
    if (said.type === 'pass') return settled
    if (said.type === 'retry') return { ...settled, guard: 'retry', verdict: retryVerdict(said.text, calls) }
    if (said.type === 'block') return withholdReply(settled, { type: 'stop', reason: said.reason }, said.reason)
    const parts = verdict.output === undefined || calls.length === 0 ? [textPart(textIn(said.output))] : []
    const files = reply.parts.filter(({ type }) => type === 'blob' || type === 'source')
    const whole = verdict.output === undefined ? {} : { output: said.output }
    return {
      calls: calls.map((call) => replaceArgs(call, said.output)),
      verdict: { type: 'final', ...whole },
      parts: [...parts, ...files],
      guard: 'replace',
    }
  } catch (error) {
    if (!(error instanceof HookFailed)) throw error
    return withholdReply(settled, hookErrorVerdict(error), error.message)
  }
}

/** The schema of the agent that handed over checks the value, once the answer arrives there. */
async function acceptAnyOutput(output: Json): Promise<{ readonly output: Json }> {
  return { output }
}

/**
 * The model reads the correction where it gave the answer: after its text, or as the result of the call that held it.
 */
function retryVerdict(text: string, calls: readonly Proposal[]): Verdict {
  return calls.length === 0 ? { type: 'retry_user_message', text } : { type: 'retry_tool_output', call: 0, text }
}

/** Removes the content of the reply and keeps only that there was one. */
function withholdReply({ calls }: AdmittedReply, verdict: Verdict, why: string): AdmittedReply {
  const parts = [textPart(`[A check withheld this answer: ${why}]`)]
  return { calls: calls.map((call) => replaceArgs(call, {})), verdict, parts, guard: 'block' }
}

/** Replaces the arguments, and drops the terms that belong to the previous ones. */
function replaceArgs({ id, tool, effect, timeoutMs }: Proposal, value: Json): Proposal {
  const isObject = value !== null && typeof value === 'object' && !Array.isArray(value)
  return { id, tool, args: isObject ? value : { value }, effect, timeoutMs }
}

function textPart(text: string): Part {
  return { type: 'text', text }
}

function textIn(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
