// Dead triggers: listed from the sessions themselves, run again or dropped, and the first who decides wins.
import { describe, expect, it } from 'vitest'
import { deadTriggers } from '../../src/triggers/index.ts'
import { Harness, offline } from '../../src/index.ts'
import { DROP, endOf, mail, STORAGES, storeOf, withTriggers } from './stage.ts'

const KEY = { error: 'auth' } as const

describe('a dead trigger', () => {
  it.each(STORAGES)('B-TRIGGER-14: is run again where it failed (%s)', async (storage) => {
    const stage = withTriggers({ triage: [KEY, DROP], options: { store: storeOf(storage) } })
    const receipt = await stage.harness.trigger(mail('x'))
    await endOf(stage, receipt)
    const dead = deadTriggers(stage.harness)
    await dead.retry(receipt.sessionId, { by: 'ana' })
    const { evaluated } = await endOf(stage, receipt)
    expect(evaluated).toMatchObject({ action: 'drop' })
    expect(await dead.list()).toEqual([])
  })

  it('B-TRIGGER-15: that is dropped is closed, with its log, and is listed no more', async () => {
    const stage = withTriggers({ triage: () => KEY })
    const receipt = await stage.harness.trigger(mail('x'))
    const { session } = await endOf(stage, receipt)
    const dead = deadTriggers(stage.harness)
    await dead.drop(receipt.sessionId, { by: 'ben' })
    expect(await session.status()).toMatchObject({ status: 'terminated' })
    const said = (await session.events()).events.find(({ type }) => type === 'user.interrupt')
    expect(said).toMatchObject({ by: 'ben', why: 'The dead trigger was dropped.' })
    expect(await dead.list()).toEqual([])
  })

  it.each(STORAGES)(
    'B-TRIGGER-16: retried and dropped at once: one wins, and the other is told who (%s)',
    async (storage) => {
      const stage = withTriggers({ triage: () => KEY, options: { store: storeOf(storage) } })
      const receipt = await stage.harness.trigger(mail('x'))
      await endOf(stage, receipt)
      const dead = deadTriggers(stage.harness)
      const both = await Promise.allSettled([
        dead.retry(receipt.sessionId, { by: 'ana' }),
        dead.drop(receipt.sessionId, { by: 'ben' }),
      ])
      const lost = both.filter((each) => each.status === 'rejected')
      expect(lost).toHaveLength(1)
      expect(lost[0]?.reason).toMatchObject({
        code: 'conflict',
        message: expect.stringMatching(/already by (ana|ben)\./) as string,
      })
    },
  )

  it('B-TRIGGER-16: who comes after a retry that has run is told who it was', async () => {
    const stage = withTriggers({ triage: [KEY, DROP] })
    const receipt = await stage.harness.trigger(mail('x'))
    await endOf(stage, receipt)
    const dead = deadTriggers(stage.harness)
    await dead.retry(receipt.sessionId, { by: 'ana' })
    await endOf(stage, receipt)
    await expect(dead.drop(receipt.sessionId, { by: 'ben' })).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('was retried already by ana') as string,
    })
  })

  it('B-TRIGGER-16: a trigger that is not dead is left alone', async () => {
    const stage = withTriggers({ triage: [DROP] })
    const receipt = await stage.harness.trigger(mail('x'))
    await endOf(stage, receipt)
    const dead = deadTriggers(stage.harness)
    await expect(dead.drop(receipt.sessionId)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('is no dead trigger') as string,
    })
    await expect(dead.retry('nobody')).rejects.toMatchObject({ code: 'session_missing' })
  })

  it('B-TRIGGER-17: a harness without triggers takes none and has no dead ones', async () => {
    const harness = new Harness({ model: offline() })
    await expect(harness.trigger(mail('x'))).rejects.toMatchObject({ code: 'invalid_config' })
    expect(() => deadTriggers(harness)).toThrow('has triggers')
    await harness.close()
  })
})
