// Two runs compared, from logs of a harness with a scripted model.
import { expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, type Script, scripted } from '../../src/index.ts'
import { type ComparedLog, compareLogs } from '../../src/view/compare-logs.ts'

const weather = (answer: string) =>
  defineTool({
    name: 'weather',
    description: 'The weather',
    input: z.object({ place: z.string(), unit: z.string().optional() }),
    effect: 'read',
    execute: async () => answer,
  })

/** The log of one session: the script, and what the tool says. */
async function told(script: Script, answer = 'rain', inputs: readonly string[] = ['How is it?']): Promise<ComparedLog> {
  const harness = new Harness({ model: scripted(script), tools: [weather(answer)] })
  const session = await harness.open({})
  for (const input of inputs) {
    await session.send(input)
    await session.run()
  }
  const { events } = await harness.session(session.id, { stored: true }).events()
  await harness.close()
  return [{ session: session.id, events }]
}

const asks = (args: { readonly place: string; readonly unit?: string }) => ({
  calls: [{ tool: 'weather', args }],
  cost: 1_000,
  usage: { inputTokens: 10, outputTokens: 5 },
})
const differences = (left: ComparedLog, right: ComparedLog) =>
  compareLogs(left, right).pairs.map(({ differs }) => differs.join(' '))

it('B-WEB-60: two runs that said and did the same are the same, whatever their ids and times', async () => {
  const script = [asks({ place: 'Oslo', unit: 'C' }), 'It rains.']
  const again = [asks({ unit: 'C', place: 'Oslo' }), 'It rains.']
  const compared = compareLogs(await told(script), await told(again))
  expect(compared.first).toBeNull()
  expect(compared.pairs.map(({ left, right }) => [left?.type, right?.n])).toEqual([
    ['message', 0],
    ['turn', 1],
    ['turn', 2],
  ])
  expect(compared.left).toMatchObject({ turns: 2, calls: 1, tokens: 15, cost: 1_000 })
})

it('B-WEB-61: the first difference is named: what was said, which calls, their arguments, their results', async () => {
  const base = await told([asks({ place: 'Oslo' }), 'It rains.'])
  expect(differences(base, await told([asks({ place: 'Oslo' }), 'It pours.']))).toEqual(['', '', 'said'])
  expect(differences(base, await told([asks({ place: 'Bergen' }), 'It rains.']))).toEqual(['', 'arguments', ''])
  expect(differences(base, await told([asks({ place: 'Oslo' }), 'It rains.'], 'snow'))).toEqual(['', 'results', ''])
  expect(differences(base, await told(['It rains.']))).toEqual(['', 'alone', ''])
  const other = compareLogs(base, await told(['No idea.']))
  expect([other.first, other.pairs[1]?.differs, other.pairs[2]?.right]).toEqual([1, ['said', 'calls'], null])
})

it('B-WEB-62: a turn that only one of them has stands alone, and the others stay beside each other', async () => {
  const left = await told([asks({ place: 'Oslo' }), asks({ place: 'Bergen' }), 'It rains.'])
  const right = await told([asks({ place: 'Bergen' }), 'It rains.'])
  const { pairs, first } = compareLogs(left, right)
  expect(pairs.map(({ left: ours, right: theirs }) => [ours?.n ?? null, theirs?.n ?? null])).toEqual([
    [0, 0],
    [1, null],
    [2, 1],
    [3, 2],
  ])
  expect(first).toBe(1)
  expect(compareLogs([], right).pairs.every(({ differs }) => differs[0] === 'alone')).toBe(true)
  expect(compareLogs([], [])).toMatchObject({ pairs: [], first: null })
})

it('B-WEB-63: a fork begins with the log it came from, so the first difference is the first turn of its own', async () => {
  const script: Script = ({ messages }) => `answer ${messages.length}`
  const [origin] = await told(script, 'rain', ['one', 'two'])
  const other: Script = ({ messages }) => `other ${messages.length}`
  const harness = new Harness({ model: scripted(other) })
  const session = await harness.open({})
  await session.send('two')
  await session.run()
  const { events } = await harness.session(session.id, { stored: true }).events()
  await harness.close()
  if (!origin) throw new Error('no log')
  const settled = origin.events.find(({ type }) => type === 'run.settled')?.seq ?? 0
  const before = { ...origin, events: origin.events.filter(({ seq }) => seq <= settled) }
  const { pairs, first } = compareLogs([origin], [before, { session: session.id, events }])
  expect(pairs.map(({ differs }) => differs.join(' '))).toEqual(['', '', '', 'said'])
  expect([first, pairs[3]?.left?.n, pairs[3]?.right?.n, pairs[1]?.right?.session]).toEqual([3, 2, 2, origin.session])
})

it('B-WEB-64: five hundred turns that have nothing in common are compared', () => {
  const log = (word: string): ComparedLog => [
    {
      session: word,
      events: Array.from({ length: 1_000 }, (_, i) =>
        i % 2 === 0
          ? { seq: i + 1, at: i, epoch: 1, type: 'model.started' as const, shows: [] }
          : {
              seq: i + 1,
              at: i,
              epoch: 1,
              type: 'agent.message' as const,
              parts: [{ type: 'text' as const, text: `${word} ${i}` }],
              calls: [],
              verdict: { type: 'continue' as const },
            },
      ),
    },
  ]
  const { pairs, first } = compareLogs(log('a'), log('b'))
  expect([pairs.length, first]).toEqual([500, 0])
})
