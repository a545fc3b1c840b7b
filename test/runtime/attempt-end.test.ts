// A message that comes just when the attempt before it ends: at every moment of that end it is driven, in a process that
// has no loop that would find it.
import { expect, it, onTestFinished } from 'vitest'
import { storeWith } from '../../sim/store-with.ts'
import { type CompleteStore, Harness, memory, scripted } from '../../src/index.ts'
import { until } from '../until.ts'

/** So many steps are between the commit that gives a session back and the end of its attempt, and some more. */
const STEPS = 60
const SECOND = { type: 'user.message', id: 'second', parts: [{ type: 'text', text: 'Second.' }], when: 'next' } as const

it('B-DRIVE-24: a message that is sent while an attempt comes to its end begins its run, whichever moment it is', async () => {
  const sent: Promise<unknown>[] = []
  const inner = memory()
  const sendLater = async (session: string): Promise<void> => {
    for (let step = Number(session.slice(1)); step > 0; step--) await Promise.resolve()
    await inner.commit([{ session, lane: 'inbox', events: [SECOND] }])
    await harness.work({ session })
  }
  const commit: CompleteStore['commit'] = async (writes) => {
    const receipts = await inner.commit(writes)
    for (const write of writes)
      if ('release' in write && write.release && (await inner.sent(write.session, 'second')) === null)
        sent.push(sendLater(write.session))
    return receipts
  }
  const harness: Harness = new Harness({ model: scripted(() => 'done'), store: storeWith(inner, { commit }) })
  onTestFinished(() => harness.close())
  for (let step = 0; step < STEPS; step++) {
    const session = await harness.open({ id: `s${step}` })
    await session.send('First.')
    await until(async () => expect((await inner.card(session.id))?.due).toBe(null))
  }
  await Promise.all(sent)
  const runs = async (step: number): Promise<number> => {
    const { events } = await inner.read(`s${step}`, 0)
    return events.filter(({ type }) => type === 'run.settled').length
  }
  for (let step = 0; step < STEPS; step++) await until(async () => expect([step, await runs(step)]).toEqual([step, 2]))
})
