// A process that uses a shared board in an SQLite file. `claim FILE BOARD CARD N`: N members claim one card at once, and it prints the
// outcomes. `hold FILE BOARD`: a session of the member ana claims a card, says so, and hangs in a call until the process is killed.
// Run by shared.test.ts.
import { defineTool, Harness, scripted } from '../../src/index.ts'
import { BoardHandle, boardPlanner } from '../../src/boards/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'

const [mode = '', file = '', id = '', card = '', from = '0', count = '0'] = process.argv.slice(2)
const store = sqlite(file)

if (mode === 'claim') {
  const harness = new Harness({ model: scripted(['.']), store, graphs: [boardPlanner()] })
  const board = new BoardHandle(harness, id)
  process.stdout.write('ready\n')
  await new Promise((resolve) => process.stdin.once('data', resolve))
  const members = Array.from({ length: Number(count) }, (_, i) => `m${Number(from) + i}`)
  const outcomes = await Promise.all(members.map((by) => board.claim(by, { card })))
  process.stdout.write(`${JSON.stringify(outcomes.map(({ type }) => type))}\n`)
  await harness.close()
  process.exit(0)
}

const hang = defineTool({
  name: 'hang',
  description: 'Claims a card and hangs.',
  input: { type: 'object' },
  effect: 'once',
  execute: async () => {
    const { type } = await new BoardHandle(harness, id).claim('ana')
    process.stdout.write(`${type}\n`)
    await new Promise((resolve) => setTimeout(resolve, 60_000))
    return 'never'
  },
})
const model = scripted([{ calls: [{ tool: 'hang' }] }, 'Done.'])
const harness: Harness = new Harness({ model, store, tools: [hang], graphs: [boardPlanner()] })
await harness.session('ana').run('Work.')
