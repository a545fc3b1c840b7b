// The verbs of a shared board for members and hosts, built on the verbs of sessions. Each change is a message to the
// board's session, and its outcome is in the reply. The next change also reports claims of members whose session has
// ended.
import { systemRandom } from '../runtime/state/machine.ts'
import { Fault } from '../kernel/failure.ts'
import {
  countCheck,
  nonEmptyCheck,
  flagCheck,
  listCheck,
  requiredCheck,
  optionsChecker,
  objectCheck,
} from '../options.ts'
import type { Sessions } from '../sessions/verbs.ts'
import { textOf } from '../view/shown-text.ts'
import type { BoardCard } from './board.ts'
import { BOARD, boardReplyIn } from './board-planner.ts'
import {
  type BoardChange,
  type BoardOutcome,
  type ClaimOutcome,
  type EndedClaim,
  HOST,
  type Member,
  type NewTask,
  type SharedBoard,
} from './shared-board.ts'
import { readSessionCard } from './session-card.ts'

/** The verbs that a board needs, of a harness or a client. */
export type BoardSessions = Pick<Sessions, 'open' | 'session'>
type ChangeBody<C = BoardChange> = C extends unknown ? Omit<C, 'id' | 'ended' | 'again'> : never
/** `key`: the caller's own. The same key twice is the same change, also after a crash. */
type WithKey = { readonly key?: string }

const TRIES = 10
const PAGE = 200

/** What a shared board begins with: its members and cards, and how often a task may be tried. */
export type BoardOptions = {
  /** The id of its session. */
  readonly id?: string
  /** Who may claim cards. */
  readonly members: readonly Member[]
  /** The cards that the board begins with. */
  readonly cards: readonly NewTask[]
  /** How often a card is claimed before it is `blocked`. Default 3. */
  readonly attemptsMax?: number
  /** Use an existing board of this id as it is. */
  readonly reuse?: boolean
}
const checkBoard = optionsChecker<BoardOptions>('openBoard', {
  id: nonEmptyCheck,
  members: requiredCheck(listCheck(objectCheck)),
  cards: requiredCheck(listCheck(objectCheck)),
  attemptsMax: countCheck(1, 100),
  reuse: flagCheck,
})

/** A new board with its members and cards. */
export async function openBoard(sessions: BoardSessions, options: BoardOptions): Promise<BoardHandle> {
  checkBoard(options)
  const { id, reuse = false, ...rest } = options
  const session = await sessions.open({ agent: BOARD, reuse, ...(id === undefined ? {} : { id }) })
  const board = new BoardHandle(sessions, session.id)
  // One fixed key: the first opening counts, even if its answer was lost.
  await board.say({ action: 'open', by: HOST, ...rest }, 'open')
  return board
}

/** A board of this store, by the id of its session. */
export class BoardHandle {
  /** The id of the board's session. */
  readonly id: string
  readonly #sessions: BoardSessions

  constructor(sessions: BoardSessions, id: string) {
    this.id = id
    this.#sessions = sessions
  }

  /** The board in its last reply. Runs nothing; throws a Fault if the board is not open. */
  async read(): Promise<SharedBoard> {
    const { seq = 0 } = (await readSessionCard(this.#sessions, this.id)) ?? {}
    // Each reply holds the whole board, so the last one is enough.
    for (const after of seq > PAGE ? [seq - PAGE, 0] : [0]) {
      const { board } = await this.#answer(after, null)
      if (board) return board
    }
    throw new Fault('invalid_input', `Session ${this.id} is no board that was opened. Open it with openBoard.`)
  }

  /** The board, after the claims of ended members were released. */
  async look(): Promise<SharedBoard> {
    await this.say({ action: 'look', by: HOST })
    return this.read()
  }

  /** Claims a card for this member: the named one, or the first that is free. A mistake of the caller is a Fault. */
  async claim(by: string, { card, key }: WithKey & { readonly card?: string } = {}): Promise<ClaimOutcome> {
    for (let i = 0; ; i++) {
      const { version } = await this.read()
      const again = i === 0 ? key : key && `${key}:${i}`
      const outcome = await this.#said({ action: 'claim', by, version, ...(card === undefined ? {} : { card }) }, again)
      if (outcome.type !== 'Refused') return outcome as ClaimOutcome
      // The version was old: read the board again. The card may be taken by then.
      if (outcome.why !== 'StaleVersion' || i === TRIES) throw new Fault('invalid_input', outcome.message, outcome.why)
    }
  }

  /** `attempt` is the number from the claim. After another claim it is refused. */
  async complete(by: string, claim: HeldClaim & WithKey): Promise<void> {
    await this.#end('complete', by, claim)
  }

  /** The card is free again, until it was tried `attemptsMax` times. */
  async fail(by: string, claim: HeldClaim & WithKey): Promise<void> {
    await this.#end('fail', by, claim)
  }

  /** Gives the card back. This counts as a try, as `fail` does. */
  async release(by: string, claim: HeldClaim & WithKey): Promise<void> {
    await this.#end('release', by, claim)
  }

  async #end(
    action: 'complete' | 'fail' | 'release',
    by: string,
    { key, ...claim }: HeldClaim & WithKey,
  ): Promise<void> {
    await this.say({ action, by, ...claim }, key)
  }

  /** Adds cards in the name of the host or of a lead. Returns all cards of the board. */
  async add(by: string, cards: readonly NewTask[]): Promise<readonly BoardCard[]> {
    await this.say({ action: 'add', by, cards })
    return (await this.read()).cards
  }

  /** Adds a member in the name of the host or of a lead. */
  async join(by: string, member: Member): Promise<void> {
    await this.say({ action: 'join', by, member })
  }

  /** Its cards are free again. */
  async leave(by: string, name: string): Promise<void> {
    await this.say({ action: 'leave', by, name })
  }

  /** Sets the session that this member works in. When its run has ended, its card is free again. */
  async seat(by: string, session: string): Promise<void> {
    await this.say({ action: 'seat', by, session })
  }

  /** A refusal is a Fault with the reason's name as its detail. */
  async say(act: ChangeBody, key?: string): Promise<BoardOutcome> {
    const outcome = await this.#said(act, key)
    if (outcome.type === 'Refused') throw new Fault('invalid_input', outcome.message, outcome.why)
    return outcome
  }

  async #said(act: ChangeBody, key?: string): Promise<BoardOutcome> {
    const id = key ?? systemRandom.id()
    const ended = act.action === 'open' ? [] : await this.#ended()
    const change = { ...act, id, ...(ended.length > 0 ? { ended } : {}) }
    const session = this.#sessions.session(this.id)
    const seq = await this.#send(JSON.stringify(change), id)
    for (let i = 0; i < TRIES; i++) {
      const rests = (await readSessionCard(this.#sessions, this.id))?.phase === 'resting'
      const { outcome } = await this.#answer(seq, id)
      if (outcome) return outcome
      // A stop, a hook or a failed run may have removed the message before it was read, or the next run may still read
      // it. So it is sent again.
      if (rests && i > 0) await this.#send(JSON.stringify({ ...change, again: true }), `${id}:${i}`)
      await session.run()
    }
    throw new Fault('session_busy', `Board ${this.id} has not answered. Ask again with the same key.`)
  }

  /** The first message under an id counts, even if more claims have ended since. */
  async #send(text: string, id: string): Promise<number> {
    try {
      return (await this.#sessions.session(this.id).send(text, { id })).seq
    } catch (error) {
      if (error instanceof Fault && error.code === 'id_reused') return 0
      throw error
    }
  }

  /** The outcome of this change, and the last board. */
  async #answer(
    after: number,
    id: string | null,
  ): Promise<{ outcome: BoardOutcome | null; board: SharedBoard | null }> {
    const session = this.#sessions.session(this.id)
    let [outcome, board]: [BoardOutcome | null, SharedBoard | null] = [null, null]
    for (let from = after; ; ) {
      const { events } = await session.events({ after: from, limit: PAGE })
      for (const event of events) {
        from = event.seq
        const reply = event.type === 'agent.message' ? boardReplyIn(textOf(event.parts)) : null
        if (reply === null) continue
        board = reply.board
        if (id !== null && Object.hasOwn(reply.answers, id)) outcome ??= reply.answers[id] ?? null
      }
      if (events.length < PAGE || outcome) return { outcome, board }
    }
  }

  /** The claims of members that are in no run any more: it ended, was stopped or removed, or no worker tries it. */
  async #ended(): Promise<readonly EndedClaim[]> {
    const { cards, members } = await this.read()
    const found: EndedClaim[] = []
    for (const { id, by, status, attempts = 1 } of cards) {
      const session = status === 'in_progress' ? members.find(({ name }) => name === by)?.session : undefined
      const why = session === undefined ? null : await whyMemberEnded(this.#sessions, session)
      if (why !== null) found.push({ card: id, attempt: attempts, why: `${by} ${why}` })
    }
    return found
  }
}

type HeldClaim = { readonly card: string; readonly attempt: number; readonly note?: string }

/** The reason why the member no longer works; null while it works. */
async function whyMemberEnded(sessions: BoardSessions, session: string): Promise<string | null> {
  const card = await readSessionCard(sessions, session)
  if (card === null) return 'is not there any more'
  if (card.status === 'terminated') return 'was closed'
  if (card.trouble?.until === null) return 'was quarantined'
  return card.phase === 'resting' ? 'has ended its run' : null
}
