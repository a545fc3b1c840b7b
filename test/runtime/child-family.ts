// A process that runs a session with two children until it rests, for children-kill.long.test.ts, which kills it on the way. It says a
// line each time it comes to the place where it is to be killed, and stays there; without a place it says how the run ended.
import { appendFileSync } from 'node:fs'
import { z } from 'zod'
import { defineTool, Harness, type Result, type CompleteStore } from '../../src/index.ts'
import type { Write } from '../../src/ports/store.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { ask, type Line, play, resultsIn, use } from './children-play.ts'
import { storeWith } from '../../sim/store-with.ts'

const [file = '', journal = '', session = '', place = ''] = process.argv.slice(2)

const note = defineTool({
  name: 'note',
  description: 'writes down who called it',
  input: z.object({}),
  effect: 'once',
  execute: (_args, context) => {
    appendFileSync(journal, `${context.session}\n`)
    return 'noted'
  },
})

const finish: Line = ({ session: child }) => {
  if (place !== 'work') return `${child} is done`
  process.stdout.write('work\n')
  return { stall: true }
}
const all: Line = (request) =>
  resultsIn(request)
    .map(({ content }) => content)
    .join(', ')
const model = play({ root: [ask('a', 'b'), all], a: [use('note'), finish], b: [use('note'), finish] })

const store = sqlite(file)
const harness = new Harness({
  model,
  tools: [note],
  store: halting(store),
  subagents: true,
  secrets: {},
  worker: { leaseMs: 1_000 },
})
const result = await started(session)
process.stdout.write(`${JSON.stringify({ status: result.status, text: result.text })}\n`)
await harness.close()
await store.close()

/** The first process opens the session; those that follow go on with it. */
async function started(id: string): Promise<Result> {
  if ((await store.card(id)) !== null) return harness.session(id).run()
  await harness.open({ id })
  return harness.session(id).run('Go.')
}

/** A store whose commit at the chosen place reaches the disk but never returns to its caller. */
function halting(inner: CompleteStore): CompleteStore {
  const commit: CompleteStore['commit'] = async (writes) => {
    const receipts = await inner.commit(writes)
    if (!writes.some(isThere)) return receipts
    process.stdout.write(`${place}\n`)
    return new Promise(() => {})
  }
  return storeWith(inner, { commit })
}

function isThere(write: Write): boolean {
  if (write.lane !== 'owner' || !write.session.includes('~')) return false
  if (place === 'birth') return write.events.some(({ type }) => type === 'session.created')
  return place === 'end' && write.events.some(({ type }) => type === 'run.settled')
}
