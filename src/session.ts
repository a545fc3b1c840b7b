// The verbs of a session in this process. sessions/verbs.ts documents each promise; callers rely on nothing else.
import { eventId } from './view/shown-text.ts'
import type { BlobRef } from './kernel/content.ts'
import { Fault } from './kernel/failure.ts'
import type { ArgumentsEdit } from './kernel/event.ts'
import { type Call, outsideOf } from './kernel/ledger.ts'
import type { Blob } from './ports/store.ts'
import type { Message } from './kernel/transcript.ts'
import { type Command, parseCommands, buildInterrupt, type LaterOptions, type SendOptions } from './sessions/command.ts'
import { isCommands } from './sessions/is-commands.ts'
import { sendInterrupt, stopGrader } from './sessions/interrupt.ts'
import { refuseLane } from './sessions/lane-guard.ts'
import {
  checkDecision,
  checkShownCall,
  checkUnder,
  buildConfirmation,
  type ApprovalDecision,
} from './sessions/approval-decision.ts'
import { checkOwnSession, elsewhereFault, elsewhereReceipt } from './runtime/state/program.ts'
import { readSessionHead } from './runtime/state/session-tree.ts'
import { blobFor } from './view/readable-blobs.ts'
import { BUDGET } from './view/pending-calls.ts'
import type { Input } from './sessions/input.ts'
import type { SpawnResult, SpawnOptions } from './sessions/children.ts'
import { followSession } from './sessions/follow/open.ts'
import { recordAnswer, checkAnswerFits, findOpenCall } from './sessions/drive/answer.ts'
import { followRun, openStream, runInput } from './sessions/drive/driven.ts'
import { sendMessage, sendCommands, retryNow } from './sessions/drive/enter.ts'
import { checkHarnessOpen, wakeSession, runOwnerAction } from './sessions/drive/place.ts'
import type { FoldedState } from './sessions/look/folded.ts'
import type { SessionState } from './sessions/look/session-state.ts'
import { keepStoreOpenFor, type SessionAccess } from './sessions/await-run.ts'
import type { EventPage, EventsFilter } from './sessions/event-page.ts'
import type { PursueOptions } from './sessions/pursuit.ts'
import type { Result } from './runtime/state/run-result.ts'
import type { UndoneCall } from './sessions/undo.ts'
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
  checkCommands,
  checkEvents,
  checkPin,
  checkStatus,
  checkStream,
  type ForkOptions,
  type CloseOptions,
  type InterruptOptions,
  type RenamedSession,
  type RenameOptions,
  type ResultOptions,
  type RunOptions,
  type CommandOptions,
  type ScheduledWake,
  type ScheduleOptions,
  type StreamOptions,
  type UnscheduleOptions,
} from './sessions/verb-options.ts'
import type {
  CompactedTo,
  CompactOptions,
  PursuitReceipt,
  RunStream,
  SentReceipt,
  Session as Verbs,
  SessionStatus,
} from './sessions/verbs.ts'
import type { PinReceipt } from './sessions/verb-options.ts'
import type { PinOptions, StatusOptions, StatusParts } from './sessions/verb-options.ts'
import { harnessId } from './stores/plan/store-ids.ts'

export class SessionHandle implements Verbs {
  readonly id: string
  readonly #place: SessionAccess

  constructor(place: SessionAccess) {
    this.id = place.id
    this.#place = place
  }

  send(given: Input | readonly Command[], options: SendOptions & LaterOptions = {}): Promise<SentReceipt> {
    return isCommands(given) ? this.#sendCommands(given, options) : this.#sendInput(given, options)
  }

  async #sendInput(input: Input, options: SendOptions & LaterOptions): Promise<SentReceipt> {
    checkSend(options)
    const { signal } = options
    const receipt = await sendMessage(this.#place, input, options)
    if (receipt.elsewhere !== undefined) return receipt
    if (!signal) wakeSession(this.#place)
    else {
      const followed = { input: receipt.seq, after: receipt.seq - 1, signal }
      keepStoreOpenFor(this.#place.worker, (reader) => followRun(this.#place, reader, followed)).catch(() => {})
    }
    return receipt
  }

  async #sendCommands(commands: readonly Command[], options: CommandOptions): Promise<SentReceipt> {
    checkHarnessOpen(this.#place)
    checkCommands(options)
    const said = parseCommands(commands, this.#place.services.random, options)
    if (said.some(({ event }) => event.type === 'user.interrupt' && event.mode === 'stop'))
      return this.interrupt('stop', options)
    const receipt = await sendCommands(this.#place, said, options.id)
    if (receipt.elsewhere !== undefined) return receipt
    wakeSession(this.#place)
    const resumes = said.some(({ event }) => event.type === 'user.interrupt' && event.mode === 'resume')
    if (resumes) for (const session of await retryNow(this.#place, options.by)) wakeSession(this.#place, session)
    return receipt
  }

  async run(input?: Input, options: SendOptions & RunOptions = {}): Promise<Result> {
    checkHarnessOpen(this.#place)
    checkRunOf(options)
    return runInput(this.#place, options, () => this.#sendOrNone(input, options))
  }

  stream(input?: Input, options: StreamOptions & SendOptions = {}): RunStream {
    checkStream(options)
    return openStream(this.#place, options, () => this.#sendOrNone(input, options))
  }

  /** The seq of the message; null without an input, for the last run. */
  async #sendOrNone(input: Input | undefined, options: SendOptions): Promise<number | null> {
    return input === undefined ? null : (await sendMessage(this.#place, input, options)).seq
  }

  follow(...options: Parameters<Verbs['follow']>): ReturnType<Verbs['follow']> {
    return followSession(this.#place, ...options)
  }

  async messages(): Promise<readonly Message[]> {
    const { readConversation } = await import('./sessions/look/state.ts')
    return readConversation(this.#place.services.store, this.id)
  }

  async blob(ref: string | Pick<BlobRef, 'hash'>): Promise<Blob | null> {
    checkHarnessOpen(this.#place)
    return blobFor(this.#place.services.store, this.id, checkBlob(ref))
  }

  status(options: { readonly at: number }): Promise<FoldedState>
  status<Part extends keyof StatusParts = never>(options?: StatusOptions<Part>): Promise<SessionStatus<Part>>
  async status(options: StatusOptions & { readonly at?: number } = {}): Promise<SessionState | FoldedState> {
    checkHarnessOpen(this.#place)
    checkStatus(options)
    const { services } = this.#place
    if (options.at === undefined)
      return (await import('./sessions/look/state.ts')).readSessionStatus(services, this.id, options.include ?? [])
    return (await import('./sessions/look/folded.ts')).readFoldedState(services.store, this.id, options.at)
  }

  async result(options: ResultOptions = {}): Promise<Result | null> {
    checkHarnessOpen(this.#place)
    checkResult(options)
    const { readLastResult } = await import('./sessions/look/last-result.ts')
    return readLastResult(this.#place, options.waitMs ?? 0)
  }

  async decide(given: ApprovalDecision): Promise<SentReceipt> {
    const decision = checkDecision(given)
    const other = await this.#other(decision)
    if (other) return other.decide(decision)
    if (decision.callId === BUDGET) return this.#raise(decision)
    const { store } = this.#place.services
    const call = await findOpenCall(this.#place, decision.callId, 'asked', 'approval')
    checkShownCall(decision, call)
    if (decision.under !== undefined)
      await checkUnder(decision, call, (await readSessionHead(store, this.id)).run?.said)
    const edit = decision.args === undefined ? null : await this.#edit(decision, call)
    return recordAnswer(this.#place, buildConfirmation(decision, call, store.now(), edit), decision.callId)
  }

  /** The arguments that a decision gives a call in place of its own; null if they are the same. */
  async #edit(decision: ApprovalDecision, call: Call): Promise<ArgumentsEdit | null> {
    const { services } = this.#place
    const { buildEdit } = await import('./sessions/edited-call.ts')
    return buildEdit(services, { id: this.id, head: await readSessionHead(services.store, this.id) }, decision, call)
  }

  /** The child session that a decision or an answer names; null for this session. */
  async #other({ sessionId = this.id }: { readonly sessionId?: string }): Promise<SessionHandle | null> {
    if (sessionId === this.id) return null
    const { checkIsDescendant } = await import('./sessions/children.ts')
    await checkIsDescendant(this.#place.services, this.id, sessionId)
    return new SessionHandle({ ...this.#place, id: sessionId })
  }

  async #raise(decision: ApprovalDecision): Promise<SentReceipt> {
    checkHarnessOpen(this.#place)
    const { raiseBudget } = await import('./sessions/raise.ts')
    const raised = await raiseBudget(this.#place.services, this.id, decision)
    for (const { session } of raised) wakeSession(this.#place, session)
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
    const { proposal } = await findOpenCall(this.#place, callId, 'outside', 'an answer')
    const { child, answers } = outsideOf(proposal) ?? {}
    if (child !== undefined || answers !== undefined)
      throw new Fault('decision_stale', `Call ${callId} waits for its child: only that answers it.`)
    if (ok)
      await checkAnswerFits(
        this.#place.services,
        (await readSessionHead(this.#place.services.store, this.id)).agent,
        proposal,
        content,
      )
    const id = harnessId('answer', callId)
    const said = { type: 'user.custom_tool_result', id, call: callId, ok, content } as const
    return recordAnswer(this.#place, by === undefined ? said : { ...said, by }, callId)
  }

  async interrupt(mode: 'stop' | 'pause' = 'stop', options: InterruptOptions = {}): Promise<SentReceipt> {
    checkInterrupt(options)
    return this.#sendInterrupt(buildInterrupt(mode, this.#place.services.random, options))
  }

  async #sendInterrupt(event: ReturnType<typeof buildInterrupt>): Promise<SentReceipt> {
    const { services } = this.#place
    checkHarnessOpen(this.#place)
    await refuseLane(services, this.id)
    const { seq, duplicate, woken } = await sendInterrupt(services, this.id, event)
    const grader = event.mode === 'stop' ? await stopGrader(services, this.id, event) : []
    const told = elsewhereReceipt(services, await services.store.card(this.id))
    if (told.elsewhere === undefined) for (const session of [...woken, ...grader]) wakeSession(this.#place, session)
    return { eventId: eventId(this.id, seq), seq, duplicate, queued: false, ...told }
  }

  async schedule(options: ScheduleOptions): Promise<ScheduledWake> {
    const { scheduleWake } = await import('./sessions/schedule.ts')
    const scheduled = await scheduleWake(this.#place, options)
    if (scheduled.elsewhere === undefined) wakeSession(this.#place)
    return scheduled
  }

  async unschedule(key: string, options: UnscheduleOptions = {}): Promise<boolean> {
    const { dropWake } = await import('./sessions/schedule.ts')
    const dropped = await dropWake(this.#place, key, options)
    if (dropped) wakeSession(this.#place)
    return dropped
  }

  async rename(title: string, options: RenameOptions = {}): Promise<RenamedSession> {
    checkHarnessOpen(this.#place)
    const { renameSession } = await import('./sessions/rename.ts')
    return renameSession(this.#place, title, options)
  }

  async pursue(options: PursueOptions): Promise<PursuitReceipt> {
    const { pursueOutcome } = await import('./outcomes/pursue.ts')
    return pursueOutcome(this.#place, options)
  }

  async undo(run?: number): Promise<readonly UndoneCall[]> {
    const { undoAction } = await import('./sessions/undo.ts')
    return (await runOwnerAction(this.#place, undoAction(this.#place.services, this.id, run))).value
  }

  async pin(what: string | number, options: PinOptions = {}): Promise<PinReceipt> {
    checkPin(options)
    const { services } = this.#place
    const { pinAction, unpinAction } = await import('./sessions/pin.ts')
    const act = options.off ? unpinAction(services, this.id, what) : pinAction(services, this.id, what)
    return (await runOwnerAction(this.#place, act)).value
  }

  async compact(options: CompactOptions = {}): Promise<CompactedTo | null> {
    const { compactAction } = await import('./sessions/compact.ts')
    return (await runOwnerAction(this.#place, compactAction(this.#place.services, this.id, options))).value
  }

  async spawn(agent: string, prompt: string, options: SpawnOptions = {}): Promise<SpawnResult> {
    checkHarnessOpen(this.#place)
    await refuseLane(this.#place.services, this.id)
    const { spawnChild } = await import('./sessions/children.ts')
    const spawned = await spawnChild(this.#place.services, this.id, agent, prompt, options)
    wakeSession(this.#place, spawned.sessionId)
    return spawned
  }

  async fork(options: ForkOptions = {}): Promise<Verbs> {
    checkHarnessOpen(this.#place)
    checkFork(options)
    await refuseLane(this.#place.services, this.id)
    const { createFork } = await import('./sessions/fork.ts')
    return new SessionHandle({ ...this.#place, id: await createFork(this.#place.services, this.id, options) })
  }

  async events(filter: EventsFilter = {}): Promise<EventPage> {
    checkHarnessOpen(this.#place)
    checkEvents(filter)
    const { readEventPage } = await import('./sessions/event-page.ts')
    return readEventPage(this.#place.services.store, this.id, filter)
  }

  async close(options: CloseOptions = {}): Promise<void> {
    checkClose(options)
    const { services } = this.#place
    const card = await services.store.card(this.id)
    if (card) checkOwnSession(services, this.id, card)
    await this.#sendInterrupt({ ...buildInterrupt('stop', services.random, options), closes: true })
    const looked = await this.#place.worker.wake(this.id)
    if (looked.type === 'elsewhere') throw elsewhereFault(this.id, looked.why)
    // Usually the attempt that stopped it has closed it too.
    if ((await services.store.card(this.id))?.status === 'terminated') return
    await runOwnerAction(this.#place, async ({ closed }) => ({
      value: null,
      events: closed ? [] : [{ type: 'session.closed' }],
    }))
  }
}
