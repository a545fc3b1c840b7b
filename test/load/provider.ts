// The provider of the load and soak tests, as a process of its own: every reply comes in pieces over some time, as those of a model do. A
// message that says "decide" is answered by a call that a person must allow, a question of a triage by a decision, and the order to sum a
// conversation up by a summary.
import { type ChaosReply, type ChaosRequest, startChaos } from '../../src/testing/index.ts'

const [, , pieces = '40', everyMs = '400'] = process.argv
/** About as long as one piece is in the dialect of the provider. */
const PIECE_BYTES = 220
/** From half as long to half as long again, so that replies do not begin and end together. */
const lengthOf = (n: number): number => 0.5 + ((n * 37) % 100) / 100
const SENTENCE = 'A log is a list of what happened, in the order it happened. '

const SUMMARY = ['Goal', 'Completed Actions', 'Active State', 'Pending / Open (reference only)', 'Critical Context']
  .map(
    (name) =>
      `## ${name}\nUnder ${name} stands what the user and the agent spoke of until now: notes with numbers, in their order.`,
  )
  .join('\n')

/** Every third event is a task for an agent. */
function decisionOf(n: number): string {
  const task = { action: 'react', target_agent: 'tools_agent', prompt: `Look at event ${n}.`, reason: 'It is a task.' }
  return JSON.stringify(n % 3 === 0 ? task : { action: 'drop', reason: 'It is noise.' })
}

type Said = { readonly role: string; readonly content?: unknown }

function reply({ body }: ChaosRequest, n: number): ChaosReply {
  const { messages = [] } = (body ?? {}) as { readonly messages?: readonly Said[] }
  const last = messages.at(-1)
  const asked = JSON.stringify(messages.filter(({ role }) => role !== 'assistant'))
  if (asked.includes('## Completed Actions')) return { text: SUMMARY }
  if (asked.includes('What is to be done about this event?')) return { text: decisionOf(n) }
  if (last?.role === 'user' && JSON.stringify(last.content).includes('decide'))
    return { calls: [{ tool: 'write', args: { path: `${n}.txt`, content: 'x' } }] }
  const deltas = Math.ceil(Number(pieces) * lengthOf(n))
  const text = SENTENCE.repeat(Math.ceil(deltas / 2))
  return { text, deltas, chaos: { splitBytes: PIECE_BYTES, dripMs: Number(everyMs) } }
}

const { url } = await startChaos({ script: reply })
console.log(url)
