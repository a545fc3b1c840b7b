// The children of a chat's session, each with its current work in one line, read from cards and the last events of
// their logs. So it does not matter which process drives them, or whether their parent waits for them. It only reads.
import { callKey, type Card, type Event, type CompleteStore } from '../../kernel/index.ts'
import { cardsBelow } from '../../stores/plan/tree-cost.ts'
import { isWorking, nameIn, stateOf, durationText } from '../../view/tree-rows.ts'
import { usdText } from '../../view/usd.ts'
import { oneLine } from '../../view/clean.ts'
import { callLinesIn, SCRIPT } from '../../view/script-cell.ts'
import { textOf } from '../../view/shown-text.ts'
import { clipToWidth, type Paint } from '../present/terminal-text.ts'
import { callSubject } from '../present/blocks.ts'

export type WatchedChild = {
  /** Counted from 1 in the order they were found. `/look` takes this number. */
  readonly number: number
  readonly session: string
  /** Its name below the session of the chat, such as `~3.0`. */
  readonly name: string
  readonly agent: string
  readonly began: number
  /** True if no call of the parent waits for it. */
  readonly detached: boolean
  card: Card
  /** The time until now, or until the last event of a child that has ended. */
  tookMs: number
  /** Its current work, in words. */
  doing: string
  /** The calls of its last reply, by key. */
  calls: ReadonlyMap<string, string>
}

/** The end of a log is enough to see the current work of a session. */
const EVENTS_MAX = 50
/** The most lines that are redrawn. */
const LINES_MAX = 8

export class ChildWatcher {
  readonly #store: CompleteStore
  readonly #children = new Map<string, WatchedChild>()
  #top = ''
  /** Children that ended before this time are not reported. */
  readonly #since: number

  constructor(store: CompleteStore, since = store.now()) {
    this.#store = store
    this.#since = since
  }

  get all(): readonly WatchedChild[] {
    return [...this.#children.values()]
  }

  get working(): readonly WatchedChild[] {
    return this.all.filter(({ card }) => isWorking(card))
  }

  /** Finds a child by its number, or by its name such as `~3.0`. */
  find(given: string): WatchedChild | undefined {
    return this.all.find(({ number, name }) => String(number) === given.replace(/^@/, '') || name === given)
  }

  /** Reads new events of the children. Returns the children that ended since the last look. */
  async look(top: Card): Promise<readonly WatchedChild[]> {
    // The chat has moved to a fork, so the children are other ones.
    if (this.#top !== top.session) this.#children.clear()
    this.#top = top.session
    const ended: WatchedChild[] = []
    for (const card of await cardsBelow(this.#store, top)) {
      const known = this.#children.get(card.session)
      const before = known ? isWorking(known.card) : card.at >= this.#since
      const child = known ?? (await this.#seen(card, top))
      if (child === null) continue
      if (!known || card.seq > known.card.seq) await this.#read(child, known ? known.card.seq : 0, card)
      child.card = card
      child.tookMs = (isWorking(card) ? this.#store.now() : card.at) - child.began
      if (before && !isWorking(card)) ended.push(child)
    }
    return ended
  }

  async #seen(card: Card, top: Card): Promise<WatchedChild | null> {
    const { session, agent } = card
    const [created] = (await this.#store.read(session, 0, 1)).events
    if (created?.type !== 'session.created') return null
    const detached = created.parent?.detached === true
    const name = nameIn(session, top.session)
    const number = this.#children.size + 1
    const about = { number, session, name, agent, began: created.at, detached, card }
    const child: WatchedChild = { ...about, tookMs: 0, doing: 'beginning', calls: NONE }
    this.#children.set(session, child)
    return child
  }

  async #read(child: WatchedChild, seen: number, { seq }: Card): Promise<void> {
    const { events } = await this.#store.read(child.session, Math.max(seen, seq - EVENTS_MAX), EVENTS_MAX)
    for (const event of events) applyEvent(child, event)
  }

  /** One line for each child that works. */
  lines(paint: Paint, width: number, mark: string): readonly string[] {
    const working = this.working
    const more = working.length - LINES_MAX
    return [
      ...working.slice(0, LINES_MAX).map((child) => workingLine(child, paint, width, mark)),
      ...(more > 0 ? [paint.dim(`  … and ${more} more: /agents`)] : []),
    ]
  }
}

const NONE: WatchedChild['calls'] = new Map()

function applyEvent(child: WatchedChild, event: Event): void {
  if (event.type === 'model.started') child.doing = 'thinking'
  else if (event.type === 'agent.message') {
    // The calls of a cell say which line of the program made them.
    const lines = child.agent === SCRIPT ? callLinesIn(textOf(event.parts)) : []
    const subjects = event.calls.map((call, i) => `${lines[i] ? `line ${lines[i]}: ` : ''}${callSubject(call)}`)
    child.calls = new Map(subjects.map((subject, i) => [callKey(event.seq, i), subject]))
    child.doing = [...child.calls.values()][0] ?? 'answering'
  } else if (event.type === 'agent.tool_use' || event.type === 'agent.custom_tool_use')
    child.doing = child.calls.get(event.call) ?? `call ${event.call}`
  else if (event.type === 'model.failed' || event.type === 'run.deferred') child.doing = oneLine(event.message)
}

/** The call about which the child asks a person; null if it does not ask. */
function askedCall({ card, calls }: WatchedChild): string | null {
  if (card.status !== 'requires_action') return null
  const [call] = [...card.asks, ...card.waits]
  return call === undefined ? '' : (calls.get(call) ?? `call ${call}`)
}

function workingLine(child: WatchedChild, paint: Paint, width: number, mark: string): string {
  const { name, agent, doing, number } = child
  const asked = askedCall(child)
  const now = asked === null ? doing : asked === '' ? 'waits' : `asks: ${asked}`
  const sign = asked === null ? paint.cyan(mark) : paint.yellow('?')
  return layOutLine(`${name} ${oneLine(agent)} · ${now}${costText(child)}`, { paint, width, sign, number })
}

/** The line of a child: how it ended, or its current work. */
export function childLine(child: WatchedChild, paint: Paint, width: number): string {
  const { name, agent, number, card, tookMs } = child
  const works = isWorking(card)
  const good = works || card.outcome === 'completed' || card.outcome === null
  const sign = works ? paint.cyan('·') : good ? paint.green('✓') : paint.red('✗')
  const asked = askedCall(child)
  const state = asked ? `asks: ${asked}` : works ? child.doing : stateOf(card)
  const took = durationText(tookMs)
  return layOutLine(`${name} ${oneLine(agent)} · ${state}${costText(child)} · ${took}`, { paint, width, sign, number })
}

/** The same in two texts, for a list to choose from. */
export function childTexts(child: WatchedChild): { readonly label: string; readonly detail: string } {
  const { name, agent, card, tookMs } = child
  const asked = askedCall(child)
  const state = asked ? `asks: ${asked}` : isWorking(card) ? child.doing : stateOf(card)
  return { label: `${name} ${agent}`, detail: `${state}${costText(child)} · ${durationText(tookMs)}` }
}

function costText({ card: { cost } }: WatchedChild): string {
  return cost > 0 ? ` · ${usdText(cost)}` : ''
}

type LineLayout = { readonly paint: Paint; readonly width: number; readonly sign: string; readonly number: number }

function layOutLine(text: string, { paint, width, sign, number }: LineLayout): string {
  const end = ` @${number}`
  return `  ${sign} ${clipToWidth(text, width - 4 - end.length)}${paint.dim(end)}`
}
