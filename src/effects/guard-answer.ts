// What `before_answer` hooks make of a reply that would be the answer. What they block or replace is taken out of the reply before it is
// written: neither the log nor a result has it. Loaded by the first answer that a hook looks at.
import type { Json, Part, Proposal, Verdict } from '../kernel/content.ts'
import type { Reply } from '../ports/model.ts'
import { HookFailed } from '../riders/hooks/hooks.ts'
import { isObject, parsed } from '../view/json.ts'
import { textOf } from '../view/text.ts'
import { type Admitting, type Settled, strictly } from './admit-reply.ts'
import { inTime } from './outcomes.ts'

const LATE = 'The hook before_answer did not say in time whether this may be the answer.'

/**
 * The settled reply, or what the hooks leave of it. A hook that fails or does not come back ends the run. An agent that a conversation was
 * handed over to is looked at for the agents in whose place it answers too: what they may not say must not even reach their logs.
 */
export async function guardAnswer(admitting: Admitting, settled: Settled, reply: Reply): Promise<Settled> {
  const { services, agent, cache, flight } = admitting
  const { verdict, calls } = settled
  if (verdict.type !== 'final' || services.hooks === null) return settled
  const { requests = 0, limits = agent.limits } = cache.session.run ?? {}
  const { answersFor = [] } = cache.session.parent ?? {}
  const text = textOf(reply.parts)
  // The one that handed over may answer with a value, which is written as JSON here.
  const value = verdict.output === undefined && answersFor.length > 0 ? parsed(text) : undefined
  const handed = isObject(value) ? value : undefined
  const { output = handed ?? text } = verdict
  const event = {
    ...cache.place,
    text: textIn(output),
    output,
    requests: requests + 1,
    requestsMax: limits.modelRequests,
  }
  const check = handed !== undefined ? takeAny : verdict.output === undefined ? null : (agent.output?.check ?? null)
  try {
    const said = await inTime(services.hooks.guardAnswer(event, check, answersFor), flight, null, 'timeout')
    if (said === null) throw new HookFailed('before_answer', new Error(LATE))
    if (said.type === 'pass') return settled
    if (said.type === 'retry') return { ...settled, guard: 'retry', verdict: retryOf(said.text, calls) }
    if (said.type === 'block') return withheld(settled, { type: 'stop', reason: said.reason }, said.reason)
    const parts = verdict.output === undefined || calls.length === 0 ? [textPart(textIn(said.output))] : []
    const files = reply.parts.filter(({ type }) => type === 'blob' || type === 'source')
    const whole = verdict.output === undefined ? {} : { output: said.output }
    return {
      calls: calls.map((call) => withArgs(call, said.output)),
      verdict: { type: 'final', ...whole },
      parts: [...parts, ...files],
      guard: 'replace',
    }
  } catch (error) {
    if (!(error instanceof HookFailed)) throw error
    return withheld(settled, strictly(error), error.message)
  }
}

/** It is checked by the schema of the one that handed over, once that has it. */
async function takeAny(output: Json): Promise<{ readonly output: Json }> {
  return { output }
}

/** The model is told where it gave the answer: after its text, or as the result of the call that held it. */
function retryOf(text: string, calls: readonly Proposal[]): Verdict {
  return calls.length === 0 ? { type: 'retry_user_message', text } : { type: 'retry_tool_output', call: 0, text }
}

/** Nothing of the reply is left but that there was one. */
function withheld({ calls }: Settled, verdict: Verdict, why: string): Settled {
  const parts = [textPart(`[A check withheld this answer: ${why}]`)]
  return { calls: calls.map((call) => withArgs(call, {})), verdict, parts, guard: 'block' }
}

/** Without what was said of the arguments before. */
function withArgs({ id, tool, effect, timeoutMs }: Proposal, value: Json): Proposal {
  const isObject = value !== null && typeof value === 'object' && !Array.isArray(value)
  return { id, tool, args: isObject ? value : { value }, effect, timeoutMs }
}

function textPart(text: string): Part {
  return { type: 'text', text }
}

function textIn(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
