// Adds one event to a commit, step by step: the parts may change the event, and may react to it.
import type { Outcome } from '../../kernel/content.ts'
import type { OwnerBody } from '../../kernel/event.ts'
import { take } from '../../kernel/fold.ts'
import { settledRun } from '../../kernel/landing.ts'
import type { Session } from '../../kernel/session.ts'
import type { Redactor } from '../redact/redactor.ts'
import type { MoneyPart } from './charges.ts'
import type { CommitDraft } from './commit-draft.ts'
import type { FamilyPart } from './family.ts'
import { stampEvent } from './owner-write.ts'
import type { RequestHooks } from './request-hooks.ts'
import type { RunGuard } from './run-guard.ts'
import type { ConsumerPart } from './tell-consumers.ts'

/**
 * The parts that may add to a commit. An attempt freezes them when it begins (loop/attempt.ts); a part that its session
 * does not need is null.
 */
export type CommitParts = {
  readonly guard: RunGuard | null
  readonly requestHooks: RequestHooks | null
  readonly redactor: Redactor | null
  readonly money: MoneyPart | null
  readonly family: FamilyPart | null
  readonly consumers: ConsumerPart | null
  /** Whether a run with this end must first run its finalizer or sweep its worktrees. */
  readonly hasEndWork: (session: Session, outcome: Outcome) => boolean
}

/** Folds one event into the session. The steps are called by name, and their order is part of a log's meaning. */
export function addEvent(draft: CommitDraft, parts: CommitParts, body: OwnerBody): void {
  const { session, here } = draft
  const { guard, requestHooks, redactor, money, family } = parts
  let written = body
  if (written.type === 'model.started') {
    if (guard) written = guard.limitCalls(session, written)
    if (requestHooks) written = requestHooks.applyChoice(session, written)
  }
  if (redactor) written = redactor.body(written)
  if (money && written.type === 'model.started') written = money.holdForRequest(draft, written)
  if (family && written.type === 'agent.tool_result') written = family.writeOrderResult(session, written)
  money?.chargeLostHolds(draft, written)
  family?.noteEndedCall(draft, written)
  if (written.type === 'run.settled') {
    draft.settled = settledRun(session)
    parts.consumers?.tellSettled(draft, draft.settled)
  }
  const event = stampEvent(session, here, written)
  take(session, event)
  if (event.type === 'model.started') draft.makesRequest = true
  draft.events.push(event)
  guard?.watchProgress(event)
  family?.startChild(draft, event)
}
