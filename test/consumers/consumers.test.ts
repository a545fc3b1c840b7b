import { describe, expect, it } from 'vitest'
import { keeper, stage, told } from './stage.ts'

describe('a consumer', () => {
  it('B-CONSUME-1: is told of a settled run after it is on disk, with one key', async () => {
    const log = keeper('log')
    const { harness, reports } = stage([log])
    await harness.open({ id: 's', labels: { team: 'a' } })
    const result = await harness.session('s').run('Hello.')
    await told(log, 1)
    expect(log.told[0]).toMatchObject({ key: expect.stringMatching(/^settled:s:\d+$/), settled: { session: 's', agent: 'default', prompt: 'Hello.', text: 'done', outcome: { type: 'completed' }, labels: { team: 'a' } } })
    expect(result.text).toBe('done')
    expect(reports).toEqual([])
    const lanes = (await harness.list({ agent: 'consumer:log' })).cards
    console.log(JSON.stringify(lanes), JSON.stringify((await harness.session(lanes[0]!.session).events()).events, null, 0))
  })
})
