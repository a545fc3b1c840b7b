// Decisions and answers of people. What was shown is what is decided: a decision without the digest of that is refused. Who decides, and
// in which role, is said by the token.
import { type Event, Fault, type Json } from '../../kernel/index.ts'
import { ANY_ROLE } from '../../mcp/caller.ts'
import { type Asked, cardOf, type Given, addDriver } from '../host.ts'
import { checkRole } from '../checks.ts'
import { Refused } from '../refusals.ts'
import type { AnswerBody, BudgetBody, DecisionBody, Principal, WireReceipt } from '../wire.ts'

const BUDGET = 'budget'

export async function decide(asked: Asked): Promise<Given> {
  const card = await cardOf(asked)
  const { session } = card
  const body = asked.body as DecisionBody & BudgetBody
  if (body.callId === BUDGET) return raise(asked, session, body)
  if (body.usd !== undefined) throw new Refused(400, 'invalid_input', 'Dollars are decided for the call "budget" only.')
  if (body.digest === undefined)
    throw new Refused(400, 'invalid_input', 'A decision needs the digest of the call as it was shown: digest.')
  return { json: addDriver(asked.host, card, await decided(asked, session, body)) }
}

async function raise(asked: Asked, session: string, { allow, usd, why, sessionId }: BudgetBody): Promise<Given> {
  checkRole(asked.principal, 'admin')
  const said = { ...(usd === undefined ? {} : { usd }), ...(why === undefined ? {} : { why }) }
  const to = sessionId === undefined ? {} : { sessionId }
  const harness = await asked.host.harnessOf(await cardOf(asked))
  const by = asked.principal.name
  const receipt = await harness.session(session, { stored: true }).decide({ callId: BUDGET, allow, by, ...said, ...to })
  return { json: receipt satisfies WireReceipt }
}

async function decided(asked: Asked, session: string, body: DecisionBody): Promise<WireReceipt> {
  const { host, principal } = asked
  const { callId, allow, digest, why, args, sessionId = session } = body
  // An edit is checked where the tools of the session are.
  const harness = args === undefined ? host.harness : await host.harnessOf(await cardOf(asked))
  const handle = harness.session(session, { stored: true })
  try {
    const { pending } = await handle.state()
    const call = pending.find((one) => one.callId === callId && one.sessionId === sessionId)
    // Also for a call that does not wait yet: it may when the decision comes.
    const role = roleFor(principal, call?.roles ?? [], body.role)
    const said = {
      ...(why === undefined ? {} : { why }),
      ...(role === undefined ? {} : { role }),
      ...(args === undefined ? {} : { args }),
      ...shownIn(body),
    }
    return await handle.decide({ callId, sessionId, allow, digest, by: principal.name, ...said })
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'decision_stale') throw error
    const first = await firstDecision(asked, sessionId, callId)
    if (first === null) throw error
    const { seq, by, at } = first
    // The same person says the same again: an answer that was lost.
    const same = first.allow === allow && first.digest === digest && (await hasArgs(asked, sessionId, first, args))
    if (by === principal.name && same) return { eventId: `${sessionId}:${seq}`, seq, duplicate: true, queued: false }
    const what = `${by} ${first.allow ? 'allowed' : 'denied'} call ${callId} at ${new Date(at).toISOString()}`
    throw new Refused(409, 'decision_stale', `${what}. The first decision stands.`)
  }
}

/** What the caller hands back of the question: the verb refuses it if the question is another. */
function shownIn({ tool, class: kind, n, roles }: DecisionBody): object {
  const shown = { tool, class: kind, n, roles }
  return Object.fromEntries(Object.entries(shown).filter(([, value]) => value !== undefined))
}

/** Whether a confirmation is for these arguments: those of its edit, or without one those of the call. */
async function hasArgs({ host }: Asked, session: string, { call, edit }: Confirmation, args?: Json): Promise<boolean> {
  if (args === undefined) return edit === undefined
  if (edit) return JSON.stringify(edit.args) === JSON.stringify(args)
  const [seq = 0, index = 0] = call.split('.').map(Number)
  const [reply] = (await host.store.read(session, seq - 1, 1)).events
  return reply?.type === 'agent.message' && JSON.stringify(reply.calls[index]?.args) === JSON.stringify(args)
}
type Confirmation = Extract<Event, { type: 'user.tool_confirmation' }>

/** Whom the call asks for is checked here: a role that the token does not have is no wrong input. */
function roleFor({ roles }: Principal, wanted: readonly string[], given: string | undefined): string | undefined {
  const has = (role: string): boolean => roles.includes(role) || roles.includes(ANY_ROLE)
  if (given !== undefined && !has(given)) throw new Refused(403, 'forbidden', 'Your token has no such role.')
  if (wanted.length === 0) return given
  const role = given ?? wanted.find(has)
  if (role !== undefined && wanted.includes(role)) return role
  throw new Refused(403, 'forbidden', `This call must be decided by somebody whose role is ${wanted.join(' or ')}.`)
}

const PAGE = 500

async function firstDecision({ host }: Asked, session: string, call: string) {
  const from = Number(call.split('.')[0])
  for (let after = Number.isSafeInteger(from) ? from : 0; ; ) {
    const { events } = await host.store.read(session, after, PAGE)
    for (const event of events) {
      if (event.type === 'user.tool_confirmation' && event.call === call) return event
      if (event.type === 'agent.tool_result' && event.call === call) return null
    }
    if (events.length < PAGE) return null
    after += events.length
  }
}

export async function answer(asked: Asked): Promise<Given> {
  const card = await cardOf(asked)
  const { session } = card
  const { callId, content, ok = true, sessionId = session } = asked.body as AnswerBody
  const by = asked.principal.name
  const receipt = await asked.host.harness
    .session(session, { stored: true })
    .answer({ callId, content, ok, sessionId, by })
  return { json: addDriver(asked.host, card, receipt) satisfies WireReceipt }
}
