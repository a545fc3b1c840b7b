// A board: cards with a status each, and a version that grows with every change. Pure, so anything that shows a board
// may use it. todo-tool.ts changes the board of a session; shared-board.ts is a board for several sessions.
import type { CallKey, Frozen, Json } from '../kernel/content.ts'
import { callKey, type Event } from '../kernel/event.ts'
import { isObject, asList, asString } from '../view/untrusted-json.ts'

export const STATUSES = ['todo', 'awaiting_approval', 'ready', 'in_progress', 'blocked', 'done', 'rejected'] as const
/** How a task on a board stands. */
export type BoardStatus = (typeof STATUSES)[number]

export const CARDS_MAX = 200
export const TEXT_CHARS_MAX = 500

/** A card of a board. */
export type BoardCard = Frozen<
  {
    /** The id of the card, such as `t1`. */
    id: string
    /** What is to be done. */
    text: string
    /** How the task stands. */
    status: BoardStatus
    /** What was said about it last. Absent for nothing. */
    note?: string
    /** A person approved the card with the plan. */
    planned?: true
  } & SharedFields
>
type SharedFields = {
  /** On shared boards: the cards that must be done first. */
  needs?: readonly string[]
  /** On shared boards: the member that holds it. */
  by?: string
  /** On shared boards: how often it was claimed. */
  attempts?: number
  /** On shared boards: the version of the board at its last change. */
  changed?: number
}

/** A board with its cards. */
export type Board = Frozen<{
  /** Grows with every change. */
  version: number
  /** The number of cards ever added: an id is never used again. */
  made: number
  /** The cards, in the order in which they were added. */
  cards: readonly BoardCard[]
}>

export const NO_CARDS: Board = { version: 0, made: 0, cards: [] }

export const GOAL_STATUSES = ['active', 'paused', 'budget_limited', 'complete'] as const
/** How a goal stands. */
export type GoalStatus = (typeof GOAL_STATUSES)[number]
/** What a session works towards, and whether it has got there. */
export type Goal = Frozen<{
  /** What the session works towards. */
  text: string
  /** How the goal stands. */
  status: GoalStatus
  /** What was said about it last. Absent for nothing. */
  note?: string
}>

/** The board of a session, and its goal if it has one. */
export type BoardState = {
  /** The board. Without cards if the session has none. */
  readonly board: Board
  /** The goal. Null if the session has none. */
  readonly goal: Goal | null
}

/** The tools whose results hold the board, and the tool whose results hold the goal. */
export const TODO = 'todo'
export const PLAN_EXIT = 'plan_exit'
export const GOAL = 'goal'

/** The board of a session from all of its events, in order. */
export function boardOf(events: readonly Event[]): BoardState {
  const look = new BoardSearch()
  for (let i = events.length - 1; i >= 0 && !look.done; i--) look.take(events[i] as Event)
  return look.standing
}

/** Reads a log, newest event first, and stops at the last results of the board's tools. */
export class BoardSearch {
  #board: Board | null = null
  #goal: Goal | null = null
  #limited: boolean | null = null
  /** Results that may be of these tools. The reply names the tools, and it comes later in this order. */
  readonly #results = new Map<CallKey, Json>()

  get done(): boolean {
    return this.#board !== null && this.#goal !== null
  }

  get standing(): BoardState {
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

  /** A goal whose run hit a limit is budget_limited; the next run makes it active again. */
  #goalIn(value: Json | undefined): Goal | null {
    const goal = goalIn(value)
    return goal?.status === 'active' && this.#limited ? { ...goal, status: 'budget_limited' } : goal
  }
}

/** Null if the value is not a board. A log may come from a file, so everything is checked. */
export function boardIn(value: unknown): Board | null {
  if (!isObject(value)) return null
  const { version, made } = value
  const cards = asList(value['cards'])
  if (!isCount(version) || !isCount(made) || cards.length > CARDS_MAX || !cards.every(isCard)) return null
  return { version, made, cards: cards as unknown as readonly BoardCard[] }
}

function isCard(value: Json): boolean {
  if (!isObject(value)) return false
  const { id, text, status, note = '', needs = [], by = '', attempts = 0, changed = 0 } = value
  const texts = [id, text, note, by, ...asList(needs)]
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
  const [text, note] = [asString(value['text']), asString(value['note'])]
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
/** The mark alone shows these. */
const PLAIN: readonly BoardStatus[] = ['todo', 'in_progress', 'done']

/** One line for each card with its id, and the version that a change must name. */
export function boardText({ version, cards }: Board): string {
  const lines = cards.map(({ id, text, status, note, needs = [], by, attempts = 0 }) => {
    const more = [
      ...(PLAIN.includes(status) ? [] : [status]),
      ...(by === undefined ? [] : [`by ${by}`]),
      ...(attempts > 1 ? [`attempt ${attempts}`] : []),
      ...(needs.length > 0 ? [`after ${needs.join(', ')}`] : []),
      ...(note === undefined ? [] : [note]),
    ]
    return `- [${MARKS[status]}] ${id}: ${singleLine(text)}${more.length > 0 ? ` (${singleLine(more.join('; '))})` : ''}`
  })
  return [`Board, version ${version}:`, ...(lines.length > 0 ? lines : ['(no cards)'])].join('\n')
}

/** Removes line breaks, since a second line would look like another card. */
function singleLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

/** A goal as a model is told it. */
export function goalText(goal: Goal | null): string {
  if (goal === null) return 'There is no goal.'
  return `Goal (${goal.status}): ${singleLine(goal.text)}${goal.note === undefined ? '' : ` (${singleLine(goal.note)})`}`
}
