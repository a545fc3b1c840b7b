// A compaction that a caller asks for: the same summary as before a request that would not fit, made by the session's
// owner while no worker drives it. The circuit breaker does not hold it back, and its success closes the breaker again.
import type { OwnerBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Session } from '../kernel/session.ts'
import { fitBatch } from '../context/fit-batch.ts'
import { estimateMessage } from '../context/estimate.ts'
import { findCut } from '../context/summary.ts'
import { type CompactionBody, TAIL } from '../context/window-fill.ts'
import { compactContext, type CompactionInput, messagesThatStay } from '../runtime/turn/compact-context.ts'
import { raceDeadline } from '../runtime/turn/landings.ts'
import type { FlightContext } from '../runtime/state/effect.ts'
import { FrozenRuns } from '../runtime/state/frozen-run.ts'
import { recallOptions } from '../runtime/turn/run-options.ts'
import { findWindow } from '../runtime/state/model-window.ts'
import { type OwnerChanges, createStoppableFlight } from '../runtime/loop/act-as-owner.ts'
import { checkOwnSession } from '../runtime/state/program.ts'
import type { RestWaiter } from '../runtime/loop/worker.ts'
import { SessionCache } from '../runtime/state/session-cache.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import { agentOfRun } from '../runtime/state/agent.ts'
import { nonEmptyCheck, optionsChecker } from '../options.ts'
import { GuardFold } from '../runtime/guard/guard.ts'
import { Allowances } from '../runtime/money/allowance.ts'
import { callHoldPrefix } from '../runtime/money/holds.ts'
import { countRequestChars } from '../runtime/money/usage-estimate.ts'
import { CHARS_A_TOKEN } from '../view/session-history.ts'
import type { CompactedTo, CompactOptions } from './verbs.ts'

const checkCompact = optionsChecker<CompactOptions>('compact', { focus: nonEmptyCheck })
/** No event has this number, so no other money is held under it. */
const NO_REQUEST = 0

export function compactAction(
  services: Services,
  id: string,
  options: CompactOptions,
): (session: Session, reader: RestWaiter, epoch: number) => Promise<OwnerChanges<CompactedTo | null>> {
  checkCompact(options)
  let made: ReturnType<typeof summarizeSession> | null = null
  return async (session, reader, epoch) => {
    if (session.closed) throw new Fault('session_closed', `Session ${id} is closed and accepts nothing more.`)
    checkOwnSession(services, id, session)
    // The summary is paid for once, even if the session grows meanwhile and the action is repeated.
    made ??= summarizeSession(services, { id, from: session.seq, epoch }, options, reader)
    const { body, rules = [] } = await made
    if (body === null) return { value: null, events: [] }
    const charges = [{ type: 'lost', key: callHoldPrefix(id, `${NO_REQUEST}.0`) }] as const
    const { before = 0, after = 0, summary = '', failed } = services.redactor.body(body)
    const seq = session.seq + 1
    const why = failed === undefined ? {} : { coded: failed }
    if (body.cut !== undefined)
      return { value: { seq, before, after, summary, ...why }, events: [body, ...rules], charges }
    if (failed === undefined) return { value: { seq, before, after, summary }, events: [body], charges }
    // A failure that cut nothing and was returned to the caller is not counted: only its cost is recorded.
    const { failed: _told, ...paid } = body
    return { value: { seq, failed }, events: Object.keys(paid).length > 1 ? [paid] : [], charges }
  }
}

/** The money that was held for the summary is counted as spent. */
function stoppedCompaction(reason: FlightContext['reason'], body: CompactionBody | null): CompactionBody {
  const failed = reason === 'timeout' ? 'the model did not answer in time' : 'it was stopped'
  return { assumed: true, ...body, type: 'context.compacted', failed }
}

type CompactionOutcome = { readonly body: CompactionBody | null; readonly rules?: readonly OwnerBody[] }

async function summarizeSession(
  services: Services,
  { id, from, epoch }: { readonly id: string; readonly from: number; readonly epoch: number },
  { focus }: CompactOptions,
  reader: RestWaiter,
): Promise<CompactionOutcome> {
  const { store } = services
  const cache = new SessionCache(id, store, () => new GuardFold({ breaker: false, fills: () => true }))
  await cache.open()
  cache.epoch = epoch
  await recallOptions(services, cache)
  const agent = agentOfRun(services, cache)
  if (agent.planner !== null)
    throw new Fault('invalid_input', `Session ${id} is a workflow: it has no context to compact.`)
  const transcript = await cache.transcript()
  const window = await findWindow(services, agent.model)
  const messages = transcript.messages
  const asked = { session: id, seq: NO_REQUEST, instructions: agent.instructions, tools: [], boost: false, messages }
  const request = { ...asked, allow: 'none' } as const
  const fill = await cache.fill()
  fill.learn(Math.ceil(countRequestChars(request) / CHARS_A_TOKEN))
  // The caller wants a shorter context, however large the model's window is.
  const charsPerToken = fill.charsPerTokenIn(countRequestChars(request))
  const tail = TAIL * Math.min(window.tokens, fill.tokens)
  const stays = await messagesThatStay({ services, cache, transcript, window })
  const cut = findCut(transcript, stays, tail, (message) => estimateMessage(message, charsPerToken))
  // If nothing older can be summarised, the newest texts are shortened.
  if (cut === null)
    return { body: fitBatch(messages, { fill, charsPerToken }, Math.min(window.tokens, fill.learned, fill.tokens)) }
  const allowances = new Allowances(services, new FrozenRuns(store))
  const flight = createStoppableFlight()
  const wish = focus === undefined ? {} : { focus: services.redactor.text(focus) }
  // Unavailable sources say nothing about the harness's own tools, but the summary must not name a tool that is
  // missing.
  const tools = agent.tools.seen ?? (await agent.tools.open(flight).catch(() => null))
  const doing = { services, cache, agent, transcript, request, tools, flight, allowances, window, fill, charsPerToken }
  const parts: CompactionInput = { ...doing, ...wish, byHand: true }
  const cancel = services.clock.timer(agent.limits.modelMs, () => flight.stop('timeout'))
  const unwatch = onSessionStop(services, id, from, reader, () => flight.stop('interrupted'))
  const done = await raceDeadline(compactContext(parts, cut), flight, null).finally(() => {
    cancel()
    unwatch()
  })
  if (flight.reason !== null && done?.body?.cut === undefined)
    return { body: stoppedCompaction(flight.reason, done?.body ?? null) }
  if (done === null || done.failure !== null)
    throw new Fault('io_error', `The model could not be asked: ${done?.failure?.message ?? 'it was stopped'}`)
  return done
}

/** Calls `stop` when the harness closes, or when the session is stopped or paused, in this process or another. */
function onSessionStop(
  { store }: Services,
  id: string,
  from: number,
  reader: RestWaiter,
  stop: () => void,
): () => void {
  const look = async (): Promise<void> => {
    const { events } = await store.read(id, from)
    if (events.some((event) => event.type === 'user.interrupt' && event.mode !== 'resume')) stop()
  }
  reader.wake = stop
  return store.watch(id, () => void look().catch(() => {}))
}
