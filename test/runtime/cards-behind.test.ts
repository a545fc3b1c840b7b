// Cards that an earlier version wrote lack why a run failed, and how many calls may have happened. A check finds them, and a repair
// writes them anew, with nothing else of the session changed.
import { expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, memory, scripted, ToolFailure } from '../../src/index.ts'
import type { Card, CompleteStore } from '../../src/ports/store.ts'
import { checkStore, repairCard } from '../../src/replay.ts'
import type { StoreReader } from '../../src/stores/move/move-rows.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { makeFile } from '../stores/folder.ts'

const maybe = defineTool({
  name: 'maybe',
  description: 'may have happened',
  input: z.object({}),
  effect: 'once',
  execute: () => {
    throw new ToolFailure('Unknown', 'The connection was lost.')
  },
})

/** Writes cards as earlier versions did. */
function withOldCards(store: CompleteStore): CompleteStore {
  const old = ({ cause: _cause, limit: _limit, unknown: _unknown, ...card }: Card): Card => card
  const commit: CompleteStore['commit'] = (writes) =>
    store.commit(writes.map((write) => (write.lane === 'owner' ? { ...write, card: old(write.card) } : write)))
  return new Proxy(store, {
    get(target, name) {
      if (name === 'commit') return commit
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

/** One session whose call may have happened, one that failed, one that was closed after that, and one with nothing to say. */
async function fill(store: CompleteStore): Promise<void> {
  const model = scripted((request) => {
    const said = JSON.stringify(request.messages)
    if (said.includes('FAIL')) return { error: 'bad_request', message: 'It was refused.' }
    if (request.messages.at(-1)?.role === 'tool' || !said.includes('MAYBE')) return 'Done.'
    return { calls: [{ tool: 'maybe', args: {} }] }
  })
  const harness = new Harness({ model, tools: [maybe], store, secrets: {} })
  for (const [id, task] of Object.entries({ maybe: 'MAYBE', failed: 'FAIL', closed: 'MAYBE', fine: 'Go.' }))
    await (await harness.open({ id })).run(task)
  await (await harness.open({ id: 'closed' })).close()
  await harness.close()
}

const NO_ROWS: StoreReader = { shared: async function* () {}, close: async () => {} } as unknown as StoreReader
const idsOf = (cards: readonly { readonly session: string }[]): readonly string[] =>
  cards.map(({ session }) => session).sort()

async function unknownIn(store: CompleteStore): Promise<readonly string[]> {
  return idsOf((await store.page({ outcome: ['unknown'], order: 'newest', limit: 10 })).cards)
}

it.each([
  ['memory', () => memory()],
  ['sqlite', () => sqlite(makeFile())],
])(
  'B-PAGELIST-10: a check in %s counts cards of an earlier version, and a repair lets lists find them',
  async (_, make) => {
    const store = make()
    await fill(withOldCards(store))
    expect(await unknownIn(store)).toEqual([])
    const { behind, problems } = await checkStore(store, NO_ROWS)
    expect([idsOf(behind), problems]).toEqual([['closed', 'failed', 'maybe'], []])
    const before = await Promise.all(behind.map(({ session }) => store.card(session)))
    for (const card of behind) expect(await repairCard(store, card)).toBe(true)
    expect(await unknownIn(store)).toEqual(['closed', 'maybe'])
    const after = await Promise.all(behind.map(({ session }) => store.card(session)))
    expect(after).toEqual(before.map((card, i) => ({ ...card, ...behind[i]?.says })))
    expect((await store.card('failed'))?.cause).toContain('It was refused.')
    expect((await checkStore(store, NO_ROWS)).behind).toEqual([])
    await store.close()
  },
)

it('B-PAGELIST-11: a repair leaves what is driven, has grown or is gone, and keeps the trouble of what is left alone', async () => {
  const store = memory()
  await fill(withOldCards(store))
  const { behind } = await checkStore(store, NO_ROWS)
  const of = (id: string) => behind.find(({ session }) => session === id) as (typeof behind)[number]
  const claim = await store.claim('maybe', 'other', 60_000)
  expect(await repairCard(store, of('maybe'))).toBe(false)
  const trouble = { attempts: 5, reason: 'It failed too often.', until: null }
  await store.release('maybe', claim?.epoch ?? 0, trouble)
  expect(await repairCard(store, of('maybe'))).toBe(true)
  expect(await store.card('maybe')).toMatchObject({ unknown: 1, trouble, due: null })
  expect(await repairCard(store, { ...of('failed'), seq: of('failed').seq - 1 })).toBe(false)
  await store.remove('failed', 'me')
  expect(await repairCard(store, of('failed'))).toBe(false)
})

it('B-PAGELIST-12: a session that is driven again writes its card by itself', async () => {
  const store = memory()
  await fill(withOldCards(store))
  const harness = new Harness({ model: scripted(() => 'Done.'), tools: [maybe], store, secrets: {} })
  await (await harness.open({ id: 'failed' })).run('Go.')
  await harness.close()
  expect(idsOf((await checkStore(store, NO_ROWS)).behind)).toEqual(['closed', 'maybe'])
})

it.each([{ unknown: 2 }, { limit: 'usd' }, { program: 'other' }] as const)(
  'B-PAGELIST-14: a card that differs only in %o is written',
  async (change) => {
    const file = makeFile()
    const store = sqlite(file)
    await fill(store)
    const { epoch = 0, seq = 0 } = (await store.claim('fine', 'me', 60_000)) ?? {}
    const card = (await store.card('fine')) as Card
    const put = (so: Card) =>
      store.commit([{ session: 'fine', lane: 'owner', epoch, expectedSeq: seq, events: [], card: so }])
    await put(card)
    await put({ ...card, ...change })
    await store.close()
    const again = sqlite(file)
    expect(await again.card('fine')).toMatchObject(change)
    await again.close()
  },
)
