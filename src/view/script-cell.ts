// A cell of a script as the lines of its program: what each line has called, how that ended, what it cost, and what it
// waits for. Pure, from the rows of the cell's timeline. A log is not trusted: what has the wrong type is left out.
import type { CallKey, Frozen } from '../kernel/content.ts'
import type { Card } from '../ports/store.ts'
import { countNoun, textOf } from './shown-text.ts'
import type { CallRow, TimelineRow, TurnRow } from './timeline.ts'
import { asList, asString, isObject, type JsonObject, parseJson } from './untrusted-json.ts'
import { usdText } from './usd.ts'

/** The name of the tool by which a model writes a script, and of the agent of each cell. */
export const SCRIPT = 'script'

export type ScriptCell = Frozen<{
  /** Which cell of its script session it is. Functions of earlier cells make calls, too. */
  cell: number
  lines: readonly ScriptLine[]
  /** What functions of earlier cells called, and calls whose line is not known. */
  others: readonly LineCalls[]
  /** The line that is running or waits, and null if the cell computes or has ended. */
  now: number | null
  /** Why it failed; null if it did not. */
  error: Frozen<{ kind: string; message: string; line: number | null }> | null
}>

/** A line of the program. Lines count from 1. */
export type ScriptLine = Frozen<{ line: number; text: string; calls: readonly LineCalls[] }>

/** The calls of one line to one tool that are in the same state. `first` is one of them. The cost is in micros. */
export type LineCalls = Frozen<{ tool: string; state: CallRow['state']; count: number; cost: number; first: CallKey }>

/** `costs` are those of the sessions that its calls have started, by the key of the call. */
export function scriptCellOf(
  rows: readonly TimelineRow[],
  costs: ReadonlyMap<CallKey, number> = new Map(),
): ScriptCell {
  const calls = new Map(rows.flatMap((row) => (row.type === 'call' ? [[row.call, row] as const] : [])))
  const task = rows.find((row) => row.type === 'message')
  const records = rows.flatMap((row) => (row.type === 'turn' ? recordsOf(row) : []))
  const cell = Number(records.map(({ record }) => begunOf(record)['cell']).find((n) => n !== undefined) ?? 1)
  const byLine = new Map<number | null, CallRow[]>()
  let now: number | null = null
  for (const { record, keys } of records)
    for (const [i, key] of keys.entries()) {
      const call = calls.get(key)
      if (call === undefined) continue
      const line = lineOf(asList(record['calls'])[i], cell)
      byLine.set(line, [...(byLine.get(line) ?? []), call])
      if (isOpenState(call.state)) now ??= line
    }
  const called = (line: number | null): readonly LineCalls[] => groupCalls(byLine.get(line) ?? [], costs)
  const text = task === undefined ? '' : programIn(textOf(task.parts))
  const lines = text.split('\n').map((each, i) => ({ line: i + 1, text: each, calls: called(i + 1) }))
  const end = records.map(({ record }) => record['end']).find(isObject)
  return { cell, lines, others: called(null), now, error: end ? errorIn(end, cell) : null }
}

/** What the sessions below a cell cost, by the key of the call that started them. */
export function childCosts(
  cell: string,
  cards: readonly Pick<Card, 'session' | 'cost'>[],
): ReadonlyMap<CallKey, number> {
  const costs = new Map<CallKey, number>()
  for (const { session, cost } of cards) {
    if (!session.startsWith(`${cell}~`)) continue
    const [key = ''] = session.slice(cell.length + 1).split('~')
    costs.set(key, (costs.get(key) ?? 0) + cost)
  }
  return costs
}

/** The program in the task of a cell. A host may give it as plain text. */
function programIn(task: string): string {
  const value = parseJson(task)
  return isObject(value) && typeof value['script'] === 'string' ? value['script'] : task
}

/** The lines that made the calls of a reply, by their order. Null where a line is not known. */
export function callLinesIn(text: string): readonly (number | null)[] {
  const record = parseJson(text)
  return isObject(record) ? asList(record['calls']).map((call) => lineOf(call)) : []
}

type CellRecordRow = { readonly record: JsonObject; readonly keys: readonly CallKey[] }

function recordsOf({ parts, calls }: TurnRow): readonly CellRecordRow[] {
  const record = parseJson(textOf(parts))
  return isObject(record) ? [{ record, keys: calls }] : []
}

function begunOf(record: JsonObject): JsonObject {
  const begun = record['begun']
  return isObject(begun) ? begun : {}
}

/** Null for a line of another cell than this one. */
function lineOf(placed: unknown, cell?: number): number | null {
  const at = isObject(placed) && isObject(placed['at']) ? placed['at'] : {}
  const { line } = at
  return typeof line === 'number' && (cell === undefined || at['cell'] === cell) ? line : null
}

function errorIn({ error }: JsonObject, cell: number): ScriptCell['error'] {
  if (!isObject(error)) return null
  return { kind: asString(error['kind']), message: asString(error['message']), line: lineOf(error, cell) }
}

function groupCalls(calls: readonly CallRow[], costs: ReadonlyMap<CallKey, number>): readonly LineCalls[] {
  const groups = new Map<string, LineCalls>()
  for (const { tool, state, call, cost } of calls) {
    const name = `${state} ${tool}`
    const known = groups.get(name) ?? { tool, state, count: 0, cost: 0, first: call }
    const own = cost + (costs.get(call) ?? 0)
    groups.set(name, { ...known, count: known.count + 1, cost: known.cost + own })
  }
  return [...groups.values()]
}

function isOpenState(state: CallRow['state']): boolean {
  return state === 'proposed' || state === 'asked' || state === 'running' || state === 'outside'
}

const STATES: Partial<Record<CallRow['state'], string>> = {
  proposed: 'waiting for their turn',
  asked: 'waiting for a person',
  running: 'running',
  outside: 'running elsewhere',
}

/** `38 × read ok`, `2 × send waiting for a person, $0.02`. */
export function lineCallsText({ tool, state, count, cost }: LineCalls): string {
  return `${count} × ${tool} ${STATES[state] ?? state}${cost > 0 ? `, ${usdText(cost)}` : ''}`
}

/** The program with the calls of each line below it, as plain lines. `safe` makes text of others safe to show. */
export function drawScriptCell(
  { lines, others, now, error }: ScriptCell,
  safe: (text: string) => string,
): readonly string[] {
  const width = String(lines.length).length
  const below = (calls: readonly LineCalls[]): readonly string[] =>
    calls.map((each) => `${' '.repeat(width + 3)}└ ${safe(lineCallsText(each))}`)
  const drawn = lines.flatMap(({ line, text, calls }) => [
    `${now === line ? '›' : ' '} ${String(line).padStart(width)} ${safe(text)}`,
    ...below(calls),
    ...(error?.line === line ? [`${' '.repeat(width + 3)}└ ${safe(`${error.kind}: ${error.message}`)}`] : []),
  ])
  const elsewhere = others.reduce((sum, { count }) => sum + count, 0)
  const more =
    elsewhere === 0 ? [] : [`  ${countNoun(elsewhere, 'call')} of functions of earlier cells`, ...below(others)]
  const failed = error !== null && error.line === null ? [`  ${safe(`${error.kind}: ${error.message}`)}`] : []
  return [...drawn, ...more, ...failed]
}
