// The example of docs/guide/evals.md, word for word but for this line and its imports. guide.test.ts compares and runs it.
import { defineTool, type Model, sqlite } from '../../src/index.ts'
import { asked, calls, compare, contains, defineSuite, judgedBy, runSuite } from '../../src/evals/index.ts'

const text = (said: string) =>
  ({ type: 'reply', parts: [{ type: 'text', text: said }], calls: [], finish: 'stop', usage: null }) as const

/** Any model can be the agent's. This one is a rule, so that the example runs offline. */
const clerk = (isCareful: boolean): Model => ({
  name: isCareful ? 'careful' : 'hasty',
  call: async ({ messages }) => {
    const question = JSON.stringify(messages)
    if (messages.at(-1)?.role === 'tool') return text('The 20 euros are on their way.')
    if (isCareful && question.includes('three years')) return text('That was too long ago for a refund.')
    return { ...text(''), calls: [{ id: 'c1', tool: 'refund', args: '{"euros":20}' }], finish: 'calls' }
  },
})
const judge: Model = {
  name: 'judge',
  call: async ({ messages }) => {
    const isKind = !JSON.stringify(messages).includes('too long ago')
    return text(JSON.stringify({ criteria: [{ criterion: 'kind', reason: 'By its words.', met: isKind }] }))
  },
}
const refund = defineTool({
  name: 'refund',
  description: 'Pays money back.',
  input: { type: 'object', properties: { euros: { type: 'number' } }, required: ['euros'] },
  effect: 'once',
  approval: 'always',
  execute: () => 'paid',
})

const suite = (isCareful: boolean) =>
  defineSuite({
    name: 'refunds',
    agent: { model: clerk(isCareful), tools: [refund], instructions: 'You refund what was bought this year.' },
    cases: [
      ...['a lamp', 'a chair', 'a table', 'a shelf'].map((what, i) => ({
        id: `new-${i + 1}`,
        input: `I bought ${what} last week, and it is broken.`,
        expected: { says: 'on their way', calls: [{ tool: 'refund', args: { euros: 20 } }] },
      })),
      ...['a bed', 'a desk'].map((what, i) => ({
        id: `old-${i + 1}`,
        input: `I bought ${what} three years ago, and it is broken.`,
        expected: { says: 'too long ago', calls: [] },
      })),
    ],
    trials: 2,
    people: 'allow',
    scorers: [
      contains(({ expected }) => (expected as { says: string }).says),
      calls(({ expected }) => (expected as { calls: { tool: string }[] }).calls, { mode: 'exact' }),
      asked('refund'),
      judgedBy({ rubric: { kind: 'is kind' }, model: judge, passes: 0 }),
    ],
    gate: { rate: 0.9, must: ['old-1'] },
  })

const store = sqlite('evals.db')
const hasty = await runSuite(suite(false), { store })
console.log(hasty.status, hasty.counts, hasty.reasons)
const [, why] = hasty.cases.find(({ id }) => id === 'old-1')?.trials[0]?.scores ?? []
console.log(why?.why)

const careful = await runSuite(suite(true), { store, baseline: hasty })
console.log(careful.status, careful.counts, compare(hasty, careful).text)

// Again, and nothing is asked: every trial is a session that is there.
const again = await runSuite(suite(true), { store })
console.log(again.cases[0]?.trials[0]?.session === careful.cases[0]?.trials[0]?.session)
await store.close()
