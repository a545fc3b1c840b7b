// The example of docs/guide/triggers.md, word for word but for this line and its imports. guide.test.ts compares and runs it.
import { Harness, type Model, offline } from '../../src/index.ts'
import { createTriggers } from '../../src/triggers/index.ts'

/** Any model can be the triage. This one is a rule, so that the example runs offline. */
const rule: Model = {
  name: 'rule',
  call: async ({ messages }) => {
    const decision = JSON.stringify(messages).includes('DOWN')
      ? { action: 'escalate', target_agent: 'ops', prompt: 'Find out why the shop is down.', reason: 'An outage.' }
      : { action: 'drop', reason: 'A newsletter.' }
    const parts = [{ type: 'text', text: JSON.stringify(decision) }] as const
    return { type: 'reply', parts, calls: [], finish: 'stop', usage: null }
  },
}

const harness = new Harness({
  model: offline(),
  subagents: { ops: { description: 'finds out what is wrong' } },
  triggers: createTriggers({
    models: [rule],
    sources: { mail: { targets: { escalate: ['ops'] }, caps: { perMinute: 60, usdPerDay: 5 } } },
  }),
})

for (const payload of ['Our spring offers', 'The shop is DOWN']) {
  const delivery = { source: 'mail', label: 'mail.received', payload, dedupeKey: payload }
  const { sessionId } = await harness.trigger(delivery)
  const again = await harness.trigger(delivery)
  const result = await harness.session(sessionId).run()
  const { evaluated } = result.status === 'completed' ? (result.output as { evaluated: { action: string } }) : {}
  console.log(`${payload}: ${evaluated?.action}, the second delivery was a duplicate: ${again.duplicate}`)
}
await harness.close()
