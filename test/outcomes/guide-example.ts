// The example of docs/guide/outcomes.md, word for word but for this line and its imports. guide.test.ts compares and runs it.
import { awaitPursuit, Harness, memory, type Model } from '../../src/index.ts'

/** Any model can work and grade. This one is a rule, so that the example runs offline. */
const rule: Model = {
  name: 'rule',
  call: async ({ instructions, messages }) => {
    const said = JSON.stringify(messages.at(-1))
    const reply = (text: string) =>
      ({ type: 'reply', parts: [{ type: 'text', text }], calls: [], finish: 'stop', usage: null }) as const
    if (!instructions.startsWith('You grade a result'))
      return reply(said.includes('Round 2') ? 'Roses are red, the sky is blue.' : 'Roses are red.')
    const met = said.includes('blue') ? 'yes' : 'no'
    const verdict = { criteria: [{ criterion: 'It names two colours', met, why: 'counted' }], summary: '' }
    return {
      ...reply(''),
      calls: [{ id: 'a', tool: 'final_result', args: JSON.stringify(verdict) }],
      finish: 'calls',
    }
  },
}

const harness = new Harness({ model: rule, store: memory() })
const session = await harness.open()
await session.pursue({
  description: 'Write a line about roses.',
  rubric: '- It names two colours.',
  roundsMax: 5, // 3 unless you say otherwise
  usd: 0.5, // for all rounds and graders
})
const { end, history } = await awaitPursuit(session)
for (const { round, state, met, of } of history) console.log(`round ${round}: ${state}, ${met} of ${of}`)
console.log(`${end}: ${(await session.result())?.text}`)
await harness.close()
