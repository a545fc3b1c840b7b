// What a commit needs is named before it is planned: whatever is written, the plan made on what was named is the one that the store in
// memory makes, which can be asked anything.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Bug, Fault } from '../../src/kernel/failure.ts'
import type { AccountRow, Charge, Receipt, Write } from '../../src/ports/store.ts'
import { memory } from '../../src/stores/memory/memory-store.ts'
import type { Hold } from '../../src/stores/plan/plan-charges.ts'
import { FetchedView, type PlanNeeds, needsOf } from '../../src/stores/plan/plan-needs.ts'
import {
  changesByClaim,
  type SessionRecord,
  planWrites,
  type StoreView,
  type WritePlan,
} from '../../src/stores/plan/plan-writes.ts'
import { card, message, note, ownerWrite, StillClock, TTL } from '../contract/fixture.ts'
import { runs } from '../runs.ts'

const NAMES = ['a', 'b', 'c'] as const
const name = fc.constantFrom(...NAMES, 'd')
const key = fc.constantFrom('k1', 'k2', 'k3')
const account = fc.constantFrom('x', 'y', 'z')
const amount = fc.integer({ min: 0, max: 9 })
const just = <T extends string>(type: T) => fc.constant(type)
const charge: fc.Arbitrary<Charge> = fc.oneof(
  fc.record({ type: just('hold'), key, accounts: fc.uniqueArray(account, { minLength: 1, maxLength: 2 }), amount }),
  fc.record({ type: just('settle'), key, amount }),
  fc.record({ type: fc.constantFrom('free' as const, 'lost' as const), key }),
  fc.record({ type: just('limit'), account, limit: fc.constant(6) }),
  fc.record({ type: just('limit'), account, limit: fc.constant(4), raisedBy: account }),
)
const charges = fc.array(charge, { maxLength: 2 })
const letter = fc.record({
  session: name,
  id: fc.constantFrom('i1', 'i2', 'i3', ''),
  text: fc.constantFrom('p', 'p', 'q'),
})
const asked = fc.oneof(
  fc.record({
    type: just('owned'),
    session: name,
    texts: fc.array(fc.constantFrom('s', 't'), { maxLength: 2 }),
    behind: fc.constantFrom(0, 0, 0, 1, 2),
    stale: fc.constantFrom(0, 0, 0, 1),
    charges,
    sends: fc.array(letter, { maxLength: 2 }),
    release: fc.boolean(),
  }),
  fc.record({
    type: just('letters'),
    session: name,
    letters: fc.array(letter, { maxLength: 2 }),
    charges,
    fenced: fc.boolean(),
  }),
  fc.record({ type: just('made'), session: name, fork: fc.option(name), history: fc.boolean() }),
  fc.record({ type: just('again'), back: fc.integer({ min: 1, max: 3 }) }),
)
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ writes: fc.array(asked, { minLength: 1, maxLength: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ claim: name }) },
  { weight: 1, arbitrary: fc.record({ removal: name }) },
)

type Of<A> = A extends fc.Arbitrary<infer T> ? T : never

/** All that is stored, which can be asked anything. */
class Everything implements StoreView {
  now = 0
  readonly heads = new Map<string, SessionRecord>()
  readonly logs = new Map<string, string[]>()
  readonly ids = new Map<string, Map<string, number>>()
  readonly accounts = new Map<string, AccountRow>()
  readonly holds = new Map<string, Hold>()
  readonly ends = new Map<string, number>()
  head = (session: string) => this.heads.get(session) ?? null
  ended = (session: string) => this.ends.get(session) ?? null
  account = (id: string) => this.accounts.get(id) ?? null
  hold = (id: string) => this.holds.get(id) ?? null
  holdsOf = (session: string) => new Map([...this.holds].filter(([, hold]) => hold.session === session))
  bodies = (session: string, after: number, count: number) => this.logs.get(session)?.slice(after, after + count) ?? []

  admitted(session: string, id: string) {
    const seq = this.ids.get(session)?.get(id)
    return seq === undefined ? null : { seq, body: this.logs.get(session)?.[seq - 1] ?? '' }
  }

  apply({ drafts, book }: WritePlan): void {
    for (const { session, bodies, ids, ...draft } of drafts) {
      this.heads.set(session, draft)
      this.logs.set(session, [...(this.logs.get(session) ?? []), ...bodies])
      const known = this.ids.get(session) ?? new Map<string, number>()
      for (const { id, seq } of ids) known.set(id, seq)
      this.ids.set(session, known)
    }
    for (const [id, row] of book?.accounts ?? []) this.accounts.set(id, row)
    for (const [id, hold] of book?.holds ?? []) {
      if (hold) this.holds.set(id, hold)
      else this.holds.delete(id)
    }
  }

  /** Nothing but what is named. */
  fetched({ sessions, letters, accounts, holds, lost, fresh, bodies }: PlanNeeds): FetchedView {
    const found = new FetchedView(this.now)
    for (const id of sessions) found.heads.set(id, this.head(id))
    for (const [session, ids] of letters)
      found.letters.set(session, new Map([...ids].map((id) => [id, this.admitted(session, id)])))
    for (const id of holds) found.holds.set(id, this.hold(id))
    for (const session of lost) {
      found.lost.add(session)
      for (const [id, hold] of this.holdsOf(session)) found.holds.set(id, hold)
    }
    const named = [...found.holds.values()].flatMap((hold) => hold?.accounts ?? [])
    for (const id of [...accounts, ...named]) found.accounts.set(id, this.account(id))
    for (const id of fresh) found.ends.set(id, this.ended(id))
    for (const { session, after, count } of bodies) {
      const places = found.stored.get(session) ?? new Map<number, readonly string[]>()
      const known = places.get(after) ?? []
      const these = this.bodies(session, after, count)
      found.stored.set(session, places.set(after, known.length > these.length ? known : these))
    }
    return found
  }
}

function planned(writes: readonly Write[], view: StoreView): WritePlan | string {
  try {
    return planWrites(writes, view)
  } catch (error) {
    if (error instanceof Fault) return `${error.code}: ${error.message} ${error.detail}`
    throw error
  }
}

/** A store in memory, and all that it holds, beside it. */
class Both {
  readonly #clock = new StillClock()
  readonly #store = memory({ clock: this.#clock })
  readonly #all = new Everything()
  readonly #epochs = new Map<string, number>()
  readonly #made: Write[] = []

  /** How it ended. */
  async step(each: Of<typeof step>): Promise<string> {
    this.#clock.advance(1)
    this.#all.now = this.#store.now()
    if ('claim' in each) return this.#claim(each.claim)
    if ('removal' in each) return this.#remove(each.removal)
    const [store, all] = [this.#store, this.#all]
    const writes = each.writes.map((ask) => this.#writeOf(ask))
    const expected = planned(writes, all)
    expect(planned(writes, all.fetched(needsOf(writes)))).toEqual(expected)
    const answer = await store.commit(writes).then(
      (receipts): readonly Receipt[] | string => receipts,
      (error: Fault) => `${error.code}: ${error.message} ${error.detail}`,
    )
    expect(answer).toEqual(typeof expected === 'string' ? expected : expected.receipts)
    this.#made.push(...writes)
    if (typeof expected === 'string') return expected.split(':')[0] ?? ''
    all.apply(expected)
    return 'ok'
  }

  #writeOf(ask: Of<typeof asked>): Write {
    if (ask.type === 'again') return this.#made.at(-ask.back) ?? { session: 'a', lane: 'inbox', events: [] }
    const { session } = ask
    const seq = this.#all.head(session)?.seq ?? 0
    const epoch = this.#epochs.get(session) ?? 0
    if (ask.type === 'letters') {
      const events = ask.letters.map(({ id, text }) => message(id, text))
      return { session, lane: 'inbox', events, charges: ask.charges, ...(ask.fenced ? { epoch } : {}) }
    }
    if (ask.type === 'owned') {
      const owner = { session, worker: '', epoch: epoch - ask.stale, seq: Math.max(0, seq - ask.behind) }
      const sends = ask.sends.map((each) => ({ session: each.session, event: message(each.id, each.text) }))
      const rest = { sends, charges: ask.charges, ...(ask.release ? { release: true as const } : {}) }
      return ownerWrite(this.#store, owner, ask.texts.map(note), { card: card(session), ...rest })
    }
    const fork = ask.fork === null ? {} : { fork: { session: ask.fork, seq: 1 } }
    const created = { type: 'session.created', agent: 'a', planner: 'model', ...fork } as const
    const write = ownerWrite(this.#store, { session, worker: '', epoch: 0, seq: 0 }, [created])
    return ask.history ? ({ ...write, events: [], history: write.events } as Write) : write
  }

  async #claim(session: string): Promise<string> {
    const head = this.#all.head(session)
    const claim = head && (await this.#store.claim(session, 'w', TTL))
    if (!claim || !head) return 'no claim'
    this.#epochs.set(session, claim.epoch)
    const claimed = { ...changesByClaim(head, this.#all.now), worker: 'w', epoch: claim.epoch }
    this.#all.heads.set(session, { ...head, ...claimed })
    return 'claim'
  }

  async #remove(session: string): Promise<string> {
    const all = this.#all
    const head = all.head(session)
    const removed = head && (await this.#store.remove(session, 'somebody').catch(() => null))
    if (!head || !removed) return 'no removal'
    for (const [id, { amount }] of all.holdsOf(session)) {
      const charges = [{ type: 'settle', key: id, amount, assumed: true }] as const
      all.apply({ ...planWrites([{ session, lane: 'inbox', events: [], charges }], all), drafts: [] })
    }
    for (const map of [all.heads, all.logs, all.ids]) map.delete(session)
    all.ends.set(session, head.epoch)
    return 'removal'
  }
}

describe('what a commit needs', () => {
  it('B-PG-1: planning on what is named gives the plan, or the refusal, of a store that can be asked anything', async () => {
    const seen = new Set<string>()
    const begin = NAMES.flatMap((session): readonly Of<typeof step>[] => [
      { writes: [{ type: 'made', session, fork: null, history: false }] },
      { claim: session },
    ])
    const property = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25, size: 'max' }), async (steps) => {
      const both = new Both()
      for (const each of [...begin, ...steps]) seen.add(await both.step(each))
    })
    await fc.assert(property, { numRuns: runs(1_500) })
    const refusals = [
      'conflict',
      'lease_lost',
      'over_budget',
      'id_reused',
      'session_missing',
      'session_exists',
      'invalid_input',
    ]
    for (const code of ['ok', 'claim', 'removal', ...refusals]) expect([...seen]).toContain(code)
  }, 120_000)

  it('B-PG-1: to ask for what is not named is a Bug, not a guess', () => {
    const view = new FetchedView(0)
    const asks = [
      () => view.head('s'),
      () => view.admitted('s', 'm'),
      () => view.ended('s'),
      () => view.account('x'),
      () => view.hold('k'),
      () => view.holdsOf('s'),
      () => view.bodies('s', 0, 1),
    ]
    for (const ask of asks) expect(ask).toThrow(Bug)
    view.heads.set('s', null)
    expect(view.head('s')).toBeNull()
  })
})
