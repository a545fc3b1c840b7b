// The three tiers of agents, and which may start which. This file has only the rule; it is applied when agents are
// made, and again when one is started.

/** `chat` talks to people, `reasoning` plans and splits work, `worker` does it. */
export type Tier = 'chat' | 'reasoning' | 'worker'
export const TIERS: readonly Tier[] = ['chat', 'reasoning', 'worker']

const BELOW: Readonly<Record<Tier, readonly Tier[]>> = {
  chat: ['reasoning', 'worker'],
  reasoning: ['worker'],
  worker: [],
}

/** An agent without a tier may start any agent, and any agent may start it. */
export function tierAllows(parent: Tier | undefined, child: Tier | undefined): boolean {
  return parent === undefined || child === undefined || BELOW[parent].includes(child)
}

/** The end of a sentence that names the parent's rule. */
export function tierRule(parent: Tier): string {
  const below = BELOW[parent]
  return below.length === 0
    ? `a ${parent} agent starts no other agents`
    : `a ${parent} agent starts only ${below.join(' and ')} agents`
}
