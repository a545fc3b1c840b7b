// Children and their parents: what one commit must write in both of their logs. The commit that hands out a task makes the child,
// the commit that ends a child tells its parent, and the commit that stops waiting for a child tells it to stop.
import type { CallKey } from '../src/kernel/content.ts'
import type { Event, Parent, EventOf } from '../src/kernel/event.ts'
import { answererOf, type CallRecord, type Fail, type Watched } from './watched.ts'

type Kin = {
  parent: Parent | null
  /** What its model said last in its open run. */
  said: string
  /** seq of: the parent's last interrupt, the last interrupt of any kind, the parent's last answer, start and end of its last run. */
  dismissed: number
  stopped: number
  /** seq of the last stop, and whether it was its parent's. */
  lastStop: number
  above: boolean
  reached: number
  began: number
  settled: number
  /** A person said no in its last run, to it or to a child of its own. */
  no: boolean
  /** It has not been able to say so: money was missing, and it has not answered since. */
  owing: boolean
  /** Its last run ended because money was missing. */
  broke: boolean
  /** How deep its children may be, by its last run. */
  depthMax: number
  /** When its last request was made, its open run began, and somebody stopped it last, by the order of all events. */
  askedAt: number
  runAt: number
  stoppedAt: number
}
type Entry = { readonly session: string; readonly e: Event }
type Ended = { readonly id: string; readonly said: string; readonly no: boolean; readonly fromAbove: boolean }
type Sessions = ReadonlyMap<string, Watched>

function newKin(): Kin {
  return {
    parent: null,
    said: '',
    dismissed: 0,
    stopped: 0,
    lastStop: 0,
    above: false,
    reached: 0,
    began: 0,
    settled: 0,
    no: false,
    owing: false,
    broke: false,
    depthMax: 0,
    askedAt: 0,
    runAt: 0,
    stoppedAt: 0,
  }
}

export class Families {
  readonly #kin = new Map<string, Kin>()
  #commit: Entry[] = []
  /** The sessions whose workers wrote something in this commit. */
  readonly #wrote = new Set<string>()
  /** Orders that were handed over, and have no result yet: by session, their calls. */
  readonly #owed = new Map<string, CallKey[]>()
  /** When each was closed, by the order of all events. */
  readonly #closed = new Map<string, number>()
  #events = 0

  take(session: string, w: Watched, e: Event, fail: Fail): void {
    const kin = this.#kin.get(session) ?? newKin()
    this.#kin.set(session, kin)
    this.#events += 1
    if (e.epoch > 0) this.#wrote.add(session)
    this.#ordered(kin, e, fail)
    if (w.run) kin.no = w.run.denied.size > 0
    if (RELEVANT.has(e.type)) this.#commit.push({ session, e })
    if (e.type === 'session.created') kin.parent = e.parent ?? null
    else if (e.type === 'session.closed') this.#closed.set(session, this.#events)
    else if (e.type === 'agent.message') kin.said = textOf(e)
    else if (e.type === 'run.settled') {
      // A run that ended before it began: no hook and no person was asked.
      if (kin.began < kin.settled) kin.no = false
      kin.settled = e.seq
      kin.broke = e.outcome.type === 'limit' && e.outcome.limit === 'usd'
      kin.no ||= kin.owing
      kin.owing = kin.broke && kin.no
    } else if (e.type === 'run.started') this.#begun(kin, e, fail)
    else if (e.type === 'user.custom_tool_result' && e.parent !== undefined && kin.parent) {
      kin.parent = { ...kin.parent, call: e.parent }
      kin.reached = e.seq
    } else if (e.type === 'user.interrupt') {
      kin.stopped = e.seq
      if (e.mode === 'stop') {
        kin.lastStop = e.seq
        kin.above = e.id.startsWith('terret:parent:')
      }
      if (e.id.startsWith('terret:parent:')) kin.dismissed = e.seq
    } else if ((e.type === 'model.started' || e.type === 'agent.tool_use') && (w.run?.seq ?? 0) < kin.dismissed)
      fail('C10 a child works on after its parent let it go')
  }

  /** A model that was asked after a child was closed must not order that child. */
  #ordered(kin: Kin, e: Event, fail: Fail): void {
    if (e.type === 'model.started') kin.askedAt = this.#events
    else if (e.type === 'run.started') kin.runAt = this.#events
    else if (e.type === 'run.settled') kin.runAt = 0
    else if (e.type === 'user.interrupt' && e.mode === 'stop') kin.stoppedAt = this.#events
    else if (e.type === 'agent.message' && e.epoch > 0)
      for (const { type, session: to = '' } of e.calls.flatMap((call) => answererOf(call)?.orders ?? []))
        if (type === 'say' && (this.#closed.get(to) ?? this.#events) < kin.askedAt)
          fail(`D10 ${to} is told something after it was closed`)
  }

  #begun(kin: Kin, e: EventOf<'run.started'>, fail: Fail): void {
    kin.said = ''
    kin.began = e.seq
    kin.depthMax = e.limits.depth ?? 0
    if (kin.dismissed > 0 && (e.inputs.length === 0 || e.inputs.some((seq) => seq < kin.dismissed)))
      fail('C10 a child works on after its parent let it go')
  }

  /** What the commit wrote to one session must agree with what it wrote to the others. */
  committed(sessions: Sessions): readonly string[] {
    const commit = this.#commit
    this.#commit = []
    const wrong: string[] = this.#overdue(commit)
    for (const { session, e } of commit) {
      const fail = (rule: string): void => void wrong.push(`${session}@${e.seq} ${e.type}: ${rule}`)
      const call = 'call' in e ? sessions.get(session)?.calls.get(e.call) : undefined
      if (e.type === 'agent.custom_tool_use' && call) {
        if (answererOf(call.proposal)?.orders) {
          ordered({ commit, session, sessions, fail }, e, call)
          if (isOwed({ commit, session, sessions, fail }, e))
            this.#owed.set(session, [...(this.#owed.get(session) ?? []), e.call])
        } else handedOver(commit, session, e, call, fail)
      } else if (e.type === 'user.message' && e.report !== undefined) reported(commit, e, sessions, fail)
      else if (e.type === 'agent.tool_result' && call) letGo(commit, session, e, call, fail)
      else if (e.type === 'session.created' && e.parent) this.#made(commit, e.parent, session, fail)
      else if (e.type === 'run.settled') {
        this.#ended(commit, session, e, fail)
        if (e.outcome.type === 'interrupted') this.#stops(commit, session, sessions, fail)
      } else if (e.type === 'user.custom_tool_result') this.#told(commit, e, sessions, fail)
    }
    return wrong
  }

  /** A worker that is being stopped may leave the result of orders to the next one, which begins with it. */
  #overdue(commit: readonly Entry[]): string[] {
    const wrong: string[] = []
    for (const session of this.#wrote) {
      const results = of(commit, session, 'agent.tool_result').map(({ call }) => call)
      const late = (this.#owed.get(session) ?? []).filter((call) => !results.includes(call))
      if (late.length > 0) wrong.push(`${session}: D3 orders ${late.join(', ')} were handed over, and have no result`)
      this.#owed.delete(session)
    }
    this.#wrote.clear()
    return wrong
  }

  #made(commit: readonly Entry[], parent: Parent, child: string, fail: Fail): void {
    const handing = of(commit, parent.session, 'agent.custom_tool_use').find((e) => e.call === parent.call)
    const name = `${parent.session}~${parent.call}`
    if (!handing || (child !== name && !(parent.detached && child.startsWith(`${name}.`))))
      fail('C1 a child is made for a call nobody handed out')
    const above = this.#kin.get(parent.session)?.parent
    if (parent.depth !== (above?.depth ?? 0) + 1 || parent.root !== (above?.root ?? parent.session))
      fail('C3 a child stands in another place than below its parent')
    const most = this.#kin.get(parent.session)?.depthMax ?? 0
    if (parent.depth > most) fail(`C4 a child is ${parent.depth} deep, and may be ${most}`)
    const tasks = of(commit, child, 'user.message')
    if (tasks.length !== 1) fail(`C2 a child is made with ${tasks.length} tasks`)
  }

  #ended(commit: readonly Entry[], session: string, e: EventOf<'run.settled'>, fail: Fail): void {
    const { parent, said, no = false, above = false, lastStop = 0, began = 0 } = this.#kin.get(session) ?? {}
    const fromAbove = above && began <= lastStop
    if (!parent || said === undefined) return
    const id = `terret:child:${session}:${e.seq}`
    if (parent.detached) return this.#reportedEnd(commit, parent, e, { id, said, no, fromAbove }, fail)
    const [answer, ...more] = of(commit, parent.session, 'user.custom_tool_result').filter((a) => a.id === id)
    if (e.outcome.type === 'limit' && e.outcome.limit === 'usd') {
      if (answer) fail('C5 a child that only waits for money told its parent that it ended')
      return
    }
    // A parent that was closed meanwhile takes no answer.
    if (!answer && this.#closed.has(parent.session)) return
    if (!answer || more.length > 0) return fail('C5 a child ended, and its parent was not told exactly once')
    if ((answer.denied ?? false) !== no) fail('C11 a parent is not told whether somebody said no to its child')
    if (answer.call !== parent.call) fail(`C6 a child answers call ${answer.call}, and ${parent.call} waits for it`)
    const done = e.outcome.type === 'completed'
    if (answer.ok !== done) fail(`C7 a child that ${done ? 'completed' : 'did not complete'} says the opposite`)
    if (done ? answer.content !== said : !answer.content.includes(said))
      fail(`C7 a child said "${said}", and its parent was told "${answer.content}"`)
  }

  /** A detached child tells its parent by a message, unless that is closed. */
  #reportedEnd(
    commit: readonly Entry[],
    parent: Parent,
    e: EventOf<'run.settled'>,
    { id, said, no, fromAbove }: Ended,
    fail: Fail,
  ): void {
    const [report, ...more] = of(commit, parent.session, 'user.message').filter((message) => message.id === id)
    if (e.outcome.type === 'limit' && e.outcome.limit === 'usd') {
      if (report) fail('C5 a child that only waits for money told its parent that it ended')
      return
    }
    if (this.#closed.has(parent.session)) return
    const above = e.outcome.type === 'interrupted' && fromAbove
    if (above) {
      if (report) fail('D8 a child that its parent stopped made it begin again')
      return
    }
    if (!report || more.length > 0) return fail('D1 a detached child ended, and its parent was not told exactly once')
    if ((report.denied ?? false) !== no) fail('C11 a parent is not told whether somebody said no to its child')
    const text = report.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
    const status = e.outcome.type === 'completed' ? 'completed' : 'incomplete'
    if (!text.includes(`status="${status}"`) || !text.includes(said))
      fail(`D2 a detached child said "${said}" (${status}), and its parent was told "${text}"`)
  }

  /** Who is stopped stops the detached children that worked already when the stop came. */
  #stops(commit: readonly Entry[], session: string, sessions: Sessions, fail: Fail): void {
    const { stoppedAt = 0 } = this.#kin.get(session) ?? {}
    for (const [child, { parent, runAt, stoppedAt: told }] of this.#kin) {
      if (parent?.session !== session || !parent.detached || runAt === 0 || runAt > stoppedAt) continue
      if (told > runAt || sessions.get(child)?.paused || this.#closed.has(child)) continue
      if (of(commit, child, 'user.interrupt').length === 0) fail(`D9 a stop does not reach ${child}`)
    }
  }

  /**
   * A child speaks of the end of a run in the commit that ends it; or later, when an answer of its parent came too late, or when it
   * waited for money and was interrupted.
   */
  #told(commit: readonly Entry[], e: EventOf<'user.custom_tool_result'>, sessions: Sessions, fail: Fail): void {
    const [, child = '', seq] = /^terret:child:(.+):(\d+)$/.exec(e.id) ?? []
    if (seq === undefined || of(commit, child, 'run.settled').some((end) => end.seq === Number(seq))) return
    const { parent, reached, stopped, settled, broke, said } = this.#kin.get(child) ?? newKin()
    const late =
      (reached > settled || (broke && stopped > settled)) &&
      parent?.call === e.call &&
      sessions.get(child)?.run === null
    if (!late) fail('C5 a parent is told of the end of a child that did not end')
    else if (!e.content.includes(said) && !e.content.includes('It left no text.'))
      fail(`C7 a child said "${said}", and its parent was told "${e.content}"`)
  }
}

const RELEVANT: ReadonlySet<Event['type']> = new Set<Event['type']>([
  'session.created',
  'user.message',
  'user.interrupt',
  'user.custom_tool_result',
  'agent.custom_tool_use',
  'agent.tool_result',
  'run.settled',
])

function of<T extends Event['type']>(commit: readonly Entry[], session: string, type: T): readonly EventOf<T>[] {
  return commit.flatMap((entry) => (entry.session === session && entry.e.type === type ? [entry.e as EventOf<T>] : []))
}

function childOf(session: string, call: CallKey, { proposal }: CallRecord): string | null {
  const { child, answers } = answererOf(proposal) ?? {}
  return answers?.session ?? (child === undefined ? null : `${session}~${call}`)
}

/** A new child is made, or one that asked has its answer, together with the hand-over. */
function handedOver(
  commit: readonly Entry[],
  session: string,
  e: EventOf<'agent.custom_tool_use'>,
  call: CallRecord,
  fail: Fail,
): void {
  const { child, answers } = answererOf(call.proposal) ?? {}
  const to = childOf(session, e.call, call) ?? ''
  if (answers) {
    const given = of(commit, to, 'user.custom_tool_result').filter((a) => a.parent === e.call)
    if (given.length !== 1) fail('C8 a child that asked was not answered in the commit that says so')
  } else if (child !== undefined) {
    const made = of(commit, to, 'session.created')
    if (made.length !== 1 || made[0]?.agent !== child) fail('C1 a call was handed to a child that was not made with it')
  }
}

type Led = {
  readonly commit: readonly Entry[]
  readonly session: string
  readonly sessions: Sessions
  readonly fail: Fail
}

/** Where a hook ends the run in the same commit, all calls have their results when none runs any more. */
function isOwed({ commit, session, sessions }: Led, e: EventOf<'agent.custom_tool_use'>): boolean {
  const results = of(commit, session, 'agent.tool_result').filter((result) => result.call === e.call)
  return !sessions.get(session)?.run?.ends && results.length === 0
}

/** Orders are carried out in the commit that hands them over. */
function ordered(
  { commit, session, sessions, fail }: Led,
  e: EventOf<'agent.custom_tool_use'>,
  { proposal }: CallRecord,
): void {
  const { orders = [] } = answererOf(proposal) ?? {}
  orders.forEach((order, i) => {
    const born = `${session}~${e.call}${orders.length > 1 ? `.${i}` : ''}`
    if (order.type === 'spawn') {
      const [made, ...more] = of(commit, born, 'session.created')
      if (!made || more.length > 0 || made.agent !== order.child || !made.parent?.detached)
        fail('D4 a child was ordered and not made with the order')
    }
    const to = order.session ?? ''
    if (order.session === undefined || sessions.get(to)?.fold.closed) return
    const said = [...of(commit, to, 'user.message'), ...of(commit, to, 'user.custom_tool_result')]
    const told = said.filter(({ by }) => by === `session:${session}`).length
    if (order.type === 'say' && told === 0) fail('D5 a child was to be told something, and was not')
    const closed = of(commit, to, 'user.interrupt').some(({ closes }) => closes)
    if (order.type === 'close' && !closed) fail('D6 a child was to be closed, and was not told')
  })
}

/** A report comes with the end or the question of the child it is by. */
function reported(commit: readonly Entry[], e: EventOf<'user.message'>, sessions: Sessions, fail: Fail): void {
  const [, child = '', of1 = ''] = /^terret:child:(.+):([\d.]+)$/.exec(e.id) ?? []
  if (e.by !== `session:${child}`) return fail('D7 a report is by nobody')
  const ended = of(commit, child, 'run.settled').some(({ seq }) => `${seq}` === of1)
  if (ended) return
  if (!of1.includes('.')) return fail('D7 a report tells of an end that was not')
  if (sessions.get(child)?.calls.get(of1)?.result !== 0) fail('D7 a report tells of a question that is not open')
}

function letGo(
  commit: readonly Entry[],
  session: string,
  e: EventOf<'agent.tool_result'>,
  call: CallRecord,
  fail: Fail,
): void {
  if (e.status !== 'aborted' || call.handed === 0) return
  if (answererOf(call.proposal)?.orders) fail('D11 orders were carried out, and their call says that they were not')
  const to = childOf(session, e.call, call)
  if (to !== null && of(commit, to, 'user.interrupt').length !== 1) fail('C9 a child was let go and not told')
}

function textOf({ parts }: EventOf<'agent.message'>): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}
