// The progress of a session for `run`, `resume` and `start`: a line for each event, and at a terminal a spinner for the current one.
// All text of models, tools and files is cleaned first. It decides nothing.
import type { StreamEvent } from '../../index.ts'
import type { Proposal } from '../../kernel/index.ts'
import type { ReportState } from '../demo/report/report-graph.ts'
import type { BashLine } from '../../tools/index.ts'
import { TextCleaner, clipToWidth, clipToEnd, type Paint, createPaint, widthOf } from './terminal-text.ts'
import { loadMarkdown } from './markdown.ts'
import { oneLine } from '../../view/clean.ts'
import { ANSWER_CUT, outcomeOf } from './outcome.ts'
import { type CallBlock, CallBlocks, callRows, callSubject, newBlock } from './blocks.ts'
import { type EventRenderer, type LoggedEvent, type StreamEventOf, Presenter } from './presenter.ts'
import { type RedrawnPart, PlainLines, Screen, type Surface } from './screen.ts'
import { isWorkflowAgent } from '../state/workflow-agents.ts'
import { nodeFailureText, stateOfReply } from '../../view/node-stops.ts'
import { SCRIPT } from '../../view/script-cell.ts'
import { textOf } from '../../view/shown-text.ts'
import { usdText } from '../../view/usd.ts'

/** Finds the result of a workflow node in the state after it. */
export type FindNodeResult = (node: string, state: Partial<ReportState>) => string

/** Context from before the first event. */
export type ProgressContext = {
  readonly found?: FindNodeResult
  /** The calls that are open, by session and call. */
  readonly calls?: ReadonlyMap<string, Pick<Proposal, 'tool' | 'args'>>
}

/**
 * Redraws at a terminal that can move its cursor, else writes only lines; writes nothing for `--quiet` and `--json`.
 */
export function openProgress(out: NodeJS.WriteStream, before: ProgressContext, isSilent: boolean): ProgressView {
  if (isSilent) return new ProgressView(UNSEEN, before)
  const redraws = out.isTTY && process.env['TERM'] !== 'dumb'
  return new ProgressView(redraws ? new Screen(out, { colours: false }) : new PlainLines(out), before)
}

const UNSEEN: Surface = {
  paint: createPaint(false),
  columns: Number.POSITIVE_INFINITY,
  rows: Number.POSITIVE_INFINITY,
  style: { columns: Number.POSITIVE_INFINITY, hasColours: false },
  say: () => {},
  speak: () => {},
  hush: () => {},
  show: () => {},
  rest: () => {},
}

/** The width of the column with the names of nodes. */
const NODE_WIDTH = 9

/** More characters than any line of a terminal holds. */
const SAID_CHARS_MAX = 1_000

/** Shows events as lines. */
export class ProgressView implements EventRenderer {
  readonly wording = {
    unanswered: 'the model did not answer',
    failureCharsMax: 600,
    noteCharsMax: 160,
    margin: '  ',
  }
  readonly #out: Surface
  readonly #presenter: Presenter
  /** The current activity. */
  #now = 'beginning'
  readonly #before: NonNullable<ProgressContext['calls']>
  readonly #blocks = new CallBlocks((block) => block)
  readonly #found: FindNodeResult
  /** Finished nodes whose state has not arrived yet. */
  #done: string[] = []
  #cleaner = new TextCleaner()
  /** The end of the streamed text. */
  #said = ''
  #isSaying = false

  constructor(out: Surface, { found = () => '', calls = new Map() }: ProgressContext = {}) {
    this.#out = out
    this.#presenter = new Presenter(out, this)
    this.#found = found
    this.#before = calls
  }

  /** True if the view needs deltas. */
  get live(): boolean {
    return this.#out instanceof Screen
  }

  /** The last failure shown; empty if nothing is shown at all. */
  get told(): string {
    return this.#out === UNSEEN ? '' : this.#presenter.told
  }

  see(event: StreamEvent): void {
    this.#presenter.see(event)
  }

  /** Loads what a terminal needs for text of a model. */
  async load(): Promise<void> {
    if (Number.isFinite(this.#out.columns)) await loadMarkdown()
  }

  /** Writes a line of this program between those of the session. */
  note(text: string): void {
    this.#presenter.note(text)
  }

  get paint(): Paint {
    return this.#out.paint
  }

  /** Shows the children that are waited for while the session itself rests. */
  waits(names: readonly string[]): void {
    const [first = 'its agents', ...more] = names
    this.#now = `waiting for ${first}${more.length === 0 ? '' : ` and ${more.length} more`}`
    this.#presenter.begin()
  }

  /** Restores the terminal. A later event opens it again. */
  close(): void {
    this.#presenter.rest()
  }

  moving(mark: string): RedrawnPart {
    return { calls: [], status: `${mark} ${this.#line(this.#out.columns - 2)}` }
  }

  /** The current activity and the end of the streamed text, in this many columns. */
  #line(width: number): string {
    const head = clipToWidth(oneLine(this.#now, 400), width)
    if (!this.#isSaying) return head
    return `${head} ${clipToEnd(oneLine(this.#said, Number.POSITIVE_INFINITY), width - widthOf(head) - 1)}`
  }

  /** Shows a line of a running command. It is not an event: the result has all lines. */
  hear({ session, call, line }: Pick<BashLine, 'session' | 'call' | 'line'>): void {
    if (line.trim() !== '')
      this.#now = `${this.#spent()}${oneLine(this.#callOf({ session, call })?.tool ?? 'bash')}: ${oneLine(line)}`
  }

  heard({ kind, text, session, call = '' }: StreamEventOf<'delta'>): void {
    // The output of a call, also if another process runs it.
    if (kind === 'output') return text.split('\n').forEach((line) => this.hear({ session, call, line }))
    if (kind === 'text') this.#said = (this.#said + this.#cleaner.push(text)).slice(-SAID_CHARS_MAX)
    this.#isSaying = true
    this.#now = `${this.#spent()}${kind}:`
  }

  logged(event: LoggedEvent): void {
    this.#isSaying = false
    this.#blocks.take(event)
  }

  requested(): void {
    this.#said = ''
    this.#cleaner = new TextCleaner()
    this.#now = `${this.#spent()}thinking`
  }

  replied(event: StreamEventOf<'agent.message'>): void {
    const { agent } = event.source
    // The text of a cell's reply is a record for programs.
    const said = agent === SCRIPT ? { ...event, parts: [] } : event
    if (!isWorkflowAgent(agent)) return this.#reply(said)
    const line = this.#planned(event)
    if (line !== null) this.#presenter.line(line)
  }

  cut({ partial = '' }: StreamEventOf<'model.failed'>): void {
    if (partial.trim() === '') return
    this.#presenter.speak(partial)
    this.#presenter.line(`! ${ANSWER_CUT}`)
  }

  other(event: LoggedEvent): void {
    switch (event.type) {
      case 'agent.tool_use':
        return this.#started(event)
      case 'agent.tool_result': {
        const { tool } = this.#blockOf(event)
        const line = isWorkflowAgent(event.source.agent) ? this.#node(tool, event) : this.#result(event)
        if (line !== null) this.#presenter.line(line)
        return
      }
      case 'wake.scheduled':
        return this.#presenter.aside(
          `it wants to go on at ${new Date(event.due).toISOString()}: ${oneLine(event.reason)}`,
        )
      default:
        return
    }
  }

  #callOf({ session, call }: CallPlace): CallBlock | undefined {
    const before = this.#before.get(`${session} ${call}`)
    return this.#blocks.at(session, call) ?? (before && newBlock(before))
  }

  #blockOf(place: CallPlace): CallBlock {
    return this.#callOf(place) ?? newBlock({ tool: `call ${place.call}`, args: {} })
  }

  /** A file gets a line also when a call starts, because nothing there shows what is running. */
  #started(event: StreamEventOf<'agent.tool_use'>): void {
    const call = this.#blockOf(event)
    this.#now = `${this.#spent()}${oneLine(call.tool)}`
    if (!this.live && !isWorkflowAgent(event.source.agent)) this.#presenter.line(`  · ${callSubject(call)}`)
  }

  /** The line of a result. For a command that failed, also its last lines. */
  #result(event: StreamEventOf<'agent.tool_result'>): string {
    const call = this.#blockOf(event)
    const ended = call.outcome ? call : { ...call, status: event.status, outcome: outcomeOf(event) }
    return callRows(ended, { paint: createPaint(false), width: this.#out.columns, mark: '' }).join('\n')
  }

  /** The result of a workflow node is in the state, which arrives with the next reply. */
  #node(name: string, event: StreamEventOf<'agent.tool_result'>): string | null {
    if (event.status !== 'ok') return `✗ ${oneLine(name).padEnd(NODE_WIDTH)} ${nodeFailureText(event)}`
    this.#done.push(name)
    return null
  }

  #planned(event: StreamEventOf<'agent.message'>): string | null {
    const state = stateOfReply<ReportState>(event) ?? {}
    const done = this.#done.map((name) => `✓ ${name.padEnd(NODE_WIDTH)} ${oneLine(this.#found(name, state))}`.trimEnd())
    this.#done = []
    for (const { tool } of event.calls) this.#now = tool
    return done.length > 0 ? done.join('\n') : null
  }

  #reply(event: StreamEventOf<'agent.message'>): void {
    this.#presenter.spend(event)
    const said = textOf(event.parts)
    if (event.verdict.type === 'continue' && said.trim() !== '') this.#presenter.speak(said)
  }

  #spent(): string {
    const { tokens, cost } = this.#presenter
    if (tokens === 0) return ''
    return `${tokens} tokens${cost > 0 ? `, ${usdText(cost)}` : ''} · `
  }
}

type CallPlace = { readonly session: string; readonly call: string }
