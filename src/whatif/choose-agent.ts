// The agent of a harness as a person changes it for a what-if: one model for all its agents, or none, and other
// instructions for one of them.
import type { HarnessOptions } from '../harness.ts'
import type { WhatIfAgent } from './what-if.ts'

/** What is different about an agent in a what-if. */
export type AgentChoices = {
  /** Answers for every agent. Absent: the recording does. */
  readonly model?: HarnessOptions['model']
  /** Replaces the instructions of `agent`. Absent: they stay. */
  readonly instructions?: string
  /** The agent with these instructions. */
  readonly agent: string
}

/** An agent of a harness with these changes, for a what-if. */
export function changedAgent(options: HarnessOptions, { model, instructions, agent }: AgentChoices): WhatIfAgent {
  const { model: _model, models: _models, subagents, ...rest } = options
  const below =
    subagents === undefined || subagents === true
      ? subagents
      : Object.fromEntries(
          Object.entries(subagents).map(([name, { model: _own, ...each }]) => {
            return [
              name,
              { ...each, ...(name === agent && instructions !== undefined ? { instructions } : {}) },
            ] as const
          }),
        )
  const isBelow = below !== undefined && below !== true && Object.hasOwn(below, agent)
  return {
    ...rest,
    ...(model === undefined ? {} : { model }),
    ...(below === undefined ? {} : { subagents: below }),
    ...(instructions === undefined || isBelow ? {} : { instructions }),
  }
}
