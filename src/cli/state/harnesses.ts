// Harnesses of a long-running command: one for each folder, kind of agent, mode and set of extra tools, opened when it
// is needed. The setup of its folder limits a session, whichever process drives it.
import { hash } from 'node:crypto'
import type { Harness, HarnessOptions, ToolSource } from '../../index.ts'
import { makeFolderAgent, type FolderAgentOptions } from './folder-agent.ts'
import { addAgentsAndBoard, CRON_AGENT, isDefinedAgent } from './defined-agents.ts'
import { SCRIPT } from '../../view/script-cell.ts'
import type { CommandArgs } from '../args.ts'
import { clean } from '../../view/clean.ts'
import { type OptionsWithMemory, addMemory } from './folder-memory.ts'
import type { CommandContext } from './command-context.ts'
import { PROGRAM } from './own-program.ts'
import { warn } from '../present/print.ts'
import { type FolderSetup, readSetup } from './folder-setup.ts'
import { LEASE_MS, setupFlagsOf } from './drive-session.ts'
import { triggerParts } from './folder-triggers.ts'
import { workflowOfAgent } from './workflow-agents.ts'

export type FolderHarness = Pick<OptionsWithMemory, 'close'> & {
  readonly setup: FolderSetup
  readonly harness: Harness
}

export type FolderHarnessOptions = {
  readonly folder: string
  /** The agent of the session to drive. */
  readonly agent?: string | undefined
  readonly mode?: string | undefined
  /** The editor access of the tools. The same for all harnesses of a folder. */
  readonly editor?: FolderAgentOptions['editor']
  /** Makes extra tools for the agent of this folder. `name` identifies them. */
  readonly more?: { readonly name: string; readonly make: (setup: FolderSetup) => Promise<ExtraTools> } | undefined
}
type ExtraTools = { readonly tools: readonly ToolSource[]; readonly secrets: Readonly<Record<string, string>> }

/** `note`: called for agents and tools that are left out. `opened`: called with each harness. */
type HarnessesOptions = Pick<HarnessOptions, 'onError' | 'worker'> & {
  readonly note?: (text: string) => void
  readonly opened?: (harness: Harness) => void
}

export class Harnesses {
  readonly #place: CommandContext
  readonly #call: CommandArgs
  readonly #shown: HarnessesOptions
  readonly #crews = new Map<string, Promise<FolderHarness>>()

  constructor(place: CommandContext, call: CommandArgs, shown: HarnessesOptions = {}) {
    this.#place = place
    this.#call = call
    this.#shown = shown
  }

  of(options: FolderHarnessOptions): Promise<FolderHarness> {
    const name = harnessKey(options)
    const known = this.#crews.get(name)
    if (known) return known
    const crew = this.#open(options)
    this.#crews.set(name, crew)
    crew.catch(() => this.#crews.delete(name))
    return crew
  }

  async close(): Promise<void> {
    await Promise.all([...this.#crews.values()].map((crew) => crew.then(closeHarness).catch(() => {})))
  }

  async #open({ folder, agent, mode, more, editor }: FolderHarnessOptions): Promise<FolderHarness> {
    const { home, store } = this.#place
    const wishes = setupFlagsOf(this.#call)
    const setup = await readSetup(home, folder, mode === undefined ? wishes : { ...wishes, mode })
    const { note, opened, ...shown } = this.#shown
    // The offline workflow reads neither instructions nor keys, so notes about them do not matter.
    const silent = this.#call.is('quiet') || workflowOfAgent(agent) === 'report'
    if (!silent) for (const text of setup.notes) warn(clean(text))
    const own = await makeFolderAgent(setup, { models: this.#call.texts('model'), agent, editor })
    const parts = await addAgentsAndBoard(own, setup, agent, store)
    if (note) for (const text of parts.troubles) note(text)
    const added = more ? await more.make(setup) : null
    const wanted = added
      ? {
          ...parts.options,
          tools: [...(parts.options.tools ?? []), ...added.tools],
          secrets: { ...parts.options.secrets, ...added.secrets },
        }
      : parts.options
    // A workflow has no agents of its own that an event could be given to.
    const events = workflowOfAgent(agent) === null ? await triggerParts(setup, this.#call.texts('model')) : {}
    const heard = events.triggers
      ? { ...wanted, triggers: events.triggers, secrets: { ...wanted.secrets, ...events.secrets } }
      : wanted
    const { options, close } = await addMemory(heard, setup, store)
    const { Harness } = await import('../../index.ts')
    const worker = { leaseMs: LEASE_MS, ...shown.worker }
    const harness = new Harness({ ...options, ...shown, program: PROGRAM, store, worker })
    opened?.(harness)
    return { setup, close, harness }
  }
}

function harnessKey({ folder, agent, mode = '', more }: FolderHarnessOptions): string {
  const kind = isDefinedAgent(agent)
    ? 'agents'
    : agent === CRON_AGENT || agent === SCRIPT
      ? agent
      : (workflowOfAgent(agent) ?? '')
  return JSON.stringify([kind, folder, mode, more ? hash('sha256', more.name) : ''])
}

async function closeHarness({ harness, close }: FolderHarness): Promise<void> {
  await harness.close()
  await close()
}
