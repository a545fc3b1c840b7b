// The calls of a chat's session, numbered, each as one line. `/calls` lists them and `/show` unfolds one. It keeps no more
// of a result than the event has.
import type { BashLine } from '../../tools/index.ts'
import type { Event } from '../../kernel/index.ts'
import { oneLine, shownLine } from '../../view/clean.ts'
import { clipToWidth, type Paint } from '../present/terminal-text.ts'
import { outcomeText } from '../present/outcome.ts'
import { drawPreview, quoteText, type DrawSize, type PreviewRow, type DrawnPreview } from '../present/call-preview.ts'
import { type CallBlock, CallBlocks, callLine, callRows, changeRows, isOpenCall, tookText } from '../present/blocks.ts'
import { countNoun } from '../../view/shown-text.ts'

export type FoldedCall = CallBlock & {
  /**
   * Counted from 1 in the session. Calls of a child are numbered below their parent's call, such as 3.1. `/show` takes
   * this number.
   */
  number: string
  /** Calls of a child are indented. */
  depth: 0 | 1
  /** The lines that it has printed so far, and the last of them. */
  printed: number
  lines: readonly string[]
  /** How its output came first. */
  way: 'process' | 'stream' | null
  /** The number of calls that its child has made. */
  below: number
  /** True if its change was shown before it was made. */
  isShown: boolean
}

/** How many lines of a running command are shown. */
const LINES_MAX = 5

/** An event with its session and, for a child, the parent call that started the session. */
type SourcedEvent = Event & {
  readonly session: string
  readonly source: { readonly parent: { readonly session: string; readonly call: string } | null }
}

export class ChatCalls {
  readonly all: FoldedCall[] = []
  readonly #blocks = new CallBlocks<FoldedCall>((block) => ({ ...block, ...FRESH }))
  #count = 0
  /** Calls whose line is not written yet, in the order of the model. */
  #open: FoldedCall[] = []

  /** Adds calls from before this chat. Finished ones are not printed. */
  recall(session: string, events: readonly Event[], parent: SourcedEvent['source']['parent'] = null): void {
    for (const event of events) this.take({ ...event, session, source: { parent } })
    this.#open = this.#open.filter(isOpenCall)
  }

  at(session: string, key: string): FoldedCall | undefined {
    return this.#blocks.at(session, key)
  }

  /** `isDecidedHere`: the call was refused in this chat, so the reason is not repeated. */
  take(event: SourcedEvent, isDecidedHere = false): void {
    for (const call of this.#blocks.take(event)) {
      if (event.type === 'agent.message') this.#propose(call, event.source)
      else if (call.status === 'denied' && isDecidedHere && call.outcome)
        call.outcome = { ...call.outcome, trouble: 'denied' }
    }
  }

  #propose(call: FoldedCall, { parent }: SourcedEvent['source']): void {
    const above = parent ? this.at(parent.session, parent.call) : undefined
    call.number = above ? `${above.number}.${(above.below += 1)}` : String((this.#count += 1))
    call.depth = parent ? 1 : 0
    this.all.push(call)
    // Calls of a child get no line of their own, because the child has one.
    if (!parent) this.#open.push(call)
  }

  /** A command of this process is heard twice: by itself and in the stream. The way that was first counts. */
  hear({ session, call, line }: Pick<BashLine, 'session' | 'call' | 'line'>, way: 'process' | 'stream'): void {
    const found = this.at(session, call)
    if (!found || line.trim() === '') return
    found.way ??= way
    if (found.way !== way) return
    found.printed += 1
    found.lines = [...found.lines, line].slice(-LINES_MAX)
  }

  /** The rows of calls that can be written now, in order. */
  done(paint: Paint, width: number): readonly string[] {
    const index = this.#open.findIndex(isOpenCall)
    const count = index < 0 ? this.#open.length : index
    return this.#open.splice(0, count).flatMap((call) => finishedRows(call, paint, width))
  }

  /** The lines from the first unfinished call on. `now`: the time of the store. `key`: what to press. */
  moving(paint: Paint, width: number, mark: string, { now, key = '' }: RunningStyle): readonly string[] {
    return this.#open.map((call) => {
      const { startedAt, printed, status } = call
      const took = status === 'runs' && startedAt !== null ? [tookText(Math.max(0, now - startedAt))] : []
      const size = printed === 0 ? [] : [countNoun(printed, 'line'), ...(key === '' ? [] : [key])]
      return callLine(call, { paint, width, mark, number: call.number, more: [...took, ...size].join(' · ') })
    })
  }

  /** The last lines of the running command that was started last. */
  running(width: number): readonly string[] {
    const { lines = [] } = this.#open.findLast(({ status, lines }) => status === 'runs' && lines.length > 0) ?? {}
    return lines.map((line) => clipToWidth(`    ${shownLine(line.slice(0, 2_000))}`, width))
  }
}

type RunningStyle = { readonly now: number; readonly key?: string }

const FRESH = { number: '', depth: 0, printed: 0, lines: [], way: null, below: 0, isShown: false } as const

/** The line of a call, the last lines of a command that failed, and a change that nobody was shown before. */
export function finishedRows(call: FoldedCall, paint: Paint, width: number): readonly string[] {
  const style = { paint, width, mark: '', depth: call.depth, number: call.number }
  return [
    ...callRows(call, { ...style, more: 'Ctrl-O' }),
    ...(call.isShown || call.depth > 0 ? [] : changeRows(call, style)),
  ]
}

export function foldedLine(call: FoldedCall, { paint, width, mark }: FoldedStyle): string {
  return callLine(call, { paint, width, mark, depth: call.depth, number: call.number })
}

type FoldedStyle = { readonly paint: Paint; readonly width: number; readonly mark: string }

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

/** What the log has of a call's output. A long result is stored beside it. */
export function printedTexts({ content, outcome, lines, status }: FoldedCall): CallTexts {
  if (status === 'waits') return []
  if (status === 'runs') return [{ name: 'printed so far:', text: lines.join('\n') }]
  const { command } = outcome ?? {}
  if (!command) return [{ name: 'result:', text: typeof content === 'string' ? content : `(${content.bytes} bytes)` }]
  const streams = (['stdout', 'stderr'] as const).map((stream) => {
    return { name: `${stream}, ${countNoun(command[stream].lines, 'line')}:`, text: command[stream].text }
  })
  return [
    ...streams.filter(({ text }) => text.trim() !== ''),
    ...(command.message === '' ? [] : [{ name: 'terret says:', text: command.message }]),
  ]
}

/** False if the whole result is stored beside the log. */
export function isWhole({ content, outcome }: FoldedCall): boolean {
  const { command, original = null } = outcome ?? {}
  const blobs = command ? [command.stdout.blob, command.stderr.blob] : []
  return typeof content === 'string' && [original, ...blobs].every((blob) => blob === null)
}
