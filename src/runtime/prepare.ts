// The first effect: prepare a run. Freezes what the run will use and lands as `run.started`.
import type { Effect } from '../kernel/next.ts'
import type { Blob } from '../kernel/ports.ts'
import type { Landing } from './flight.ts'
import { type Agent, textBlob, toolsetBlob, type World } from './world.ts'

type Frozen = { readonly toolset: Blob; readonly instructions: Blob }

export class Preparer {
  readonly #world: World
  /** An agent's tools and instructions do not change while it lives, so they are hashed once. */
  readonly #frozen = new WeakMap<Agent, Frozen>()

  constructor(world: World) {
    this.#world = world
  }

  prepare(effect: Extract<Effect, { type: 'prepare' }>, agentName: string): Landing {
    const agent = this.#world.agent(agentName)
    const { toolset, instructions } = this.#freeze(agent)
    return {
      events: [
        {
          type: 'run.started',
          inputs: effect.inputs,
          wakes: effect.wakes,
          limits: agent.limits,
          toolset: toolset.hash,
          instructions: instructions.hash,
          code: this.#world.code,
        },
      ],
      blobs: [toolset, instructions],
    }
  }

  #freeze(agent: Agent): Frozen {
    const known = this.#frozen.get(agent)
    if (known) return known
    const frozen = { toolset: toolsetBlob(agent.tools), instructions: textBlob(instructionsOf(agent), 'text/plain') }
    this.#frozen.set(agent, frozen)
    return frozen
  }
}

/** The agent's own words, then what each of its tools wants said; a tool that is not there says nothing. */
function instructionsOf({ instructions, tools }: Agent): string {
  const said = [instructions, ...[...tools.values()].map((tool) => tool.instructions)]
  return said.filter((text) => text.trim() !== '').join('\n\n')
}
