// Reads the decision in an answer of the triage: tolerantly where the JSON is, strictly what it says. Pure.
import { textOf } from '../view/shown-text.ts'
import { readTolerantJson } from '../view/tolerant-json.ts'
import { isObject, type JsonObject } from '../view/untrusted-json.ts'
import type { Reply } from '../ports/model.ts'

export const TRIAGE_ACTIONS = ['drop', 'notify', 'react', 'escalate'] as const
/** What can become of an event: it is dropped, somebody is told, or an agent gets a task. */
export type TriageAction = (typeof TRIAGE_ACTIONS)[number]

/** The agents that the triage may name, by action. */
export type TriageTargets = Readonly<Record<'react' | 'escalate', readonly string[]>>

/** What the triage decided about an event, and why. */
export type TriageDecision =
  | { readonly action: 'drop' | 'notify'; readonly reason: string; readonly prompt?: string }
  | {
      readonly action: 'react' | 'escalate'
      readonly reason: string
      readonly target_agent: string
      readonly prompt: string
    }

const PROMPT_CHARS_MAX = 4_000
const REASON_CHARS_MAX = 500

/** The decision, or a sentence that says what is wrong with the answer. */
export type DecisionReading =
  | { readonly ok: true; readonly decision: TriageDecision }
  | { readonly ok: false; readonly wrong: string }

export function readTriageDecision({ parts, calls, finish }: Reply, targets: TriageTargets): DecisionReading {
  if (calls.length > 0) return wrong('it asked for a tool, and there is none')
  const value = readTolerantJson(textOf(parts), finish === 'length')
  if (!isObject(value)) return wrong('it holds no JSON object')
  const action = actionIn(value)
  if (action === null) return wrong(`"action" must be one of ${TRIAGE_ACTIONS.join(', ')}`)
  const { reason } = value
  if (typeof reason !== 'string' || reason.trim() === '') return wrong('"reason" must be a text')
  return checkFields(action, reason.trim().slice(0, REASON_CHARS_MAX), value, targets)
}

function checkFields(
  action: TriageAction,
  reason: string,
  { target_agent: target, prompt }: JsonObject,
  targets: TriageTargets,
): DecisionReading {
  if (prompt !== undefined && prompt !== null && typeof prompt !== 'string') return wrong('"prompt" must be a text')
  const said = typeof prompt === 'string' ? prompt.trim() : ''
  if (said.length > PROMPT_CHARS_MAX) return wrong(`"prompt" may have ${PROMPT_CHARS_MAX} characters`)
  if (action === 'drop' || action === 'notify')
    return { ok: true, decision: said === '' ? { action, reason } : { action, reason, prompt: said } }
  const known = targets[action]
  if (typeof target !== 'string' || !known.includes(target))
    return wrong(
      known.length === 0
        ? `no agent is configured for "${action}"`
        : `"target_agent" for "${action}" must be one of ${known.join(', ')}`,
    )
  if (said === '') return wrong(`"${action}" needs a "prompt"`)
  return { ok: true, decision: { action, reason, target_agent: target, prompt: said } }
}

function actionIn({ action }: JsonObject): TriageAction | null {
  if (typeof action !== 'string') return null
  const word = action.trim().toLowerCase()
  return TRIAGE_ACTIONS.find((known) => known === word) ?? null
}

function wrong(what: string): DecisionReading {
  return { ok: false, wrong: what }
}
