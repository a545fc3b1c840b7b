// The calls of a log as blocks for people: each with its state, outcome and time. `run`, `tail`, `history`, `inspect` and
// the chat draw a call by these functions, so it reads the same everywhere. Pure.
import type { BlobRef, CallKey, CallStatus, Event, Json } from '../../kernel/index.ts'
import { CallLog, contentOf, type LoggedCall } from '../../view/call-log.ts'
import { oneLine, safeJson } from '../../view/clean.ts'
import { durationText } from '../../view/tree-rows.ts'
import { isObject } from '../../view/untrusted-json.ts'
import { diffPreview, paintRows } from './call-preview.ts'
import { diffOf, failureTail, outcomeOf, outcomeText, type ShownOutcome, type ToolResult } from './outcome.ts'
import { clipToWidth, type Paint, widthOf } from './terminal-text.ts'

export type CallBlock = {
  readonly tool: string
  readonly args: Json
  status: 'waits' | 'runs' | CallStatus
  content: string | BlobRef
  outcome: ShownOutcome | null
  /** Null before it starts. */
  startedAt: number | null
  tookMs: number | null
  /** The change of a write or an edit; empty for all others. */
  diff: string
}

type SessionEvent = Event & { readonly session: string }

/** `extend`: adds what a view keeps of each call. */
export class CallBlocks<Block extends CallBlock = CallBlock> {
  readonly #extend: (block: CallBlock) => Block
  readonly #logs = new Map<string, CallLog>()
  readonly #blocks = new Map<LoggedCall, Block>()

  constructor(extend: (block: CallBlock) => Block) {
    this.#extend = extend
  }

  at(session: string, key: CallKey): Block | undefined {
    const call = this.#logs.get(session)?.at(key)
    return call && this.#blocks.get(call)
  }

  /** Adds an event. Returns the calls that it proposes, or the call that it is about. */
  take(event: SessionEvent): readonly Block[] {
    const log = this.#logs.get(event.session) ?? new CallLog()
    this.#logs.set(event.session, log)
    return log.take(event).map((call) => {
      const known = this.#blocks.get(call)
      const block = known ?? this.#extend(newBlock(call.proposal))
      if (!known) this.#blocks.set(call, block)
      else if (event.type === 'agent.tool_result') endBlock(block, call, event)
      else if (call.intent && !call.result) {
        block.status = 'runs'
        // The time that a person took for an answer is not the time of a call.
        if (call.intent.type === 'agent.tool_use') block.startedAt = call.intent.at
      }
      return block
    })
  }
}

export function newBlock({ tool, args }: { readonly tool: string; readonly args: Json }): CallBlock {
  return { tool, args, status: 'waits', content: '', outcome: null, startedAt: null, tookMs: null, diff: '' }
}

function endBlock(block: CallBlock, call: LoggedCall, event: ToolResult & { readonly at: number }): void {
  block.status = event.status
  block.content = contentOf(call)
  block.outcome = outcomeOf({ ...event, content: block.content })
  block.tookMs = block.startedAt === null ? null : Math.max(0, event.at - block.startedAt)
  block.diff = event.status === 'ok' ? diffOf({ ...event, content: block.content }) : ''
}

const SHORT_MS = 9_950

/** `0.4 s`, and longer times as everywhere. */
export function tookText(ms: number): string {
  return ms < SHORT_MS ? `${(ms / 1_000).toFixed(1)} s` : durationText(ms).replace(/^(\d+)s$/, '$1 s')
}

function endText({ outcome, tookMs }: CallBlock): string {
  if (!outcome) return ''
  return [outcomeText(outcome), ...(tookMs === null ? [] : [tookText(tookMs)])]
    .filter((text) => text !== '')
    .join(' · ')
}

/** The call and what came of it, in one line without a sign. */
export function callText(block: CallBlock): string {
  const end = endText(block)
  return end === '' ? callSubject(block) : `${callSubject(block)} · ${end}`
}

export function isOpenCall({ status }: Pick<CallBlock, 'status'>): boolean {
  return status === 'waits' || status === 'runs'
}

/** `mark`: the sign of a running call. `number` is printed at the end. `more`: after the subject while it runs, and the key that shows all of it. */
export type LineStyle = {
  readonly paint: Paint
  readonly width: number
  readonly mark: string
  readonly depth?: number
  readonly number?: string
  readonly more?: string
}

/** The largest share of a line for the outcome, if the line is too short for everything. */
const END_SHARE = 0.6

export function signOf({ status, outcome }: CallBlock, mark: string): string {
  return status === 'runs' ? mark : status === 'waits' ? '·' : outcome?.good ? '✓' : '✗'
}

export function callLine(block: CallBlock, style: LineStyle): string {
  const { paint, width, mark, depth = 0, more = '' } = style
  const indent = '  '.repeat(depth + 1)
  const { outcome } = block
  const colour = isOpenCall(block) ? paint.cyan : outcome?.good ? paint.green : paint.red
  const number = style.number === undefined ? '' : ` #${style.number}`
  const room = Math.max(10, width - indent.length - 2 - number.length)
  const about = callSubject(block)
  const sign = `${indent}${colour(signOf(block, mark))}`
  const end = endText(block) || more
  if (end === '') return `${sign} ${clipToWidth(about, room)}${paint.dim(number)}`
  // The outcome stays visible, however long the call is.
  const ended = clipToWidth(end, Math.max(room - widthOf(about) - 3, Math.floor(room * END_SHARE)))
  const asked = clipToWidth(about, room - widthOf(ended) - 3)
  const said = !outcome || outcome.good ? paint.dim(ended) : paint.red(ended)
  return `${sign} ${asked} · ${said}${paint.dim(number)}`
}

/** The most rows of a change below its call. */
const DIFF_ROWS_MAX = 16

/** The line of an ended call, with the last lines of a command that failed. */
export function callRows(block: CallBlock, style: LineStyle): readonly string[] {
  const { paint, width, depth = 0 } = style
  const tail = block.outcome ? failureTail(block.outcome, width, '  '.repeat(depth + 2)) : []
  return [callLine(block, style), ...tail.map((row) => paint.dim(withHint(row, style)))]
}

/** The row that says how much is hidden also says how to see it. */
function withHint(row: string, { more = '', width }: LineStyle): string {
  return more !== '' && row.trimStart().startsWith('┊') ? clipToWidth(`${row} (${more})`, width) : row
}

/** The change that a call made. */
export function changeRows({ diff }: CallBlock, { paint, width }: LineStyle): readonly string[] {
  if (diff === '') return []
  const { rows } = diffPreview(diff, { columns: width, rows: DIFF_ROWS_MAX })
  return paintRows(rows, paint)
}

/** The arguments that describe a call best, in order of preference. */
const TELLING = ['command', 'pattern', 'query', 'url', 'question', 'path', 'task', 'prompt', 'name'] as const

export function callSubject({ tool, args }: { readonly tool: string; readonly args: Json }): string {
  const name = oneLine(tool)
  if (!isObject(args)) return `${name} ${oneLine(safeJson(args))}`
  const paths = Array.isArray(args['edits']) ? args['edits'].flatMap(editPath) : []
  if (paths.length > 0) return `${name} ${[...new Set(paths)].map((path) => oneLine(path)).join(', ')}`
  const telling = TELLING.find((field) => typeof args[field] === 'string')
  if (telling === undefined) return Object.keys(args).length === 0 ? name : `${name} ${oneLine(safeJson(args))}`
  const value = oneLine(args[telling] as string)
  return telling === 'path' || telling === 'url' || telling === 'command' ? `${name} ${value}` : `${name} "${value}"`
}

function editPath(edit: Json): readonly string[] {
  const { path } = (edit ?? {}) as { readonly path?: Json }
  return typeof path === 'string' ? [path] : []
}
