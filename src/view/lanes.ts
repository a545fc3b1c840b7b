// The names of lanes. A lane is a session whose messages are settled runs of other sessions, for one consumer. All runs
// of a session are in one lane, so they stay in order.

/** The names of all lanes' agents begin with this. Agents of users cannot have a colon in their names. */
export const LANE_AGENTS = 'consumer:'
/** Sixteen sessions take the messages of one consumer, so that many runs can end at once. */
const LANES = 16
/** The ids of all lanes come after the first of these in the order of ids, and before the second. */
export const LANE_IDS = ['consumer.', 'consumer/'] as const
const LANE_ID = /^consumer\.[A-Za-z0-9_-]{1,64}\.\d{1,2}(?:\.[0-9a-f]{8})?$/

/** The name of the agent, and of the planner, of a consumer's lanes. */
export function laneAgent(consumer: string): string {
  return LANE_AGENTS + consumer
}

export function isLaneAgent(agent: string): boolean {
  return agent.startsWith(LANE_AGENTS)
}

/** The consumer of a lane, from the name of its agent. */
export function consumerOfAgent(agent: string): string {
  return agent.slice(LANE_AGENTS.length)
}

/** The lane for the runs of this session. Each program on a store has lanes of its own; an unnamed one has no `program`. */
export function laneId(consumer: string, session: string, program: string | null): string {
  const own = program === null ? '' : `.${hashOf(program).toString(16).padStart(8, '0')}`
  return `consumer.${consumer}.${hashOf(session) % LANES}${own}`
}

/** Whether a session with this id may be a lane; its agent says whether it is one. */
export function mayBeLane(session: string): boolean {
  return LANE_ID.test(session)
}

/** FNV-1a. It must never change: a lane is found again by it. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0
  return hash
}
