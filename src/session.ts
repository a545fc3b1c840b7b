// The verbs of a session in this process. What each promises is said in sessions/verbs.ts; callers know no more than that.
import { eventId } from './view/text.ts'
import type { BlobRef } from './kernel/content.ts'
import { Fault } from './kernel/failure.ts'
import type { Edit } from './kernel/event.ts'
import { type Call, outsideOf } from './kernel/ledger.ts'
import type { Blob, Page } from './ports/store.ts'
import type { Message } from './kernel/transcript.ts'
import type { ContextReport } from './context/report.ts'
import { type Command, commandsOf, interruptOf, type SendOptions } from './sessions/command.ts'
import { interrupted } from './sessions/interrupt.ts'
import {
  checkedDecision,
  checkShown,
  checkUnder,
  confirmationOf,
  type ApprovalDecision,
} from './sessions/approval-decision.ts'
import { checkOwn, elsewhere, toldElsewhere } from './engine/program.ts'
import { headOf } from './riders/children/tree.ts'
import { blobFor } from './view/blobs.ts'
import { BUDGET } from './view/pending.ts'
import type { Input } from './sessions/input.ts'
import type { ChildRow, Spawned, SpawnOptions } from './sessions/children.ts'
import { following } from './sessions/follow/open.ts'
import { answered, checkAnswered, openCall } from './sessions/drive/answer.ts'
import { followRun, heed, streamed } from './sessions/drive/driven.ts'
import { enter, enterAll, tryNow } from './sessions/drive/enter.ts'
import { checkOpen, kick, owned } from './sessions/drive/place.ts'
import type { FoldedState } from './sessions/look/folded.ts'
import { pendingCalls, type PendingCall, pendingOf } from './sessions/look/pending.ts'
import type { SessionState } from './sessions/look/state.ts'
import { attended, followedBy, type Place } from './sessions/await-run.ts'
import type { RunCard } from './sessions/reading.ts'
import type { Result } from './sessions/result.ts'
import { required } from './sessions/run-failed.ts'
import { type UndoneCall, undoing } from './sessions/undo.ts'
import {
  type Answer,
  checkAnswer,
  checkBlob,
  checkFork,
  checkClose,
  checkInterrupt,
  checkResult,
  checkRunOf,
  checkSend,
  checkSteer,
  checkStream,
  type ForkOptions,
  type CloseOptions,
  type InterruptOptions,
  type ResultOptions,
  type RunOptions,
  type SteerOptions,
  type StreamOptions,
} from './sessions/verb-options.ts'
import type {
  CompactedTo,
  CompactOptions,
  Pin,
  Pinned,
  RunStream,
  SentReceipt,
  Session as Verbs,
} from './sessions/verbs.ts'
import { ownId } from './stores/plan/id.ts'

export class SessionHandle implements Verbs {
  readonly id: string
  readonly #place: Place

  constructor(place: Place) {
    this.id = place.id
    this.#place = place
  }

  async send(input: Input, options: SendOptions = {}): Promise<SentReceipt> {
    checkSend(options)
    const { signal } = options
    const receipt = await enter(this.#place, input, options)
    if (receipt.elsewhere !== undefined) return receipt
    if (!signal) kick(this.#place)
    else {
      const followed = { input: receipt.seq, after: receipt.seq - 1 }
      attended(this.#place.worker, (reader) => heed(this.#place, reader, followed, signal)).catch(() => {})
    }
    return receipt
  }

  async steer(commands: readonly Command[], options: SteerOptions = {}): Promise<SentReceipt> {
    checkOpen(this.#place)
    checkSteer(options)
    const said = commandsOf(commands, this.#place.services.random, options)
    if (said.some(({ event }) => event.type === 'user.interrupt' && event.mode === 'stop'))
      return this.interrupt('stop', options)
    const receipt = await enterAll(this.#place, said, options.id)
    if (receipt.elsewhere !== undefined) return receipt
    kick(this.#place)
    const resumes = said.some(({ event }) => event.type === 'user.interrupt' && event.mode === 'resume')
    if (resumes) for (const session of await tryNow(this.#place, options.by)) kick(this.#place, session)
    return receipt
  }

  async run(input?: Input, options: SendOptions & RunOptions = {}): Promise<Result> {
    checkOpen(this.#place)
    checkRunOf(options)
    const { services, worker } = this.#place
    const result = await attended(worker, async (reader) => {
      if (input === undefined) {
        const { began } = await headOf(services.store, this.id)
        const followed = { input: null, after: Math.max(0, began - 1), ...followedBy(options) }
        return followRun(this.#place, reader, followed)
      }
      const { seq } = await enter(this.#place, input, options)
      return heed(this.#place, reader, { input: seq, after: seq - 1, ...followedBy(options) }, options.signal)
    })
    return required(result, options.require)
  }

  stream(input?: Input, options: StreamOptions & SendOptions = {}): RunStream {
    checkStream(options)
    if (input === undefined) return streamed(this.#place, options, async () => null)
    return streamed(this.#place, options, async () => (await enter(this.#place, input, options)).seq)
  }

  follow(...options: Parameters<Verbs['follow']>): ReturnType<Verbs['follow']> {
    return following(this.#place, ...options)
  }

  async messages(): Promise<readonly Message[]> {
    const { messagesOf } = await import('./sessions/look/state.ts')
    return messagesOf(this.#place.services.store, this.id)
  }

  async blob(ref: string | Pick<BlobRef, 'hash'>): Promise<Blob | null> {
    checkOpen(this.#place)
    return blobFor(this.#place.services.store, this.id, checkBlob(ref))
  }

  async state(): Promise<SessionState> {
    checkOpen(this.#place)
    const { stateOf } = await import('./sessions/look/state.ts')
    return stateOf(this.#place.services, this.id)
  }

  async stateAt(seq: number): Promise<FoldedState> {
    checkOpen(this.#place)
    const { foldedAt } = await import('./sessions/look/folded.ts')
    return foldedAt(this.#place.services.store, this.id, seq)
  }

  async card(): Promise<RunCard | null> {
    checkOpen(this.#place)
    const { statusOf } = await import('./sessions/reading.ts')
    return statusOf(this.#place.services.store, this.id)
  }

  async pending(): Promise<readonly PendingCall[]> {
    checkOpen(this.#place)
    const { store } = this.#place.services
    return pendingCalls(store, await pendingOf(store, this.id))
  }

  async result(options: ResultOptions = {}): Promise<Result | null> {
    checkOpen(this.#place)
    checkResult(options)
    const { lastResult } = await import('./sessions/look/last-result.ts')
    return lastResult(this.#place, options.waitMs ?? 0)
  }

  async context(): Promise<ContextReport> {
    const { contextOf } = await import('./sessions/look/state.ts')
    return contextOf(this.#place.services, this.id)
  }

  async decide(given: ApprovalDecision): Promise<SentReceipt> {
    const decision = checkedDecision(given)
    const other = await this.#other(decision)
    if (other) return other.decide(decision)
    if (decision.callId === BUDGET) return this.#raise(decision)
    const { store } = this.#place.services
    const call = await openCall(this.#place, decision.callId, 'asked', 'approval')
    checkShown(decision, call)
    if (decision.under !== undefined) await checkUnder(decision, call, (await headOf(store, this.id)).run?.said)
    const edit = decision.args === undefined ? null : await this.#edit(decision, call)
    return answered(this.#place, confirmationOf(decision, call, store.now(), edit), decision.callId)
  }

  /** The other arguments that a decision gives a call; null if they are those of the call. */
  async #edit(decision: ApprovalDecision, call: Call): Promise<Edit | null> {
    const { services } = this.#place
    const { editOf } = await import('./sessions/edited-call.ts')
    return editOf(services, { id: this.id, head: await headOf(services.store, this.id) }, decision, call)
  }

  /** The child that a decision or an answer is for, if it is one. */
  async #other({ sessionId = this.id }: { readonly sessionId?: string }): Promise<SessionHandle | null> {
    if (sessionId === this.id) return null
    const { checkBelow } = await import('./sessions/children.ts')
    await checkBelow(this.#place.services, this.id, sessionId)
    return new SessionHandle({ ...this.#place, id: sessionId })
  }

  async #raise(decision: ApprovalDecision): Promise<SentReceipt> {
    checkOpen(this.#place)
    const { raise } = await import('./sessions/raise.ts')
    const raised = await raise(this.#place.services, this.id, decision)
    for (const { session } of raised) kick(this.#place, session)
    const { session = this.id, seq = 0 } = raised[0] ?? {}
    return { eventId: eventId(session, seq), seq, duplicate: false, queued: false }
  }

  async answer(answer: Answer): Promise<SentReceipt> {
    const { callId, content, ok = true, by } = answer ?? ({} as Partial<Answer>)
    if (typeof ok !== 'boolean' || typeof content !== 'string')
      throw new Fault('invalid_input', 'An answer has a text as content, and true or false as ok.')
    checkAnswer(answer)
    const other = await this.#other(answer)
    if (other) return other.answer(answer)
    const { proposal } = await openCall(this.#place, callId, 'outside', 'an answer')
    const { child, answers } = outsideOf(proposal) ?? {}
    if (child !== undefined || answers !== undefined)
      throw new Fault('decision_stale', `Call ${callId} waits for its child: only that answers it.`)
    if (ok)
      await checkAnswered(
        this.#place.services,
        (await headOf(this.#place.services.store, this.id)).agent,
        proposal,
        content,
      )
    const id = ownId('answer', callId)
    const said = { type: 'user.custom_tool_result', id, call: callId, ok, content } as const
    return answered(this.#place, by === undefined ? said : { ...said, by }, callId)
  }

  async interrupt(mode: 'stop' | 'pause' = 'stop', options: InterruptOptions = {}): Promise<SentReceipt> {
    checkInterrupt(options)
    const { services } = this.#place
    const event = interruptOf(mode, services.random, options)
    checkOpen(this.#place)
    const { seq, duplicate, woken } = await interrupted(services, this.id, event)
    const told = toldElsewhere(services, await services.store.card(this.id))
    if (told.elsewhere === undefined) for (const session of woken) kick(this.#place, session)
    return { eventId: eventId(this.id, seq), seq, duplicate, queued: false, ...told }
  }

  async undo(run?: number): Promise<readonly UndoneCall[]> {
    return (await owned(this.#place, undoing(this.#place.services, this.id, run))).value
  }

  async pin(what: string | number): Promise<Pinned> {
    const { pinning } = await import('./sessions/pin.ts')
    return (await owned(this.#place, pinning(this.#place.services, this.id, what))).value
  }

  async unpin(what: number | string): Promise<void> {
    const { unpinning } = await import('./sessions/pin.ts')
    await owned(this.#place, unpinning(this.#place.services, this.id, what))
  }

  async pins(): Promise<readonly Pin[]> {
    const { pinsOf } = await import('./sessions/pin.ts')
    return pinsOf(this.#place.services, this.id)
  }

  async compact(options: CompactOptions = {}): Promise<CompactedTo | null> {
    const { compacting } = await import('./sessions/compact.ts')
    return (await owned(this.#place, compacting(this.#place.services, this.id, options))).value
  }

  async spawn(agent: string, prompt: string, options: SpawnOptions = {}): Promise<Spawned> {
    checkOpen(this.#place)
    const { spawn } = await import('./sessions/children.ts')
    const spawned = await spawn(this.#place.services, this.id, agent, prompt, options)
    kick(this.#place, spawned.sessionId)
    return spawned
  }

  async children(): Promise<readonly ChildRow[]> {
    checkOpen(this.#place)
    const { childrenOf } = await import('./sessions/children.ts')
    return childrenOf(this.#place.services, this.id)
  }

  async fork(options: ForkOptions = {}): Promise<Verbs> {
    checkOpen(this.#place)
    checkFork(options)
    const { forked } = await import('./sessions/fork.ts')
    return new SessionHandle({ ...this.#place, id: await forked(this.#place.services, this.id, options) })
  }

  read(after = 0, limit?: number): Promise<Page> {
    return this.#place.services.store.read(this.id, after, limit)
  }

  async close(options: CloseOptions = {}): Promise<void> {
    checkClose(options)
    const { services } = this.#place
    const card = await services.store.card(this.id)
    if (card) checkOwn(services, this.id, card)
    await this.interrupt('stop', options)
    const looked = await this.#place.worker.wake(this.id)
    if (looked.type === 'elsewhere') throw elsewhere(this.id, looked.why)
    await owned(this.#place, async () => ({ value: null, events: [{ type: 'session.closed' }] }))
  }
}
