// What must hold between the logs of parents and children: each child was made once for its order, each end is one report that the
// parent's model was shown once, and who works below a session that was stopped stops. Pure: logs in, sentences out.
import { callKey, type Event, type Parent } from '../../src/kernel/event.ts'
import { outsideOf } from '../../src/kernel/ledger.ts'
import { callsOf } from './log-check.ts'

export type Logs = ReadonlyMap<string, readonly Event[]>

export type TreeReport = {
  readonly wrong: readonly string[]
  /** By how deep they are: the first number counts the children of roots. */
  readonly children: readonly number[]
  readonly detached: number
  /** Ends and questions of detached children that are in their parents' logs. */
  readonly reports: number
  /** Of those: how many the parent's model was shown. The others came to a session that was stopped or closed. */
  readonly shown: number
  readonly lost: number
  readonly twice: number
  /** Runs of children that ended because they were told from above, by how deep they are. */
  readonly stopped: readonly number[]
}

type Child = { readonly id: string; readonly events: readonly Event[]; readonly parent: Parent }
type Counts = { reports: number; shown: number; lost: number; twice: number; stopped: number[] }

export function checkTrees(logs: Logs): TreeReport {
  const wrong: string[] = []
  const counts: Counts = { reports: 0, shown: 0, lost: 0, twice: 0, stopped: [] }
  const ordered = new Set<string>()
  for (const [session, events] of logs) {
    for (const { born, handed } of birthsIn(session, events)) {
      ordered.add(born)
      if (handed && !logs.has(born)) wrong.push(`lost: ${session} ordered ${born}, which was never made`)
      if (!handed && logs.has(born)) wrong.push(`${born} was made, and its call was never handed over`)
    }
    wrong.push(...checkWords(session, events, logs), ...checkStops(session, events, logs))
  }
  const children = childrenIn(logs)
  const known = new Map<string, Set<string>>()
  for (const child of children) {
    if (!ordered.has(child.id)) wrong.push(`${child.id} was made, and nobody ordered it`)
    wrong.push(...checkBirth(child), ...checkReports(child, logs, counts, known), ...checkObeys(child, counts))
  }
  for (const [session, events] of logs) wrong.push(...checkStrangers(session, events, known.get(session)))
  const depths: number[] = []
  for (const { parent } of children) countAt(depths, parent.depth)
  const detached = children.filter(({ parent }) => parent.detached).length
  return { wrong, children: filled(depths), detached, ...counts, stopped: filled(counts.stopped) }
}

function countAt(depths: number[], depth: number): void {
  depths[depth - 1] = (depths[depth - 1] ?? 0) + 1
}

/** A level at which nothing was counted is 0. */
function filled(depths: readonly (number | undefined)[]): readonly number[] {
  return Array.from(depths, (count = 0) => count)
}

function childrenIn(logs: Logs): readonly Child[] {
  return [...logs].flatMap(([id, events]) => {
    const [first] = events
    return first?.type === 'session.created' && first.parent ? [{ id, events, parent: first.parent }] : []
  })
}

/** Every child that a reply of this session asks for, and whether its call was handed over. */
function birthsIn(
  session: string,
  events: readonly Event[],
): readonly { readonly born: string; readonly handed: boolean }[] {
  const handed = new Set(events.flatMap((event) => (event.type === 'agent.custom_tool_use' ? [event.call] : [])))
  return callsIn(events).flatMap(({ key, outside: { child, answers, orders = [] } }) => {
    const name = `${session}~${key}`
    if (child !== undefined && answers === undefined) return [{ born: name, handed: handed.has(key) }]
    return orders.flatMap(({ type }, i) => {
      const born = orders.length > 1 ? `${name}.${i}` : name
      return type === 'spawn' ? [{ born, handed: handed.has(key) }] : []
    })
  })
}

type Asked = { readonly key: string; readonly outside: NonNullable<ReturnType<typeof outsideOf>> }

function callsIn(events: readonly Event[]): readonly Asked[] {
  return events.flatMap((event) => {
    if (event.type !== 'agent.message') return []
    return event.calls.flatMap((proposal, i) => {
      const outside = outsideOf(proposal)
      return outside ? [{ key: callKey(event.seq, i), outside }] : []
    })
  })
}

function checkBirth({ id, events, parent }: Child): readonly string[] {
  const made = events.filter(({ type }) => type === 'session.created').length
  const tasks = idsIn(events).filter((name) => name === 'terret:task').length
  const wrong = made === 1 && tasks === 1 ? [] : [`${id} was made ${made} times, with ${tasks} tasks`]
  return id.startsWith(`${parent.session}~${parent.call}`) ? wrong : [...wrong, `${id} hangs below ${parent.session}`]
}

/** What was said to a child, and that it is to close, is there once; a child that is closed takes nothing more. */
function checkWords(session: string, events: readonly Event[], logs: Logs): readonly string[] {
  const handed = new Set(events.flatMap((event) => (event.type === 'agent.custom_tool_use' ? [event.call] : [])))
  return callsIn(events).flatMap(({ key, outside: { orders = [] } }) =>
    orders.flatMap(({ type, session: to = '', call }) => {
      if (!handed.has(key) || (type !== 'say' && type !== 'close')) return []
      const word = call === undefined ? `terret:task:${key}` : `terret:answer:${call}:${key}`
      const id = type === 'close' ? `terret:parent:close:${key}` : word
      const log = logs.get(to) ?? []
      const times = idsIn(log).filter((name) => name === id).length
      if (times === 1 || (times === 0 && isClosed(log))) return []
      return [`${times === 0 ? 'lost' : 'twice'}: ${session} sent ${id} to ${to}, where it is ${times} times`]
    }),
  )
}

/** Each end of a detached child is one message of its parent, each end of another one answer. Each question at most one. */
function checkReports(child: Child, logs: Logs, counts: Counts, known: Map<string, Set<string>>): readonly string[] {
  const { id, events, parent } = child
  const above = logs.get(parent.session) ?? []
  const wrong: string[] = []
  const names = known.get(parent.session) ?? new Set()
  known.set(parent.session, names)
  const ends = events.filter(({ type }) => type === 'run.settled').map(({ seq }) => `terret:child:${id}:${seq}`)
  const questions = callsIn(events).map(({ key }) => `terret:child:${id}:${key}`)
  for (const name of [...ends, ...questions]) {
    const there = above.filter((event) => 'id' in event && event.id === name)
    const [report] = there
    names.add(name)
    if (there.length > 1) counts.twice += 1
    if (there.length > 1) wrong.push(`twice: ${name} is ${there.length} times in ${parent.session}`)
    const untold = parent.detached === true && endedFromAbove(events, name)
    if (report === undefined && ends.includes(name) && !isClosed(above) && !untold) {
      counts.lost += 1
      wrong.push(`lost: ${name} never came to ${parent.session}`)
    }
    if (untold && report !== undefined)
      wrong.push(`${id} was stopped from above, and reported that to ${parent.session} as ${name}`)
    if (!parent.detached || report === undefined) continue
    counts.reports += 1
    const times = above.filter((event) => event.type === 'model.started' && event.shows.includes(report.seq)).length
    if (times > 0) counts.shown += 1
    if (times > 1) counts.twice += 1
    if (times > 1) wrong.push(`twice: ${name} was shown ${times} times to ${parent.session}`)
    if (times === 0 && !wasStopped(above, report.seq)) {
      counts.lost += 1
      wrong.push(`lost: ${name} was never shown to ${parent.session}`)
    }
  }
  return wrong
}

/** A detached child that its parent stopped, or that was stopped with it, does not report that end. */
function endedFromAbove(events: readonly Event[], name: string): boolean {
  const seq = Number(name.slice(name.lastIndexOf(':') + 1))
  const end = events.find((event) => event.seq === seq)
  if (end?.type !== 'run.settled' || end.outcome.type !== 'interrupted') return false
  const stop = events.findLast((event) => event.seq < seq && event.type === 'user.interrupt' && event.mode === 'stop')
  return stop?.type === 'user.interrupt' && stop.id.startsWith('terret:parent:')
}

/** Nothing was asked of the model after this, because the session was stopped or closed, or waits for words to go on with. */
function wasStopped(events: readonly Event[], seq: number): boolean {
  return events.some((event) => {
    if (event.seq < seq) return false
    return event.type === 'session.closed' || (event.type === 'user.interrupt' && event.mode === 'stop')
  })
}

const KINDS = ['terret:task', 'terret:parent:', 'terret:answer:']
const LATE = 'terret:late:'

/**
 * What the harness put into an inbox is of a known kind. A report is of a child's end or question; what came late is of a `once` call
 * of this session that had begun: how it ended after the session had gone to another worker.
 */
function checkStrangers(
  session: string,
  events: readonly Event[],
  known: ReadonlySet<string> = new Set(),
): readonly string[] {
  const begun = new Set(
    callsOf('', events).flatMap(({ effect, intents }) => (effect === 'once' ? (intents[0]?.call ?? []) : [])),
  )
  return idsIn(events).flatMap((id) => {
    if (!id.startsWith('terret:')) return []
    return isOfSomebody(id, begun, known) ? [] : [`${session}: ${id} is of nobody`]
  })
}

function isOfSomebody(id: string, begun: ReadonlySet<string>, known: ReadonlySet<string>): boolean {
  if (id.startsWith(LATE)) return begun.has(id.slice(LATE.length))
  if (id.startsWith('terret:child:')) return [...known].some((name) => id === name || id.startsWith(`${name}:`))
  return KINDS.some((kind) => id.startsWith(kind))
}

/** Times of two logs are compared: what began or ended this close to the stop may have been on either side of it. */
const NEAR_MS = 100

/** Whoever worked below a session as it was stopped was told, or had ended soon after. */
function checkStops(session: string, events: readonly Event[], logs: Logs): readonly string[] {
  return stopsIn(events).flatMap((stop) =>
    [...logs].flatMap(([id, log]) => {
      const run = id.startsWith(`${session}~`) ? runAcross(log, stop.at) : null
      if (run === null || run.some((event) => event.type === 'user.interrupt' && event.mode === 'stop')) return []
      return [`${id} worked on after ${session} was stopped at event ${stop.seq}`]
    }),
  )
}

/** A child that was told to stop while it worked asked for nothing more until its run had ended. */
function checkObeys({ id, events, parent }: Child, counts: Counts): readonly string[] {
  const wrong: string[] = []
  let open = false
  let told = 0
  for (const event of events) {
    if (event.type === 'run.started') open = true
    else if (event.type === 'run.settled') {
      if (told > 0) countAt(counts.stopped, parent.depth)
      open = false
      told = 0
    } else if (open && event.type === 'user.interrupt' && event.id.startsWith('terret:parent:')) told = event.seq
    if (told > 0 && WORK.has(event.type))
      wrong.push(`${id} was told to stop at event ${told}, and did ${event.type} at ${event.seq}`)
  }
  return wrong
}

/**
 * Where a session was stopped: the end of its run, or the word itself while it rested. One that its parent closes while it rests tells
 * those below when it is closed.
 */
function stopsIn(events: readonly Event[]): readonly Event[] {
  let open = false
  let closing = false
  return events.filter((event) => {
    if (event.type === 'run.started') open = true
    if (event.type === 'user.interrupt' && !open && event.closes) closing = true
    if (event.type === 'user.interrupt') return !open && event.mode === 'stop' && !event.closes
    if (event.type === 'session.closed') return closing
    if (event.type !== 'run.settled') return false
    open = false
    return event.outcome.type === 'interrupted'
  })
}

const WORK: ReadonlySet<Event['type']> = new Set(['model.started', 'agent.tool_use', 'agent.custom_tool_use'])

/** The events of the run that was open at this time, with some time on both sides; null if none was. */
function runAcross(events: readonly Event[], at: number): readonly Event[] | null {
  const begin = events.findLastIndex((event) => event.type === 'run.started' && event.at < at - NEAR_MS)
  if (begin < 0) return null
  const rest = events.slice(begin)
  const end = rest.findIndex((event) => event.type === 'run.settled')
  const settled = rest[end]
  return settled === undefined || settled.at <= at + NEAR_MS ? null : rest.slice(0, end)
}

function isClosed(events: readonly Event[]): boolean {
  return events.some(({ type }) => type === 'session.closed')
}

function idsIn(events: readonly Event[]): readonly string[] {
  return events.flatMap((event) => ('id' in event ? [event.id] : []))
}
