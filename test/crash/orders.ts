// What the plans of the crash test order of children: who is started, told, waited for, answered and closed. A child's task is a plan too.
import type { Json } from '../../src/kernel/content.ts'
import type { Message } from '../../src/kernel/transcript.ts'
import type { Plan, PlannedOrder } from './plan.ts'
import type { Chance } from './random.ts'

export function orderOf(chance: Chance, taskOf: () => Plan): PlannedOrder {
  const which = chance.integer(0, 99)
  const order = chance.weighted<PlannedOrder['order']>([
    ['spawn', 6],
    ['many', 3],
    ['wait', 3],
    ['steer', 3],
    ['continue', 2],
    ['close', 1],
  ])
  if (order === 'many') return { order, tasks: Array.from({ length: chance.integer(2, 4) }, taskOf) }
  if (order === 'continue') return { order, which, task: taskOf() }
  if (order !== 'spawn') return { order, which }
  const key = chance.happens(0.3) ? chance.pick(['dig', 'look up']) : null
  return { order, task: taskOf(), blocking: chance.happens(0.2), key }
}

/** The call that the model makes of it. Without a child that could be meant it lists its children. */
export function ordered(planned: PlannedOrder, messages: readonly Message[]): { tool: string; args: Json } {
  if (planned.order === 'spawn') {
    const { task, blocking, key } = planned
    const prompt = JSON.stringify(task)
    const named = key === null ? {} : { task_key: key }
    return { tool: 'spawn_subagent', args: { prompt, ...(blocking ? { blocking } : named) } }
  }
  if (planned.order === 'many') {
    return {
      tool: 'spawn_parallel_agents',
      args: { tasks: planned.tasks.map((task) => ({ prompt: JSON.stringify(task) })) },
    }
  }
  const known = childrenIn(messages)
  const id = known[planned.which % known.length]
  if (id === undefined) return { tool: 'list_subagents', args: {} }
  if (planned.order === 'wait') return { tool: 'wait_subagent', args: { id, timeout_secs: 1 } }
  if (planned.order === 'steer') return { tool: 'steer_subagent', args: { id, message: 'Mind the time.' } }
  if (planned.order === 'continue')
    return { tool: 'continue_subagent', args: { id, answer: JSON.stringify(planned.task) } }
  return { tool: 'close_subagent', args: { id } }
}

function childrenIn(messages: readonly Message[]): readonly string[] {
  const told = messages.filter(({ role }) => role === 'tool').map((message) => JSON.stringify(message))
  const found = told.flatMap((text) => [...text.matchAll(/subagent_session_id\\?":\\?"([^"\\]+)/g)].map(([, id]) => id))
  return [...new Set(found)].flatMap((id) => id ?? [])
}
