// `todo`: the board of a session, for the model that works in it. It has no store of its own: the last call's result
// holds the board, and each new result holds the next one.
import { Fault } from '../kernel/failure.ts'
import { methodsCheck, requiredCheck, optionsChecker } from '../options.ts'
import { type Output, output } from '../tools/core/tool-output.ts'
import {
  choiceField,
  type Infer,
  integerField,
  listField,
  objectField,
  optionalField,
  textField,
} from '../tools/core/argument-schema.ts'
import { defineTool, type Tool } from '../tools/core/tool.ts'
import {
  type Board,
  type BoardCard,
  type BoardStatus,
  boardText,
  CARDS_MAX,
  STATUSES,
  TEXT_CHARS_MAX,
  TODO,
} from './board.ts'
import { type BoardStore, readBoard } from './read-board.ts'

const ACTIONS = ['add', 'edit', 'update_status', 'remove', 'replace', 'clear', 'list'] as const
const NOTE_CHARS_MAX = 300

const status = choiceField('How it stands. Only one card is in_progress.', STATUSES)
const words = textField('What is to be done, in one line.', { min: 1, max: TEXT_CHARS_MAX })
const note = textField('Why, such as what blocks it.', { min: 1, max: NOTE_CHARS_MAX })
const card = objectField({ text: words, status: optionalField(status), note: optionalField(note) })
const input = objectField({
  action: choiceField('What to do with the board.', ACTIONS),
  id: optionalField(textField('edit, update_status, remove: which card, such as "t3".', { min: 1, max: 40 })),
  text: optionalField(words),
  status: optionalField(status),
  note: optionalField(note),
  cards: optionalField(listField('add, replace: the cards, in order.', card, { min: 1, max: CARDS_MAX })),
  version: optionalField(integerField('The version of the board you saw. replace and clear need it.')),
})
export type TodoArgs = Infer<typeof input>

/** Give it the store of the harness: the board is read from the log of the calling session. */
export function todoTool(options: { readonly store: BoardStore }): Tool {
  checkStore(options)
  const { store } = options
  return defineTool<TodoArgs>({
    name: TODO,
    description:
      'The board of this session: cards with a status, for work of several steps. Every answer shows the whole board with ids and its version.',
    input,
    aliases: { content: 'text', todos: 'cards', items: 'cards', title: 'text' },
    // A call changes nothing outside the log, so a lost call is simply made again.
    effect: 'read',
    // Each change builds on the result of the change before it.
    sequential: ({ action }) => action !== 'list',
    polling: true,
    instructions: `For work of three steps or more, keep a board with ${TODO}: add the cards first, set a card in_progress when you begin it and done when it is, one at a time.`,
    execute: async (args, { session }) => applyTodoAction((await readBoard(store, session)).board, args),
  })
}

const checkStore = optionsChecker<{ readonly store: BoardStore }>('todoTool', {
  store: requiredCheck(methodsCheck('give the store of the harness', 'read', 'card')),
})

function applyTodoAction(board: Board, args: TodoArgs): Output {
  try {
    const next = changeTodoBoard(board, args)
    return output({ content: boardText(next), metadata: { board: next } })
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    // The model continues from this text, so it shows the board too.
    return output({
      ok: false,
      content: `${error.message}\n\n${boardText(board)}`,
      metadata: { board, error_type: error.detail },
    })
  }
}

/** Throws a Fault that says what is wrong, and what to do about it. */
function changeTodoBoard(board: Board, args: TodoArgs): Board {
  const { action, version } = args
  if (action === 'list') return board
  if (version === undefined && (action === 'replace' || action === 'clear') && board.cards.length > 0)
    throw todoFault('VersionMissing', `"${action}" needs the version of the board you saw; it is ${board.version} now.`)
  if (version !== undefined && version !== board.version)
    throw todoFault('StaleVersion', `The board has changed: you saw version ${version}, it is ${board.version} now.`)
  const next = { ...CHANGES[action](board, args), version: board.version + 1 }
  checkBounds(next)
  return next
}

type TodoChange = (board: Board, args: TodoArgs) => Board

const CHANGES: Readonly<Record<Exclude<TodoArgs['action'], 'list'>, TodoChange>> = {
  add: (board, args) => {
    checkPlanned(board.cards, 'add to')
    return withCards(board, board.cards, newCardsOf(args))
  },
  replace: (board, args) => {
    checkPlanned(board.cards, 'replace')
    return withCards(board, [], newCardsOf(args))
  },
  clear: (board) => {
    checkPlanned(board.cards, 'clear')
    return { ...board, cards: [] }
  },
  edit: (board, { id, text: said }) => {
    const found = findCard(board, id)
    checkPlanned([found], 'edit')
    if (said === undefined) throw todoFault('TextMissing', 'Give the new text of the card.')
    return replaceCard(board, { ...found, text: said })
  },
  remove: (board, { id }) => {
    const found = findCard(board, id)
    checkPlanned([found], 'remove')
    return { ...board, cards: board.cards.filter((each) => each !== found) }
  },
  update_status: (board, { id, status: to, note: why }) => {
    const { note: _before, ...found } = findCard(board, id)
    if (to === undefined) throw todoFault('StatusMissing', `Give the new status: ${STATUSES.join(', ')}.`)
    return replaceCard(board, { ...found, status: to, ...(why === undefined ? {} : { note: why }) })
  },
}

type NewCard = { readonly text: string; readonly status?: BoardStatus; readonly note?: string; readonly planned?: true }

function newCardsOf({ action, cards, text: said, status: as, note: why }: TodoArgs): readonly NewCard[] {
  if (cards !== undefined) return cards
  if (said === undefined) throw todoFault('CardsMissing', `Give "cards" to ${action}, or the "text" of one card.`)
  return [{ text: said, ...(as === undefined ? {} : { status: as }), ...(why === undefined ? {} : { note: why }) }]
}

/** Adds new cards after those that stay. */
export function withCards(board: Board, kept: readonly BoardCard[], cards: readonly NewCard[]): Board {
  const made = cards.map((each, i): BoardCard => {
    return { id: `t${board.made + i + 1}`, ...each, status: each.status ?? 'todo' }
  })
  const next = { ...board, made: board.made + cards.length, cards: [...kept, ...made] }
  checkBounds(next)
  return next
}

function findCard({ cards }: Board, id: string | undefined): BoardCard {
  const found = cards.find((each) => each.id === id)
  if (found) return found
  const known =
    cards.length === 0 ? 'The board is empty.' : `The cards are: ${cards.map((each) => each.id).join(', ')}.`
  throw todoFault('UnknownCard', `There is no card "${id ?? ''}". ${known}`)
}

function replaceCard(board: Board, now: BoardCard): Board {
  const other = board.cards.find((each) => each.status === 'in_progress' && each.id !== now.id)
  if (now.status === 'in_progress' && other) throw inProgressFault(other)
  return { ...board, cards: board.cards.map((each) => (each.id === now.id ? now : each)) }
}

function inProgressFault({ id, text: said }: BoardCard): Fault {
  const message = `Only one card may be in_progress, and ${id} ("${said.slice(0, 80)}") is. Set ${id} to done, blocked or todo first.`
  return todoFault('AlreadyInProgress', message)
}

function checkBounds({ cards }: Board): void {
  if (cards.length > CARDS_MAX)
    throw todoFault(
      'TooManyCards',
      `A board has at most ${CARDS_MAX} cards, and this would be ${cards.length}. Remove done ones, or put several steps on one card.`,
    )
  const [first, second] = cards.filter((each) => each.status === 'in_progress')
  if (first && second) throw inProgressFault(first)
}

/**
 * Throws while an approved plan has open cards: to change it, or to add a card to it, needs that person's approval
 * again.
 */
function checkPlanned(cards: readonly BoardCard[], action: string): void {
  const open = cards.find((each) => each.planned && each.status !== 'done' && each.status !== 'rejected')
  if (!open) return
  const what = action === 'add to' ? 'the plan, which is not done yet' : 'it'
  const message = `Card ${open.id} is of the plan that a person approved, so you cannot ${action} ${what}. Set its status, or show the changed plan with plan_exit.`
  throw todoFault('PlanApproved', message)
}

function todoFault(type: string, message: string): Fault {
  return new Fault('invalid_input', message, type)
}
