// A compaction that somebody asks for: the same summary as before a request that would not fit, made by the session's owner while no
// worker drives it. The breaker does not hold it back, and its success closes it again.
import type { OwnerBody } from '../kernel/event.ts'
import { Fault } from '../kernel/failure.ts'
import type { Session } from '../kernel/session.ts'
import { fitBatch } from '../context/fit.ts'
import { estimateMessage } from '../context/estimate.ts'
import { cutOf } from '../context/summary.ts'
import { type Compacted, TAIL } from '../context/window.ts'
import { compacted, type Compacting, staying } from '../effects/compact.ts'
import { inTime } from '../effects/outcomes.ts'
import type { FlightContext } from '../engine/flights.ts'
import { FrozenRuns } from '../effects/frozen-run.ts'
import { recallOptions } from '../effects/run-options.ts'
import { findWindow } from '../effects/window.ts'
import { type Owned, stoppable } from '../engine/owner.ts'
import { checkOwn } from '../engine/program.ts'
import type { Reader } from '../engine/worker.ts'
import { SessionCache } from '../engine/session-cache.ts'
import { agentFor, type Services } from '../engine/wiring.ts'
import { filled, optionsOf } from '../options.ts'
import { Guard } from '../riders/guard/guard.ts'
import { Allowances } from '../riders/money/allowance.ts'
import { holdsUnder } from '../riders/money/charges.ts'
import { charsIn } from '../riders/money/usage-estimate.ts'
import { CHARS_A_TOKEN } from '../view/history.ts'
import type { CompactedTo, CompactOptions } from './verbs.ts'

const checkCompact = optionsOf<CompactOptions>('compact', { focus: filled })
/** No event has this number, so nothing else is held under it. */
const NO_REQUEST = 0

export function compacting(
  services: Services,
  id: string,
  options: CompactOptions,
): (session: Session, reader: Reader, epoch: number) => Promise<Owned<CompactedTo | null>> {
  checkCompact(options)
  let made: ReturnType<typeof summarised> | null = null
  return async (session, reader, epoch) => {
    if (session.closed) throw new Fault('session_closed', `Session ${id} is closed and accepts nothing more.`)
    checkOwn(services, id, session)
    // What was asked for is paid once, however often the session has grown meanwhile.
    made ??= summarised(services, { id, from: session.seq, epoch }, options, reader)
    const { body, rules = [] } = await made
    if (body === null) return { value: null, events: [] }
    const charges = [{ type: 'lost', key: holdsUnder(id, `${NO_REQUEST}.0`) }] as const
    const { before = 0, after = 0, summary = '', failed } = services.redactor.body(body)
    const seq = session.seq + 1
    const why = failed === undefined ? {} : { coded: failed }
    if (body.cut !== undefined)
      return { value: { seq, before, after, summary, ...why }, events: [body, ...rules], charges }
    if (failed === undefined) return { value: { seq, before, after, summary }, events: [body], charges }
    // A failure that its caller was told of and that cut nothing is not counted: only what it cost is recorded.
    const { failed: _told, ...paid } = body
    return { value: { seq, failed }, events: Object.keys(paid).length > 1 ? [paid] : [], charges }
  }
}

/** What was held for it is counted as spent. */
function ended(reason: FlightContext['reason'], body: Compacted | null): Compacted {
  const failed = reason === 'timeout' ? 'the model did not answer in time' : 'it was stopped'
  return { assumed: true, ...body, type: 'context.compacted', failed }
}

type Made = { readonly body: Compacted | null; readonly rules?: readonly OwnerBody[] }

async function summarised(
  services: Services,
  { id, from, epoch }: { readonly id: string; readonly from: number; readonly epoch: number },
  { focus }: CompactOptions,
  reader: Reader,
): Promise<Made> {
  const { store } = services
  const cache = new SessionCache(id, store, () => new Guard({ breaker: false, fills: () => true }))
  await cache.open()
  cache.epoch = epoch
  await recallOptions(services, cache)
  const agent = agentFor(services, cache)
  if (agent.planner !== null)
    throw new Fault('invalid_input', `Session ${id} is a workflow: it has no context to compact.`)
  const transcript = await cache.transcript()
  const window = await findWindow(services, agent.model)
  const messages = transcript.messages
  const asked = { session: id, seq: NO_REQUEST, instructions: agent.instructions, tools: [], boost: false, messages }
  const request = { ...asked, allow: 'none' } as const
  const fill = await cache.fill()
  fill.learn(Math.ceil(charsIn(request) / CHARS_A_TOKEN))
  // Who asks for it wants it shorter than it is, however much the model takes.
  const charsPerToken = fill.charsPerTokenIn(charsIn(request))
  const tail = TAIL * Math.min(window.tokens, fill.tokens)
  const stays = await staying({ services, cache, transcript, window })
  const cut = cutOf(transcript, stays, tail, (message) => estimateMessage(message, charsPerToken))
  // Where nothing older can be summarised, the newest texts are shortened.
  if (cut === null)
    return { body: fitBatch(messages, { fill, charsPerToken }, Math.min(window.tokens, fill.learned, fill.tokens)) }
  const allowances = new Allowances(services, new FrozenRuns(store))
  const flight = stoppable()
  const wish = focus === undefined ? {} : { focus: services.redactor.text(focus) }
  // Sources that are away say nothing about the harness's own tools, but the summary must not name one that is not there.
  const tools = agent.tools.seen ?? (await agent.tools.open(flight).catch(() => null))
  const doing = { services, cache, agent, transcript, request, tools, flight, allowances, window, fill, charsPerToken }
  const parts: Compacting = { ...doing, ...wish, byHand: true }
  const cancel = services.clock.timer(agent.limits.modelMs, () => flight.stop('timeout'))
  const unwatch = whenStopped(services, id, from, reader, () => flight.stop('interrupted'))
  const done = await inTime(compacted(parts, cut), flight, null).finally(() => {
    cancel()
    unwatch()
  })
  if (flight.reason !== null && done?.body?.cut === undefined) return { body: ended(flight.reason, done?.body ?? null) }
  if (done === null || done.failure !== null)
    throw new Fault('io_error', `The model could not be asked: ${done?.failure?.message ?? 'it was stopped'}`)
  return done
}

/** Its harness closes, or somebody stops or pauses the session, in this process or another. */
function whenStopped({ store }: Services, id: string, from: number, reader: Reader, stop: () => void): () => void {
  const look = async (): Promise<void> => {
    const { events } = await store.read(id, from)
    if (events.some((event) => event.type === 'user.interrupt' && event.mode !== 'resume')) stop()
  }
  reader.wake = stop
  return store.watch(id, () => void look().catch(() => {}))
}
