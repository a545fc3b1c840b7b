// The first effect: prepare a run. Asks the sources of tools, freezes what the run will use and lands as `run.started`.
import type { Effect } from '../kernel/next.ts'
import type { Blob } from '../kernel/ports.ts'
import type { Landing } from './flight.ts'
import type { Tools } from './toolbox.ts'
import { type Agent, textBlob, toolsetBlob, type World } from './world.ts'

type Frozen = { readonly toolset: Blob; readonly instructions: Blob; readonly policy: Blob | null }

export class Preparer {
  readonly #world: World
  /** A set of tools does not change; when an agent's tools do, it gets another set. So each is hashed once. */
  readonly #frozen = new WeakMap<Tools, Frozen>()

  constructor(world: World) {
    this.#world = world
  }

  async prepare(
    effect: Extract<Effect, { type: 'prepare' }>,
    agentName: string,
    signal: AbortSignal,
  ): Promise<Landing> {
    const agent = this.#world.agent(agentName)
    const { toolset, instructions, policy } = this.#freeze(agent, await agent.tools.open(signal))
    return {
      events: [
        {
          type: 'run.started',
          inputs: effect.inputs,
          wakes: effect.wakes,
          limits: agent.limits,
          toolset: toolset.hash,
          instructions: instructions.hash,
          ...(policy ? { policy: policy.hash } : {}),
          code: this.#world.code,
        },
      ],
      blobs: policy ? [toolset, instructions, policy] : [toolset, instructions],
    }
  }

  #freeze(agent: Agent, tools: Tools): Frozen {
    const known = this.#frozen.get(tools)
    if (known) return known
    const { redactor } = this.#world
    const said = redactor.text(instructionsOf(agent, tools))
    const { rules, ...rest } = agent.policy
    const none = rules.length === 0 && Object.keys(rest).length === 0
    const frozen = {
      toolset: toolsetBlob(tools, redactor),
      instructions: textBlob(said, 'text/plain'),
      policy: none ? null : textBlob(redactor.text(JSON.stringify(agent.policy)), 'application/json'),
    }
    this.#frozen.set(tools, frozen)
    return frozen
  }
}

/** The agent's own words, then what each of its tools wants said; a tool that is not there says nothing. */
function instructionsOf({ instructions, output }: Agent, tools: Tools): string {
  const said = [instructions, ...[...tools.values()].map((tool) => tool.instructions), output?.instructions ?? '']
  return said.filter((text) => text.trim() !== '').join('\n\n')
}
