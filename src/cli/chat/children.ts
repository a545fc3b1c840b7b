// The children of a chat's session: what each does now, in one line, read from cards and the last events of their logs. So it does not
// matter which process drives them, nor whether their parent waits for them. It only reads.
import { callKey, type Card, type Event, type Store } from '../../kernel/index.ts'
import { cardsBelow } from '../../stores/plan/tree-cost.ts'
import { isWorking, nameIn, stateOf, tookText } from '../../view/tree.ts'
import { usdText } from '../../view/usd.ts'
import { oneLine } from '../../view/clean.ts'
import { clippedToWidth, type Paint } from '../present/text.ts'
import { aboutOf } from './call.ts'

export type Child = {
  /** Counted from 1 as they are seen. `/look` takes it. */
  readonly number: number
  readonly session: string
  /** What it is called below the session of the chat: `~3.0`. */
  readonly name: string
  readonly agent: string
  readonly began: number
  /** No call of its parent waits for it. */
  readonly detached: boolean
  card: Card
  /** Until now, or until its last event if it does not work any more. */
  tookMs: number
  /** What it does now. */
  doing: string
  /** The calls of its last reply, by key. */
  calls: ReadonlyMap<string, string>
}

/** Only the end of a log says what a session does now. */
const EVENTS_MAX = 50
/** Lines that are redrawn. */
const LINES_MAX = 8

export class Children {
  readonly #store: Store
  readonly #children = new Map<string, Child>()
  #top = ''
  /** What ended before is not news. */
  readonly #since: number

  constructor(store: Store, since = store.now()) {
    this.#store = store
    this.#since = since
  }

  get all(): readonly Child[] {
    return [...this.#children.values()]
  }

  get working(): readonly Child[] {
    return this.all.filter(({ card }) => isWorking(card))
  }

  /** By its number, or by its name: `~3.0`. */
  find(given: string): Child | undefined {
    return this.all.find(({ number, name }) => String(number) === given.replace(/^@/, '') || name === given)
  }

  /** Reads what is new below this session. Returns those that ended since the last look. */
  async look(top: Card): Promise<readonly Child[]> {
    // The chat went on in a copy.
    if (this.#top !== top.session) this.#children.clear()
    this.#top = top.session
    const ended: Child[] = []
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

  async #seen(card: Card, top: Card): Promise<Child | null> {
    const { session, agent } = card
    const [created] = (await this.#store.read(session, 0, 1)).events
    if (created?.type !== 'session.created') return null
    const detached = created.parent?.detached === true
    const name = nameIn(session, top.session)
    const number = this.#children.size + 1
    const about = { number, session, name, agent, began: created.at, detached, card }
    const child: Child = { ...about, tookMs: 0, doing: 'beginning', calls: NONE }
    this.#children.set(session, child)
    return child
  }

  async #read(child: Child, seen: number, { seq }: Card): Promise<void> {
    const { events } = await this.#store.read(child.session, Math.max(seen, seq - EVENTS_MAX), EVENTS_MAX)
    for (const event of events) take(child, event)
  }

  /** One line for each that works. */
  lines(paint: Paint, width: number, mark: string): readonly string[] {
    const working = this.working
    const more = working.length - LINES_MAX
    return [
      ...working.slice(0, LINES_MAX).map((child) => workingLine(child, paint, width, mark)),
      ...(more > 0 ? [paint.dim(`  … and ${more} more: /agents`)] : []),
    ]
  }
}

const NONE: Child['calls'] = new Map()

function take(child: Child, event: Event): void {
  if (event.type === 'model.started') child.doing = 'thinking'
  else if (event.type === 'agent.message') {
    child.calls = new Map(event.calls.map((call, i) => [callKey(event.seq, i), aboutOf(call)]))
    child.doing = [...child.calls.values()][0] ?? 'answering'
  } else if (event.type === 'agent.tool_use' || event.type === 'agent.custom_tool_use')
    child.doing = child.calls.get(event.call) ?? `call ${event.call}`
  else if (event.type === 'model.failed' || event.type === 'run.deferred') child.doing = oneLine(event.message)
}

/** The call it asks a person about, or null. */
function askedIn({ card, calls }: Child): string | null {
  if (card.status !== 'requires_action') return null
  const [call] = [...card.asks, ...card.waits]
  return call === undefined ? '' : (calls.get(call) ?? `call ${call}`)
}

function workingLine(child: Child, paint: Paint, width: number, mark: string): string {
  const { name, agent, doing, number } = child
  const asked = askedIn(child)
  const now = asked === null ? doing : asked === '' ? 'waits' : `asks: ${asked}`
  const sign = asked === null ? paint.cyan(mark) : paint.yellow('?')
  return laid(`${name} ${oneLine(agent)} · ${now}${spent(child)}`, { paint, width, sign, number })
}

/** How it ended, or what it does. */
export function childLine(child: Child, paint: Paint, width: number): string {
  const { name, agent, number, card, tookMs } = child
  const works = isWorking(card)
  const good = works || card.outcome === 'completed' || card.outcome === null
  const sign = works ? paint.cyan('·') : good ? paint.green('✓') : paint.red('✗')
  const asked = askedIn(child)
  const state = asked ? `asks: ${asked}` : works ? child.doing : stateOf(card)
  const took = tookText(tookMs)
  return laid(`${name} ${oneLine(agent)} · ${state}${spent(child)} · ${took}`, { paint, width, sign, number })
}

function spent({ card: { cost } }: Child): string {
  return cost > 0 ? ` · ${usdText(cost)}` : ''
}

type Laid = { readonly paint: Paint; readonly width: number; readonly sign: string; readonly number: number }

function laid(text: string, { paint, width, sign, number }: Laid): string {
  const end = ` @${number}`
  return `  ${sign} ${clippedToWidth(text, width - 4 - end.length)}${paint.dim(end)}`
}
