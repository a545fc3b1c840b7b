// A shared board as a pure fold: a board and a change give the next board and an outcome. The log (board-planner.ts)
// orders the changes, so the first of two claims on a card wins. It has no clock and looks at no session: each change
// brings the news about members, which counts only for the claim that it names.
import type { Frozen } from '../kernel/content.ts'
import { type Board, type BoardCard, boardIn, CARDS_MAX, NO_CARDS, TEXT_CHARS_MAX } from './board.ts'
import { isObject, asList, asString } from '../view/untrusted-json.ts'

/** Who may claim cards of a shared board. */
export type Member = Frozen<
  {
    /** The name of the member on this board. */
    name: string
    /** A lead may also add cards and members. */
    role: 'lead' | 'worker'
    /** The session that it works in. Without one it is outside of the store, and loses its cards only by leaving. */
    session?: string
    /** Only this child of the lead may be the member, whatever name another session gives. */
    child?: Frozen<MemberChild>
  } & MemberState
>
/**
 * `rests`: its last run has ended, or someone stopped it. `told`: how often it was told to go on since its last claim.
 */
type MemberState = {
  /** Its last run has ended, or someone stopped it. Absent while it works. */
  rests?: 'ended' | 'stopped'
  /** How often it was told to go on since its last claim. */
  told?: number
}
/** A child of `parent`, by the name of its task. */
type MemberChild = { parent: string; task: string }
/** Tasks that several sessions work on, and the members who may take them. */
export type SharedBoard = Board &
  Frozen<{
    /** Who may claim its cards. */
    members: readonly Member[]
    /** How often a card is claimed before it is `blocked`. */
    attemptsMax: number
  }>

/** A card to add. */
export type NewTask = Frozen<{
  /** What is to be done. */
  text: string
  /** Ids of cards that must be done first: those of the board, or of cards added in the same change. */
  needs?: readonly string[]
}>
/** The session behind this claim has ended. The card is free again, unless it has been claimed anew. */
export type EndedClaim = Frozen<{ card: string; attempt: number; why: string }>

/** A run of a session has ended. `parent` and `task` say whose child it is. */
export type EndedRun = Frozen<{ session: string; parent: string; task?: string; outcome: string }>

/** `id` is the caller's own, `by` the member's name or `host`, `version` that of the board the caller saw. */
/** `again`: the change was sent before, and no answer to it was seen. */
type ChangeEnvelope = { id: string; by: string; version?: number; again?: boolean; ended?: readonly EndedClaim[] }
export type BoardChange = Frozen<ChangeEnvelope & BoardAction>
type BoardAction =
  | { action: 'open'; members: readonly Member[]; cards: readonly NewTask[]; attemptsMax?: number }
  | { action: 'add'; cards: readonly NewTask[] }
  | { action: 'join'; member: Member }
  | { action: 'leave'; name: string }
  /** The session that the member works in from now on. */
  | { action: 'seat'; session: string }
  | { action: 'claim'; card?: string }
  | { action: 'complete' | 'fail' | 'release'; card: string; attempt: number; note?: string }
  | { action: 'look' }

/** Why a shared board did not take a change. */
export type BoardRefusal =
  | 'NotOpen'
  | 'AlreadyOpen'
  | 'NotMember'
  | 'DuplicateMember'
  | 'UnknownMember'
  | 'BadName'
  | 'SelfDependency'
  | 'CyclicDependency'
  | 'UnknownDependency'
  | 'TooManyCards'
  | 'TooManyMembers'
  | 'TextTooLong'
  | 'StaleVersion'
  | 'NotHolder'
  | 'Unreadable'

/** Whether a member may start a task, and if not, what stands in the way. */
export type ClaimOutcome =
  /** `attempt` counts the claims of this card. Every later change to the card names it. */
  | { readonly type: 'Started'; readonly card: BoardCard; readonly attempt: number }
  | { readonly type: 'Blocked'; readonly unmet: readonly string[] }
  | { readonly type: 'AlreadyClaimed'; readonly by: string }
  /** The member holds another card. */
  | { readonly type: 'AlreadyActive'; readonly card: string }
  | { readonly type: 'NoClaimableTask' }
  | { readonly type: 'UnknownTask' }
/** What came of a change to a shared board. */
export type BoardOutcome =
  | ClaimOutcome
  | { readonly type: 'Changed' }
  | { readonly type: 'Refused'; readonly why: BoardRefusal; readonly message: string }

export const HOST = 'host'
const MEMBERS_MAX = 50
const ATTEMPTS_MAX = 3
const NOTE_CHARS_MAX = 300

type ChangeResult = { readonly board: SharedBoard | null; readonly outcome: BoardOutcome }

/** A refused change leaves the board as it was, except that ended claims are released. */
export function applyBoardChange(before: SharedBoard | null, change: BoardChange): ChangeResult {
  if (change.action === 'open')
    return before === null ? openSharedBoard(change) : refuseChange(before, 'AlreadyOpen', OPEN)
  if (before === null)
    return refuseChange(null, 'NotOpen', 'The board is not open yet: open it with its members and cards.')
  const board = withMember(
    releaseEndedClaims(before, change.ended ?? []),
    change.by,
    ({ rests: _rested, ...member }) => member,
  )
  switch (change.action) {
    case 'look':
      return { board, outcome: { type: 'Changed' } }
    case 'add':
      return mayManage(board, change.by) ? addCards(board, change.cards) : refuseNonLead(board, change.by)
    case 'join':
      return mayManage(board, change.by) ? addMember(board, change.member) : refuseNonLead(board, change.by)
    case 'leave':
      return mayManage(board, change.by) || change.by === change.name
        ? removeMember(board, change.name)
        : refuseNonLead(board, change.by)
    case 'seat':
      return assignSession(board, change.by, change.session)
    case 'claim':
      return claimCard(board, change)
    default:
      return endClaim(board, change)
  }
}

const OPEN = 'The board is open already. Add cards to it, or open another one.'

function openSharedBoard(change: Extract<BoardChange, { action: 'open' }>): ChangeResult {
  const { members, cards, attemptsMax = ATTEMPTS_MAX } = change
  let board: SharedBoard = { ...NO_CARDS, members: [], attemptsMax }
  for (const member of members) {
    const next = addMember(board, member)
    if (next.board === null || next.outcome.type === 'Refused') return { board: null, outcome: next.outcome }
    board = next.board
  }
  const next = addCards(board, cards)
  return next.outcome.type === 'Refused' ? { board: null, outcome: next.outcome } : next
}

function addMember(board: SharedBoard, member: Member): ChangeResult {
  const { name } = member
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name) || name === HOST)
    return refuseChange(
      board,
      'BadName',
      `"${name.slice(0, 80)}" is no name of a member: use 1 to 64 letters, digits, "_" or "-".`,
    )
  if (board.members.some((each) => each.name === name))
    return refuseChange(board, 'DuplicateMember', `There is a member "${name}" already. Give each member its own name.`)
  if (board.members.length >= MEMBERS_MAX)
    return refuseChange(board, 'TooManyMembers', `A board has at most ${MEMBERS_MAX} members.`)
  return changeBoard(board, { members: [...board.members, member] })
}

/** Its cards are free again. */
function removeMember(board: SharedBoard, name: string): ChangeResult {
  if (!board.members.some((each) => each.name === name))
    return refuseChange(board, 'UnknownMember', `There is no member "${name}".`)
  const held = board.cards.filter((card) => card.status === 'in_progress' && card.by === name)
  const free = held.map(({ id, attempts = 1 }) => ({ card: id, attempt: attempts, why: `${name} left` }))
  return changeBoard(releaseEndedClaims(board, free), { members: board.members.filter((each) => each.name !== name) })
}

/**
 * Another session cannot take a seat that is taken. If the member is a child of the lead, a new session is the same
 * member restarted: it gets the seat once the old session has ended and this change has released its card.
 */
function assignSession(board: SharedBoard, by: string, session: string): ChangeResult {
  const member = board.members.find(({ name }) => name === by)
  if (!member) return refuseNonMember(board, by)
  const works = board.cards.some((card) => card.by === by && card.status === 'in_progress')
  const taken = member.session !== undefined && member.session !== session
  if (taken && (works || member.child === undefined))
    return refuseChange(
      board,
      'NotMember',
      `Another session has the place of "${by}". Give the name of your own place on the board.`,
    )
  return changeBoard(board, { members: board.members.map((each) => (each === member ? { ...member, session } : each)) })
}

function addCards(board: SharedBoard, tasks: readonly NewTask[]): ChangeResult {
  const all = board.cards.length + tasks.length
  if (all > CARDS_MAX)
    return refuseChange(board, 'TooManyCards', `A board has at most ${CARDS_MAX} cards, and this would be ${all}.`)
  const cards = tasks.map(({ text, needs = [] }, i): BoardCard => {
    const more = needs.length > 0 ? { needs: [...new Set(needs)] } : {}
    return { id: `t${board.made + i + 1}`, text, status: 'todo', ...more, changed: board.version + 1 }
  })
  const long = cards.find(({ text }) => text.length > TEXT_CHARS_MAX || text.trim() === '')
  if (long)
    return refuseChange(
      board,
      'TextTooLong',
      `A card has 1 to ${TEXT_CHARS_MAX} characters; ${long.id} has ${long.text.length}.`,
    )
  const known = new Set([...board.cards, ...cards].map(({ id }) => id))
  for (const { id, needs = [] } of cards) {
    if (needs.includes(id)) return refuseChange(board, 'SelfDependency', `Card ${id} cannot need itself.`)
    const unknown = needs.find((need) => !known.has(need))
    if (unknown !== undefined)
      return refuseChange(
        board,
        'UnknownDependency',
        `Card ${id} needs "${unknown.slice(0, 80)}", and there is no such card.`,
      )
  }
  const circle = findCircle(cards)
  if (circle !== null)
    return refuseChange(
      board,
      'CyclicDependency',
      `Cards wait for each other: ${circle.join(' → ')}. None of them could begin.`,
    )
  return changeBoard(board, { cards: [...board.cards, ...cards], made: board.made + cards.length })
}

/** Removes the cards that can begin, until none is left or the rest wait for each other. */
function findCircle(cards: readonly BoardCard[]): readonly string[] | null {
  let open = new Map(cards.map(({ id, needs = [] }) => [id, needs]))
  for (;;) {
    const next = new Map([...open].filter(([, needs]) => needs.some((need) => open.has(need))))
    if (next.size === 0) return null
    if (next.size === open.size) return [...open.keys()].slice(0, 10)
    open = next
  }
}

function claimCard(
  board: SharedBoard,
  { by, card: wanted, version }: Extract<BoardChange, { action: 'claim' }>,
): ChangeResult {
  const said = (outcome: BoardOutcome): ChangeResult => ({ board, outcome })
  if (!board.members.some(({ name }) => name === by)) return refuseNonMember(board, by)
  const active = board.cards.find((card) => card.status === 'in_progress' && card.by === by)
  if (active && active.id !== wanted) return said({ type: 'AlreadyActive', card: active.id })
  const card =
    wanted === undefined ? board.cards.find((each) => isFree(board, each)) : board.cards.find(({ id }) => id === wanted)
  if (!card) return said({ type: wanted === undefined ? 'NoClaimableTask' : 'UnknownTask' })
  // The member's own card, in another run. It counts as a new claim, so that late news about the old one does not apply
  // to it.
  if (active) return startCard(board, card, by)
  if (card.status === 'in_progress' || card.status === 'done')
    return said({ type: 'AlreadyClaimed', by: card.by ?? '' })
  const unmet = unmetBy(board, card)
  if (isClosed(card) || unmet.length > 0) return said({ type: 'Blocked', unmet })
  if (version !== undefined && (card.changed ?? 0) > version)
    return refuseChange(
      board,
      'StaleVersion',
      `Card ${card.id} has changed since version ${version}. Look at the board again.`,
    )
  return startCard(board, card, by)
}

function startCard(board: SharedBoard, { note: _before, ...card }: BoardCard, by: string): ChangeResult {
  const attempt = (card.attempts ?? 0) + 1
  const mine: BoardCard = { ...card, status: 'in_progress', by, attempts: attempt }
  const next = withMember(withCard(board, mine), by, ({ told: _told, ...member }) => member)
  return { board: next, outcome: { type: 'Started', card: findSharedCard(next, card.id), attempt } }
}

function endClaim(board: SharedBoard, change: Extract<BoardChange, { attempt: number }>): ChangeResult {
  const { by, card: id, attempt, action, note = '' } = change
  if (!board.members.some(({ name }) => name === by)) return refuseNonMember(board, by)
  const card = board.cards.find((each) => each.id === id)
  if (!card) return { board, outcome: { type: 'UnknownTask' } }
  if (card.status !== 'in_progress' || card.by !== by || card.attempts !== attempt)
    return refuseChange(
      board,
      'NotHolder',
      `${by} does not hold card ${id} (attempt ${attempt}) any more. Claim a card first.`,
    )
  if (action !== 'complete') return { board: freeCard(board, card, note), outcome: { type: 'Changed' } }
  const said = note === '' ? {} : { note: note.slice(0, NOTE_CHARS_MAX) }
  return { board: withCard(board, { ...card, status: 'done', ...said }), outcome: { type: 'Changed' } }
}

/** Frees the member's card. The member is told to go on when a card is free, unless someone stopped it. */
export function endMemberRun(board: SharedBoard, { session, parent, task, outcome }: EndedRun): SharedBoard {
  const isIt = ({ session: own, child }: Member): boolean =>
    own === session || (own === undefined && child?.parent === parent && child.task === task)
  const member = board.members.find(isIt)
  if (!member) return board
  const why = `${member.name} has ended its run`
  const held = board.cards.filter((card) => card.status === 'in_progress' && card.by === member.name)
  const free = releaseEndedClaims(
    board,
    held.map(({ id, attempts = 1 }) => ({ card: id, attempt: attempts, why })),
  )
  const rests = outcome === 'interrupted' ? 'stopped' : 'ended'
  return withMember(free, member.name, (each) => ({ ...each, session, rests }))
}

/** A member that does not claim after so many messages gets no more. */
const TOLD_MAX = 3

/**
 * The members to tell now, and the board that records it. As many are told as there are free cards that no working
 * member will claim.
 */
export function tellRestingMembers(board: SharedBoard): {
  readonly board: SharedBoard
  readonly told: readonly Member[]
} {
  const holds = ({ name }: Member): boolean =>
    board.cards.some((card) => card.status === 'in_progress' && card.by === name)
  const working = board.members.filter((member) => member.child && member.rests === undefined && !holds(member))
  const free = board.cards.filter((card) => isFree(board, card)).length - working.length
  const resting = board.members.filter(({ rests, told = 0 }) => rests === 'ended' && told < TOLD_MAX)
  const told = resting.slice(0, Math.max(0, free))
  const next = told.reduce(
    (all, { name }) =>
      withMember(all, name, ({ rests: _rested, ...each }) => ({ ...each, told: (each.told ?? 0) + 1 })),
    board,
  )
  return { board: next, told }
}

/** Others need not read the board again after this, so the version stays. */
function withMember(board: SharedBoard, name: string, to: (member: Member) => Member): SharedBoard {
  if (!board.members.some((each) => each.name === name)) return board
  return { ...board, members: board.members.map((each) => (each.name === name ? to(each) : each)) }
}

export function isFree(board: SharedBoard, card: BoardCard): boolean {
  return !isClosed(card) && card.status !== 'in_progress' && unmetBy(board, card).length === 0
}

function releaseEndedClaims(board: SharedBoard, claims: readonly EndedClaim[]): SharedBoard {
  return claims.reduce((next, { card: id, attempt, why }) => {
    const card = next.cards.find((each) => each.id === id)
    const is = card?.status === 'in_progress' && card.attempts === attempt
    return is && card ? freeCard(next, card, why) : next
  }, board)
}

/** Makes the card free again. After too many attempts it is blocked instead, for a person to look at. */
function freeCard(board: SharedBoard, { by: _by, note: _note, ...card }: BoardCard, why: string): SharedBoard {
  const over = (card.attempts ?? 0) >= board.attemptsMax
  const note = [why, ...(over ? [`tried ${card.attempts} times`] : [])].filter((part) => part !== '').join('; ')
  const said = note === '' ? {} : { note: note.slice(0, NOTE_CHARS_MAX) }
  return withCard(board, { ...card, status: over ? 'blocked' : 'todo', ...said })
}

/** A card that cannot be claimed: neither open nor in progress. */
function isClosed({ status }: BoardCard): boolean {
  return status !== 'todo' && status !== 'ready' && status !== 'in_progress'
}

function unmetBy({ cards }: SharedBoard, { needs = [] }: BoardCard): readonly string[] {
  return needs.filter((need) => cards.find(({ id }) => id === need)?.status !== 'done')
}

function withCard(board: SharedBoard, card: BoardCard): SharedBoard {
  const version = board.version + 1
  return {
    ...board,
    version,
    cards: board.cards.map((each) => (each.id === card.id ? { ...card, changed: version } : each)),
  }
}

function findSharedCard({ cards }: SharedBoard, id: string): BoardCard {
  return cards.find((card) => card.id === id) as BoardCard
}

function changeBoard(board: SharedBoard, to: Partial<SharedBoard>): ChangeResult {
  return { board: { ...board, ...to, version: board.version + 1 }, outcome: { type: 'Changed' } }
}

function mayManage({ members }: SharedBoard, by: string): boolean {
  return by === HOST || members.some(({ name, role }) => name === by && role === 'lead')
}

function refuseNonMember(board: SharedBoard, by: string): ChangeResult {
  return refuseChange(board, 'NotMember', `"${by.slice(0, 80)}" is no member of this board.`)
}

function refuseNonLead(board: SharedBoard, by: string): ChangeResult {
  return refuseChange(board, 'NotMember', `Only the host and a lead may do this, and "${by.slice(0, 80)}" is neither.`)
}

function refuseChange(board: SharedBoard | null, why: BoardRefusal, message: string): ChangeResult {
  return { board, outcome: { type: 'Refused', why, message } }
}

/** Null if the value is not a shared board. */
export function readSharedBoard(value: unknown): SharedBoard | null {
  const board = boardIn(value)
  if (board === null || !isObject(value)) return null
  const { attemptsMax, members } = value
  const named = asList(members).every((each) => isObject(each) && asString(each['name']) !== '')
  if (!Number.isSafeInteger(attemptsMax) || !Array.isArray(members) || !named) return null
  return { ...board, attemptsMax: attemptsMax as number, members: members as unknown as readonly Member[] }
}
