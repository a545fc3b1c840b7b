// Shows what a session does, for `run`, `resume`, `start` and the chat. It reads each event once, counts what was spent and words what
// both show alike; a form draws the rest: progress.ts as a line for each event, chat-view.ts as a chat. It decides nothing.
import type { StreamEvent } from '../../index.ts'
import type { Json } from '../../kernel/index.ts'
import { CHANGED } from '../../context/summary.ts'
import { oneLine, shownRow } from '../../view/clean.ts'
import { outageText } from './outage.ts'
import { decisionText, isMark, isStopped, noteText } from './outcome.ts'
import type { Moving, Surface } from './screen.ts'
import { fitted } from './text.ts'

export type Of<Type extends StreamEvent['type']> = Extract<StreamEvent, { type: Type }>
export type Logged = Exclude<StreamEvent, { type: 'delta' }>

/** What differs between the progress of a command and a chat. */
export interface Form {
  readonly wording: {
    /** Begins the line of a request without an answer. */
    readonly unanswered: string
    readonly failureCharsMax: number
    readonly noteCharsMax: number
    /** Before a warning. */
    readonly margin: string
  }
  /** Called before anything is shown of a logged event. */
  logged(event: Logged): void
  /** A piece of a reply, as it streams. */
  heard(piece: Of<'delta'>): void
  /** A new request to the model. */
  requested(event: Of<'model.started'>): void
  replied(event: Of<'agent.message'>): void
  /** The text of a stopped answer stays on the screen. */
  cut(event: Of<'model.failed'>): void
  /** All other events. */
  other(event: Logged): void
  /** The redrawn part. */
  moving(mark: string): Moving
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
  readonly #form: Form
  #isWorking = false
  /** Lines of a child are indented. */
  #depth = ''

  constructor(out: Surface, form: Form) {
    this.out = out
    this.#form = form
  }

  begin(): void {
    this.#isWorking = true
    this.out.show((mark) => this.#form.moving(mark))
  }

  /** Restores the output. A later event begins again. */
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
        return isStopped(event) ? this.#form.cut(event) : this.#failed(event)
      case 'run.deferred':
        return this.#failed(event)
      case 'user.tool_confirmation':
        if (!this.decided.has(event.call) || event.edit)
          this.aside(decisionText(event, this.#asked.get(`${event.session} ${event.call}`)))
        return
      case 'note.added':
        if (isMark(event)) return
        return this.aside(`note: ${oneLine(changesIn(noteText(event)), this.#form.wording.noteCharsMax)}`)
      default:
        return this.#form.other(event)
    }
  }

  #failed(event: Of<'model.failed' | 'run.deferred'>): void {
    const { unanswered, failureCharsMax, margin } = this.#form.wording
    this.told = event.message
    const why = event.type === 'model.failed' ? ` (${event.class})` : ''
    const text = outageText(event) ?? `${unanswered}${why}: ${oneLine(event.message, failureCharsMax)}`
    this.warn(`${margin}! ${text}`)
  }

  /** Adds the usage of a reply. */
  spend({ usage, cost = 0 }: Of<'agent.message'>): void {
    this.tokens += (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0)
    this.cost += cost
  }

  /** A line of our own, between those of the session. */
  note(text: string): void {
    this.out.say('note', this.out.paint.dim(fitted(shownRows(text), this.out.columns)))
  }

  warn(text: string): void {
    this.out.say('note', this.out.paint.yellow(this.#fitted(text)))
  }

  /** An event between calls. */
  aside(text: string): void {
    this.line(`  ${text}`)
  }

  /** What is worth a line of its own. */
  line(text: string): void {
    this.out.say('call', this.out.paint.dim(this.#fitted(text)))
  }

  #fitted(text: string): string {
    return fitted(shownRows(`${this.#depth}${text}`), this.out.columns)
  }
}

/** The breaks between rows are ours. */
function shownRows(text: string): string {
  return text.split('\n').map(shownRow).join('\n')
}

/** Of a note that tells what changed, only that: its first sentence is for the model. */
function changesIn(text: string): string {
  return text.startsWith(CHANGED) ? text.slice(CHANGED.length).trim() : text
}
