// Reads one session without driving it: its state, its messages and its context, all from the store.
import { Fault } from '../../kernel/failure.ts'
import type { Message } from '../../kernel/transcript.ts'
import type { CompleteStore } from '../../ports/store.ts'
import { cloneJson } from '../../runtime/state/clone-json.ts'
import type { Services } from '../../runtime/state/runtime-ports.ts'
import { type ContextReport, buildContextReport } from '../../context/context-report.ts'
import { readRunStart } from '../../runtime/state/last-start.ts'
import { lookUpWindow } from '../../runtime/state/model-window.ts'
import { readSessionHead } from '../../runtime/state/session-tree.ts'
import { sessionMissingFault } from '../../stores/plan/plan-writes.ts'
import { withTreeCost } from '../../stores/plan/tree-cost.ts'
import { readTranscript, upcomingSeqs } from '../../view/session-history.ts'
import { readContextFill, findSessionModel } from '../meter.ts'
import type { StatusParts } from '../verb-options.ts'
import { addPreviews, pendingInTree } from './pending.ts'
import { buildSessionState, readLastRun, type SessionState } from './session-state.ts'

async function readSessionState(services: Services, id: string): Promise<SessionState> {
  const { store } = services
  const session = await readSessionHead(store, id)
  const card = await store.card(id)
  const [cost] = card === null ? [] : await withTreeCost(store, [card])
  const { agent, seq } = session
  // Copied, because a store in memory hands out the objects that the worker uses.
  return cloneJson(
    buildSessionState({
      id,
      session,
      now: store.now(),
      trouble: card?.trouble?.reason,
      treeCost: cost?.treeCost,
      last: await readLastRun(store, id, session),
      context: await readContextFill(services, { session: id, agent, seq }),
      pending: await addPreviews(store, await pendingInTree(store, id)),
    }),
  )
}

/** The state, and the parts that cost a read of their own. */
export async function readSessionStatus(
  services: Services,
  id: string,
  include: readonly (keyof StatusParts)[],
): Promise<SessionState & Partial<StatusParts>> {
  const status: SessionState & { -readonly [Part in keyof StatusParts]?: StatusParts[Part] } = {
    ...(await readSessionState(services, id)),
  }
  if (include.includes('card')) status.card = await readExistingCard(services.store, id)
  if (include.includes('contextReport')) status.contextReport = await readContextReport(services, id)
  if (include.includes('pins')) status.pins = await (await import('../pin.ts')).listPins(services, id)
  if (include.includes('children')) status.children = await (await import('../children.ts')).listChildRows(services, id)
  if (include.includes('accounts'))
    status.accounts = await (await import('./accounts.ts')).readMoneyAccounts(services, [], id)
  if (include.includes('pursuit'))
    status.pursuit = await (await import('./read-pursuit.ts')).readPursuitStatus(services.store, id)
  return status
}

async function readExistingCard(store: CompleteStore, id: string): Promise<StatusParts['card']> {
  const card = await (await import('../reading.ts')).readRunCard(store, id)
  if (card === null) throw sessionMissingFault(id)
  return card
}

/** The messages that a model would read if it were asked now. */
export async function readConversation(store: CompleteStore, id: string): Promise<readonly Message[]> {
  const session = await readSessionHead(store, id)
  const { seq } = session
  const { transcript } = await readTranscript(store, { id, upTo: seq, session })
  const shows = upcomingSeqs(session, store.now())
  transcript.take({ seq: seq + 1, at: 0, epoch: 0, type: 'model.started', shows })
  return transcript.messages
}

/** The contents of the next request. */
async function readContextReport(services: Services, id: string): Promise<ContextReport> {
  const { store } = services
  const { agent, began } = await readSessionHead(store, id)
  const model = await findSessionModel(services, agent, await lastRunOptions(services, id, began))
  if (model === 'workflow')
    throw new Fault('invalid_input', `Session ${id} is a workflow: no model reads it, so it has no context.`)
  return buildContextReport(store, id, await lookUpWindow(services, model))
}

/** The options of the last run, by hash, if it had any. */
async function lastRunOptions({ store }: Services, id: string, began: number): Promise<string | undefined> {
  return began === 0 ? undefined : (await readRunStart(store, id, began))?.options
}
