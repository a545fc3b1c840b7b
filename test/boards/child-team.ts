// A process with a team, for team-kill.long.test.ts. The first one starts the team and is killed after so many commits; the next one only
// works, unless the team was not started by then. It prints the cards when all are done.
import { BoardHandle, boardPlanner, startTeam, teamAgents } from '../../src/boards/index.ts'
import { Harness, type Request, scripted, type Step } from '../../src/index.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { killable } from '../runtime/killable.ts'

const [file = '', last = '0'] = process.argv.slice(2)
const TASKS = [
  { text: 'a' },
  { text: 'b', needs: ['t1'] },
  { text: 'c', needs: ['t1'] },
  { text: 'd', needs: ['t2', 't3'] },
]
const MEMBERS = ['ana', 'bob'].map((name) => ({ name, agent: 'coder' }))

/** Claims one card in a run, completes it, and ends the run: the rest is for those that are told. */
function step({ messages }: Request): Step {
  if (!JSON.stringify(messages).includes('You are the member')) return 'I heard.'
  const from = messages.findLastIndex(({ role }) => role === 'user')
  const said = messages
    .slice(from)
    .flatMap((message) => (message.role === 'tool' && typeof message.content === 'string' ? [message.content] : []))
  const word = (args: object): Step => ({ calls: [{ tool: 'board', args: { ...args } }] })
  const [, card, attempt] = /^Started: (t\d+) is yours \(attempt (\d+)\)/.exec(said.at(-1) ?? '') ?? []
  if (card !== undefined) return word({ action: 'complete', card, attempt: Number(attempt) })
  return said.length === 0 ? word({ action: 'claim' }) : 'I end my run.'
}

const store = sqlite(file)
const harness: Harness = new Harness({
  model: scripted(step),
  store: killable(store, Number(last)),
  secrets: {},
  worker: { leaseMs: 1_000 },
  subagents: teamAgents({ coder: { description: 'Codes.', toolAccess: { allow: [] } } }, { sessions: () => harness }),
  graphs: [boardPlanner()],
})
const working = new AbortController()
void harness.work({ signal: working.signal }).catch(() => {})
const lead = await harness.open({ id: 'lead', reuse: true })
if ((await lead.status({ include: ['children'] })).children.length < MEMBERS.length)
  await startTeam(harness, { lead: lead.id, members: MEMBERS, tasks: TASKS })
const board = new BoardHandle(harness, 'lead-board')
for (;;) {
  const { cards } = await board.read()
  if (cards.every(({ status }) => status === 'done')) {
    process.stdout.write(`${cards.map(({ id, status }) => `${id} ${status}`).join(', ')}\n`)
    break
  }
  await new Promise((go) => setTimeout(go, 50))
}
working.abort()
await harness.close()
await store.close()
