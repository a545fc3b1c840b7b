// Many events at once: only the few that matter cost more than one small request.
import { describe, expect, it } from 'vitest'
import { DROP, ESCALATE, mail, storeOf, withTriggers } from './stage.ts'

describe('many events', () => {
  it('B-TRIGGER-27: of 1,000 newsletters and one outage only the outage reaches an agent', async () => {
    const stage = withTriggers({
      triage: ({ messages }) => (JSON.stringify(messages).includes('DOWN') ? ESCALATE : DROP),
      options: { store: storeOf('sqlite') },
    })
    const all = Array.from({ length: 1_001 }, (_, i) => (i === 613 ? 'The shop is DOWN' : `Offer ${i}`))
    const sent = await Promise.all(all.map((payload) => stage.harness.trigger(mail(payload))))
    await stage.harness.work({ idleMs: 50 })
    const ends = await Promise.all(sent.map((receipt) => stage.harness.session(receipt.sessionId).result()))
    const actions = ends.map((end) =>
      end && 'output' in end ? (end.output as { evaluated: { action: string } }).evaluated.action : null,
    )
    expect(actions.filter((action) => action === 'escalate')).toHaveLength(1)
    expect(actions[613]).toBe('escalate')
    expect(actions.filter((action) => action === 'drop')).toHaveLength(1_000)
    expect(stage.triage.every(({ tools }) => tools.length === 0)).toBe(true)
    expect(stage.agents).toHaveLength(1)
  })
})
