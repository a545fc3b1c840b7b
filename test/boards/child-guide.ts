// The example of docs/guide/boards.md, run by guide.test.ts.
import { Harness, memory, scripted } from '../../src/index.ts'
import { boardPlanner, boardText, openBoard, readBoard, todoTool } from '../../src/boards/index.ts'

// The board of one session. A scripted model plays the agent.
const store = memory()
const model = scripted([
  { calls: [{ tool: 'todo', args: { action: 'add', cards: [{ text: 'read the tests' }, { text: 'fix the bug' }] } }] },
  { calls: [{ tool: 'todo', args: { action: 'update_status', id: 't1', status: 'in_progress' } }] },
  'I have begun.',
])
const harness = new Harness({ model, store, tools: [todoTool({ store })], graphs: [boardPlanner()] })
const { sessionId } = await harness.run('Fix the bug.')
console.log(boardText((await readBoard(store, sessionId)).board))

// A board that two share.
const shared = await openBoard(harness, {
  members: [
    { name: 'ana', role: 'lead' },
    { name: 'bob', role: 'worker' },
  ],
  cards: [{ text: 'draft' }, { text: 'review', needs: ['t1'] }],
})
const claims = await Promise.all([shared.claim('ana', { card: 't1' }), shared.claim('bob', { card: 't1' })])
console.log(claims.map(({ type }) => type).join(', '))
await shared.complete('ana', { card: 't1', attempt: 1 })
console.log((await shared.claim('bob')).type)
console.log(boardText(await shared.read()))
await harness.close()
