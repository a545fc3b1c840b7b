// Answers of the store that are lost: what was asked was done, and the one who asked hears `store_busy`. Nothing may be lost or doubled.
import { describe, expect, it } from 'vitest'
import { exportSession, importSession } from '../../src/archive/portable.ts'
import { Fault, memory, scripted, type CompleteStore } from '../../src/index.ts'
import { storeWith } from '../../sim/store-with.ts'
import { StillClock } from '../contract/fixture.ts'
import { calls, make, tool, typesIn } from '../runtime/scene.ts'
import { asleep, quiet, say } from '../runtime/wake-stage.ts'
import { until } from '../until.ts'

type Verb = 'commit' | 'claim' | 'release' | 'remove' | 'take' | 'extend'
type Loses = (verb: Verb, asked: readonly unknown[]) => boolean

/** A store that does what it is asked, and loses the answers that `loses` says. `lost` are those that it lost. */
function forgetful(inner: CompleteStore, loses: Loses): { readonly store: CompleteStore; readonly lost: Verb[] } {
  const lost: Verb[] = []
  const over = <A extends readonly unknown[], T>(verb: Verb, act: (...args: A) => Promise<T>) => {
    return async (...args: A): Promise<T> => {
      const answer = await act(...args)
      if (!loses(verb, args)) return answer
      lost.push(verb)
      throw new Fault('store_busy', 'The answer was lost.')
    }
  }
  const store = storeWith(inner, {
    commit: over('commit', inner.commit.bind(inner)),
    claim: over('claim', inner.claim.bind(inner)),
    release: over('release', inner.release.bind(inner)),
    remove: over('remove', inner.remove.bind(inner)),
    extend: over('extend', inner.extend.bind(inner)),
    ...(inner.take ? { take: over('take', inner.take.bind(inner)) } : {}),
  })
  return { store, lost }
}

/** Every other answer of this verb, beginning with the first. */
function everyOther(verb: Verb): Loses {
  let n = 0
  return (asked) => asked === verb && n++ % 2 === 0
}

const inboxIds = async (store: CompleteStore, id: string) =>
  (await store.read(id, 0)).events.flatMap((event) => ('id' in event ? [event.id] : []))

describe('an answer that was lost', () => {
  it('B-DIST-9: of any commit of a run: the same is written again, and the log is as if nothing had happened', async () => {
    const script = () => scripted([calls('look'), 'done'])
    const plain = make(script(), { tools: [tool('look')] })
    const wanted = await plain.open({ id: 's' })
    await wanted.run('hello', { id: 'm' })
    let ran = 0
    const look = tool('look', { effect: 'once', execute: () => `look ${(ran += 1)}` })
    const { store, lost } = forgetful(memory(), everyOther('commit'))
    const session = await make(script(), { store, tools: [look] }).open({ id: 's' })
    expect(await session.run('hello', { id: 'm' })).toMatchObject({ status: 'completed', text: 'done' })
    expect(await typesIn(session)).toEqual(await typesIn(wanted))
    expect(ran).toBe(1)
    expect(lost.length).toBeGreaterThan(3)
  })

  it('B-DIST-10: of a new session, with its first message, and of a child: each is made once', async () => {
    const { store, lost } = forgetful(memory(), everyOther('commit'))
    const helper = { description: 'helps', model: scripted(() => 'helped') }
    const harness = make(
      scripted(() => 'done'),
      { store, subagents: { helper }, detached: true },
    )
    expect(await harness.run('hello')).toMatchObject({ status: 'completed' })
    const session = await harness.open({ id: 'p' })
    const { sessionId } = await session.spawn('helper', 'help me')
    await until(async () => expect(await store.card(sessionId)).toMatchObject({ outcome: 'completed' }))
    const cards = await store.list({ limit: 99 })
    expect(cards.filter(({ parent }) => parent === 'p')).toHaveLength(1)
    expect(cards.filter(({ root, parent }) => root !== 'p' && parent === undefined)).toHaveLength(1)
    expect(lost.length).toBeGreaterThan(3)
  })

  it('B-DIST-11: of a message, also of one that is sent only to an idle session: it is there once, and its sender is told where', async () => {
    const { store, lost } = forgetful(memory(), everyOther('commit'))
    const session = await make(
      scripted(() => 'done'),
      { store },
    ).open({ id: 's' })
    for (const when of ['idle', 'next'] as const) {
      const { seq } = await session.send('hello', { when })
      expect((await store.read('s', seq - 1, 1)).events).toMatchObject([{ type: 'user.message' }])
      await until(async () =>
        expect(await store.card('s')).toMatchObject({ status: 'idle', due: null, outcome: 'completed' }),
      )
    }
    expect(await inboxIds(store, 's')).toHaveLength(2)
    await session.interrupt('stop')
    await session.close()
    expect(await store.card('s')).toMatchObject({ status: 'terminated' })
    expect(lost.length).toBeGreaterThan(4)
  })

  it('B-DIST-12: of a removal and of an import: what was done is the answer', async () => {
    const { store, lost } = forgetful(memory(), (verb, [asked]) => {
      const restores = verb === 'commit' && Array.isArray(asked) && asked.some((write: object) => 'history' in write)
      return (verb === 'remove' || restores) && lost.length < 2
    })
    const harness = make(
      scripted(() => 'done'),
      { store },
    )
    const session = await harness.open({ id: 's' })
    await session.run('hello')
    const file = await exportSession(store, 's')
    expect(await harness.remove('s', { by: 'me' })).toMatchObject([{ session: 's', by: 'me' }])
    expect(await store.removals(9)).toHaveLength(1)
    await expect(harness.remove('s', { by: 'me' })).rejects.toMatchObject({ code: 'session_missing' })
    expect(await importSession(store, file)).toMatchObject({ session: 's', outcome: 'completed' })
    expect(lost).toEqual(['remove', 'commit'])
    await expect(importSession(store, file)).rejects.toMatchObject({ code: 'session_exists' })
  })

  it.each(['claim', 'take'] as const)(
    'B-DIST-13: of a %s: the session is not kept from others by the heartbeat of a worker that does not know that it has it',
    async (verb) => {
      const clock = new StillClock()
      const once = { left: 1 }
      const { store, lost } = forgetful(memory({ clock }), (asked, [first]) => {
        const claims = asked === verb && (verb === 'take' || first === 's')
        return claims && once.left-- > 0
      })
      const inner = verb === 'take' ? store : storeWith(store, { take: undefined as never })
      const hang = tool('hang', {
        timeoutMs: 3_600_000,
        execute: (_args, { signal }) =>
          new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
      })
      const model = scripted(({ session }) => (session === 'busy' ? calls('hang') : 'done'))
      await asleep(store, 's', [])
      await say(store, 's', 'hello')
      const harness = make(model, {
        store: inner,
        system: { clock },
        tools: [hang],
        worker: { leaseMs: 3_000 },
      })
      // Its heartbeat goes on: it drives another session.
      const busy = await harness.open({ id: 'busy' })
      const running = busy.run('go').catch(() => {})
      const working = harness.work()
      for (let i = 0; i < 40 && (await store.card('s'))?.outcome !== 'completed'; i++) {
        await quiet()
        clock.advance(1_000)
      }
      expect(lost).toEqual([verb])
      expect(await store.card('s')).toMatchObject({ outcome: 'completed' })
      await harness.close()
      await Promise.all([running, working])
    },
  )
})
