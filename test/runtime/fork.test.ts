// Forks: a new session that goes on from an event of another, without a copy and without a trace in it.
import { afterEach, describe, expect, it } from 'vitest'
import { type Event, Fault, Harness, memory, scripted, type Store } from '../../src/index.ts'
import { exportSession, importSession } from '../../src/replay.ts'
import { readTranscript } from '../../src/runtime/history.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

/** Answers with the texts of the users it was shown. */
function echo(store: Store = memory()): Harness {
  const model = scripted((request) =>
    request.messages
      .flatMap((m) => (m.role === 'user' ? m.parts.flatMap((p) => (p.type === 'text' ? [p.text] : [])) : []))
      .join(' | '),
  )
  const harness = new Harness({ model, store })
  open.push(harness)
  return harness
}

describe('a fork', () => {
  it('B-FORK-1: reads the log it came from up to its event, and goes on apart from it', async () => {
    const harness = echo()
    const first = await harness.open()
    await first.run('one')
    const at = (await first.read()).events.at(-1)?.seq ?? 0
    await first.run('two')
    const fork = await first.fork({ at })
    expect((await fork.run('three')).text).toBe('one | three')
    expect((await first.run('four')).text).toBe('one | two | four')
    expect((await fork.read()).events[0]).toMatchObject({
      type: 'session.created',
      fork: { session: first.id, seq: at },
    })
  })

  it('B-FORK-2: without an event it goes on from the end, and a fork can be forked', async () => {
    const harness = echo()
    const first = await harness.open()
    await first.run('one')
    const second = await first.fork({ id: 'second' })
    await second.run('two')
    const third = await second.fork()
    expect((await third.run('three')).text).toBe('one | two | three')
    expect((await harness.session('second').run('four')).text).toBe('one | two | four')
  })

  it('B-FORK-3: a fork at an event that is not there is refused, and one at the beginning knows nothing', async () => {
    const harness = echo()
    const first = await harness.open()
    await first.run('one')
    await expect(first.fork({ at: 99 })).rejects.toThrow(Fault)
    await expect(first.fork({ at: 0 })).rejects.toThrow('cannot be forked at 0')
    const early = await first.fork({ at: 1 })
    expect((await early.run('fresh')).text).toBe('fresh')
  })

  it('B-FORK-4: however long the chain is, the last fork knows what was said in the first, and its export brings all of them', async () => {
    const store = memory()
    const harness = echo(store)
    let last = await harness.open()
    await last.run('the code is 42')
    for (let i = 0; i < 80; i++) last = await last.fork()
    expect((await last.run('and now?')).text).toBe('the code is 42 | and now?')
    const there = memory()
    const { parents } = await exportSession(store, last.id)
    expect(parents).toHaveLength(80)
    await importSession(there, await exportSession(store, last.id))
    expect((await echo(there).session(last.id).run('and there?')).text).toBe('the code is 42 | and now? | and there?')
  })

  it('B-FORK-4: a chain that leads back to itself is damage, and nobody reads it for ever', async () => {
    const store = memory()
    const harness = echo(store)
    const first = await harness.open({ id: 'first' })
    const second = await first.fork({ id: 'second' })
    // As a file that somebody edited has it.
    const ring: Store = Object.assign(Object.create(store) as Store, {
      read: async (session: string, after: number, limit?: number) => {
        const page = await store.read(session, after, limit)
        const turned = (event: Event) =>
          event.type === 'session.created' ? { ...event, fork: { session: 'second', seq: 1 } } : event
        return session === 'first' ? { ...page, events: page.events.map(turned) } : page
      },
    })
    await expect(readTranscript(ring, { id: second.id, upTo: 1 })).rejects.toMatchObject({ code: 'session_damaged' })
    await expect(exportSession(ring, second.id)).rejects.toThrow('a session was forked from itself')
  })
})
