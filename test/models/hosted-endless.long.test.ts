// Answers without an end, over real HTTP: each is read up to the bound, which is tens of megabytes.
import { expect, it } from 'vitest'
import { DIALECTS, stage } from './hosted-stage.ts'

it.each(DIALECTS)(
  'B-HOSTED-34: an endless answer over %s is ended (F42)',
  async (dialect) => {
    const { harness } = await stage([{ text: 'again '.repeat(20_000), chaos: { endless: true } }], { dialect })
    const ended = await harness.run('Hello.')
    expect(ended.status === 'failed' && ended.failure.message).toMatch(/longer than \d+ bytes/)
  },
  120_000,
)
