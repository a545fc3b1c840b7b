// The calls of a session, each as one line with its subject and outcome. `/calls` lists them and `/show` unfolds one.
// It keeps no more of a result than the event has.
import type { BashLine } from '../../tools/index.ts'
import type { BlobRef, CallStatus, Event, Json } from '../../kernel/index.ts'
import { oneLine, safeJson } from '../../view/clean.ts'
import { clipToWidth, type Paint, widthOf } from '../present/terminal-text.ts'
import { type ShownOutcome, outcomeOf, outcomeText, failureTail, type ToolResult } from '../present/outcome.ts'
import { drawPreview, quoteText, type DrawSize, type PreviewRow, type DrawnPreview } from '../present/call-preview.ts'
import { CallLog, contentOf, type LoggedCall } from '../../view/call-log.ts'
import { isObject } from '../../view/untrusted-json.ts'

export type FoldedCall = {
  /**
   * Counted from 1 in the session. Calls of a child are numbered below their parent's call, such as 3.1. `/show` takes
   * this number.
   */
  readonly number: string
  readonly tool: string
  readonly args: Json
  /** Calls of a child are indented. */
  readonly depth: 0 | 1
  status: 'waits' | 'runs' | CallStatus
  content: string | BlobRef
  outcome: ShownOutcome | null
  /** Its last printed line while it runs. */
  line: string
  /** The number of calls that its child has made. */
  below: number
}

/** An event with its session and, for a child, the parent call that started the session. */
type SourcedEvent = Event & {
  readonly session: string
  readonly source: { readonly parent: { readonly session: string; readonly call: string } | null }
}

export class ChatCalls {
  readonly all: FoldedCall[] = []
  readonly #logs = new Map<string, CallLog>()
  readonly #folded = new Map<LoggedCall, FoldedCall>()
  #count = 0
  /** Calls whose line is not written yet, in the order of the model. */
  #open: FoldedCall[] = []

  /** Adds calls from before this chat. Finished ones are not printed. */
  recall(session: string, events: readonly Event[], parent: SourcedEvent['source']['parent'] = null): void {
    for (const event of events) this.take({ ...event, session, source: { parent } })
    this.#open = this.#open.filter(isOpenCall)
  }

  at(session: string, key: string): FoldedCall | undefined {
    const call = this.#logs.get(session)?.at(key)
    return call && this.#folded.get(call)
  }

  /** `isDecidedHere`: the call was refused in this chat, so the reason is not repeated. */
  take(event: SourcedEvent, isDecidedHere = false): void {
    const { session, source } = event
    const log = this.#logs.get(session) ?? new CallLog()
    this.#logs.set(session, log)
    for (const call of log.take(event)) {
      const found = this.#folded.get(call)
      if (!found) this.#propose(call, source)
      else if (event.type === 'agent.tool_result') finishCall(found, call, event, isDecidedHere)
      else if (call.intent && !call.result) found.status = 'runs'
    }
  }

  #propose(call: LoggedCall, { parent }: SourcedEvent['source']): void {
    const above = parent ? this.at(parent.session, parent.call) : undefined
    const number = above ? `${above.number}.${(above.below += 1)}` : String((this.#count += 1))
    const fresh = { status: 'waits', content: '', outcome: null, line: '', below: 0 } as const
    const { tool, args } = call.proposal
    const folded: FoldedCall = { number, tool, args, depth: parent ? 1 : 0, ...fresh }
    this.all.push(folded)
    this.#folded.set(call, folded)
    // Calls of a child get no line of their own, because the child has one.
    if (!parent) this.#open.push(folded)
  }

  hear({ session, call, line }: Pick<BashLine, 'session' | 'call' | 'line'>): void {
    const found = this.at(session, call)
    if (found && line.trim() !== '') found.line = line
  }

  /** The rows of calls that can be written now, in order. */
  done(paint: Paint, width: number): readonly string[] {
    const index = this.#open.findIndex(isOpenCall)
    const count = index < 0 ? this.#open.length : index
    return this.#open.splice(0, count).flatMap((call) => finishedRows(call, paint, width))
  }

  /** The lines from the first unfinished call on. */
  moving(paint: Paint, width: number, mark: string): readonly string[] {
    return this.#open.map((call) => foldedLine(call, { paint, width, mark }))
  }

  /** The last line of a running command. */
  get line(): string {
    return this.#open.findLast(({ status, line }) => status === 'runs' && line !== '')?.line ?? ''
  }
}

function finishCall(found: FoldedCall, call: LoggedCall, event: ToolResult, isDecidedHere: boolean): void {
  found.status = event.status
  found.content = contentOf(call)
  const { failure: _told, ...untold } = event
  const { content } = found
  found.outcome = outcomeOf({ ...(isDecidedHere && event.status === 'denied' ? untold : event), content })
}

function isOpenCall({ status }: FoldedCall): boolean {
  return status === 'waits' || status === 'runs'
}

/** The line of a call, and the last lines of a command that failed. */
export function finishedRows(call: FoldedCall, paint: Paint, width: number): readonly string[] {
  const tail = call.outcome ? failureTail(call.outcome, width, '  '.repeat(call.depth + 2)) : []
  return [foldedLine(call, { paint, width, mark: '' }), ...tail.map(paint.dim)]
}

type LineStyle = { readonly paint: Paint; readonly width: number; readonly mark: string }

/** The largest share of a line for the outcome, if the line is too short for everything. */
const END_SHARE = 0.6

export function foldedLine(call: FoldedCall, { paint, width, mark }: LineStyle): string {
  const indent = '  '.repeat(call.depth + 1)
  const { status, outcome } = call
  const sign = status === 'runs' ? mark : status === 'waits' ? '·' : outcome?.good ? '✓' : '✗'
  const colour = isOpenCall(call) ? paint.cyan : outcome?.good ? paint.green : paint.red
  const number = ` #${call.number}`
  const room = Math.max(10, width - indent.length - 2 - number.length)
  const about = callSubject(call)
  const end = outcome ? outcomeText(outcome) : ''
  if (end === '') return `${indent}${colour(sign)} ${clipToWidth(about, room)}${paint.dim(number)}`
  // The outcome stays visible, however long the call is.
  const ended = clipToWidth(end, Math.max(room - widthOf(about) - 3, Math.floor(room * END_SHARE)))
  const asked = clipToWidth(about, room - widthOf(ended) - 3)
  const said = outcome?.good ? ended : paint.red(ended)
  return `${indent}${colour(sign)} ${asked} · ${said}${paint.dim(number)}`
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

/** The texts that `/show` prints with the call, with their names. */
export type CallTexts = readonly { readonly name: string; readonly text: string }[]

/** The call with its arguments and result. `hidden` is null if all of it is shown. */
export function unfoldCall(
  { number, tool, args, status, outcome }: FoldedCall,
  texts: CallTexts,
  room: DrawSize,
): DrawnPreview {
  const each = { ...room, rows: room.rows / (texts.length + 1) }
  const asked = drawPreview({ args }, { files: null, trouble: null, warnings: [] }, each)
  const own = (text: string): PreviewRow => ({ texts: [text], tone: 'head', place: '' })
  const end = outcome ? outcomeText(outcome) : status
  const parts = texts.map(({ name, text }) => ({
    name,
    ...quoteText(text.trimEnd() === '' ? '(nothing)' : text.trimEnd(), each),
  }))
  const rows = [
    own(clipToWidth(`#${number} ${oneLine(tool)} · ${end === '' ? 'ok' : end}`, room.columns)),
    ...asked.rows,
    ...parts.flatMap((part) => [own(part.name), ...part.rows]),
  ]
  const hidden = [asked, ...parts].flatMap((part) => part.hidden ?? []).join(' and ')
  return { rows, hidden: hidden === '' ? null : hidden, sum: '' }
}
