// Harnesses of a long-lived command: one for each folder, kind of agent, mode and set of extra tools, opened when it is needed. The setup
// of its folder limits a session, whoever drives it.
import { hash } from 'node:crypto'
import type { Harness, HarnessOptions, ToolSource } from '../../index.ts'
import { agentFor, type AgentWishes } from './agent.ts'
import { equipped, isDefined } from './agents.ts'
import type { Call } from '../args.ts'
import { clean } from '../../view/clean.ts'
import { type Remembering, remembering } from './memory.ts'
import type { Place } from './place.ts'
import { PROGRAM } from './program.ts'
import { warn } from '../present/print.ts'
import { type Setup, setupFor } from './setup.ts'
import { LEASE_MS, wishesOf } from './work.ts'
import { workflowOf } from './workflows.ts'

export type Crew = Pick<Remembering, 'close'> & { readonly setup: Setup; readonly harness: Harness }

export type CrewOptions = {
  readonly folder: string
  /** The agent of the session to drive. */
  readonly agent?: string | undefined
  readonly mode?: string | undefined
  /** What an editor does for the tools. The same for all crews of a folder. */
  readonly editor?: AgentWishes['editor']
  /** Makes more tools for the agent of this folder. `name` tells them apart from others. */
  readonly more?: { readonly name: string; readonly make: (setup: Setup) => Promise<More> } | undefined
}
type More = { readonly tools: readonly ToolSource[]; readonly secrets: Readonly<Record<string, string>> }

/** `note`: told of agents and tools that are left out. */
type Shown = Pick<HarnessOptions, 'onError' | 'worker' | 'drives'> & { readonly note?: (text: string) => void }

export class Harnesses {
  readonly #place: Place
  readonly #call: Call
  readonly #shown: Shown
  readonly #crews = new Map<string, Promise<Crew>>()

  constructor(place: Place, call: Call, shown: Shown = {}) {
    this.#place = place
    this.#call = call
    this.#shown = shown
  }

  of(options: CrewOptions): Promise<Crew> {
    const name = nameOf(options)
    const known = this.#crews.get(name)
    if (known) return known
    const crew = this.#open(options)
    this.#crews.set(name, crew)
    crew.catch(() => this.#crews.delete(name))
    return crew
  }

  async close(): Promise<void> {
    await Promise.all([...this.#crews.values()].map((crew) => crew.then(leave).catch(() => {})))
  }

  async #open({ folder, agent, mode, more, editor }: CrewOptions): Promise<Crew> {
    const { home, store } = this.#place
    const wishes = wishesOf(this.#call)
    const setup = await setupFor(home, folder, mode === undefined ? wishes : { ...wishes, mode })
    const { note, ...shown } = this.#shown
    // The offline workflow reads neither instructions nor keys, so notes about them do not matter.
    const silent = this.#call.is('quiet') || workflowOf(agent) === 'report'
    if (!silent) for (const text of setup.notes) warn(clean(text))
    const own = await agentFor(setup, { models: this.#call.texts('model'), agent, editor })
    const parts = await equipped(own, setup, agent, store)
    if (note) for (const text of parts.troubles) note(text)
    const added = more ? await more.make(setup) : null
    const wanted = added
      ? {
          ...parts.options,
          tools: [...(parts.options.tools ?? []), ...added.tools],
          secrets: { ...parts.options.secrets, ...added.secrets },
        }
      : parts.options
    const { options, close } = await remembering(wanted, setup, store)
    const { Harness } = await import('../../index.ts')
    const worker = { leaseMs: LEASE_MS, ...shown.worker }
    return { setup, close, harness: new Harness({ ...options, ...shown, program: PROGRAM, store, worker }) }
  }
}

function nameOf({ folder, agent, mode = '', more }: CrewOptions): string {
  const kind = isDefined(agent) ? 'agents' : (workflowOf(agent) ?? '')
  return JSON.stringify([kind, folder, mode, more ? hash('sha256', more.name) : ''])
}

async function leave({ harness, close }: Crew): Promise<void> {
  await harness.close()
  await close()
}
