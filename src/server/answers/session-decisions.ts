// The handlers for decisions and answers of people. A decision must carry the digest of the call as it was shown. The
// deciding person and role come from the token.
import { type Event, Fault, type Json } from '../../kernel/index.ts'
import { ANY_ROLE } from '../../mcp/caller.ts'
import { type ApiRequest, requireCard, type ApiAnswer, addDriverNote } from '../server-host.ts'
import { checkRole } from '../request-checks.ts'
import { HttpRefusal } from '../refusals.ts'
import type { AnswerBody, BudgetBody, DecisionBody, Principal, WireReceipt } from '../wire.ts'

const BUDGET = 'budget'

export async function handleDecide(asked: ApiRequest): Promise<ApiAnswer> {
  const card = await requireCard(asked)
  const { session } = card
  const body = asked.body as DecisionBody & BudgetBody
  if (body.callId === BUDGET) return decideBudget(asked, session, body)
  if (body.usd !== undefined)
    throw new HttpRefusal(400, 'invalid_input', 'Dollars are decided for the call "budget" only.')
  if (body.digest === undefined)
    throw new HttpRefusal(400, 'invalid_input', 'A decision needs the digest of the call as it was shown: digest.')
  return { json: addDriverNote(asked.host, card, await decideCall(asked, session, body)) }
}

async function decideBudget(
  asked: ApiRequest,
  session: string,
  { allow, usd, why, sessionId }: BudgetBody,
): Promise<ApiAnswer> {
  checkRole(asked.principal, 'admin')
  const said = { ...(usd === undefined ? {} : { usd }), ...(why === undefined ? {} : { why }) }
  const to = sessionId === undefined ? {} : { sessionId }
  const harness = await asked.host.harnessOf(await requireCard(asked))
  const by = asked.principal.name
  const receipt = await harness.session(session, { stored: true }).decide({ callId: BUDGET, allow, by, ...said, ...to })
  return { json: receipt satisfies WireReceipt }
}

async function decideCall(asked: ApiRequest, session: string, body: DecisionBody): Promise<WireReceipt> {
  const { host, principal } = asked
  const { callId, allow, digest, why, args, sessionId = session } = body
  // Edited arguments are checked by the harness that has the session's tools.
  const harness = args === undefined ? host.harness : await host.harnessOf(await requireCard(asked))
  const handle = harness.session(session, { stored: true })
  try {
    const { pending } = await handle.status()
    const call = pending.find((one) => one.callId === callId && one.sessionId === sessionId)
    // The role is checked even if the call does not wait yet: it may wait when the decision arrives.
    const role = decisionRole(principal, call?.roles ?? [], body.role)
    const said = {
      ...(why === undefined ? {} : { why }),
      ...(role === undefined ? {} : { role }),
      ...(args === undefined ? {} : { args }),
      ...shownFields(body),
    }
    return await handle.decide({ callId, sessionId, allow, digest, by: principal.name, ...said })
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'decision_stale') throw error
    const first = await findFirstDecision(asked, sessionId, callId)
    if (first === null) throw error
    const { seq, by, at } = first
    // The same decision by the same person is a retry whose answer was lost.
    const same = first.allow === allow && first.digest === digest && (await hasArgs(asked, sessionId, first, args))
    if (by === principal.name && same) return { eventId: `${sessionId}:${seq}`, seq, duplicate: true, queued: false }
    const what = `${by} ${first.allow ? 'allowed' : 'denied'} call ${callId} at ${new Date(at).toISOString()}`
    throw new HttpRefusal(409, 'decision_stale', `${what}. The first decision stands.`)
  }
}

/** The fields of the question that the caller hands back. `handleDecide` refuses them if the question has changed. */
function shownFields({ tool, class: kind, n, roles }: DecisionBody): object {
  const shown = { tool, class: kind, n, roles }
  return Object.fromEntries(Object.entries(shown).filter(([, value]) => value !== undefined))
}

/** Whether a confirmation is for these arguments: its edited arguments or, without an edit, those of the call. */
async function hasArgs(
  { host }: ApiRequest,
  session: string,
  { call, edit }: Confirmation,
  args?: Json,
): Promise<boolean> {
  if (args === undefined) return edit === undefined
  if (edit) return JSON.stringify(edit.args) === JSON.stringify(args)
  const [seq = 0, index = 0] = call.split('.').map(Number)
  const [reply] = (await host.store.read(session, seq - 1, 1)).events
  return reply?.type === 'agent.message' && JSON.stringify(reply.calls[index]?.args) === JSON.stringify(args)
}
type Confirmation = Extract<Event, { type: 'user.tool_confirmation' }>

/** The role that the call requires is checked here: a role that the token lacks is `forbidden`, not invalid input. */
function decisionRole({ roles }: Principal, wanted: readonly string[], given: string | undefined): string | undefined {
  const has = (role: string): boolean => roles.includes(role) || roles.includes(ANY_ROLE)
  if (given !== undefined && !has(given)) throw new HttpRefusal(403, 'forbidden', 'Your token has no such role.')
  if (wanted.length === 0) return given
  const role = given ?? wanted.find(has)
  if (role !== undefined && wanted.includes(role)) return role
  throw new HttpRefusal(403, 'forbidden', `This call must be decided by somebody whose role is ${wanted.join(' or ')}.`)
}

const PAGE = 500

async function findFirstDecision({ host }: ApiRequest, session: string, call: string) {
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

export async function handleAnswer(asked: ApiRequest): Promise<ApiAnswer> {
  const card = await requireCard(asked)
  const { session } = card
  const { callId, content, ok = true, sessionId = session } = asked.body as AnswerBody
  const by = asked.principal.name
  const receipt = await asked.host.harness
    .session(session, { stored: true })
    .answer({ callId, content, ok, sessionId, by })
  return { json: addDriverNote(asked.host, card, receipt) satisfies WireReceipt }
}
