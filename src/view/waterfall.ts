// A session as bars over time: runs, requests and calls, with what each cost, on a scale that folds the time in which nothing happened.
// Pure, from the rows of a timeline.
import type { CallKey, Frozen, Usage } from '../kernel/content.ts'
import { IDLE_MS, type TimelineRow } from './timeline.ts'

/**
 * `seq` is the event to show for it. `endedAt` is null while it goes on. Costs are in millionths of a dollar. A `child` is a call that
 * another session answers. `outside`: nothing of this session works on it.
 */
export type Bar = Frozen<{
  key: string
  kind: 'run' | 'model' | 'call' | 'child'
  depth: number
  seq: number
  name: string
  /** As rows of a timeline say it. */
  state: string
  startedAt: number
  endedAt: number | null
  cost: number
  usage: Usage | null
  /** Since when it waited for somebody's approval before it was started. Null: it did not. */
  askedAt: number | null
  outside: boolean
  call?: CallKey
  child?: string
}>

/** One stretch of the scale, from 0 to 1. What is `folded` is drawn with a fixed width, however long it was. */
export type Stretch = Frozen<{ from: number; to: number; x: number; width: number; folded: boolean }>
export type Scale = Frozen<{ from: number; to: number; stretches: readonly Stretch[] }>

/** In the order they began: a run before its requests, a request before its calls. */
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
  const { seq, at, endedAt, state, route, cost, usage } = row
  const own = { key: `model:${seq}`, kind: 'model', depth: 1, seq, name: route ?? 'model' } as const
  return { ...own, state, startedAt: at, endedAt, cost, usage, askedAt: null, outside: false }
}

/** One that waits for a person has no length before it is started. */
function callBar(row: Extract<TimelineRow, { type: 'call' }>): Bar {
  const { seq, at, call, tool, state, startedAt, endedAt, cost, child, gate, outside } = row
  const kind = child === null ? 'call' : 'child'
  const own = { key: `call:${call}`, kind, depth: 2, seq: row.result ?? seq, name: tool, state } as const
  const times = { startedAt: startedAt ?? endedAt ?? at, endedAt: startedAt === null ? (endedAt ?? at) : endedAt }
  const waits = { askedAt: gate === 'ask' ? at : null, outside }
  return { ...own, ...times, ...waits, cost, usage: null, call, ...(child === null ? {} : { child }) }
}

/** What a folded stretch takes of the whole width, and all of them together at most. */
const FOLD_WIDTH = 0.03
const FOLDS_WIDTH_MAX = 0.4

/** A scale over all bars. `now` ends those that go on. Gaps of at least `idleMs` between what works are folded. */
export function scaleOf(bars: readonly Bar[], now: number, idleMs = IDLE_MS): Scale {
  const busy = merged(
    bars.flatMap((bar) => worksOf(bar, now)),
    idleMs,
  )
  const [first] = busy
  const last = busy.at(-1)
  if (!first || !last) return { from: now, to: now, stretches: [] }
  const folds = Math.min(FOLDS_WIDTH_MAX, FOLD_WIDTH * (busy.length - 1))
  // What took no time at all still has a place.
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

/** A run is as long as its waits, so only what works in it counts. Of what others work on, the beginning and the end do. */
function worksOf(bar: Bar, now: number): readonly (readonly [number, number])[] {
  const { kind, startedAt, endedAt, askedAt, outside } = bar
  if (kind === 'run') return []
  const end = endedAt ?? now
  const asked = askedAt === null ? [] : [[askedAt, askedAt] as const]
  // It waits still: the scale goes on to now.
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

/** Stretches in which something worked, those with short gaps between them as one. */
function merged(works: readonly (readonly [number, number])[], gap: number): readonly (readonly [number, number])[] {
  const busy: [number, number][] = []
  for (const [from, to] of works.toSorted((a, b) => a[0] - b[0])) {
    const last = busy.at(-1)
    if (last && from - last[1] < gap) last[1] = Math.max(last[1], to)
    else busy.push([from, to])
  }
  return busy
}

/** Where a moment stands on the scale, from 0 to 1. */
export function placeOn({ stretches }: Scale, at: number): number {
  const stretch = stretches.find(({ to }) => at <= to) ?? stretches.at(-1)
  if (!stretch) return 0
  const { from, to, x, width } = stretch
  const share = to === from ? 0 : (Math.min(Math.max(at, from), to) - from) / (to - from)
  return x + width * share
}
