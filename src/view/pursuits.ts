// The names of pursuits. A pursuit is a session that works towards an outcome in rounds, each graded in a session of its
// own.

/** The consumer that grades rounds and begins the next ones. No consumer of a host can have this name. */
export const OUTCOMES = 'outcomes'
/** In the metadata of a run: the run is a round, or the grading of it. The value is that of `roundName`. */
export const PURSUIT = 'terret:outcome'
/** The label of a grader's session: the session whose rounds it grades. */
export const PURSUED = 'outcome.of'

/** The names of all graders' agents begin with this. Agents of users cannot have a colon in their names. */
const GRADER_AGENTS = 'outcome:'
const ROUND = /^([0-9a-f]{24})\.([1-9]\d?)$/
const GRADER_ID = 'outcome.'

export function graderAgent(agent: string): string {
  return GRADER_AGENTS + agent
}

export function isGraderAgent(agent: string): boolean {
  return agent.startsWith(GRADER_AGENTS)
}

/** The agent whose work a grader's agent grades. Any other agent stands for itself. */
export function gradedAgent(agent: string): string {
  return isGraderAgent(agent) ? agent.slice(GRADER_AGENTS.length) : agent
}

/** Names a round of a pursuit. The pursuit is named by its fingerprint. */
export function roundName(fingerprint: string, round: number): string {
  return `${fingerprint}.${round}`
}

/** The session in which this round is graded. */
export function graderId(fingerprint: string, round: number): string {
  return GRADER_ID + roundName(fingerprint, round)
}

export type RoundName = { readonly fingerprint: string; readonly round: number }

/** Null if the text names no round. */
export function readRoundName(text: unknown): RoundName | null {
  const found = typeof text === 'string' ? ROUND.exec(text) : null
  return found === null ? null : { fingerprint: found[1] ?? '', round: Number(found[2]) }
}

/** Null if no grader's session can have this id. */
export function readGraderId(session: string): RoundName | null {
  return session.startsWith(GRADER_ID) ? readRoundName(session.slice(GRADER_ID.length)) : null
}
