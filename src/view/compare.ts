// Two runs beside each other: what people said and what each turn did, aligned, with the first place where they differ and what each
// cost and took. Ids and times differ between any two logs and are no difference. Pure.
import type { Frozen, Json } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { alignLines } from './diff.ts'
import { isObject } from './json.ts'
import { isCheckpoint } from './node-stops.ts'
import { textOf } from './text.ts'
import { type CallRow, timelineOf, type TimelineRow, type TurnRow } from './timeline.ts'
import { barsOf, scaleOf } from './waterfall.ts'

/** A log, and before it those it was forked from, each up to the event where it was left. */
export type ComparedLog = readonly Frozen<{ session: string; events: readonly Event[] }>[]

/** A message of a person, or a turn with its calls. `seq` is of the log of `session`. Costs are in millionths of a dollar. */
export type Step = Frozen<{
  type: 'message' | 'turn'
  session: string
  seq: number
  /** Counts turns from 1; 0 for a message. */
  n: number
  says: string
  state: string
  route: string | null
  calls: readonly ComparedCall[]
  cost: number
  tokens: number
  ms: number
}>
type ComparedCall = Frozen<{ tool: string; args: Json; state: string; result: string }>

/** What two steps that stand beside each other do not have in common. `alone`: one of them is not there. */
export type Difference = 'alone' | 'said' | 'calls' | 'arguments' | 'results' | 'model' | 'end'
export type Pair = Frozen<{ left: Step | null; right: Step | null; differs: readonly Difference[] }>

/** `ms` is the time in which something worked: waits for people are no part of it. */
export type Totals = Frozen<{ turns: number; calls: number; tokens: number; cost: number; ms: number }>

export type Comparison = Frozen<{
  pairs: readonly Pair[]
  /** The first pair that differs. Null: none does. */
  first: number | null
  left: Totals
  right: Totals
}>

export function compareLogs(left: ComparedLog, right: ComparedLog): Comparison {
  const [ours, theirs] = [stepsOf(left), stepsOf(right)]
  const pairs = pairsOf(ours, theirs)
  const first = pairs.findIndex(({ differs }) => differs.length > 0)
  return { pairs, first: first < 0 ? null : first, left: totalsOf(left, ours), right: totalsOf(right, theirs) }
}

/** Steps that say and ask the same are one pair; between those the others stand beside each other in their order. */
function pairsOf(left: readonly Step[], right: readonly Step[]): readonly Pair[] {
  const pairs: Pair[] = []
  let ours: Step[] = []
  let theirs: Step[] = []
  let [i, j] = [0, 0]
  const flush = (): void => {
    for (let k = 0; k < Math.max(ours.length, theirs.length); k++)
      pairs.push(pairOf(ours[k] ?? null, theirs[k] ?? null))
    ours = []
    theirs = []
  }
  for (const { mark } of alignLines(left.map(keyOf), right.map(keyOf))) {
    const [our, their] = [left[i], right[j]]
    if (mark === ' ') flush()
    if (mark === ' ') pairs.push(pairOf(our ?? null, their ?? null))
    if (mark === '-' && our) ours.push(our)
    if (mark === '+' && their) theirs.push(their)
    if (mark !== '+') i += 1
    if (mark !== '-') j += 1
  }
  flush()
  return pairs
}

/** Results are no part of it: the same question with another answer is the same step, which differs. */
function keyOf({ type, says, calls }: Step): string {
  return sorted([type, says, calls.map(({ tool, args }) => [tool, args])])
}

function pairOf(left: Step | null, right: Step | null): Pair {
  if (left === null || right === null || left.type !== right.type) return { left, right, differs: ['alone'] }
  const of = (pick: (call: ComparedCall) => Json): boolean =>
    sorted(left.calls.map(pick)) !== sorted(right.calls.map(pick))
  const tools = of(({ tool }) => tool)
  const found: readonly (Difference | false)[] = [
    left.says !== right.says && 'said',
    tools && 'calls',
    !tools && of(({ args }) => args) && 'arguments',
    !tools && of(({ state, result }) => [state, result]) && 'results',
    left.route !== right.route && 'model',
    left.state !== right.state && 'end',
  ]
  return { left, right, differs: found.filter((each) => each !== false) }
}

function stepsOf(logs: ComparedLog): readonly Step[] {
  const steps: Step[] = []
  let n = 0
  for (const [i, { session, events }] of logs.entries()) {
    const rows = timelineOf(events)
    const calls = new Map(rows.flatMap((row) => (row.type === 'call' ? [[row.call, row] as const] : [])))
    const contents = contentsOf(events)
    for (const row of rows) {
      if (row.type === 'message') steps.push(messageStep(session, row))
      if (row.type !== 'turn') continue
      // What a fork left without an answer was asked again in its own log.
      if (row.state === 'asked' && i < logs.length - 1) continue
      const own = row.calls.flatMap((key) => calls.get(key) ?? [])
      steps.push(turnStep(session, row, { n: ++n, calls: own, contents }))
    }
  }
  return steps
}

function messageStep(session: string, { seq, parts }: Extract<TimelineRow, { type: 'message' }>): Step {
  const files = parts.filter(({ type }) => type !== 'text').map((part) => sorted(part))
  const says = [textOf(parts), ...files].join('\n').trimEnd()
  const none = { state: 'said', route: null, calls: [], cost: 0, tokens: 0, ms: 0 } as const
  return { type: 'message', session, seq, n: 0, says, ...none }
}

type TurnParts = {
  readonly n: number
  readonly calls: readonly CallRow[]
  readonly contents: ReadonlyMap<number, string>
}

function turnStep(session: string, row: TurnRow, { n, calls, contents }: TurnParts): Step {
  const { seq, at, endedAt, state, route, usage, cost } = row
  const compared = calls.map(({ tool, args, state: end, result }): ComparedCall => {
    return { tool, args, state: end, result: contents.get(result ?? 0) ?? '' }
  })
  // A checkpoint is written for programs, and its state holds ids.
  const says = isCheckpoint(row) ? '' : textOf(row.parts)
  const times = calls.flatMap((call) => call.endedAt ?? [])
  const ms = Math.max(0, Math.max(endedAt ?? at, ...times) - at)
  const tokens = usage === null ? 0 : usage.inputTokens + usage.outputTokens
  const paid = cost + calls.reduce((sum, call) => sum + call.cost, 0)
  return { type: 'turn', session, seq, n, says, state, route, calls: compared, cost: paid, tokens, ms }
}

/** Long ones live beside the log, by their hash. */
function contentsOf(events: readonly Event[]): ReadonlyMap<number, string> {
  const contents = new Map<number, string>()
  const given = new Map<number, string>()
  for (const event of events) {
    if (event.type === 'user.custom_tool_result') given.set(event.seq, event.content)
    if (event.type !== 'agent.tool_result') continue
    const { seq, content, from } = event
    const said = typeof content === 'string' ? content : content.hash
    contents.set(seq, said === '' && from !== undefined ? (given.get(from) ?? '') : said)
  }
  return contents
}

function totalsOf(logs: ComparedLog, steps: readonly Step[]): Totals {
  const sum = (pick: (step: Step) => number): number => steps.reduce((all, step) => all + pick(step), 0)
  return {
    turns: steps.filter(({ type }) => type === 'turn').length,
    calls: sum(({ calls }) => calls.length),
    tokens: sum(({ tokens }) => tokens),
    cost: sum(({ cost }) => cost),
    ms: logs.reduce((all, { events }) => all + workedMs(events), 0),
  }
}

function workedMs(events: readonly Event[]): number {
  const { stretches } = scaleOf(barsOf(timelineOf(events)), events.at(-1)?.at ?? 0, 1)
  return stretches.reduce((all, { folded, from, to }) => (folded ? all : all + to - from), 0)
}

/** The same for the same fields in any order. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    isObject(each) ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1))) : each,
  )
}
