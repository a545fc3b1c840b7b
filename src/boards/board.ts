// A board: cards with a status each, and a version that grows with every change. Pure, and usable by all that shows one. What may be
// done to the board of a session is in todo.ts; a board that several share is in shared.ts.
import type { CallKey, Frozen, Json } from '../kernel/content.ts'
import { callKey, type Event } from '../kernel/event.ts'
import { isObject, listOf, stringOf } from '../view/json.ts'

export const STATUSES = ['todo', 'awaiting_approval', 'ready', 'in_progress', 'blocked', 'done', 'rejected'] as const
export type BoardStatus = (typeof STATUSES)[number]

export const CARDS_MAX = 200
export const TEXT_CHARS_MAX = 500

/**
 * `planned`: a person approved it with the plan. The rest is for boards that are shared: what must be done before it, who holds it,
 * how often it was claimed, and the version in which it last changed.
 */
export type BoardCard = Frozen<
  { id: string; text: string; status: BoardStatus; note?: string; planned?: true } & Shared
>
type Shared = { needs?: readonly string[]; by?: string; attempts?: number; changed?: number }

/** `made` is how many cards there ever were: an id is never used again. */
export type Board = Frozen<{ version: number; made: number; cards: readonly BoardCard[] }>

export const NO_CARDS: Board = { version: 0, made: 0, cards: [] }

export const GOAL_STATUSES = ['active', 'paused', 'budget_limited', 'complete'] as const
export type GoalStatus = (typeof GOAL_STATUSES)[number]
export type Goal = Frozen<{ text: string; status: GoalStatus; note?: string }>

/** How a session stands: its board, and what it is there for, if that was said. */
export type Standing = { readonly board: Board; readonly goal: Goal | null }

/** The tools whose results hold the board, and the one whose results hold the goal. */
export const TODO = 'todo'
export const PLAN_EXIT = 'plan_exit'
export const GOAL = 'goal'

/** The board of a session from all of its events, in order. */
export function boardOf(events: readonly Event[]): Standing {
  const look = new BoardSearch()
  for (let i = events.length - 1; i >= 0 && !look.done; i--) look.take(events[i] as Event)
  return look.standing
}

/** The fold of a log, newest event first, so that it ends where the last results of the board's tools are. */
export class BoardSearch {
  #board: Board | null = null
  #goal: Goal | null = null
  #limited: boolean | null = null
  /** Results that may be ours: only the reply says whose they are, and it stands before them. */
  readonly #results = new Map<CallKey, Json>()

  get done(): boolean {
    return this.#board !== null && this.#goal !== null
  }

  get standing(): Standing {
    return { board: this.#board ?? NO_CARDS, goal: this.#goal }
  }

  take(event: Event): void {
    if (event.type === 'run.started') this.#limited ??= false
    else if (event.type === 'run.settled') this.#limited ??= event.outcome.type === 'limit'
    else if (event.type === 'agent.tool_result' && isObject(event.metadata)) {
      if ('board' in event.metadata || 'goal' in event.metadata) this.#results.set(event.call, event.metadata)
    } else if (event.type === 'agent.message' && this.#results.size > 0) this.#read(event)
  }

  #read({ seq, calls }: Extract<Event, { type: 'agent.message' }>): void {
    for (let i = calls.length - 1; i >= 0; i--) {
      const tool = calls[i]?.tool
      const metadata = this.#results.get(callKey(seq, i))
      if (!isObject(metadata)) continue
      if (tool === TODO || tool === PLAN_EXIT) this.#board ??= boardIn(metadata['board'])
      if (tool === GOAL) this.#goal ??= this.#goalIn(metadata['goal'])
    }
    this.#results.clear()
  }

  /** A goal whose run came to a limit waits for more: the next run takes it up again. */
  #goalIn(value: Json | undefined): Goal | null {
    const goal = goalIn(value)
    return goal?.status === 'active' && this.#limited ? { ...goal, status: 'budget_limited' } : goal
  }
}

/** Null for what is no board. A log may come out of a file, so nothing of it is believed. */
export function boardIn(value: unknown): Board | null {
  if (!isObject(value)) return null
  const { version, made } = value
  const cards = listOf(value['cards'])
  if (!isCount(version) || !isCount(made) || cards.length > CARDS_MAX || !cards.every(isCard)) return null
  return { version, made, cards: cards as unknown as readonly BoardCard[] }
}

function isCard(value: Json): boolean {
  if (!isObject(value)) return false
  const { id, text, status, note = '', needs = [], by = '', attempts = 0, changed = 0 } = value
  const texts = [id, text, note, by, ...listOf(needs)]
  return texts.every((one) => typeof one === 'string') && isStatus(status) && isCount(attempts) && isCount(changed)
}

function isStatus(value: Json | undefined): value is BoardStatus {
  return STATUSES.some((status) => status === value)
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function goalIn(value: Json | undefined): Goal | null {
  if (!isObject(value)) return null
  const status = GOAL_STATUSES.find((each) => each === value['status'])
  const [text, note] = [stringOf(value['text']), stringOf(value['note'])]
  return status === undefined || text === '' ? null : { text, status, ...(note === '' ? {} : { note }) }
}

const MARKS: Readonly<Record<BoardStatus, string>> = {
  todo: ' ',
  awaiting_approval: '!',
  ready: ' ',
  in_progress: '~',
  blocked: '!',
  done: 'x',
  rejected: 'x',
}
/** Said by the mark alone. */
const PLAIN: readonly BoardStatus[] = ['todo', 'in_progress', 'done']

/** One line a card, with its id, and the version that a change must name. */
export function boardText({ version, cards }: Board): string {
  const lines = cards.map(({ id, text, status, note, needs = [], by, attempts = 0 }) => {
    const more = [
      ...(PLAIN.includes(status) ? [] : [status]),
      ...(by === undefined ? [] : [`by ${by}`]),
      ...(attempts > 1 ? [`attempt ${attempts}`] : []),
      ...(needs.length > 0 ? [`after ${needs.join(', ')}`] : []),
      ...(note === undefined ? [] : [note]),
    ]
    return `- [${MARKS[status]}] ${id}: ${inLine(text)}${more.length > 0 ? ` (${inLine(more.join('; '))})` : ''}`
  })
  return [`Board, version ${version}:`, ...(lines.length > 0 ? lines : ['(no cards)'])].join('\n')
}

/** A text that breaks its line would read like another card. */
function inLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

export function goalText(goal: Goal | null): string {
  if (goal === null) return 'There is no goal.'
  return `Goal (${goal.status}): ${inLine(goal.text)}${goal.note === undefined ? '' : ` (${inLine(goal.note)})`}`
}
