// The calls of a chat, each folded to one line: what it is about, and what came of it. `/show` unfolds one. It keeps no more of a
// result than its event has.
import type { StreamEvent } from '../index.ts'
import type { BashLine } from '../tools/index.ts'
import type { BlobRef, CallStatus, Json } from '../kernel/index.ts'
import { oneLine, safeJson } from './clean.ts'
import { clipped, type Paint } from './chat-text.ts'
import { drawnPreview, quoted, type Room, type Row, type Shown } from './preview.ts'

export type Folded = {
  /** Counted from 1 in this chat: what `/show` takes. */
  readonly number: number
  readonly tool: string
  readonly args: Json
  /** A child's calls stand further in. */
  readonly depth: 0 | 1
  status: 'waits' | 'runs' | CallStatus
  content: string | BlobRef
  why: string
  change: string
  /** What it printed last, while it runs. */
  line: string
}

type Of<Type extends StreamEvent['type']> = Extract<StreamEvent, { type: Type }>

export class Calls {
  readonly all: Folded[] = []
  readonly #byKey = new Map<string, Folded>()
  /** Those whose line is not written yet, in the order of the model. */
  #open: Folded[] = []

  propose({ session, seq, calls, source }: Of<'agent.message'>): void {
    for (const [index, { tool, args }] of calls.entries()) {
      const fresh = { status: 'waits', content: '', why: '', change: '', line: '' } as const
      const call: Folded = { number: this.all.length + 1, tool, args, depth: source.parent ? 1 : 0, ...fresh }
      this.all.push(call)
      this.#byKey.set(`${session} ${seq}.${index}`, call)
      this.#open.push(call)
    }
  }

  start({ session, call }: Of<'agent.tool_use'> | Of<'agent.custom_tool_use'>): void {
    const found = this.#byKey.get(`${session} ${call}`)
    if (found) found.status = 'runs'
  }

  hear({ session, call, line }: BashLine): void {
    const found = this.#byKey.get(`${session} ${call}`)
    if (found && line.trim() !== '') found.line = line
  }

  /** Whoever refused it here knows why. */
  finish(event: Of<'agent.tool_result'>, isDecidedHere = false): void {
    const found = this.#byKey.get(`${event.session} ${event.call}`)
    if (!found) return
    found.status = event.status
    if (event.from === undefined) found.content = event.content
    found.why = isDecidedHere && event.status === 'denied' ? '' : (event.failure?.message ?? '')
    found.change = changeOf(event)
  }

  /** Somebody outside has said it; its result repeats that. */
  answer({ session, call, content }: Of<'user.custom_tool_result'>): void {
    const found = this.#byKey.get(`${session} ${call}`)
    if (found) found.content = content
  }

  /** The lines that can be written: a call's comes after those before it. */
  done(paint: Paint, width: number): readonly string[] {
    const index = this.#open.findIndex(({ status }) => status === 'waits' || status === 'runs')
    const count = index < 0 ? this.#open.length : index
    return this.#open.splice(0, count).map((call) => foldedLine(call, { paint, width, mark: '' }))
  }

  /** The lines of those that are not done, and of those that must wait for them. */
  moving(paint: Paint, width: number, mark: string): readonly string[] {
    return this.#open.map((call) => foldedLine(call, { paint, width, mark }))
  }

  /** What a command that runs printed last. */
  get line(): string {
    return this.#open.findLast(({ status, line }) => status === 'runs' && line !== '')?.line ?? ''
  }
}

type Drawing = { readonly paint: Paint; readonly width: number; readonly mark: string }

const MARKS: Readonly<Record<string, string>> = { waits: '·', ok: '✓' }

function foldedLine(call: Folded, { paint, width, mark }: Drawing): string {
  const indent = '  '.repeat(call.depth + 1)
  const sign = call.status === 'runs' ? mark : (MARKS[call.status] ?? '✗')
  const colour =
    call.status === 'ok' ? paint.green : call.status in MARKS || call.status === 'runs' ? paint.cyan : paint.red
  const number = ` #${call.number}`
  const text = [aboutOf(call), endOf(call)].filter((part) => part !== '').join(' · ')
  const room = Math.max(10, width - indent.length - 2 - number.length)
  return `${indent}${colour(sign)} ${clipped(text, room)}${paint.dim(number)}`
}

/** Which of its arguments says best what a call is about. */
const TELLING = ['command', 'pattern', 'query', 'url', 'question', 'path', 'name'] as const

export function aboutOf({ tool, args }: { readonly tool: string; readonly args: Json }): string {
  const name = oneLine(tool)
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return `${name} ${oneLine(safeJson(args))}`
  const fields = args as { readonly [key: string]: Json }
  const paths = Array.isArray(fields['edits']) ? fields['edits'].flatMap(pathIn) : []
  if (paths.length > 0) return `${name} ${[...new Set(paths)].map((path) => oneLine(path)).join(', ')}`
  const telling = TELLING.find((field) => typeof fields[field] === 'string')
  if (telling === undefined) return Object.keys(fields).length === 0 ? name : `${name} ${oneLine(safeJson(args))}`
  const value = oneLine(fields[telling] as string)
  return telling === 'path' || telling === 'url' || telling === 'command' ? `${name} ${value}` : `${name} "${value}"`
}

function pathIn(edit: Json): readonly string[] {
  const { path } = (edit ?? {}) as { readonly path?: Json }
  return typeof path === 'string' ? [path] : []
}

function endOf({ status, why, change, content }: Folded): string {
  if (status === 'waits' || status === 'runs') return ''
  if (status !== 'ok') return why === '' ? status : `${status}: ${oneLine(why)}`
  if (change !== '') return change
  if (typeof content !== 'string') return `${content.bytes} bytes`
  const lines = content.trimEnd() === '' ? 0 : content.trimEnd().split('\n').length
  return lines === 1 ? '1 line' : `${lines} lines`
}

/** How many lines a write or an edit added and took away, from the difference it reports. */
function changeOf({ content, metadata }: Of<'agent.tool_result'>): string {
  const { diff, results } = (metadata ?? {}) as { readonly diff?: Json; readonly results?: Json }
  const text = typeof diff === 'string' ? diff : Array.isArray(results) && typeof content === 'string' ? content : ''
  return text === '' ? '' : linesChanged(text)
}

function linesChanged(diff: string): string {
  const lines = diff.split('\n').filter((line) => !/^(\+\+\+|---) /.test(line))
  const [more, less] = ['+', '-'].map((mark) => lines.filter((line) => line.startsWith(mark)).length)
  return `+${more} −${less}`
}

/** Unfolded: its arguments, and its result. Null in `hidden` if all of it is shown. */
export function unfolded({ number, tool, args, status }: Folded, content: string, room: Room): Shown {
  const asked = drawnPreview({ args }, { files: null, trouble: null, warnings: [] }, room)
  const result = quoted(content.trimEnd() === '' ? '(nothing)' : content.trimEnd(), room)
  const own = (text: string): Row => ({ texts: [text], tone: 'head', place: '' })
  const rows = [own(`#${number} ${oneLine(tool)} · ${status}`), ...asked.rows, own('result:'), ...result.rows]
  const hidden = [asked.hidden, result.hidden].filter((text) => text !== null).join(' and ')
  return { rows, hidden: hidden === '' ? null : hidden, sum: '' }
}
