// Makes a session a case: what people wrote there becomes the input, and what came of it what is expected. It reads the
// session, and changes nothing.
import { Fault } from '../kernel/failure.ts'
import type { Json } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import type { Session } from '../sessions/verbs.ts'
import { CallLog } from '../view/call-log.ts'
import { isChildId } from '../view/ids.ts'
import { textOf } from '../view/shown-text.ts'
import { type EvalCase, whyNotCaseId } from './eval-case.ts'

/** What `caseOf` finds in a session. A scorer takes of it what it needs: `calls(({ expected }) => expected.calls)`. */
export type CaseExpectation = {
  /** How the last run ended. `open`: it has not. */
  readonly status: 'completed' | 'limit' | 'halted' | 'failed' | 'interrupted' | 'open'
  /** The last answer: as data if the agent has a form for it, otherwise as text. */
  readonly answer: Json
  /** The calls of the session itself, in order, with the arguments that they ran with. */
  readonly calls: readonly { readonly tool: string; readonly args: Json }[]
}

/** `id`: default, the session's with every character that a case cannot have replaced. */
export async function caseOf(session: Session, id?: string): Promise<EvalCase> {
  const events: Event[] = []
  for (let after: number | null = 0; after !== null; ) {
    const page: Awaited<ReturnType<Session['events']>> = await session.events({ after })
    events.push(...page.events)
    after = page.next
  }
  return caseOfLog(session.id, events, id)
}

/**
 * The same from the events of a session. Pure, so a page can do it too. Messages that sessions
 * wrote are left out, such as reports of children and grades of an outcome. Only a child begins with one: its task.
 */
export function caseOfLog(session: string, events: readonly Event[], id?: string): EvalCase {
  const messages = events.filter((event) => event.type === 'user.message')
  const said = messages.filter(({ by }, i) => i === 0 || isChildId(session) || !by?.startsWith('session:'))
  const input = said.map(({ parts }) => textOf(parts)).filter((text) => text.trim() !== '')
  if (input.length === 0)
    throw new Fault('invalid_input', `Session ${session} has no message with a text, so it cannot be a case.`)
  const [only] = input
  const name = id ?? session.replace(/[^A-Za-z0-9_-]+/g, '-').slice(0, 60)
  const wrong = whyNotCaseId(name, 'id', 'a case')
  if (wrong !== null) throw new Fault('invalid_input', `The id of a case ${wrong}.`)
  const expected = expectationIn(events) as unknown as Json
  return { id: name, input: input.length === 1 && only !== undefined ? only : input, expected, recording: session }
}

function expectationIn(events: readonly Event[]): CaseExpectation {
  const log = new CallLog()
  for (const event of events) log.take(event)
  const calls = log.all
    .filter(({ reply }) => reply.verdict.type === 'continue')
    .map(({ proposal, edit }) => ({ tool: proposal.tool, args: edit?.args ?? proposal.args }))
  const end = events.findLast((event) => event.type === 'run.settled')
  const last = events.findLast((event) => event.type === 'agent.message')
  const output = (last?.verdict.type === 'final' ? last.verdict.output : null) ?? null
  const answer = typeof output === 'string' || output === null ? textOf(last?.parts ?? []) : output
  return { status: end?.outcome.type ?? 'open', answer, calls }
}
