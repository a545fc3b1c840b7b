// A session and the children below it, as rows and as a drawing: the agent, state, waits, cost and time of each. Pure,
// from cards: no log is read here.
import type { CallKey, Frozen } from '../kernel/content.ts'
import type { Card } from '../ports/store.ts'
import { BUDGET, type OwnPending } from './pending-calls.ts'
import { usdOf, usdText } from './usd.ts'

/** One session of a tree. Rows come parents first, each followed by those below it. */
export type TreeRow = Frozen<{
  /** The id of the session. */
  session: string
  /** Null for the root of the rows. */
  parent: string | null
  /** The part of its id after its parent's, as `~3.0`. The root has its whole id. */
  name: string
  /** How many levels below the first row it is. */
  depth: number
  /** The agent of the session. */
  agent: string
  /** Its activity, or how its last run ended. */
  state: string
  /** What it waits for. Empty for nothing. */
  waits: readonly TreeWait[]
  /** In dollars: alone, and with all sessions below it. */
  costUsd: number
  /** What it and all sessions below it have spent, in dollars. */
  treeCostUsd: number
  /** When it was created, if that is known, and its last event. */
  began: number | null
  /** The time of its last event, in ms since 1970. */
  at: number
  /** Whether it has something to do now. */
  works: boolean
}>

/** The thing a session waits for: a person, a child, or its provider. */
export type TreeWait = Frozen<
  | { type: 'approval' | 'answer'; call: CallKey; tool: string; says: string }
  | { type: 'money' }
  | { type: 'child'; session: string; name: string }
  | { type: 'call'; call: CallKey }
  | { type: 'provider'; says: string }
>

/** Data that cards do not contain. */
export type TreeExtras = {
  /** When each session was created. */
  readonly began?: ReadonlyMap<string, number>
  /** The calls in the tree that wait for people. */
  readonly pending?: readonly Pick<OwnPending, 'sessionId' | 'callId' | 'tool' | 'args' | 'needs'>[]
}

/** `cards` are those of one tree, or of one session and all below it, in any order. */
export function treeRows(cards: readonly Card[], { began, pending = [] }: TreeExtras = {}): readonly TreeRow[] {
  const known = new Map(cards.map((card) => [card.session, card]))
  const below = new Map<string | null, Card[]>()
  for (const card of cards) {
    const above = parentIn(card, known)
    const siblings = below.get(above)
    if (siblings) siblings.push(card)
    else below.set(above, [card])
  }
  const rows = (parent: string | null, depth: number): readonly TreeRow[] =>
    (below.get(parent) ?? []).toSorted(compareByCall).flatMap((card) => {
      const { session, agent, at, cost } = card
      const under = rows(session, depth + 1)
      const name = parent === null ? session : nameIn(session, parent)
      const costUsd = usdOf(cost)
      const treeCostUsd = under.reduce((sum, row) => (row.parent === session ? sum + row.treeCostUsd : sum), costUsd)
      const state = { state: stateOf(card), waits: waitsOf(card, known, pending), works: isWorking(card) }
      const times = { began: began?.get(session) ?? null, at }
      return [{ session, parent, name, depth, agent, ...state, costUsd, treeCostUsd, ...times }, ...under]
    })
  return rows(null, 0)
}

/** One word: its activity, or how it ended. */
export function stateOf(card: Card): string {
  const { status, outcome } = card
  if (isQuarantined(card)) return 'quarantined'
  if (card.held) return 'held'
  return status === 'idle' ? (outcome ?? 'new') : status
}

/** It failed so often in a row that workers leave it alone. */
export function isQuarantined({ trouble }: Card): boolean {
  return trouble?.until === null
}

/** It has something to do, or waits for a person or a program. */
export function isWorking({ status, due }: Pick<Card, 'status' | 'due'>): boolean {
  return due !== null || (status !== 'idle' && status !== 'terminated')
}

/** The name of a child below this session: `~3.0`. */
export function nameIn(session: string, above: string): string {
  return session.startsWith(`${above}~`) ? session.slice(above.length) : session
}

/** The nearest known session above it: a child's id begins with its parent's. */
export function parentIn({ session, root }: Card, known: ReadonlyMap<string, Card>): string | null {
  for (let name = session; name !== root; ) {
    const at = name.lastIndexOf('~')
    if (at < 0) return null
    name = name.slice(0, at)
    if (known.has(name)) return name
  }
  return null
}

/** Children are named by the call that created them: 3.0 before 12.0. */
export function compareByCall(a: Card, b: Card): number {
  const [left, right] = [partsOf(a), partsOf(b)]
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    const apart = (left[i] ?? 0) - (right[i] ?? 0)
    if (apart !== 0 && !Number.isNaN(apart)) return apart
  }
  return left.length - right.length || (a.session < b.session ? -1 : 1)
}

function partsOf({ session }: Card): readonly number[] {
  return session
    .slice(session.lastIndexOf('~') + 1)
    .split('.')
    .map(Number)
}

function waitsOf(card: Card, known: ReadonlyMap<string, Card>, pending: TreeExtras['pending']): readonly TreeWait[] {
  const { session, waits, asks, outage } = card
  const own = (pending ?? []).filter(({ sessionId }) => sessionId === session)
  const told = own.map((each): TreeWait => {
    if (each.callId === BUDGET) return { type: 'money' }
    return { type: each.needs, call: each.callId, tool: each.tool, says: waitQuestion(each) }
  })
  const named = new Set(own.map(({ callId }) => callId))
  const others = [...asks, ...waits]
    .filter((call) => !named.has(call))
    .flatMap((call) => waitsOfCall(call, card, known))
  return [...told, ...others, ...(outage ? [{ type: 'provider', says: outage.reason } as const] : [])]
}

/** A call of which only the key is known. A call that started several children waits for those still working. */
function waitsOfCall(call: CallKey, { session }: Card, known: ReadonlyMap<string, Card>): readonly TreeWait[] {
  const born = `${session}~${call}`
  const children = [...known.values()].filter((card) => {
    const { session: id } = card
    const isIts = id === born || (id.startsWith(`${born}.`) && !id.slice(born.length).includes('~'))
    return isIts && isWorking(card)
  })
  if (children.length === 0) return [{ type: 'call', call }]
  return children.map((child) => ({ type: 'child', session: child.session, name: nameIn(child.session, session) }))
}

function waitQuestion({ args }: { readonly args: OwnPending['args'] }): string {
  const { question } = (args ?? {}) as { readonly question?: unknown }
  return typeof question === 'string' ? question : JSON.stringify(args)
}

function waitText(wait: TreeWait): string {
  switch (wait.type) {
    case 'approval':
      return `approval of ${wait.tool} (call ${wait.call}): ${wait.says}`
    case 'answer':
      return `an answer (call ${wait.call}): ${wait.says}`
    case 'money':
      return 'more money'
    case 'child':
      return wait.name
    case 'call':
      return `call ${wait.call}`
    case 'provider':
      return `its provider: ${wait.says}`
  }
}

export type TreeDrawing = {
  readonly now: number
  /** Makes text of others safe to show on one line. */
  readonly safe: (text: string) => string
  /** The name shown for the root. */
  readonly top?: (session: string) => string
}

/** One line for each row: the tree, then state, cost with all below, and time; then its waits. */
export function drawTree(rows: readonly TreeRow[], { now, safe, top = (id) => id }: TreeDrawing): readonly string[] {
  const branches = branchesOf(rows)
  const heads = rows.map(({ name, agent, depth }, i) => {
    return `${branches[i] ?? ''}${safe(depth === 0 ? top(name) : name)} ${safe(agent)}`
  })
  const width = Math.max(0, ...heads.map((head) => head.length))
  const states = Math.max(0, ...rows.map(({ state }) => state.length))
  return rows.map((row, i) => {
    const cost = row.treeCostUsd > 0 ? usdText(row.treeCostUsd * 1_000_000) : ''
    const took = row.began === null ? '' : durationText((row.works ? now : row.at) - row.began)
    const waits = row.waits.map((wait) => safe(waitText(wait))).join('; ')
    const cells = [(heads[i] ?? '').padEnd(width), row.state.padEnd(states), cost.padStart(8), took.padStart(7)]
    return `${cells.join('  ')}${waits === '' ? '' : `  waits for ${waits}`}`.trimEnd()
  })
}

/** The branch lines before each row. A row is the last child if no later row has the same parent. */
function branchesOf(rows: readonly TreeRow[]): readonly string[] {
  const last = new Map<string | null, string>()
  for (const { parent, session } of rows) last.set(parent, session)
  const open: boolean[] = []
  return rows.map(({ session, parent, depth }) => {
    if (depth === 0) return ''
    const isLast = last.get(parent) === session
    open.length = depth
    const before = open.slice(1).map((goesOn) => (goesOn ? '│  ' : '   '))
    open[depth] = !isLast
    return `${before.join('')}${isLast ? '└─ ' : '├─ '}`
  })
}

const MINUTE_S = 60
const HOUR_S = 3_600

const SECOND_MS = 1_000

/** `<1s`, `4s`, `2m 03s`, `1h 05m`. */
export function durationText(ms: number): string {
  if (ms < SECOND_MS) return '<1s'
  const seconds = Math.round(ms / SECOND_MS)
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0')
  if (seconds < MINUTE_S) return `${seconds}s`
  if (seconds < HOUR_S) return `${Math.floor(seconds / MINUTE_S)}m ${two(seconds % MINUTE_S)}s`
  return `${Math.floor(seconds / HOUR_S)}h ${two((seconds % HOUR_S) / MINUTE_S)}m`
}
