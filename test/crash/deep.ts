// A tree of three levels beside the twenty children of a round, and a person who stops it while it works: the root, at times one of the
// children first, or closes one. What the person does is done as a session's handle does it, from a process that is never killed.
import { setTimeout as sleep } from 'node:timers/promises'
import { actAsOwner } from '../../src/runtime/loop/act-as-owner.ts'
import type { Services } from '../../src/runtime/state/runtime-ports.ts'
import type { Event } from '../../src/kernel/event.ts'
import { Fault } from '../../src/kernel/failure.ts'
import type { Card } from '../../src/ports/store.ts'
import { sendInterrupt } from '../../src/sessions/interrupt.ts'
import { callsOf, refoldSession } from './log-check.ts'
import type { Plan, PlannedCall } from './plan.ts'
import type { Chance } from './random.ts'
import { creation, message } from './stage.ts'
import { checkTrees, type Logs } from './tree-check.ts'

const LEVELS = 3
/** Two below each, down to the leaves. */
const CHILDREN = 2 + 4 + 8
/** Longer than a tree may take to rest after its stop: a leaf that no stop reached is seen. */
const SLOW_MS = 60_000
export const REST_MS = 40_000
const WORKING_MS = 15_000
const CLOSE_MS = 10_000

/** What happened to the deep trees of a run. A run that shows none of it has shown nothing about stops. */
export type Stops = {
  trees: number
  children: number
  reports: number
  lost: number
  twice: number
  /** Roots that were stopped while children worked: in a run of their own, or while they rested. */
  running: number
  resting: number
  /** By a person, while they worked. */
  childrenStopped: number
  childrenClosed: number
  /** Closed by the model of their parent. */
  closedFromAbove: number
  /** Runs that ended because they were told from above, by their depth. */
  fromAbove: number[]
  /** Reports of children that had ended before their root was stopped. */
  before: number
}

export function noStops(): Stops {
  return {
    trees: 0,
    children: 0,
    reports: 0,
    lost: 0,
    twice: 0,
    running: 0,
    resting: 0,
    childrenStopped: 0,
    childrenClosed: 0,
    closedFromAbove: 0,
    fromAbove: [0, 0, 0],
    before: 0,
  }
}

/** A tree that works for a minute unless it is stopped. */
export async function beginDeep({ store }: Services, root: string, chance: Chance): Promise<void> {
  await store.commit([creation(root, store.now())])
  await store.commit([{ session: root, lane: 'inbox', events: [message('m', planOf(chance, LEVELS))] }])
}

/** Whoever has children works on beside them, waits for one, or rests; now and then it closes one. */
function planOf(chance: Chance, levels: number): Plan {
  if (levels === 0) return leafOf({ tool: 'send', ms: chance.integer(0, 300), bytes: 20 })
  const slow = leafOf({ tool: 'look', ms: SLOW_MS, bytes: 20 })
  const tasks = [planOf(chance, levels - 1), levels === 1 ? slow : planOf(chance, levels - 1)]
  const beside = chance.weighted<readonly PlannedCall[]>([
    [[{ tool: 'put', ms: chance.integer(100, 1_500), bytes: 20 }], 2],
    [[{ order: 'wait', which: chance.integer(0, 1) }], 2],
    [[{ order: 'close', which: chance.integer(0, 1) }], 1],
    [[], 3],
  ])
  const first = { thinkMs: 5, flaky: false, calls: [{ order: 'many', tasks } as const] }
  return { turns: beside.length === 0 ? [first] : [first, { thinkMs: 5, flaky: false, calls: beside }] }
}

function leafOf(call: PlannedCall): Plan {
  return { turns: [{ thinkMs: 5, flaky: false, calls: [call] }] }
}

/** The person: looks on for a while, stops or closes some of the children, and in the end the root. */
export async function stopDeep(services: Services, root: string, chance: Chance, stops: Stops): Promise<void> {
  if (chance.happens(0.8)) await deepWorks(services, root)
  await sleep(chance.between(0, 1_200))
  if (chance.happens(0.4)) {
    const closed = await ofOneThatWorks(services, root, chance, (session) => close(services, session))
    if (closed) stops.childrenClosed += 1
    await sleep(chance.between(0, 300))
  }
  if (chance.happens(0.4)) {
    const stopped = await ofOneThatWorks(services, root, chance, (session) => stop(services, session))
    if (stopped) stops.childrenStopped += 1
    await sleep(chance.between(0, 300))
  }
  const cards = await services.store.list({ root, limit: 100 })
  const status = await stop(services, root)
  if (!cards.some((card) => card.parent !== undefined && works(card))) return
  if (status === 'idle') stops.resting += 1
  else stops.running += 1
}

/** Until some child at the bottom is there and works, or it took too long: a worker that stands still is killed meanwhile. */
async function deepWorks({ store }: Services, root: string): Promise<void> {
  const until = performance.now() + WORKING_MS
  while (performance.now() < until) {
    const cards = await store.list({ root, limit: 100 })
    if (cards.some((card) => isLeaf(card.session) && works(card))) return
    await sleep(20)
  }
}

function works({ status, due }: Card): boolean {
  return status === 'running' || due !== null
}

async function ofOneThatWorks(
  { store }: Services,
  root: string,
  chance: Chance,
  act: (session: string) => Promise<unknown>,
): Promise<boolean> {
  const cards = await store.list({ root, limit: 100 })
  const working = cards.filter((card) => card.parent !== undefined && works(card))
  if (working.length === 0) return false
  try {
    await act(chance.pick(working).session)
    return true
  } catch (error) {
    // Its parent closed it first, or a report of a child of it let it go on.
    if (error instanceof Fault && (error.code === 'session_closed' || error.code === 'session_busy')) return false
    throw error
  }
}

let ids = 0

/** Returns how the session stood before. */
async function stop({ store }: Services, session: string): Promise<Card['status'] | undefined> {
  ids += 1
  const event = { type: 'user.interrupt', id: `stop-${ids}`, mode: 'stop' } as const
  const status = (await store.card(session))?.status
  await sendInterrupt({ store }, session, event)
  return status
}

/** Stopped first, and closed when a worker has brought it to rest. One that does not rest is seen later. */
async function close(services: Services, session: string): Promise<void> {
  const { store } = services
  await stop(services, session)
  const until = performance.now() + CLOSE_MS
  for (let card = await store.card(session); card && works(card); card = await store.card(session)) {
    if (performance.now() > until) return
    await sleep(20)
  }
  await actAsOwner(services, session, async ({ closed }) => ({
    value: null,
    events: closed ? [] : [{ type: 'session.closed' }],
  }))
}

/** A person says one more thing to a tree that was stopped: all that came to the root meanwhile is read. */
export async function goOn({ store }: Services, root: string): Promise<void> {
  await store.commit([{ session: root, lane: 'inbox', events: [message('again', { turns: [] })] }])
}

/** What is wrong with a tree that was stopped. `went`: somebody let its root go on after that. */
export function checkDeep(root: string, logs: Logs, went: boolean, stops: Stops): readonly string[] {
  const trees = checkTrees(logs)
  const wrong = [...trees.wrong]
  const events = logs.get(root) ?? []
  const told = events.findLast((event) => event.type === 'user.interrupt')
  if (logs.size - 1 > CHILDREN) wrong.push(`${root} has ${logs.size - 1} children, not ${CHILDREN} or fewer`)
  if (told === undefined) wrong.push(`${root} was never told to stop`)
  for (const [session, log] of logs) {
    if (worksToItsEnd(session, log)) wrong.push(`${session} worked to its end, and ${root} had been stopped`)
  }
  if (went && refoldSession(events).end.unshown.length > 0)
    wrong.push(`${root} went on, and has not read all that came to it`)
  stops.trees += 1
  stops.children += logs.size - 1
  stops.reports += trees.reports
  stops.lost += trees.lost
  stops.twice += trees.twice
  stops.closedFromAbove += closedFromAbove(logs)
  stops.before += events.filter((event) => isReport(event) && event.seq < (told?.seq ?? 0)).length
  trees.stopped.forEach((count, depth) => {
    stops.fromAbove[depth] = (stops.fromAbove[depth] ?? 0) + count
  })
  return wrong
}

function isReport(event: Event): boolean {
  return event.type === 'user.message' && event.report !== undefined
}

/** A leaf's one call that reads is the slow one. */
function worksToItsEnd(session: string, events: readonly Event[]): boolean {
  if (!isLeaf(session)) return false
  return callsOf(session, events).some(({ effect, results }) => effect === 'read' && results[0]?.status === 'ok')
}

function isLeaf(session: string): boolean {
  return session.split('~').length === LEVELS + 1
}

function closedFromAbove(logs: Logs): number {
  const closed = [...logs.values()].filter((events) =>
    events.some((event) => event.type === 'user.interrupt' && event.closes === true),
  )
  return closed.length
}

/** What a run of many rounds must have shown. */
export function missedStops(stops: Stops): readonly string[] {
  const { running, resting, childrenStopped, childrenClosed, closedFromAbove: closed, fromAbove, before } = stops
  const counts: readonly (readonly [string, number])[] = [
    ['root was stopped in a run, while its children worked', running],
    ['root was stopped that rested, while its children worked', resting],
    ['child was stopped by a person', childrenStopped],
    ['child was closed by a person', childrenClosed],
    ['child was closed by its parent', closed],
    ['report came to a root before its stop', before],
    ...fromAbove.map((count, i) => [`run at depth ${i + 1} was stopped from above`, count] as const),
  ]
  return counts.flatMap(([what, count]) => (count > 0 ? [] : [`no ${what}`]))
}

export function stopsText(stops: Stops): readonly string[] {
  const { trees, children, reports, lost, twice, running, resting, fromAbove, before } = stops
  const { childrenStopped, childrenClosed, closedFromAbove: closed } = stops
  return [
    `trees of three levels ${trees}: children ${children}, reports ${reports}, lost ${lost}, twice ${twice}`,
    `roots stopped while children worked ${running + resting} (in a run ${running}, at rest ${resting}); reports that had come before ${before}`,
    `runs stopped from above, by depth ${fromAbove.join(', ')}; children stopped by a person ${childrenStopped}, closed by a person ${childrenClosed}, closed by their parent ${closed}`,
  ]
}
