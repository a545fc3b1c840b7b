// The members of a shared board: they claim cards at the same moment, from looks that may be old, work on them, and die in the middle of
// it, some for good. The board is a session that the workers drive like any other. In a part of the seeds.
import type { InboxBody } from '../src/kernel/event.ts'
import { Fault } from '../src/kernel/failure.ts'
import { EMPTY } from '../src/kernel/session.ts'
import { ownerWrite } from '../src/runtime/commit/owner-write.ts'
import { BOARD } from '../src/boards/board-planner.ts'
import { BoardHandle, type BoardSessions } from '../src/boards/board-handle.ts'
import type { Stage } from './people.ts'
import { OWN } from './programs.ts'
import { Chance } from './scheduler.ts'

const NAMES = ['m0', 'm1', 'm2']
const CARDS = [{ text: 'a' }, { text: 'b' }, { text: 'c', needs: ['t1'] }]
const ATTEMPTS_MAX = 100
const LOOK_MS = 40
const SHARE = 0.25

/** Whether this seed has a board. Its own chance, so that the other seeds are as they were. */
export function hasBoard(seed: number): boolean {
  return new Chance(seed ^ 0x5eed).yes(SHARE)
}

export class Members {
  readonly violations: string[] = []
  readonly tally = { claims: 0, deaths: 0 }
  busy = 0
  readonly #stage: Stage
  readonly #board: BoardHandle
  readonly #dead = new Set<string>()
  readonly #working = new Map<string, string>()
  readonly #starts = new Map<string, number>()

  constructor(stage: Stage) {
    this.#stage = stage
    this.#board = new BoardHandle(this.#sessions(), BOARD)
  }

  async play(): Promise<void> {
    const { store, actor } = this.#stage
    this.busy += 1
    const created = { type: 'session.created', agent: BOARD, planner: BOARD, program: OWN } as const
    await store.commit([ownerWrite(BOARD, EMPTY, [created], { now: actor.now(), epoch: 0 })])
    const members = NAMES.map((name) => ({ name, role: 'worker', session: name }) as const)
    await this.#asked(() =>
      this.#board.say({ action: 'open', by: 'host', members, cards: CARDS, attemptsMax: ATTEMPTS_MAX }, 'open'),
    )
    await Promise.all(NAMES.map((name) => this.#member(name)))
    this.busy -= 1
  }

  async #member(name: string): Promise<void> {
    const { actor, over } = this.#stage
    const { chance } = actor
    for (let n = 0; !over(); n++) {
      const { cards } = await this.#board.read()
      if (cards.every(({ status }) => status === 'done')) return
      const held = cards.find((card) => card.by === name && card.status === 'in_progress')?.id
      const free = cards.filter((card) => card.status === 'todo' || card.status === 'in_progress')
      const card = held ?? (chance.yes(0.5) ? undefined : chance.pick(free)?.id)
      const key = `${name}.${n}`
      const outcome = await this.#asked(() => this.#board.claim(name, { key, ...(card === undefined ? {} : { card }) }))
      if (outcome.type !== 'Started') {
        await actor.sleep(chance.between(1, LOOK_MS))
        continue
      }
      if (await this.#work(name, outcome.card.id, outcome.attempt, key)) return
    }
  }

  /** True: it died for good. */
  async #work(name: string, card: string, attempt: number, key: string): Promise<boolean> {
    const { actor } = this.#stage
    const { chance } = actor
    this.tally.claims += 1
    const other = this.#working.get(card)
    if (other !== undefined && other !== name) this.violations.push(`W1 ${name} and ${other} work on ${card}`)
    const starts = (this.#starts.get(card) ?? 0) + 1
    this.#starts.set(card, starts)
    if (starts !== attempt)
      this.violations.push(`W2 ${card} was started ${starts} times, and the board says ${attempt}`)
    this.#working.set(card, name)
    await actor.sleep(chance.between(5, 120))
    if (chance.yes(0.4)) return this.#die(name, card)
    this.#working.delete(card)
    try {
      await this.#asked(() => this.#board.complete(name, { card, attempt, key: `${key}.done` }))
    } catch (error) {
      this.violations.push(`W3 ${name} lost ${card} while it worked: ${error instanceof Error ? error.message : ''}`)
    }
    return false
  }

  async #die(name: string, card: string): Promise<boolean> {
    const { actor } = this.#stage
    this.tally.deaths += 1
    this.#working.delete(card)
    this.#dead.add(name)
    if (name !== NAMES[0] && actor.chance.yes(0.4)) return true
    await actor.sleep(actor.chance.between(5, 150))
    this.#dead.delete(name)
    return false
  }

  /** Until the board answers: a worker may be away, or a person may have stopped the board. */
  async #asked<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask()
      } catch (error) {
        const again = error instanceof Fault && (error.code === 'session_busy' || error.code === 'disk_full')
        if (!again || this.#stage.over()) throw error
        await this.#stage.actor.sleep(LOOK_MS)
      }
    }
  }

  /** The verbs that a board needs, over the simulated store: between a look and the word that follows it, time passes. */
  #sessions(): BoardSessions {
    const { store, actor } = this.#stage
    const card = async (id: string) => {
      if (id === BOARD) {
        const { fold } = this.#stage.invariants.sessions().get(id) ?? {}
        const rests = fold?.run === null && fold.inputs.length === 0
        return { ...(await store.card(id)), phase: rests ? 'resting' : 'building' }
      }
      return { phase: this.#dead.has(id) ? 'resting' : 'tools', status: 'running' }
    }
    const session = (id: string) => ({
      id,
      status: async () => ({ card: await card(id) }),
      events: ({ after = 0, limit }: { readonly after?: number; readonly limit?: number }) =>
        store.read(id, after, limit),
      run: () => actor.sleep(LOOK_MS),
      send: async (text: string, { id: key }: { id: string }) => {
        await actor.sleep(actor.chance.between(0, 2 * LOOK_MS))
        const parts = [{ type: 'text', text }] as const
        const event: InboxBody = { type: 'user.message', id: key, parts, when: 'next' }
        const [receipt] = await store.commit([{ session: id, lane: 'inbox', events: [event] }])
        return { seq: receipt?.seqs[0] ?? 0 }
      },
    })
    // Sound for what a board uses of them.
    return { session } as unknown as BoardSessions
  }
}
