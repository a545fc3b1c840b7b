// Two stores side by side: whatever is asked of both, in any order and in any grouping, both answer the same.
import fc from 'fast-check'
import { expect } from 'vitest'
import type { Card, CardQuery } from '../../src/ports/store.ts'
import type { Charge, Claim, CompleteStore, Write } from '../../src/ports/store.ts'
import { memory } from '../../src/stores/memory/memory-store.ts'
import type { Clock } from '../../src/ports/system.ts'
import { card, creation, message, note, outcome, ownerWrite, START, StillClock } from '../contract/fixture.ts'

const session: fc.Arbitrary<string> = fc.constantFrom('a', 'a', 'b', 'b', 'c')
const worker: fc.Arbitrary<string> = fc.constantFrom('w1', 'w2')
const amount = fc.integer({ min: 0, max: 20 })
const often = <T>(usual: T, rare: T) => fc.constantFrom(usual, usual, usual, usual, usual, usual, usual, rare)
const just = <T extends string>(type: T) => fc.constant(type)

const charge: fc.Arbitrary<Charge> = fc.oneof(
  fc.record({
    type: just('hold'),
    key: fc.constantFrom('k1', 'k2', 'k3'),
    accounts: fc.subarray(['x', 'y'], { minLength: 1 }),
    amount,
  }),
  fc.record({ type: just('settle'), key: fc.constantFrom('k1', 'k2'), amount }),
  fc.record({ type: just('settle'), key: just('k3'), amount, assumed: fc.constant(true as const) }),
  fc.record({ type: just('free'), key: fc.constantFrom('k1', 'k2', 'k3') }),
  fc.record({ type: just('limit'), account: fc.constantFrom('x', 'y'), limit: often<number | null>(15, null) }),
)

const trouble = fc.option(
  fc.record({
    attempts: fc.integer({ min: 1, max: 3 }),
    reason: just('why'),
    until: fc.option(fc.integer({ min: START - 20, max: START + 60 })),
  }),
  { nil: undefined },
)

const letter = fc.record({ session, id: fc.constantFrom('i1', 'i2', 'i3', 'i4', 'i5'), text: often('p', 'q') })

const living = fc.constantFrom<Card['status']>('running', 'running', 'idle', 'rescheduling')

const owned = fc.record({
  type: just('owned'),
  session,
  texts: fc.array(fc.string({ unit: 'grapheme', maxLength: 5 }), { maxLength: 3 }),
  stale: often(0, 1),
  behind: often(0, 1),
  status: fc.oneof({ weight: 7, arbitrary: living }, { weight: 1, arbitrary: fc.constant('terminated' as const) }),
  due: fc.option(fc.integer({ min: START - 20, max: START + 60 })),
  charges: fc.array(charge, { maxLength: 2 }),
  sends: fc.array(letter, { maxLength: 1 }),
  release: often(false, true),
  snapshot: fc.boolean(),
})

const write = fc.oneof(
  { weight: 8, arbitrary: owned },
  { weight: 5, arbitrary: fc.record({ type: just('letters'), session, letters: fc.array(letter, { maxLength: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ type: just('creation'), session }) },
)

const ask = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ type: just('commit'), writes: fc.array(write, { minLength: 1, maxLength: 2 }) }),
  },
  { weight: 4, arbitrary: fc.record({ type: just('claim'), session, worker }) },
  { weight: 2, arbitrary: fc.record({ type: just('release'), session, trouble }) },
  { weight: 1, arbitrary: fc.record({ type: just('announce'), worker }) },
  { weight: 1, arbitrary: fc.record({ type: just('removal'), session }) },
)

/** A heartbeat is asked by itself, since it has no order with what is asked in the same moment. */
const heartbeat = fc.record({ type: just('extend'), worker })

/** A group is asked in one macrotask: SQLite writes it as one transaction. */
const step = fc.record({
  group: fc.oneof<fc.WeightedArbitrary<readonly Asked[]>[]>(
    { weight: 12, arbitrary: fc.array(ask, { minLength: 1, maxLength: 4 }) },
    { weight: 1, arbitrary: fc.tuple(heartbeat) },
  ),
  ms: fc.constantFrom(0, 0, 1, 5, 30, -7),
})

type Of<A> = A extends fc.Arbitrary<infer T> ? T : never
type Asked = Of<typeof ask> | Of<typeof heartbeat>

/** What a caller could know: how far it believes each log to go, and the epochs it was given. */
class Known {
  readonly #seqs = new Map<string, number>()
  readonly #epochs = new Map<string, number>()

  writeOf(store: CompleteStore, w: Of<typeof write>): Write {
    if (w.type === 'creation') return creation(store, w.session)
    if (w.type === 'letters')
      return { session: w.session, lane: 'inbox', events: w.letters.map((l) => message(l.id, l.text)) }
    const epoch = (this.#epochs.get(w.session) ?? 0) - w.stale
    const seq = (this.#seqs.get(w.session) ?? 0) - w.behind
    return ownerWrite(store, { session: w.session, worker: '', epoch, seq }, w.texts.map(note), {
      card: card(w.session, { status: w.status, due: w.due, root: 'a', cost: w.texts.length, ...placed(w.texts) }),
      charges: w.charges,
      sends: w.sends.map((l) => ({ session: l.session, event: message(l.id, l.text) })),
      ...(w.release ? { release: true as const } : {}),
      ...(w.snapshot ? { snapshot: { seq, version: 1, body: w.texts.join() } } : {}),
    })
  }

  perform(store: CompleteStore, a: Asked): Promise<unknown> {
    if (a.type === 'commit') return store.commit(a.writes.map((w) => this.writeOf(store, w)))
    if (a.type === 'claim') return store.claim(a.session, a.worker, 25)
    if (a.type === 'extend') return store.extend(a.worker, 25).then((held) => new Map(held))
    if (a.type === 'removal') return store.remove(a.session, 'somebody')
    if (a.type === 'release') return store.release(a.session, this.#epochs.get(a.session) ?? 0, a.trouble)
    return store.announce(a.worker, `at ${a.worker}`, 10)
  }

  async learn(store: CompleteStore, group: readonly Asked[], answers: readonly Answer[]): Promise<void> {
    for (const id of ['a', 'b', 'c']) this.#seqs.set(id, (await store.card(id))?.seq ?? 0)
    for (const [i, a] of group.entries()) {
      const claim = a.type === 'claim' ? (answers[i]?.value as Claim | null) : null
      if (a.type === 'claim' && claim) this.#epochs.set(a.session, claim.epoch)
    }
  }
}

/** Some sessions have a folder, some change it. */
function placed({ length }: readonly string[]): { readonly folder?: string } {
  return length === 1 ? {} : { folder: length === 0 ? '/one' : '/two' }
}

type Answer = { readonly code: string; readonly value: unknown }

async function answerOf(promise: Promise<unknown>): Promise<Answer> {
  let value: unknown = null
  const keep = promise.then((given) => {
    value = given
  })
  return { code: await outcome(keep), value }
}

/** Everything that can be read of a store. */
async function look(store: CompleteStore): Promise<unknown> {
  const each = ['a', 'b', 'c'].map(async (id) => {
    const page = await store.read(id, 0).catch(() => null)
    return [page, await store.card(id), await store.snapshot(id), await store.address(id)]
  })
  const lists = [
    { limit: 9 },
    { limit: 2, after: 'a', status: 'running' },
    { limit: 9, root: 'a' },
    { limit: 9, folder: '/one' },
  ] as const
  const queries = [
    { order: 'newest', limit: 1 },
    { order: 'newest', limit: 2 },
    { order: 'made', limit: 2 },
    { order: 'newest', limit: 9, folder: '/one', status: 'running' },
    { order: 'made', limit: 1, q: 'p' },
    { order: 'newest', limit: 9, agent: 'a', status: 'running', q: 'A' },
  ] as const
  return {
    each: await Promise.all(each),
    money: [await store.account('x'), await store.account('y')],
    listed: await Promise.all(lists.map((filter) => store.list(filter))),
    paged: await Promise.all(queries.map((query) => paged(store, query))),
    past: await Promise.all([1, 3].map((upTo) => store.snapshot('a', upTo))),
    due: (await store.due(9)).sessions,
    next: (await store.due(0)).next,
    removals: await store.removals(3),
  }
}

/** All pages; of the places only where they lie in time, since each store has its own numbers. */
async function paged(store: CompleteStore, query: CardQuery): Promise<unknown> {
  const { cards, next } = await store.page(query)
  return [cards, next?.at, ...(next ? [await paged(store, { ...query, behind: next })] : [])]
}

/** Two sessions are there from the start, each with its owner, and little money. */
async function prepare(store: CompleteStore, known: Known): Promise<void> {
  const group = ['a', 'b'].map((id) => ({ type: 'claim', session: id, worker: 'w1' }) as const)
  const charges = ['x', 'y'].map((account) => ({ type: 'limit', account, limit: 15 }) as const)
  await store.commit(['a', 'b'].map((id) => creation(store, id, { charges })))
  await known.learn(store, group, await Promise.all(group.map((a) => answerOf(known.perform(store, a)))))
}

/** The store that is compared with the one in memory, empty; `end` after its use. */
export type MakeOther = (clock: Clock) => Promise<{ readonly store: CompleteStore; readonly end: () => Promise<void> }>

/** `refusals`: those that a run of this length surely meets. */
export async function expectSameAnswers(
  make: MakeOther,
  numRuns: number,
  refusals = ['lease_lost', 'conflict', 'over_budget', 'id_reused', 'session_closed'],
): Promise<void> {
  const codes = new Map<string, number>()
  const steps = fc.array(step, { minLength: 10, maxLength: 30, size: 'max' })
  const property = fc.asyncProperty(steps, async (asked) => {
    const clocks = [new StillClock(), new StillClock()] as const
    const left = memory({ clock: clocks[0] })
    const { store: right, end } = await make(clocks[1])
    const known = new Known()
    try {
      for (const store of [left, right]) await prepare(store, known)
      for (const { group, ms } of asked) {
        const expected = await Promise.all(group.map((a) => answerOf(known.perform(left, a))))
        const found = await Promise.all(group.map((a) => answerOf(known.perform(right, a))))
        expect(found).toEqual(expected)
        expect(await look(right)).toEqual(await look(left))
        await known.learn(left, group, expected)
        for (const { code } of expected) codes.set(code, (codes.get(code) ?? 0) + 1)
        for (const clock of clocks) clock.advance(ms)
      }
    } finally {
      await end()
    }
  })
  await fc.assert(property, { numRuns })
  // A run that only refused, or never refused, would compare nothing.
  for (const code of ['ok', ...refusals]) {
    expect([...codes.keys()]).toContain(code)
  }
}
