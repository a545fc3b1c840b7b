// A session as bars over time: runs, requests and calls, with the cost of each, on a scale that folds idle time. Pure,
// from the rows of a timeline.
import type { CallKey, Frozen, Usage } from '../kernel/content.ts'
import type { Card } from '../ports/store.ts'
import { IDLE_MS, type TimelineRow } from './timeline.ts'

/** One stretch of work in a session. */
export type Bar = Frozen<{
  /** Tells the bar from the others of the session, and stays the same while events come. */
  key: string
  /** What it stands for. A `child` is a call that another session answers. */
  kind: 'run' | 'model' | 'call' | 'child' | 'compacted'
  /** How far it is indented: a run 0, its requests 1, their calls 2. */
  depth: number
  /** The event to show for it. */
  seq: number
  /** The model or the tool, or what kind of bar it is. */
  name: string
  /** The same words as in a timeline's rows. */
  state: string
  /** When it began, in ms since 1970. */
  startedAt: number
  /** When it ended, in ms since 1970. Null while it goes on. */
  endedAt: number | null
  /** What it cost, in millionths of a dollar. */
  cost: number
  /** The tokens of the request. Null if they are not known. */
  usage: Usage | null
  /** Since when it waited for approval before it was started; null if it did not. */
  askedAt: number | null
  /** This session does not work on it. */
  outside: boolean
  /** The key of the call. Absent for bars that are no calls. */
  call?: CallKey
  /** The session that works on the call. Absent for none. */
  child?: string
  /** For a request: its number in the session. */
  turn?: number
}>

/** One stretch of a scale. */
export type Stretch = Frozen<{
  /** Where it begins, in ms since 1970. */
  from: number
  /** Where it ends, in ms since 1970. */
  to: number
  /** Where it begins on the scale, from 0 to 1. */
  x: number
  /** Its share of the scale, from 0 to 1. */
  width: number
  /** Nothing happens in it, so it has a fixed width, however long it was. */
  folded: boolean
}>
/** The time that a waterfall shows. Stretches in which nothing happens are drawn short. */
export type Scale = Frozen<{
  /** Where the time begins, in ms since 1970. */
  from: number
  /** Where it ends, in ms since 1970. */
  to: number
  /** The stretches of it, from left to right. */
  stretches: readonly Stretch[]
}>

/** In the order of their beginnings: a run before its requests, a request before its calls. */
export function barsOf(rows: readonly TimelineRow[]): readonly Bar[] {
  const bars: Bar[] = []
  let run: number | null = null
  for (const row of rows) {
    if (row.type === 'turn') {
      if (run === null) {
        run = bars.length
        const own = {
          key: `run:${row.run}`,
          kind: 'run',
          depth: 0,
          seq: row.run,
          name: 'run',
          state: 'running',
        } as const
        bars.push({ ...own, startedAt: row.at, endedAt: null, cost: 0, usage: null, askedAt: null, outside: false })
      }
      bars.push(modelBar(row))
    } else if (row.type === 'call') bars.push(callBar(row))
    else if (row.type === 'compacted' && row.cost > 0) bars.push(compactedBar(row, run === null ? 0 : 1))
    else if (row.type === 'settled' && run !== null) {
      const { startedAt, endedAt, cost, outcome } = row
      const bar = bars[run]
      if (bar) bars[run] = { ...bar, startedAt: startedAt ?? bar.startedAt, endedAt, cost, state: outcome.type }
      run = null
    }
  }
  return bars
}

function modelBar(row: Extract<TimelineRow, { type: 'turn' }>): Bar {
  const { seq, at, endedAt, state, route, cost, usage, n: turn } = row
  const own = { key: `model:${seq}`, kind: 'model', depth: 1, seq, name: route ?? 'model' } as const
  return { ...own, state, startedAt: at, endedAt, cost, usage, askedAt: null, outside: false, turn }
}

/** A summary is made with a model and has a cost. */
function compactedBar(
  { seq, at, cost, usage, failed }: Extract<TimelineRow, { type: 'compacted' }>,
  depth: 0 | 1,
): Bar {
  const own = { key: `compacted:${seq}`, kind: 'compacted', depth, seq, name: 'summary' } as const
  const state = failed === undefined ? 'ok' : 'failed'
  return { ...own, state, startedAt: at, endedAt: at, cost, usage, askedAt: null, outside: false }
}

/** A call that waits for a person has no duration before it is started. */
function callBar(row: Extract<TimelineRow, { type: 'call' }>): Bar {
  const { seq, at, call, tool, state, startedAt, endedAt, cost, usage, child, gate, outside } = row
  const kind = child === null ? 'call' : 'child'
  const own = { key: `call:${call}`, kind, depth: 2, seq: row.result ?? seq, name: tool, state } as const
  const times = { startedAt: startedAt ?? endedAt ?? at, endedAt: startedAt === null ? (endedAt ?? at) : endedAt }
  const waits = { askedAt: gate === 'ask' ? at : null, outside }
  return { ...own, ...times, ...waits, cost, usage, call, ...(child === null ? {} : { child }) }
}

/** A session below, and its rows if its log was read. */
export type ChildRows = {
  /** The card of the session. */
  readonly card: ChildCard
  /** The rows of its log. Null if it was not read. */
  readonly rows: readonly TimelineRow[] | null
}
type ChildCard = Pick<
  Card,
  'session' | 'agent' | 'seq' | 'cost' | 'tokens' | 'at' | 'created' | 'status' | 'outcome' | 'due'
>

/**
 * A bar of one session of a tree. `cost` and `tokens` include everything below it: for a run its requests, calls and
 * children, for a child all of its own. The bars of depth 0 together have the sums of the tree.
 */
export type TreeBar = Bar &
  Frozen<{
    /** The session that the bar is of. */
    session: string
    /** Input and output tokens of it and everything below it. */
    tokens: number
  }>

/**
 * The bars of a session, with its children nested below the calls that started them. A child whose call is not among
 * the rows comes last.
 */
export function treeBars(
  session: string,
  rows: readonly TimelineRow[],
  children: readonly ChildRows[],
): readonly TreeBar[] {
  return levelOf(session, rows, 0, new Map(children.map((child) => [child.card.session, child])))
}

type ChildrenById = ReadonlyMap<string, ChildRows>

function levelOf(
  session: string,
  rows: readonly TimelineRow[],
  depth: number,
  known: ChildrenById,
): readonly TreeBar[] {
  const below = [...known.values()].filter(({ card }) => isChildOf(card.session, `${session}~`))
  const placed = new Set<ChildRows>()
  const found: TreeBar[] = []
  let run = -1
  for (const bar of barsOf(rows)) {
    const born = bar.call === undefined ? null : `${session}~${bar.call}`
    const its = below.filter(({ card }) => card.session === born || isChildOf(card.session, `${born}.`))
    for (const child of its) placed.add(child)
    const sums = its.map(({ card }) => sumOf(card.session, known))
    const cost = (bar.kind === 'run' ? 0 : bar.cost) + sumAll(sums.map((sum) => sum.cost))
    const tokens = tokensIn(bar.usage) + sumAll(sums.map((sum) => sum.tokens))
    if (bar.kind === 'run') run = found.length
    else if (bar.depth === 0) run = -1
    const above = bar.kind === 'run' ? undefined : found[run]
    if (above) found[run] = { ...above, cost: above.cost + cost, tokens: above.tokens + tokens }
    const at = bar.depth + depth
    found.push({ ...bar, key: `${session} ${bar.key}`, depth: at, session, cost, tokens })
    const [only] = its
    if (its.length === 1 && only) found.push(...levelOf(only.card.session, only.rows ?? [], at + 1, known))
    else for (const child of its) found.push(...childBars(child, at + 1, known))
  }
  // If a child's log was not read, its sums include everything below it.
  if (rows.length > 0) for (const child of below) if (!placed.has(child)) found.push(...childBars(child, depth, known))
  return found
}

function childBars(child: ChildRows, depth: number, known: ChildrenById): readonly TreeBar[] {
  const { session, agent, seq, at, created, status, outcome, due } = child.card
  const works = due !== null || (status !== 'idle' && status !== 'terminated')
  const own = { key: `child ${session}`, kind: 'child', depth, seq, name: agent, child: agent, session } as const
  const times = { startedAt: created ?? at, endedAt: works ? null : at, askedAt: null, outside: true }
  const bar = { ...own, state: works ? 'running' : (outcome ?? 'ok'), ...times, usage: null, ...sumOf(session, known) }
  return [bar, ...levelOf(session, child.rows ?? [], depth + 1, known)]
}

/** True if the id is the parent's id and one part more. */
function isChildOf(id: string, before: string): boolean {
  return id.startsWith(before) && !id.slice(before.length).includes('~')
}

/** The sums of a session and all below it. */
function sumOf(session: string, known: ChildrenById): { readonly cost: number; readonly tokens: number } {
  const cards = [...known.values()].flatMap(({ card }) =>
    card.session === session || card.session.startsWith(`${session}~`) ? [card] : [],
  )
  return { cost: sumAll(cards.map(({ cost }) => cost)), tokens: sumAll(cards.map(({ tokens = 0 }) => tokens)) }
}

function tokensIn(usage: Usage | null): number {
  return usage === null ? 0 : usage.inputTokens + usage.outputTokens
}

function sumAll(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0)
}

/** The width of a folded stretch as a share of the whole, and the most for all of them together. */
const FOLD_WIDTH = 0.03
const FOLDS_WIDTH_MAX = 0.4

/** A scale over all bars. `now` ends those that go on. Gaps of at least `idleMs` between working times are folded. */
export function scaleOf(bars: readonly Bar[], now: number, idleMs = IDLE_MS): Scale {
  const busy = mergeStretches(
    bars.flatMap((bar) => busyTimes(bar, now)),
    idleMs,
  )
  const [first] = busy
  const last = busy.at(-1)
  if (!first || !last) return { from: now, to: now, stretches: [] }
  const folds = Math.min(FOLDS_WIDTH_MAX, FOLD_WIDTH * (busy.length - 1))
  // Work without duration still gets a place.
  const total = busy.reduce((sum, [from, to]) => sum + Math.max(1, to - from), 0)
  const stretches: Stretch[] = []
  let x = 0
  for (const [i, [from, to]] of busy.entries()) {
    const before = busy[i - 1]
    if (before) {
      const width = folds / (busy.length - 1)
      stretches.push({ from: before[1], to: from, x, width, folded: true })
      x += width
    }
    const width = ((1 - folds) * Math.max(1, to - from)) / total
    stretches.push({ from, to, x, width, folded: false })
    x += width
  }
  return { from: first[0], to: last[1], stretches }
}

/**
 * A run includes its waits, so only the work in it counts. For work done elsewhere only its beginning and end count.
 */
function busyTimes(bar: Bar, now: number): readonly (readonly [number, number])[] {
  const { kind, startedAt, endedAt, askedAt, outside } = bar
  if (kind === 'run') return []
  const end = endedAt ?? now
  const asked = askedAt === null ? [] : [[askedAt, askedAt] as const]
  // It is still waiting, so the scale extends to now.
  if (bar.state === 'asked') return [...asked, [now, now]]
  return [
    ...asked,
    ...(outside
      ? ([
          [startedAt, startedAt],
          [end, end],
        ] as const)
      : [[startedAt, end] as const]),
  ]
}

/** Working times, merged where the gaps between them are short. */
function mergeStretches(
  works: readonly (readonly [number, number])[],
  gap: number,
): readonly (readonly [number, number])[] {
  const busy: [number, number][] = []
  for (const [from, to] of works.toSorted((a, b) => a[0] - b[0])) {
    const last = busy.at(-1)
    if (last && from - last[1] < gap) last[1] = Math.max(last[1], to)
    else busy.push([from, to])
  }
  return busy
}

/** The position of a moment on the scale, from 0 to 1. */
export function placeOn({ stretches }: Scale, at: number): number {
  const stretch = stretches.find(({ to }) => at <= to) ?? stretches.at(-1)
  if (!stretch) return 0
  const { from, to, x, width } = stretch
  const share = to === from ? 0 : (Math.min(Math.max(at, from), to) - from) / (to - from)
  return x + width * share
}
