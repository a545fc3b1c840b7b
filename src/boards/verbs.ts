// What members and hosts do with a shared board, over the verbs of sessions: each word is a message to the board's session, and its
// answer stands in the reply. Claims of members whose session has ended are told with the next word.
import { systemRandom } from '../engine/platform.ts'
import { Fault } from '../kernel/failure.ts'
import { count, filled, flag, listOf, needed, optionsOf, record } from '../options.ts'
import type { Sessions } from '../sessions/verbs.ts'
import { textOf } from '../view/text.ts'
import type { BoardCard } from './board.ts'
import { BOARD, boardReplyIn } from './planner.ts'
import {
  type BoardChange,
  type BoardOutcome,
  type ClaimOutcome,
  type EndedClaim,
  HOST,
  type Member,
  type NewTask,
  type SharedBoard,
} from './shared.ts'

export type BoardSessions = Pick<Sessions, 'open' | 'session' | 'status'>
type Act<C = BoardChange> = C extends unknown ? Omit<C, 'id' | 'ended' | 'again'> : never
/** `key`: the caller's own. The same key twice is the same word, also after a crash. */
type Keyed = { readonly key?: string }

const TRIES = 10
const PAGE = 200

export type BoardOptions = {
  /** Of its session. */
  readonly id?: string
  readonly members: readonly Member[]
  readonly cards: readonly NewTask[]
  /** How often a card is claimed before it is `blocked`. Default 3. */
  readonly attemptsMax?: number
  /** A board that has this id already is taken as it is. */
  readonly reuse?: boolean
}
const checkBoard = optionsOf<BoardOptions>('openBoard', {
  id: filled,
  members: needed(listOf(record)),
  cards: needed(listOf(record)),
  attemptsMax: count(1, 100),
  reuse: flag,
})

/** A new board with its members and cards. */
export async function openBoard(sessions: BoardSessions, options: BoardOptions): Promise<BoardHandle> {
  checkBoard(options)
  const { id, reuse = false, ...rest } = options
  const session = await sessions.open({ agent: BOARD, reuse, ...(id === undefined ? {} : { id }) })
  const board = new BoardHandle(sessions, session.id)
  // Under one key: what was opened first stands, also where the first answer was lost.
  await board.say({ action: 'open', by: HOST, ...rest }, 'open')
  return board
}

/** A board of this store, by the id of its session. */
export class BoardHandle {
  readonly id: string
  readonly #sessions: BoardSessions

  constructor(sessions: BoardSessions, id: string) {
    this.id = id
    this.#sessions = sessions
  }

  /** The board as its last reply has it. Nothing is driven; a board that is not open is a Fault. */
  async read(): Promise<SharedBoard> {
    const { seq = 0 } = (await this.#sessions.status(this.id)) ?? {}
    // Each reply holds the whole board, so the last one will do.
    for (const after of seq > PAGE ? [seq - PAGE, 0] : [0]) {
      const { board } = await this.#answer(after, null)
      if (board) return board
    }
    throw new Fault('invalid_input', `Session ${this.id} is no board that was opened. Open it with openBoard.`)
  }

  /** The board, after claims of members that have ended were given back. */
  async look(): Promise<SharedBoard> {
    await this.say({ action: 'look', by: HOST })
    return this.read()
  }

  /** A card for this member: the one that is named, or the first that is free. What is a mistake of the caller is a Fault. */
  async claim(by: string, { card, key }: Keyed & { readonly card?: string } = {}): Promise<ClaimOutcome> {
    for (let i = 0; ; i++) {
      const { version } = await this.read()
      const again = i === 0 ? key : key && `${key}:${i}`
      const outcome = await this.#said({ action: 'claim', by, version, ...(card === undefined ? {} : { card }) }, again)
      if (outcome.type !== 'Refused') return outcome as ClaimOutcome
      // What it saw was old: it looks again, and may find the card taken.
      if (outcome.why !== 'StaleVersion' || i === TRIES) throw new Fault('invalid_input', outcome.message, outcome.why)
    }
  }

  /** `attempt` is that of the claim: after another claim it is refused. */
  async complete(by: string, claim: Claimed & Keyed): Promise<void> {
    await this.#end('complete', by, claim)
  }

  /** The card is free again, until it was tried `attemptsMax` times. */
  async fail(by: string, claim: Claimed & Keyed): Promise<void> {
    await this.#end('fail', by, claim)
  }

  async release(by: string, claim: Claimed & Keyed): Promise<void> {
    await this.#end('release', by, claim)
  }

  async #end(action: 'complete' | 'fail' | 'release', by: string, { key, ...claim }: Claimed & Keyed): Promise<void> {
    await this.say({ action, by, ...claim }, key)
  }

  async add(by: string, cards: readonly NewTask[]): Promise<readonly BoardCard[]> {
    await this.say({ action: 'add', by, cards })
    return (await this.read()).cards
  }

  async join(by: string, member: Member): Promise<void> {
    await this.say({ action: 'join', by, member })
  }

  /** Its cards are free again. */
  async leave(by: string, name: string): Promise<void> {
    await this.say({ action: 'leave', by, name })
  }

  /** The session that this member works in: when its run has ended, its card is free again. */
  async seat(by: string, session: string): Promise<void> {
    await this.say({ action: 'seat', by, session })
  }

  /** A refusal is a Fault, with the name of what is wrong as its detail. */
  async say(act: Act, key?: string): Promise<BoardOutcome> {
    const outcome = await this.#said(act, key)
    if (outcome.type === 'Refused') throw new Fault('invalid_input', outcome.message, outcome.why)
    return outcome
  }

  async #said(act: Act, key?: string): Promise<BoardOutcome> {
    const id = key ?? systemRandom.id()
    const ended = act.action === 'open' ? [] : await this.#ended()
    const change = { ...act, id, ...(ended.length > 0 ? { ended } : {}) }
    const session = this.#sessions.session(this.id)
    const seq = await this.#send(JSON.stringify(change), id)
    for (let i = 0; i < TRIES; i++) {
      const rests = (await this.#sessions.status(this.id))?.phase === 'resting'
      const { outcome } = await this.#answer(seq, id)
      if (outcome) return outcome
      // A stop or a hook took the message away before it was read, or its run failed, and the next one may read it yet.
      if (rests && i > 0) await this.#send(JSON.stringify({ ...change, again: true }), `${id}:${i}`)
      await session.run()
    }
    throw new Fault('session_busy', `Board ${this.id} has not answered. Ask again with the same key.`)
  }

  /** What was said first under an id stands: by now more may have ended. */
  async #send(text: string, id: string): Promise<number> {
    try {
      return (await this.#sessions.session(this.id).send(text, { id })).seq
    } catch (error) {
      if (error instanceof Fault && error.code === 'id_reused') return 0
      throw error
    }
  }

  /** The answer to this change, and the last board there is. */
  async #answer(
    after: number,
    id: string | null,
  ): Promise<{ outcome: BoardOutcome | null; board: SharedBoard | null }> {
    const session = this.#sessions.session(this.id)
    let [outcome, board]: [BoardOutcome | null, SharedBoard | null] = [null, null]
    for (let from = after; ; ) {
      const { events } = await session.read(from, PAGE)
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

  /** Claims whose member is in no run any more: it ended, was stopped or removed, or no worker tries it. */
  async #ended(): Promise<readonly EndedClaim[]> {
    const { cards, members } = await this.read()
    const found: EndedClaim[] = []
    for (const { id, by, status, attempts = 1 } of cards) {
      const session = status === 'in_progress' ? members.find(({ name }) => name === by)?.session : undefined
      const why = session === undefined ? null : await endOf(this.#sessions, session)
      if (why !== null) found.push({ card: id, attempt: attempts, why: `${by} ${why}` })
    }
    return found
  }
}

type Claimed = { readonly card: string; readonly attempt: number; readonly note?: string }

/** Null: it works. */
async function endOf(sessions: BoardSessions, session: string): Promise<string | null> {
  const card = await sessions.status(session)
  if (card === null) return 'is not there any more'
  if (card.status === 'terminated') return 'was closed'
  if (card.trouble?.until === null) return 'was quarantined'
  return card.phase === 'resting' ? 'has ended its run' : null
}
