// A store that has some of everything a move takes along, and the short way to move it.
import { hash } from 'node:crypto'
import type { CompleteStore } from '../../src/ports/store.ts'
import { type MoveResult, type MoveProgress, moveStore } from '../../src/stores/move/move-store.ts'
import { sqliteSource, sqliteTarget } from '../../src/stores/sqlite/sqlite-move.ts'
import { admit, begin, card, create, message, note, ownerWrite, write } from '../contract/fixture.ts'

const picture = Buffer.from('not really a picture')
const pictureHash = hash('sha256', picture)

/** Sessions with inbox, child, fork, labels, a lost worker, trouble, money, blobs and removals. */
export async function furnish(store: CompleteStore): Promise<void> {
  const owner = await begin(store, 'alpha')
  await admit(store, 'alpha', message('m1'), message('m2', 'Zwei: ü \u{1f600} \u0000'))
  owner.seq += 2
  const charges = [
    { type: 'limit', account: 'day:a', limit: 9_000.5 },
    { type: 'hold', key: 'alpha:4', accounts: ['session:alpha', 'day:a'], amount: 1.25 },
  ] as const
  const blobs = [{ hash: pictureHash, media: 'image/png', data: picture }]
  await write(store, owner, [note('one'), note('two')], { charges, blobs, release: true })
  await create(store, 'gone')
  await store.remove('gone', 'somebody')
  await create(store, 'beta', {
    labels: { team: 'red' },
    folder: '/srv/beta',
    status: 'requires_action',
    asks: ['3.0'],
    due: 5_000,
  })
  await create(store, 'alpha~1.0', { root: 'alpha', parent: 'alpha', task: 'look' })
  const forked = ownerWrite(
    store,
    { session: 'fork', worker: '', epoch: 0, seq: 0 },
    [{ type: 'session.created', agent: 'a', planner: 'model', fork: { session: 'alpha', seq: 2 } }],
    { card: card('fork') },
  )
  await store.commit([forked])
  const { epoch } = await begin(store, 'troubled')
  await store.release('troubled', epoch, { attempts: 2, reason: 'It was hard.', until: store.now() + 60_000 })
  const lost = await begin(store, 'lost', 'w-lost')
  await write(store, lost, [note('then it was killed')])
}

/** Everything that can be asked of it. */
export async function contentOf(store: CompleteStore): Promise<unknown> {
  const cards = await store.list({ limit: 1_000 })
  const logs = await Promise.all(cards.map(({ session }) => store.read(session, 0)))
  return {
    cards,
    logs,
    made: (await store.page({ order: 'made', limit: 100 })).cards.map(({ session }) => session),
    labelled: (await store.list({ where: { team: 'red' }, limit: 9 })).map(({ session }) => session),
    found: (await store.page({ q: 'hello', order: 'newest', limit: 9 })).cards.map(({ session }) => session),
    below: (await store.list({ parent: 'alpha', limit: 9 })).map(({ session }) => session),
    accounts: await Promise.all(['session:alpha', 'day:a'].map((id) => store.account(id))),
    blob: (await store.blob(pictureHash, 'alpha'))?.data.toString(),
    sent: await store.sent('alpha', 'm2'),
    removals: await store.removals(9),
    due: (await store.due(9)).sessions,
  }
}

export async function move(from: string, to: string, tell: MoveProgress = () => {}): Promise<MoveResult> {
  const source = await sqliteSource(from)
  try {
    const target = await sqliteTarget(to)
    try {
      return await moveStore(source, target, Date.now(), tell)
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}
