// A harness that records and never drives, beside one that does, on one store.
import { describe, expect, it } from 'vitest'
import { calls, make, STORAGES, storeOf, tool, typesIn, waiting } from './scene.ts'
import { lookAt } from '../../src/worker.ts'

describe.each(STORAGES)('a harness with drives: false on %s', (storage) => {
  it('B-HARNESS-16: records what is said, decided and interrupted, and drives nothing: a worker on the same store does', async () => {
    const store = storeOf(storage)
    const { tool: pay, ran, go } = waiting('pay', { effect: 'once', approval: 'ask' })
    go()
    const drives = make([calls('pay 1'), 'Paid.', 'Never said.'], { store, tools: [pay] })
    const records = make(['Never asked.'], { store, tools: [pay], worker: { drives: false } })
    const { id } = await drives.open()
    const outside = records.session(id)
    await outside.send('Pay.')
    expect(await records.work({ session: id })).toEqual({ type: 'contended' })
    expect(await typesIn(outside)).toEqual(['session.created', 'user.message'])
    const parked = await drives.session(id).run()
    expect(parked).toMatchObject({ status: 'requires_action' })
    const [pending] = parked.pending
    await outside.decide({ callId: pending?.callId ?? '', allow: true, by: 'ana' })
    expect(await records.work({ session: id })).toEqual({ type: 'contended' })
    expect(ran).toEqual([])
    expect(await drives.session(id).run()).toMatchObject({ status: 'completed', text: 'Paid.' })
    expect(ran).toEqual(['pay 1'])
    // For an event that only the owner may write, it takes the lease for a moment.
    const fork = await outside.fork()
    expect(await outside.undo()).toEqual([])
    await fork.close()
    expect(await store.card(fork.id)).toMatchObject({ status: 'terminated' })
    expect(await records.work({ session: id })).toEqual({ type: 'rested', waiting: 'input', until: null })
  })

  it('B-HARNESS-17: its run waits for the worker that drives, and returns when the session rests, also for a person', async () => {
    const store = storeOf(storage)
    const sign = tool('sign', { approval: 'ask' })
    const drives = make([calls('sign'), 'Signed.'], { store, tools: [sign] })
    const records = make(['Never asked.'], { store, tools: [sign], worker: { drives: false } })
    const { id } = await drives.open()
    const outside = records.session(id)
    const stop = new AbortController()
    const worked = drives.work({ signal: stop.signal })
    const parked = await outside.run('Sign.')
    expect(parked).toMatchObject({ status: 'requires_action', pending: [{ tool: 'sign' }] })
    await outside.decide({ callId: parked.pending[0]?.callId ?? '', allow: true, by: 'ana' })
    expect(await outside.run()).toMatchObject({ status: 'completed', text: 'Signed.' })
    stop.abort()
    expect(await worked).toMatchObject({ type: 'stopped' })
  })

  it('B-HARNESS-18: it refuses to work', async () => {
    const records = make(['Never asked.'], { store: storeOf(storage), worker: { drives: false } })
    const { id } = await records.open()
    const refused = { name: 'Fault', code: 'invalid_config' }
    await expect(records.work({ idleMs: 0 })).rejects.toMatchObject(refused)
    await expect(lookAt(records, id, false)).rejects.toMatchObject(refused)
  })
})
