// What hooks were really asked, what they answered, and what the log made of it: no call starts without their verdict, no call
// that they hold back runs, and no hook is asked about a verdict that is on disk already.
import { childrenStartedBy } from '../src/runtime/turn/admit-reply.ts'
import type { CallKey } from '../src/kernel/content.ts'
import type { Event, EventOf } from '../src/kernel/event.ts'
import { LATE_WORD } from '../src/runtime/turn/landings.ts'
import type { Cast, HookPlan } from './cast.ts'
import type { Oracle } from './oracle.ts'
import type { SimProcess } from './process.ts'
import { markSecrets } from './secrets.ts'
import { answererOf, type CallRecord, type Fail, type Leases, type Watched } from './watched.ts'

export type Word = 'allow' | 'cancel' | 'throw'
/** One time that one hook was asked about one call. */
type Ask = { readonly hook: string; readonly epoch: number; readonly since: string; said: Word | null }

type Surroundings = {
  readonly cast: Cast
  readonly leases: Leases
  readonly sessions: ReadonlyMap<string, Watched>
  readonly oracle: Oracle
  readonly complain: Fail
}

const HELD_BACK = ['CancelledByHook', 'SubAgentCancelled']
const WITHHELD = 'so the result is withheld'

export class Verdicts {
  readonly tally = { asked: 0, again: 0, cancelled: 0, failed: 0, rewritten: 0, runsEnded: 0 }
  readonly #around: Surroundings
  /** By session and call. */
  readonly #asks = new Map<string, Ask[]>()
  /** What hooks left of the result of a call. */
  readonly #left = new Map<string, Set<string>>()
  readonly #ends = new Map<string, { told: number; settled: number }>()

  constructor(around: Surroundings) {
    this.#around = around
  }

  /** A hook is asked whether a call may start. */
  ask(hook: string, process: SimProcess, session: string, call: CallKey): (said: Word) => void {
    const { cast, leases, sessions, complain } = this.#around
    const lease = leases.get(session)
    const w = sessions.get(session)
    const known = w?.calls.get(call)
    const where = `${session} ${call}`
    const asks = this.#asks.get(where) ?? []
    this.#asks.set(where, asks)
    const epoch = lease?.worker === process.name ? lease.epoch : 0
    // A pause drops calls that have not started. So do a freeze and a disk that is full for longer than a lease. The next worker
    // asks again. So is a call that was let go while a sibling of it was asked about again: it is looked at once more after that.
    const since = `pause ${w?.lastPause ?? 0}, review ${w?.lastReview ?? 0}, freeze ${process.freezes}, full ${process.full}`
    const before = asks.filter((ask) => ask.epoch === epoch && ask.since === since)
    // An attempt that asks one hook after the other may still be asking while a sibling ends the run.
    const goesOn = epoch > 0 && before.length > 0
    // With wrong clocks a worker can lose a session without knowing it: its writes do not count, but it may still ask.
    const robbed = epoch === 0 && cast.clocks
    if (!goesOn && !robbed && known && known.intents + known.handed + known.result > 0)
      complain(`${where}: V1 the hook ${hook} is asked about a call whose verdict is on disk`)
    if (!robbed && before.some((ask) => ask.hook === hook))
      complain(`${where}: V2 the hook ${hook} is asked twice by one attempt`)
    const again = asks.some((ask) => ask.hook === hook)
    const ask: Ask = { hook, epoch, since, said: null }
    asks.push(ask)
    this.tally.asked += 1
    if (again) this.tally.again += 1
    return (said) => {
      ask.said = said
    }
  }

  /** A hook saw the result of a call, and left this of it. */
  leave(session: string, call: CallKey, content: string): void {
    const left = this.#left.get(`${session} ${call}`) ?? new Set()
    this.#left.set(`${session} ${call}`, left.add(markSecrets(content)))
  }

  /** A hook was told that a run ended. */
  ended(session: string): void {
    const ends = this.#ends.get(session) ?? { told: 0, settled: 0 }
    ends.told += 1
    this.tally.runsEnded += 1
    if (ends.told > ends.settled) this.#around.complain(`${session}: V8 a hook was told of the same end twice`)
  }

  take(session: string, w: Watched, e: Event, fail: Fail): void {
    const plan = this.#around.cast.hooks
    switch (e.type) {
      case 'agent.message':
        return this.#proposed(plan, e, fail)
      case 'agent.tool_use':
      case 'agent.custom_tool_use':
        return this.#started(plan, session, w, e, fail)
      case 'agent.tool_result':
        return this.#resulted(plan, session, w, e, fail)
      case 'model.started':
        if (w.run?.ends) fail('V6 a model is called after a strict hook failed')
        return
      case 'run.settled':
        return this.#settled(session, w, e, fail)
      default:
        return
    }
  }

  /** Every call that a hook covers must ask for its verdict. */
  #proposed(plan: HookPlan | null, e: EventOf<'agent.message'>, fail: Fail): void {
    if (e.verdict.type !== 'continue') return
    for (const call of e.calls) {
      const free = call.gate?.type === 'refuse' || call.clear === true
      if (!free && hooksOf(plan, call).length > 0) fail(`V3 nobody will be asked about a call of ${call.tool}`)
    }
  }

  #started(
    plan: HookPlan | null,
    session: string,
    w: Watched,
    e: EventOf<'agent.tool_use'> | EventOf<'agent.custom_tool_use'>,
    fail: Fail,
  ): void {
    if (w.run?.ends) fail('V6 a call starts after a strict hook failed')
    const call = w.calls.get(e.call)
    if (!call || call.intents > 0) return
    for (const hook of hooksOf(plan, call.proposal)) {
      const said = this.#said(session, e.call, hook, e.epoch)
      const lets = said.includes('allow') || (said.includes('throw') && plan?.strict === false)
      if (!lets) fail(`V4 a call starts that the hook ${hook} did not let go`)
    }
  }

  #resulted(plan: HookPlan | null, session: string, w: Watched, e: EventOf<'agent.tool_result'>, fail: Fail): void {
    const call = w.calls.get(e.call)
    if (!call) return
    const { error_type } = (e.metadata ?? {}) as { readonly error_type?: string }
    const held = e.status === 'denied' && HELD_BACK.includes(error_type ?? '')
    if (held) {
      this.tally.cancelled += 1
      // Hooks are asked about a call with unfit arguments while its reply is written, before the call has a key. If that worker is
      // lost then, the next one writes the result: so the epoch is the reply's.
      const { id, gate } = call.proposal
      const unfit = gate?.type === 'refuse'
      const [key, epoch] = unfit ? [id, call.epoch] : [e.call, e.epoch]
      const all = hooksOf(plan, call.proposal).flatMap((hook) => this.#said(session, key, hook, epoch))
      // It must answer within the time of the request, which a seed makes short.
      const late = unfit && all.length > 0 && typeof e.content === 'string' && e.content.includes(LATE_WORD)
      if (!all.includes('cancel') && !late) fail('V5 a call was held back by no hook')
      if (call.intents + call.handed > 0) fail('V5 a call was held back that had started')
    }
    if (e.ends !== undefined) {
      this.tally.failed += 1
      if (plan?.strict !== true) fail('V6 a run must end for a hook that is not strict')
      if (w.run) w.run.ends = true
    }
    this.#seen(plan, session, call, e, fail)
  }

  /** The result of a call that ran is what the hooks made of it. */
  #seen(
    plan: HookPlan | null,
    session: string,
    { proposal }: CallRecord,
    e: EventOf<'agent.tool_result'>,
    fail: Fail,
  ): void {
    const watched = plan !== null && (plan.after?.includes(proposal.tool) ?? true)
    if (!watched || answererOf(proposal) || e.status !== 'ok' || !this.#around.oracle.executed(session, e.call)) return
    const content = typeof e.content === 'string' ? e.content : ''
    if (this.#left.get(`${session} ${e.call}`)?.has(content)) this.tally.rewritten += 1
    else if (!content.includes(WITHHELD)) fail('V7 a result stands in the log that no hook left so')
  }

  #settled(session: string, w: Watched, e: EventOf<'run.settled'>, fail: Fail): void {
    const ends = this.#ends.get(session) ?? { told: 0, settled: 0 }
    this.#ends.set(session, ends)
    ends.settled += 1
    if (!w.run?.ends || e.outcome.type === 'interrupted') return
    if (e.outcome.type !== 'failed' || e.outcome.reason !== 'hook_error')
      fail('V6 a run in which a strict hook failed ends otherwise')
  }

  #said(session: string, call: CallKey, hook: string, epoch: number): readonly (Word | null)[] {
    const asks = this.#asks.get(`${session} ${call}`) ?? []
    return asks.filter((ask) => ask.epoch === epoch && ask.hook === hook).map((ask) => ask.said)
  }
}

/** Which hooks must let a call go, by name. */
function hooksOf(plan: HookPlan | null, proposal: CallRecord['proposal']): readonly string[] {
  if (plan === null) return []
  const before = plan.before.flatMap((tools, i) => ((tools?.includes(proposal.tool) ?? true) ? [`before${i}`] : []))
  return plan.subagent
    ? [...before, ...[...new Set(childrenStartedBy(proposal))].map((child) => `subagent ${child}`)]
    : before
}
