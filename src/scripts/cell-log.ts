// What the log of a cell says: its task, the calls it asked for part by part, their results, and its end. The replies of
// the planner hold it, so that another process can run the same cell to the same place.
import { hash } from 'node:crypto'
import type { Json } from '../kernel/content.ts'
import type { Message } from '../kernel/transcript.ts'
import { canonicalJson } from '../tools/core/canonical-json.ts'
import { textOf } from '../view/shown-text.ts'
import { isObject, parseJson } from '../view/untrusted-json.ts'
import { resultOfCall } from './capabilities.ts'
import type { CallsLeft, CellFailure, CellPlace, CellResult, WantedCall } from './cell.ts'
import type { ScriptLimits } from './script-options.ts'

/** The task of a cell: the arguments of the tool `script`. */
export type CellTask = {
  readonly script: string
  readonly name?: string
  readonly session_id?: string
  readonly timeout_secs?: number
  readonly limits?: Partial<Record<'cells' | 'model_calls' | 'tool_calls' | 'depth' | 'concurrency', number>>
  readonly close_session?: boolean
}

/** How a cell began: the sessions of the cells before it whose variables it has, and what it may do. */
export type CellBegun = {
  readonly cell: number
  readonly chain: readonly string[]
  readonly names: readonly string[]
  readonly limits: ScriptLimits
  readonly left: CallsLeft
}
export type RecordedCall = {
  readonly n: number
  readonly of: WantedCall['of']
  readonly hash: string
  readonly at?: CellPlace
}
/** `lost`: what its variables were at the end is not known, so that later cells do not have them. */
export type CellEnd = {
  readonly result: Json
  readonly error?: CellFailure
  readonly lost?: true
  readonly left?: CallsLeft
}

/**
 * A reply of the planner: what a cell did from one wait to the next, called a part. The calls of one part may need
 * several replies; `from` is the first one here, `total` is how many the part has.
 */
export type CellRecord = {
  readonly part: number
  readonly now: number
  readonly seed: number
  readonly ms: number
  readonly from: number
  readonly total: number
  readonly calls: readonly RecordedCall[]
  readonly begun?: CellBegun
  readonly end?: CellEnd
}

export type CellPart = {
  readonly now: number
  readonly seed: number
  readonly ms: number
  readonly total: number
  readonly calls: readonly AnsweredCall[]
}
export type AnsweredCall = RecordedCall & {
  readonly tool: string
  readonly args: Json
  readonly result: CellResult | null
}

export type CellLog = {
  readonly task: string
  readonly begun: CellBegun | null
  readonly parts: readonly CellPart[]
  readonly end: CellEnd | null
  /** Somebody said something to it after its end. */
  readonly isAskedAgain: boolean
  /** The time and the randomness of the part that ended the cell. */
  readonly last: { readonly now: number; readonly seed: number }
}

type Assistant = Extract<Message, { role: 'assistant' }>

/** A message never changes, and the same ones come with each request. */
const parsed = new WeakMap<Message, CellRecord | null>()
const results = new WeakMap<Message, CellResult>()

export function readCellRecord(message: Assistant): CellRecord | null {
  const known = parsed.get(message)
  if (known !== undefined) return known
  const value = parseJson(textOf(message.parts))
  const record = isObject(value) && typeof value['part'] === 'number' ? (value as unknown as CellRecord) : null
  parsed.set(message, record)
  return record
}

export function readCellLog(messages: readonly Message[]): CellLog {
  let [task, begun, end]: [string | null, CellBegun | null, CellEnd | null] = [null, null, null]
  let [last, isAskedAgain] = [{ now: 0, seed: 0 }, false]
  const parts: (Omit<CellPart, 'calls'> & { readonly calls: AnsweredCall[] })[] = []
  const open = new Map<string, { readonly calls: AnsweredCall[]; readonly index: number }>()
  for (const message of messages) {
    if (message.role === 'user') {
      isAskedAgain ||= end !== null
      task ??= textOf(message.parts)
    } else if (message.role === 'tool') {
      const place = open.get(message.call)
      const call = place?.calls[place.index]
      const result = results.get(message) ?? resultOfCall(call?.n ?? 0, message)
      results.set(message, result)
      if (place && call) place.calls[place.index] = { ...call, result }
    } else {
      const record = readCellRecord(message)
      if (record === null) continue
      begun ??= record.begun ?? null
      const { now, seed, ms, total } = record
      if (record.end) [end, last] = [record.end, { now, seed }]
      if (total === 0) continue
      const part = (parts[record.part] ??= { now, seed, ms, total, calls: [] })
      record.calls.forEach((call, i) => {
        const { key = '', tool = '', args = null } = message.calls[i] ?? {}
        open.set(key, { calls: part.calls, index: part.calls.length })
        part.calls.push({ ...call, tool, args, result: null })
      })
    }
  }
  return { task: task ?? '', begun, parts, end, last, isAskedAgain }
}

/** What identifies a call of a cell: the program that made it, its number, and what it asks for. */
export function callHash(codeHash: string, { n, tool, args }: Pick<WantedCall, 'n' | 'tool' | 'args'>): string {
  return hash('sha256', JSON.stringify([codeHash, n, tool, canonicalJson(args)])).slice(0, 32)
}

export function codeHash(code: string): string {
  return hash('sha256', code)
}

/** A host may give a program as plain text. A model gives the arguments of the tool. */
export function readCellTask(text: string): CellTask {
  const value = parseJson(text)
  if (isObject(value) && typeof value['script'] === 'string') return value as unknown as CellTask
  return { script: text }
}
