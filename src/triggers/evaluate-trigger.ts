// Asks the models of a triage for a decision: the first, the first once more, the second. A model call without tools,
// under the budget of the call that asks. What is done about the decision is in trigger-graph.ts.
import type { Clock } from '../ports/system.ts'
import type { Model, ModelFailure, Reply, Request } from '../ports/model.ts'
import { accountOverBudget } from '../runtime/money/holds.ts'
import type { ToolContext } from '../tools/core/tool.ts'
import { readTriageDecision, type TriageDecision, type TriageTargets } from './triage-decision.ts'
import { correctedQuestion, type ShownEvent, triageQuestion } from './triage-prompt.ts'

/** The ways that lead to a decision. */
export const TRIAGE_PATHS = ['first', 'first_again', 'second', 'cached'] as const
/** Which answer decided about an event: the first of the model, its second, that of the other model, or an earlier one. */
export type TriagePath = (typeof TRIAGE_PATHS)[number]

export type TriageSetup = {
  readonly first: Model
  readonly second: Model | null
  readonly instructions: string
  readonly targets: TriageTargets
}

export type TriageEvaluation =
  | { readonly type: 'decided'; readonly decision: TriageDecision; readonly path: TriagePath }
  /** No model gave a decision. `account` names the budget that was used up, if one was. */
  | { readonly type: 'undecided'; readonly reason: string; readonly account?: string }
  /** Asking again cannot help before a person has changed something. */
  | { readonly type: 'refused'; readonly reason: string }

type Asking = { readonly setup: TriageSetup; readonly event: ShownEvent; readonly context: ToolContext }
type ArmOutcome = TriageEvaluation & { readonly again?: { readonly afterMs: number; readonly wrong: string | null } }

const AGAIN_MS = 500
const AGAIN_MS_MAX = 30_000
const ANSWER_TOKENS_MAX = 2_000

export async function evaluateTrigger(asking: Asking): Promise<TriageEvaluation> {
  const { first, second } = asking.setup
  let last = await askArm(asking, { model: first, path: 'first', wrong: null })
  if (last.type !== 'undecided') return last
  if (last.again) {
    await waitOrStop(asking.context, last.again.afterMs)
    last = await askArm(asking, { model: first, path: 'first_again', wrong: last.again.wrong })
    if (last.type !== 'undecided') return last
  }
  if (second === null) return last
  const other = await askArm(asking, { model: second, path: 'second', wrong: null })
  if (other.type !== 'undecided') return other
  return { ...other, reason: `${last.reason}; ${other.reason}` }
}

type Arm = { readonly model: Model; readonly path: TriagePath; readonly wrong: string | null }

async function askArm(asking: Asking, { model, path, wrong }: Arm): Promise<ArmOutcome> {
  const { setup, event, context } = asking
  context.signal.throwIfAborted()
  const text = wrong === null ? triageQuestion(event) : correctedQuestion(event, wrong)
  const request: Request = {
    // No provider may take this for the conversation of the session.
    session: `${context.key}/${path}`,
    seq: 0,
    instructions: setup.instructions,
    tools: [],
    allow: 'none',
    boost: false,
    settings: { outputTokensMax: ANSWER_TOKENS_MAX },
    messages: [{ role: 'user', seq: 0, parts: [{ type: 'text', text }] }],
  }
  const answer = await context.askModel(model, request)
  context.signal.throwIfAborted()
  return answer.type === 'reply' ? readArm(answer, model, path, setup.targets) : failedArm(answer, model)
}

function readArm(reply: Reply, { name }: Model, path: TriagePath, targets: TriageTargets): ArmOutcome {
  // A model that declines an event would decline it again.
  if (reply.finish === 'refusal') return { type: 'undecided', reason: `${name} declined to answer` }
  const read = readTriageDecision(reply, targets)
  if (read.ok) return { type: 'decided', decision: read.decision, path }
  const reason = `the answer of ${name} could not be used: ${read.wrong}`
  return { type: 'undecided', reason, again: { afterMs: 0, wrong: read.wrong } }
}

/** Reasons name the model and the class of the failure. A provider's own words may quote a key. */
function failedArm(failed: ModelFailure, { name }: Model): ArmOutcome {
  const account = accountOverBudget(failed)
  if (account !== null) return { type: 'undecided', reason: `the budget of the ${account} is used up`, account }
  if (failed.class === 'auth')
    return { type: 'refused', reason: `${name} refused its key or its account. Mend that, and retry the trigger.` }
  const { retryAfterMs: afterMs = AGAIN_MS } = failed
  const reason = `${name} failed: ${failed.class}`
  return afterMs <= AGAIN_MS_MAX
    ? { type: 'undecided', reason, again: { afterMs, wrong: null } }
    : { type: 'undecided', reason }
}

type Waiting = { readonly clock: Clock; readonly signal: AbortSignal }

/** Rejects when the signal is aborted. */
export async function waitOrStop({ clock, signal }: Waiting, ms: number): Promise<void> {
  if (ms > 0)
    await new Promise<void>((resolve) => {
      const stop = (): void => {
        cancel()
        signal.removeEventListener('abort', stop)
        resolve()
      }
      const cancel = clock.timer(ms, stop)
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) stop()
    })
  signal.throwIfAborted()
}
