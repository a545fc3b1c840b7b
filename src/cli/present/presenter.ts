// Shows the work of a session, for `run`, `resume`, `start` and the chat. It reads each event once, counts the spending
// and writes the lines that both have in common. An EventRenderer draws the rest: run-progress.ts as a line for each
// event, chat-view.ts as a chat. It decides nothing.
import type { StreamEvent } from '../../index.ts'
import type { Json } from '../../kernel/index.ts'
import { CHANGED } from '../../context/summary.ts'
import { oneLine, shownRow } from '../../view/clean.ts'
import { outageText } from './outage.ts'
import { decisionText, isExtractionMark, isProjectNote, isStoppedFailure, noteText } from './outcome.ts'
import type { RedrawnPart, Surface } from './screen.ts'
import { fitLines } from './terminal-text.ts'
import { modelText } from './markdown-stream.ts'

export type StreamEventOf<Type extends StreamEvent['type']> = Extract<StreamEvent, { type: Type }>
export type LoggedEvent = Exclude<StreamEvent, { type: 'delta' }>

/** The parts that differ between the progress of a command and a chat. */
export interface EventRenderer {
  readonly wording: {
    /** Begins the line about a request without an answer. */
    readonly unanswered: string
    readonly failureCharsMax: number
    readonly noteCharsMax: number
    /** Printed before a warning. */
    readonly margin: string
  }
  /** Called for each logged event before any of it is shown. */
  logged(event: LoggedEvent): void
  /** A piece of a reply, as it streams. */
  heard(piece: StreamEventOf<'delta'>): void
  /** A new request to the model. */
  requested(event: StreamEventOf<'model.started'>): void
  replied(event: StreamEventOf<'agent.message'>): void
  /** The text of a stopped answer stays on the screen. */
  cut(event: StreamEventOf<'model.failed'>): void
  /** Called for all other events. */
  other(event: LoggedEvent): void
  /** The redrawn part. */
  moving(mark: string): RedrawnPart
}

export class Presenter {
  readonly out: Surface
  /** The last failure shown, so that it is not shown twice. */
  told = ''
  tokens = 0
  cost = 0
  /** Calls decided here; their decision is not printed again. */
  readonly decided = new Set<string>()
  /** The arguments of calls that were asked about, to show what a person changed in them. */
  readonly #asked = new Map<string, Json>()
  readonly #form: EventRenderer
  #isWorking = false
  /** Lines of a child are indented. */
  #depth = ''

  constructor(out: Surface, form: EventRenderer) {
    this.out = out
    this.#form = form
  }

  begin(): void {
    this.#isWorking = true
    this.out.show((mark) => this.#form.moving(mark))
  }

  /** Restores the output. A later event starts it again. */
  rest(): void {
    this.#isWorking = false
    this.out.show(null)
  }

  see(event: StreamEvent): void {
    if (!this.#isWorking) this.begin()
    this.#depth = event.source.parent ? '  ' : ''
    if (event.type === 'delta') return this.#form.heard(event)
    this.#form.logged(event)
    if (event.type === 'agent.message')
      for (const [i, { gate, args }] of event.calls.entries())
        if (gate?.type === 'ask') this.#asked.set(`${event.session} ${event.seq}.${i}`, args)
    switch (event.type) {
      case 'model.started':
        return this.#form.requested(event)
      case 'agent.message':
        return this.#form.replied(event)
      case 'model.failed':
        return isStoppedFailure(event) ? this.#form.cut(event) : this.#failed(event)
      case 'run.deferred':
        return this.#failed(event)
      case 'user.tool_confirmation':
        if (!this.decided.has(event.call) || event.edit)
          this.aside(decisionText(event, this.#asked.get(`${event.session} ${event.call}`)))
        return
      case 'note.added':
        if (isExtractionMark(event) || isProjectNote(event)) return
        return this.aside(`note: ${oneLine(changesOnly(noteText(event)), this.#form.wording.noteCharsMax)}`)
      default:
        return this.#form.other(event)
    }
  }

  #failed(event: StreamEventOf<'model.failed' | 'run.deferred'>): void {
    const { unanswered, failureCharsMax, margin } = this.#form.wording
    this.told = event.message
    const why = event.type === 'model.failed' ? ` (${event.class})` : ''
    const text = outageText(event) ?? `${unanswered}${why}: ${oneLine(event.message, failureCharsMax)}`
    this.warn(`${margin}! ${text}`)
  }

  /** Adds the usage of a reply. */
  spend({ usage, cost = 0 }: StreamEventOf<'agent.message'>): void {
    this.tokens += (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0)
    this.cost += cost
  }

  /** Writes a line of this program between those of the session. */
  note(text: string): void {
    this.out.say('note', this.out.paint.dim(fitLines(cleanRows(text), this.out.columns)))
  }

  warn(text: string): void {
    this.out.say('note', this.out.paint.yellow(this.#fitted(text)))
  }

  /** Writes an event between calls. */
  aside(text: string): void {
    this.line(`  ${text}`)
  }

  /** Writes a permanent line. */
  line(text: string): void {
    this.out.say('call', this.out.paint.dim(this.#fitted(text)))
  }

  /** Writes a whole text of a model. That of a child is indented. */
  speak(text: string): void {
    const { style } = this.out
    const rows = modelText(text.trim(), { ...style, columns: style.columns - this.#depth.length })
    this.out.say('model', rows.replace(/^/gm, this.#depth))
  }

  #fitted(text: string): string {
    return fitLines(cleanRows(`${this.#depth}${text}`), this.out.columns)
  }
}

/** Line breaks in the text are kept; each row is cleaned. */
function cleanRows(text: string): string {
  return text.split('\n').map(shownRow).join('\n')
}

/** For a note about changes, only the changes: its first sentence is for the model. */
function changesOnly(text: string): string {
  return text.startsWith(CHANGED) ? text.slice(CHANGED.length).trim() : text
}
