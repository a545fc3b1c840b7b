// What lists and pending calls cost in a store of many sessions, counted in statements. For each store that has statements.
import { expect, onTestFinished } from 'vitest'
import { Harness, scripted, type CompleteStore } from '../../src/index.ts'
import { card, creation } from '../contract/fixture.ts'

/** How many statements a store was asked. */
export type Counted = { readonly store: CompleteStore; count: number }

const ROOTS = 300
/** Each root has two children, one below the other. */
const EACH = ['', '~4.0', '~4.0~2.1'] as const
const idOf = (i: number): string => `s${String(i).padStart(3, '0')}`

/** Sessions of which none waits for anybody. */
export async function fillStore(store: CompleteStore): Promise<void> {
  for (let from = 0; from < ROOTS; from += 50) {
    const ids = Array.from({ length: 50 }, (_, i) => idOf(from + i)).flatMap((root) => EACH.map((end) => [root, end]))
    await store.commit(
      ids.map(([root = '', end = '']) => {
        const parent = end === '' ? {} : { parent: `${root}${end}`.replace(/~[^~]*$/, '') }
        return creation(store, `${root}${end}`, { card: card(`${root}${end}`, { root, cost: 1_000_000, ...parent }) })
      }),
    )
  }
}

export async function expectFewStatements(counted: Counted): Promise<void> {
  const { store } = counted
  const harness = new Harness({ model: scripted([]), store, worker: { drives: false }, secrets: {} })
  onTestFinished(() => harness.close())
  const statementsOf = async <T>(act: () => Promise<T>): Promise<readonly [T, number]> => {
    const before = counted.count
    return [await act(), counted.count - before]
  }
  await harness.list({ order: 'id', limit: 1 })
  // One statement for the cards of a page, and one for what is below them.
  const [page, forPage] = await statementsOf(() => harness.list({ order: 'id', limit: 100 }).then(({ cards }) => cards))
  expect(page.map(({ treeCostUsd }) => treeCostUsd)).toEqual(Array.from({ length: 100 }, (_, i) => 3 - (i % 3)))
  expect(forPage).toBe(2)
  // The roots are walked in one or two pieces; then their cards, and what is below them.
  const [newest, forNewest] = await statementsOf(() =>
    harness.list({ limit: 100, order: 'made' }).then(({ cards }) => cards),
  )
  expect(newest.every(({ treeCostUsd }) => treeCostUsd === 3)).toBe(true)
  expect(forNewest).toBeLessThanOrEqual(5)
  const [large, forLarge] = await statementsOf(() => harness.list({ order: 'id', limit: 500 }))
  const { cards: rest } = await harness.list({ order: 'id', limit: 500, cursor: large.next ?? '' })
  expect([...large.cards, ...rest].reduce((sum, { treeCostUsd }) => sum + treeCostUsd, 0)).toBe(ROOTS * (3 + 2 + 1))
  expect(forLarge).toBeLessThanOrEqual(3)
  const [none, forNone] = await statementsOf(() => harness.pending())
  expect(none).toEqual([])
  expect(forNone).toBe(1)
}
