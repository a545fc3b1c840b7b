// The replies of a queue's planner: the calls for the items whose turn it is, or a wake for the next one. It runs
// nothing: the same messages and the same time give the same reply in any process.
import type { Message } from '../kernel/transcript.ts'
import type { Reply } from '../ports/model.ts'
import { SLEEP, QUEUE_WIDTH, WORK } from './queue-agent.ts'
import { encodeQueueCheckpoint, foldQueue, planQueue, type QueuePlan } from './item-queue.ts'

/** After so many messages the reply repeats the queue, and what is older is no longer read. */
const MESSAGES_MAX = 1_000

export function replyFromQueue(messages: readonly Message[], now: number, seq: number): Reply {
  const queue = foldQueue(messages)
  const plan = planQueue(queue, now, QUEUE_WIDTH)
  const calls = isAlreadyWoken(messages, plan) ? [] : callsOf(plan, seq)
  const parts = messages.length > MESSAGES_MAX ? [{ type: 'text', text: encodeQueueCheckpoint(queue) } as const] : []
  return { type: 'reply', parts, calls, finish: calls.length > 0 ? 'calls' : 'stop', usage: null }
}

/** The call before asked for a wake at this time already. */
function isAlreadyWoken(messages: readonly Message[], { until }: QueuePlan): boolean {
  const last = messages.at(-1)
  return until !== null && last?.role === 'tool' && last.tool === SLEEP && last.content === String(until)
}

function callsOf({ calls, until }: QueuePlan, seq: number): Reply['calls'] {
  if (until !== null) return [{ id: `call_${seq}_0`, tool: SLEEP, args: JSON.stringify({ until: String(until) }) }]
  return calls.map(({ key, data, tries, reason, repeated }, i) => {
    const args = repeated ? { key, data, tries, repeated, reason } : { key, data, tries }
    return { id: `call_${seq}_${i}`, tool: WORK, args: JSON.stringify(args) }
  })
}
