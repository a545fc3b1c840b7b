// One trial: a session that is opened under its id, driven until it ends or waits for somebody who does not answer, and
// read back. A trial that an earlier process finished is only read.
import { Fault } from '../kernel/failure.ts'
import type { Result } from '../runtime/state/run-result.ts'
import { withTreeCost } from '../stores/plan/tree-cost.ts'
import { BUDGET, type Pending } from '../view/pending-calls.ts'
import type { Session } from '../sessions/verbs.ts'
import { readLog } from '../view/session-log.ts'
import { isObject } from '../view/untrusted-json.ts'
import type { EvalCase } from './eval-case.ts'
import { evalLabels, type TrialName, trialSession } from './eval-ids.ts'
import type { PeopleAnswer, PeopleFunction, Suite } from './suite.ts'
import { readTrial, type Trial, type TrialLogs } from './trial.ts'

export type PlannedTrial = TrialName & { readonly of: EvalCase }
/** `error`: why this says nothing about the agent. */
export type TrialEnd = { readonly trial: Trial | null; readonly error: string | null }

/** How often people are asked in one trial, so that an agent that asks for ever comes to an end. */
const ROUNDS_MAX = 100
/** Who decides, in the log. */
const PEOPLE = 'eval'

/** `done`: an earlier process finished it. `usd`: what it has cost so far, with its sessions that ended in an error. */
export type FoundTrial = PlannedTrial & { readonly session: string; readonly done: boolean; readonly usd: number }

/**
 * The session of the trial: a new one, the one that an earlier process left in the middle, or one that it finished.
 * After an error that was not the agent's, the next run of the suite takes another one.
 */
export async function findTrial(logs: TrialLogs, planned: PlannedTrial): Promise<FoundTrial> {
  let usd = 0
  for (let again = 0; ; again++) {
    const session = trialSession(planned, again)
    const card = await logs.store.card(session)
    if (card === null) return { ...planned, session, done: false, usd }
    const [{ treeCostUsd } = { treeCostUsd: 0 }] = await withTreeCost(logs.store, [card])
    usd += treeCostUsd
    const isOver = card.status === 'idle' && card.outcome !== null && card.due === null
    if (!isOver || !(await isWhole(logs, session, planned.of))) return { ...planned, session, done: false, usd }
    if (card.outcome === 'completed' || (await whyErrored(logs, session)) === null)
      return { ...planned, session, done: true, usd }
  }
}

/** Whether every text of the case was answered: a process may have ended between two of them. */
async function isWhole({ store }: TrialLogs, session: string, { input }: EvalCase): Promise<boolean> {
  if (typeof input === 'string') return true
  const runs = (await readLog(store, session)).flatMap((event) => (event.type === 'run.settled' ? [event.outcome] : []))
  return runs.length >= input.length || runs.at(-1)?.type !== 'completed'
}

async function whyErrored({ harness }: TrialLogs, session: string): Promise<string | null> {
  const result = await harness.session(session, { stored: true }).result()
  return result === null ? null : errorOf(result)
}

/** Drives the session to its end. */
export async function runTrial(
  logs: TrialLogs,
  { agentName, people }: Pick<Suite, 'agentName' | 'people'>,
  { of, n, suite, session }: FoundTrial,
): Promise<TrialEnd> {
  const labels = { ...evalLabels('trial', suite), 'eval-case': of.id }
  const as = agentName === undefined ? {} : { agent: agentName }
  const handle = await logs.harness.open({ id: session, reuse: true, labels, ...as })
  const result = await answerAll(handle, { of, people: decider(people) })
  return { trial: await readTrial(logs, { of, n, session }, result), error: errorOf(result) }
}

type Talk = { readonly of: EvalCase; readonly people: PeopleFunction }

async function answerAll(session: Session, talk: Talk): Promise<Result> {
  const texts = typeof talk.of.input === 'string' ? [talk.of.input] : talk.of.input
  let last: Result | null = null
  for (const [i, text] of texts.entries()) {
    last = await decideAll(session, talk, await session.run(text, { id: `input:${i}` }))
    if (last.status !== 'completed') break
  }
  return last as Result
}

async function decideAll(session: Session, { of, people }: Talk, first: Result): Promise<Result> {
  let result = first
  for (let round = 0; round < ROUNDS_MAX && result.status === 'requires_action'; round++) {
    let said = 0
    for (const pending of result.pending) if (await decideOne(session, pending, await people(pending, of))) said += 1
    if (said === 0) return result
    result = await session.run()
  }
  return result
}

async function decideOne(
  session: Session,
  { callId, sessionId, digest }: Pending,
  said: PeopleAnswer | undefined,
): Promise<boolean> {
  // Money is the suite's, and not for the people of a case to give.
  if (said === null || said === undefined || callId === BUDGET) return false
  if (!isObject(said))
    throw new Fault(
      'invalid_config',
      'The people of a suite give { allow: true }, { content } for a question, or null.',
    )
  const call = { callId, sessionId, by: PEOPLE }
  if ('content' in said) await session.answer({ ...call, ...said })
  else await session.decide({ ...call, ...(digest === undefined ? {} : { digest }), ...said })
  return true
}

/** `'allow'` and `'deny'` decide approvals. A question is left open, since neither word answers it. */
function decider(people: Suite['people']): PeopleFunction {
  if (typeof people === 'function') return people
  if (people === undefined) return () => null
  return ({ needs }) => (needs === 'approval' ? { allow: people === 'allow' } : null)
}

const NOT_THE_AGENT = ['provider_error', 'prepare_failed', 'crashed_too_often', 'hook_error']

/** Why the end says nothing about the agent; null if it does. */
export function errorOf(result: Result): string | null {
  if (result.status === 'failed')
    return NOT_THE_AGENT.includes(result.stopReason) ? `${result.stopReason}: ${result.failure.message}` : null
  if (result.status === 'sleeping') return `The provider did not answer in time: ${result.reason ?? 'no reason'}`
  if (result.status === 'interrupted') return 'It was interrupted.'
  return result.status === 'limit' && result.limit === 'usd'
    ? 'It could have cost more than one trial may, or than the budget of its agent has left. Give the suite a larger trialUsd, or the agent a larger budget.'
    : null
}
