// Compares two runs side by side: messages of people and the work of each turn, aligned, with the first difference, and
// the cost and time of each. Ids and times always differ and are ignored. Pure.
import type { Frozen, Json } from '../kernel/content.ts'
import type { Event } from '../kernel/event.ts'
import { alignLines } from './line-diff.ts'
import { isObject } from './untrusted-json.ts'
import { isCheckpoint } from './node-stops.ts'
import { textOf } from './shown-text.ts'
import { type CallRow, timelineOf, type TimelineRow, type TurnRow } from './timeline.ts'
import { barsOf, scaleOf } from './waterfall.ts'

/** A log, preceded by the logs it was forked from, each up to the event of the fork. */
export type ComparedLog = readonly Frozen<{ session: string; events: readonly Event[] }>[]

/** A message of a person, or a turn with its calls. */
export type ComparedStep = Frozen<{
  /** Whether it is a message or a turn. */
  type: 'message' | 'turn'
  /** The session whose log has it: a log may go on from that of another one. */
  session: string
  /** The event in that log which began it. */
  seq: number
  /** Counts turns from 1; 0 for a message. */
  n: number
  /** The text of the message or of the reply. */
  says: string
  /** How the turn ended, in the words of a timeline. `said` for a message. */
  state: string
  /** The model that answered. Null if that is not known, and for a message. */
  route: string | null
  /** The calls of the turn, with their results. */
  calls: readonly ComparedCall[]
  /** What the turn and its calls cost, in millionths of a dollar. */
  cost: number
  /** Input and output tokens of the turn. */
  tokens: number
  /** How long the turn and its calls took, in ms. */
  ms: number
}>
type ComparedCall = Frozen<{ tool: string; args: Json; state: string; result: string }>

/** The differences of two paired steps. `alone`: one of them is missing. */
export type Difference = 'alone' | 'said' | 'calls' | 'arguments' | 'results' | 'model' | 'end'
/** A step of one log beside the step of the other that belongs to it, or beside nothing. */
export type Pair = Frozen<{
  /** The step of the left log. Null if only the right one has it. */
  left: ComparedStep | null
  /** The step of the right log. Null if only the left one has it. */
  right: ComparedStep | null
  /** In what they differ. Empty: in nothing that is compared. */
  differs: readonly Difference[]
}>

/** The sums of one log. */
export type Totals = Frozen<{
  /** How many turns it has. */
  turns: number
  /** How many calls it has. */
  calls: number
  /** Input and output tokens. */
  tokens: number
  /** What all of it cost, in millionths of a dollar. */
  cost: number
  /** The working time in ms, without waits for people. */
  ms: number
}>

/** Two logs side by side, step by step, and where they part. */
export type Comparison = Frozen<{
  /** The steps of both logs, in order. */
  pairs: readonly Pair[]
  /** The index of the first pair that differs; null if none does. */
  first: number | null
  /** The sums of the left log. */
  left: Totals
  /** The sums of the right log. */
  right: Totals
}>

/** Puts two logs side by side, as `terret what-if` and the inspector show them. */
export function compareLogs(left: ComparedLog, right: ComparedLog): Comparison {
  const [ours, theirs] = [stepsOf(left), stepsOf(right)]
  const pairs = pairsOf(ours, theirs)
  const first = pairs.findIndex(({ differs }) => differs.length > 0)
  return { pairs, first: first < 0 ? null : first, left: totalsOf(left, ours), right: totalsOf(right, theirs) }
}

/** Steps that say and ask the same form a pair; the others in between are paired in their order. */
function pairsOf(left: readonly ComparedStep[], right: readonly ComparedStep[]): readonly Pair[] {
  const pairs: Pair[] = []
  let ours: ComparedStep[] = []
  let theirs: ComparedStep[] = []
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

/** Results are left out: the same question with another answer is the same step, with a difference. */
function keyOf({ type, says, calls }: ComparedStep): string {
  return sortedJson([type, says, calls.map(({ tool, args }) => [tool, args])])
}

function pairOf(left: ComparedStep | null, right: ComparedStep | null): Pair {
  if (left === null || right === null || left.type !== right.type) return { left, right, differs: ['alone'] }
  const of = (pick: (call: ComparedCall) => Json): boolean =>
    sortedJson(left.calls.map(pick)) !== sortedJson(right.calls.map(pick))
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

function stepsOf(logs: ComparedLog): readonly ComparedStep[] {
  const steps: ComparedStep[] = []
  let n = 0
  for (const [i, { session, events }] of logs.entries()) {
    const rows = timelineOf(events)
    const calls = new Map(rows.flatMap((row) => (row.type === 'call' ? [[row.call, row] as const] : [])))
    const contents = contentsOf(events)
    for (const row of rows) {
      if (row.type === 'message') steps.push(messageStep(session, row))
      if (row.type !== 'turn') continue
      // A request that a fork's origin left unanswered was made again in the fork's own log.
      if (row.state === 'asked' && i < logs.length - 1) continue
      const own = row.calls.flatMap((key) => calls.get(key) ?? [])
      steps.push(turnStep(session, row, { n: ++n, calls: own, contents }))
    }
  }
  return steps
}

function messageStep(session: string, { seq, parts }: Extract<TimelineRow, { type: 'message' }>): ComparedStep {
  const files = parts.filter(({ type }) => type !== 'text').map((part) => sortedJson(part))
  const says = [textOf(parts), ...files].join('\n').trimEnd()
  const none = { state: 'said', route: null, calls: [], cost: 0, tokens: 0, ms: 0 } as const
  return { type: 'message', session, seq, n: 0, says, ...none }
}

type TurnParts = {
  readonly n: number
  readonly calls: readonly CallRow[]
  readonly contents: ReadonlyMap<number, string>
}

function turnStep(session: string, row: TurnRow, { n, calls, contents }: TurnParts): ComparedStep {
  const { seq, at, endedAt, state, route, usage, cost } = row
  const compared = calls.map(({ tool, args, state: end, result }): ComparedCall => {
    return { tool, args, state: end, result: contents.get(result ?? 0) ?? '' }
  })
  // A checkpoint is written for programs, and its state contains ids.
  const says = isCheckpoint(row) ? '' : textOf(row.parts)
  const times = calls.flatMap((call) => call.endedAt ?? [])
  const ms = Math.max(0, Math.max(endedAt ?? at, ...times) - at)
  const tokens = usage === null ? 0 : usage.inputTokens + usage.outputTokens
  const paid = cost + calls.reduce((sum, call) => sum + call.cost, 0)
  return { type: 'turn', session, seq, n, says, state, route, calls: compared, cost: paid, tokens, ms }
}

/** Long contents are stored beside the log; their hash stands for them. */
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

function totalsOf(logs: ComparedLog, steps: readonly ComparedStep[]): Totals {
  const sum = (pick: (step: ComparedStep) => number): number => steps.reduce((all, step) => all + pick(step), 0)
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

/** Equal for the same fields in any order. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    isObject(each) ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1))) : each,
  )
}
