// What a compaction takes away stays within reach of the agent of a folder.
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { provider, scriptedBy, stage } = stageOfEach()
const sent = (n: number): string => JSON.stringify(provider.chaos?.requests[n]?.body)

describe('the agent of a folder', () => {
  it('B-REACH-10: reads again what was said and found, without any setting', async () => {
    const calls = [{ tool: 'retrieve_original', args: { search: 'zanzibar' } }]
    // The configuration of the stage switches compaction off.
    await scriptedBy(['Noted.', { calls }, 'It is Zanzibar-7.'], { context: undefined })
    await stage.terret('run', 'The codeword is Zanzibar-7.')
    await stage.terret('resume', 'latest', 'Which was it?')
    expect(sent(2)).toContain('line 1: The codeword is Zanzibar-7.')
  })

  it('B-REACH-10: has no such tool where contexts are not compacted', async () => {
    await scriptedBy(['Hello.'], { context: { compaction: false } })
    await stage.terret('run', 'Hi.')
    expect(sent(0)).not.toContain('retrieve_original')
  })
})
