// The state of a session on a server, computed from its folded log and its card as the library computes it.
import { next, type Rest, type Session } from '../kernel/index.ts'
import type { PendingCall, PursuitStatus, RestReport, RunCard, StatusParts } from '../index.ts'
import { readRequestTokens } from '../context/request-tokens.ts'
import { buildSessionState, readLastRun, type SessionState } from '../sessions/look/session-state.ts'
import type { PinsAnswer, SessionAnswer, WireCard } from '../server/wire.ts'
import { runPhase } from '../view/session-phase.ts'
import { readRemoteResult, type RemoteSession } from './remote-run.ts'
import type { RouteRequest } from './server-connection.ts'
import { unsupportedFault } from './unsupported.ts'

function readRemoteSession({ id, wires }: RemoteSession, query: RouteRequest['query'] = {}): Promise<SessionAnswer> {
  return wires.json('session', { params: { id }, query })
}

/** The window of the model is known only while its session rests: the result has it. */
async function readRemoteState(remote: RemoteSession): Promise<SessionState> {
  const { id, logs } = remote
  const session = await logs.headOf(id)
  const { card, pending, now } = await readRemoteSession(remote)
  const result = await readRemoteResult(remote, 0)
  const tokens = result ? null : await readRequestTokens(logs, id, session.seq)
  return buildSessionState({
    id,
    session,
    now,
    trouble: card.trouble?.reason,
    treeCost: treeCostOf(card),
    last: result ?? (await readLastRun(logs, id, session)),
    context: result ? result.context : tokens === null ? null : { tokens, window: null },
    // Sound: the server sends the library's calls as JSON.
    pending: pending as readonly PendingCall[],
  })
}

/** The state, and the parts that routes carry. */
export async function readRemoteStatus(
  remote: RemoteSession,
  include: readonly (keyof StatusParts)[],
): Promise<SessionState & Partial<StatusParts>> {
  const { id, wires, logs } = remote
  for (const part of ['contextReport', 'children'] as const)
    if (include.includes(part)) throw unsupportedFault(`the part "${part}" of a status`)
  const status: SessionState & { -readonly [Part in keyof StatusParts]?: StatusParts[Part] } = {
    ...(await readRemoteState(remote)),
  }
  if (include.includes('pins')) status.pins = (await wires.json<PinsAnswer>('pins', { params: { id } })).pins
  if (include.includes('pursuit')) {
    const { pursuit } = await readRemoteSession(remote, { include: 'pursuit' })
    // Sound: the server sends the library's state as JSON.
    status.pursuit = pursuit as PursuitStatus
  }
  if (!include.includes('card') && !include.includes('accounts')) return status
  const { card, accounts, now } = await readRemoteSession(remote)
  if (include.includes('accounts')) status.accounts = accounts
  if (include.includes('card')) status.card = runCard(card, await logs.headOf(id), now)
  return status
}

function runCard(card: WireCard, session: Session, now: number): RunCard {
  const rests = next(session, { now, epoch: session.epoch }).type === 'rest'
  const run = { run: session.began || null, phase: runPhase(session, rests) }
  const treeCost = treeCostOf(card)
  return { ...card, treeCost, status: rests ? card.status : 'running', ...run }
}

function treeCostOf({ treeCost, treeCostUsd }: WireCard): number {
  return treeCost ?? Math.round(treeCostUsd * MICROS)
}

/** Asks the server to look at the session, and waits until it rests. */
export async function driveRemotely(remote: RemoteSession): Promise<RestReport> {
  const { id, wires, logs } = remote
  await wires.json('wake', { params: { id } })
  for (;;) {
    const { now, card } = await readRemoteSession(remote)
    if (card.elsewhere !== undefined) return { type: 'elsewhere', why: card.elsewhere }
    const session = await logs.headOf(id)
    const decision = next(session, { now, epoch: session.epoch })
    const result = decision.type === 'rest' ? await readRemoteResult(remote, 0) : await readRemoteResult(remote, WAIT_S)
    if (decision.type === 'rest' && (result !== null || session.began === 0)) return restReport(decision)
  }
}

const MICROS = 1_000_000
const WAIT_S = 25

function restReport({ waiting, until }: Rest): RestReport {
  return { type: 'rested', waiting, until }
}
